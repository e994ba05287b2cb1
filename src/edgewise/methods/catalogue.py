"""Methods, by name and as objects. One file a method; a name is a composition of parts."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from edgewise.errors import MethodError, UnknownName
from edgewise.gradients import (
    ASVRG,
    LSVRG,
    PAGE,
    SAG,
    SAGA,
    SARAH,
    SEGA,
    SGD,
    SVRG,
    FiniteDifference,
    Full,
    PlainSVRG,
)
from edgewise.methods.acc_vr_extra import AccVRExtra
from edgewise.methods.admm import DADMM
from edgewise.methods.apapc import APAPC
from edgewise.methods.contract import Method, require_method
from edgewise.methods.d2 import D2
from edgewise.methods.dcs import DCS
from edgewise.methods.dgd import DGD
from edgewise.methods.edge import EDGE
from edgewise.methods.extra import EXTRA
from edgewise.methods.network_dane import NetworkDane
from edgewise.methods.newton_pd import NewtonPD
from edgewise.methods.nids import NIDS
from edgewise.methods.pdmm import PDMM
from edgewise.methods.pmgt import PMGT
from edgewise.methods.primal_dual import PrimalDual
from edgewise.methods.push import PushTracking
from edgewise.methods.tracking import GradientTracking

AUTO = "auto"  # `methods/auto.py` chooses; no method by itself

CATALOGUE: dict[str, tuple[Callable[[], Method], str]] = {
    "newton-pd": (
        lambda: NewtonPD(),
        "fewest rounds, nothing to tune: up to about a thousand unknowns; heals",
    ),
    "pd": (
        lambda: PrimalDual(Full()),
        "exact gradients: few samples per node, or a yardstick",
    ),
    "spd": (
        lambda: PrimalDual(SGD()),
        "plain stochastic gradients, also from a stream; stops at a noise floor",
    ),
    "saga-pd": (
        lambda: PrimalDual(SAGA()),
        "one call a round, one number kept per sample: where rounds are cheap",
    ),
    "svr-pd": (
        lambda: PrimalDual(SVRG()),
        "SVRG++ epochs that double: no table needed for custom losses",
    ),
    "svr-pd-es": (
        lambda: PrimalDual(SVRG(stop=0.05)),
        "the same, epochs end early when progress is small: often the fewest rounds",
    ),
    "lsvr-pd": (
        lambda: PrimalDual(LSVRG()),
        "loopless SVRG: a coin instead of epochs",
    ),
    "asvr-pd": (
        lambda: PrimalDual(ASVRG()),
        "accelerated: for ill-conditioned problems without strong convexity",
    ),
    "asvr-pd-paper": (
        lambda: PrimalDual(ASVRG(floor=0.0), eta="theory", rho="theory"),
        "the same as printed, with its own steps: the momentum decays and it stalls",
    ),
    "lt-saga-pd": (
        lambda: PrimalDual(SAGA(), local="auto"),
        "local training, many steps a round: few rounds where a node has few samples",
    ),
    "lt-svr-pd-es": (
        lambda: PrimalDual(SVRG(stop=0.05), local="auto"),
        "the same by SVRG with early stopping: few rounds where a node has many samples",
    ),
    "lt-pd": (
        lambda: PrimalDual(Full(), local="auto"),
        "the same with exact gradients: no noise, a pass over the data every step",
    ),
    "sag-pd": (
        lambda: PrimalDual(SAG()),
        "biased, less noise: the mean of all samples' last slopes; no theory here",
    ),
    "page-pd": (
        lambda: PrimalDual(PAGE()),
        "biased: the last estimate corrected, a coin for whole gradients; no theory here",
    ),
    "sarah-pd": (
        lambda: PrimalDual(SARAH()),
        "biased: the same with epochs for the coin; no theory here",
    ),
    "sk-pd": (
        lambda: PrimalDual(SEGA()),
        "one gradient coordinate a round",
    ),
    "sk-pd-fd": (
        lambda: PrimalDual(SEGA(FiniteDifference())),
        "one coordinate a round from function values; stops at a rounding floor",
    ),
    "dgd": (
        lambda: DGD(SGD()),
        "baseline: averaging and SGD; ends away from the optimum where data differ",
    ),
    "dgd-full": (
        lambda: DGD(Full()),
        "baseline: the same with exact gradients; still ends away from the optimum",
    ),
    "d2": (
        lambda: D2(SGD()),
        "baseline: SGD that does not mind how data differ; stops at a noise floor",
    ),
    "extra": (
        lambda: EXTRA(Full()),
        "baseline: exact gradients with averaging; no penalty",
    ),
    "pg-extra": (
        lambda: EXTRA(Full(), proximal=True),
        "baseline: extra with a prox, exact gradients and a penalty",
    ),
    "vr-extra": (
        lambda: EXTRA(LSVRG()),
        "baseline: extra with loopless SVRG; no penalty",
    ),
    "nids": (
        lambda: NIDS(Full()),
        "baseline: exact gradients and a penalty, a step that the network has no say in",
    ),
    "s-diging": (
        lambda: GradientTracking(SAGA()),
        "baseline: the iteration of gt-saga under its other name",
    ),
    "gt-saga": (
        lambda: GradientTracking(SAGA()),
        "baseline: tracks the mean gradient, two vectors a round; no penalty",
    ),
    "gt-svrg": (
        lambda: GradientTracking(PlainSVRG()),
        "baseline: the same without a table, snapshots instead",
    ),
    "vr-diging": (
        lambda: GradientTracking(LSVRG()),
        "baseline: the same with a coin for snapshots",
    ),
    "dcs": (
        lambda: DCS(Full()),
        "baseline: many local gradients between two talks, any penalty; sublinear",
    ),
    "sdcs": (
        lambda: DCS(SGD()),
        "baseline: the same with sampled gradients",
    ),
    "edge": (
        lambda: EDGE(SAGA()),
        "baseline: augmented Lagrangian over edges, by SAGA; no penalty",
    ),
    "pdmm": (
        lambda: PDMM(),
        "baseline: a local problem solved every round; few rounds, many gradients; heals",
    ),
    "d-admm": (
        lambda: DADMM(),
        "baseline: the same by consensus ADMM",
    ),
    "network-dane": (
        lambda: NetworkDane(),
        "baseline: a local problem every round; cheap gradients, shards alike; no penalty",
    ),
    "network-svrg": (
        lambda: NetworkDane(inner=20, batch=1),
        "baseline: the same with one sample a local step",
    ),
    "pmgt-saga": (
        lambda: PMGT(SAGA()),
        "baseline: proximal tracking, several rounds a step",
    ),
    "pmgt-lsvrg": (
        lambda: PMGT(LSVRG()),
        "baseline: the same with loopless SVRG, no table",
    ),
    "apapc": (
        lambda: APAPC(),
        "baseline: accelerated, exact gradients with momentum, a round a step; no penalty",
    ),
    "opapc": (
        lambda: APAPC(depth=None),
        "baseline: the same with several rounds a step by Chebyshev: the fewest gradients",
    ),
    "acc-vr-extra": (
        lambda: AccVRExtra(),
        "baseline: accelerated vr-extra, for bad condition numbers; no penalty",
    ),
    "push-saga": (
        lambda: PushTracking(SAGA()),
        "directed graphs, where links go one way: tracking by push-sum; no penalty",
    ),
    "push-diging": (
        lambda: PushTracking(Full(), first="step"),
        "the same with exact gradients",
    ),
}


def list_methods(couples: bool = False) -> dict[str, str]:
    """Every method's name, with one line of advice. `couples`: only those that run where edges
    carry couplings, `solve(between=...)`."""
    wanted = (n for n in CATALOGUE if not couples or takes_couplings(make(n)))
    return {name: CATALOGUE[name][1] for name in wanted}


def takes_couplings(method: Method) -> bool:
    """Whether it has a form in which edges carry couplings: `solve(between=...)`."""
    return method.coupled(1, True) is not None


def make(method: Method | str, eta: Any = None, rho: Any = None) -> Method:
    """A method from its name, or the object; eta and rho, where given, override its own. Raises
    MethodError where it is none."""
    if isinstance(method, str):
        if method == AUTO:
            raise MethodError("auto chooses a method by the problem: here there is none, name one")
        if method not in CATALOGUE:
            raise UnknownName("method", method, [AUTO, *CATALOGUE])
        method = CATALOGUE[method][0]()
    chosen = require_method(method)
    changes = {k: v for k, v in (("eta", eta), ("rho", rho)) if v is not None}
    for name in changes.keys() - {f.name for f in fields(chosen)}:
        raise MethodError(f"{type(chosen).__name__} has no {name}: leave it out")
    return replace(chosen, **changes) if changes else chosen

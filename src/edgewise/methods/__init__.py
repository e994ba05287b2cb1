"""Methods, by name and as objects. One file a method; a name is a composition of parts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from edgewise.errors import UnknownName
from edgewise.gradients import ASVRG, LSVRG, SAGA, SEGA, SGD, SVRG, FiniteDifference, Full
from edgewise.methods.primal_dual import PrimalDual

CATALOGUE: dict[str, tuple[Callable[[], PrimalDual], str]] = {
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
        "the one to try first: one call a round, one number per sample",
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
    "sk-pd": (
        lambda: PrimalDual(SEGA()),
        "one gradient coordinate a round",
    ),
    "sk-pd-fd": (
        lambda: PrimalDual(SEGA(FiniteDifference())),
        "one coordinate a round from function values; stops at a rounding floor",
    ),
}


def methods() -> dict[str, str]:
    """Every method's name, with one line of advice."""
    return {name: line for name, (_, line) in CATALOGUE.items()}


def make(method: Any, eta: Any = None, rho: Any = None) -> Any:
    """A method from its name, or the object; eta and rho, where given, override its own."""
    if isinstance(method, str):
        if method not in CATALOGUE:
            raise UnknownName("method", method, CATALOGUE)
        method = CATALOGUE[method][0]()
    changes = {k: v for k, v in (("eta", eta), ("rho", rho)) if v is not None}
    return replace(method, **changes) if changes else method

"""Which methods peers can run with what they and their neighbours know."""

from dataclasses import replace

import numpy as np

from edgewise import spec
from edgewise.differential_privacy.private_method import CHOSEN as PRIVATE
from edgewise.differential_privacy.private_method import CHOSEN_NOTE as PRIVATE_NOTE
from edgewise.differential_privacy.private_method import require_accountable
from edgewise.errors import MethodError
from edgewise.methods.auto import candidates, choose, require_bounded_curvature, require_convexity
from edgewise.methods.catalogue import AUTO, make
from edgewise.methods.contract import Method
from edgewise.methods.knowledge import Knowledge
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node.own_problem import NO_LOSS
from edgewise.problem.problem import Problem
from edgewise.problem.smoothness import ReportedSmoothness
from edgewise.running.coupled_method import CHOSEN, CHOSEN_NOTE, coupled_form

# Two peers with an edge, and numbers of no account: whatever takes more than peers know says so.
TWO_PEERS = Knowledge(
    ReportedSmoothness(np.ones(2, np.int64), np.ones(2), np.ones(2), np.zeros(2), 0.0, 1),
    degrees=np.ones(2, np.int64),
    own=np.zeros(1, np.int64),
    edges=np.array([[0, 1]]),
    edge_weights=np.ones(1),
    strong_convexity=0.0,
)


def settled(fit: Fit, problem: Problem, couples: bool = False) -> tuple[Fit, str]:
    """The fit with its method named, where it says "auto", and why that one. All peers come to the
    same: it depends on what they compare when they meet, and on nothing else."""
    name = CHOSEN if couples and fit.method == AUTO else fit.method
    if name != AUTO:
        made = require_convexity(make(name), problem)
        made = made if fit.eta is None else replace(made, eta=fit.eta)
        require_bounded_curvature(made, problem)
    if fit.method != AUTO:
        return fit, ""
    if fit.dp_epsilon is not None:
        return replace(fit, method=PRIVATE), PRIVATE_NOTE
    if couples:
        return replace(fit, method=CHOSEN), CHOSEN_NOTE
    _, name, note = choose(spec.method(AUTO, list(fit.set)), problem, None, fit.eta, fit.rho)
    return with_batch(replace(fit, method=name)), note


def with_batch(fit: Fit) -> Fit:
    """The gradient of one sample shows that sample to a neighbour: several are drawn unless the
    user chose."""
    chosen = any(setting.startswith("batch=") for setting in fit.set)
    if chosen or fit.method == AUTO or make(fit.method).samples != 1:
        return fit
    return replace(fit, set=(*fit.set, "batch=8"))


def require_method(fit: Fit, penalised: bool, couples: bool = False) -> None:
    """Raises MethodError unless the method, whichever "auto" may come to, fits the rest."""
    if fit.method == AUTO:
        spec.method(AUTO, list(fit.set))
    names = candidates(fit.eta, fit.rho) if fit.method == AUTO else (fit.method,)
    names = (PRIVATE,) if fit.method == AUTO and fit.dp_epsilon is not None else names
    for name in [CHOSEN] if couples and fit.method == AUTO else names:
        method_of(with_batch(replace(fit, method=name)), penalised, couples)


def method_of(fit: Fit, penalised: bool, couples: bool = False) -> Method:
    """The method of a fit; raises MethodError unless it fits the rest of it."""
    method = make(spec.method(fit.method, list(fit.set)), fit.eta, fit.rho)
    if couples:
        require_plain_messages(fit)
        method = coupled_form(method, fit.method, 1, fit.loss != NO_LOSS)
    require_local(method, fit.mode)
    if fit.dp_epsilon is not None:
        require_accountable(method, fit.method)
    if penalised and not method.takes_penalty:
        raise MethodError(
            f"{fit.method} cannot handle a penalty: use saga-pd or pg-extra, or leave it out"
        )
    if fit.bits is not None and fit.mode == "strict":
        raise MethodError(
            "bits is for tolerant peers, strict ones are to come to the simulator's numbers: leave "
            "it out; wire float32 halves their messages"
        )
    if fit.dual_noise and "each" not in method.healing().hears:
        raise MethodError(f"{fit.method} has no duals to add dual_noise to: use saga-pd or pdmm")
    return method


def require_plain_messages(fit: Fit) -> None:
    for name, given in (("bits", fit.bits), ("dual_noise", fit.dual_noise)):
        if given:
            raise MethodError(f"couplings do not take {name}: leave it out")


def require_local(method: Method, mode: str = "strict") -> None:
    """Raises MethodError unless a peer and its neighbours can run it with what they know."""
    if mode == "tolerant" and not method.healing().heals:
        raise MethodError(
            f"{type(method).__name__} never forgets a message that came late: use a primal-dual "
            "method or pdmm, or mode strict, in which every round waits for all neighbours"
        )
    news = method.healing().hears.count("news")
    if news > 1 or (news and method.healing().news_head < 1):
        raise MethodError(
            f"{type(method).__name__} tells {news} rows of news: peers send one at most, whose "
            "news_head is 1 or more"
        )
    method.prepare(TWO_PEERS)

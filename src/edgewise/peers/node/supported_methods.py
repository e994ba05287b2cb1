"""Which methods peers can run with what they and their neighbours know."""

from typing import Any

import numpy as np

from edgewise import spec
from edgewise.errors import MethodError
from edgewise.methods.admm import DADMM
from edgewise.methods.catalogue import make
from edgewise.methods.dcs import DCS
from edgewise.methods.network_dane import NetworkDane
from edgewise.methods.pdmm import PDMM
from edgewise.methods.pmgt import PMGT
from edgewise.methods.primal_dual import PrimalDual
from edgewise.peers.config.peer_config import Fit

LOCAL_MIXING = ("metropolis", "lazy-metropolis")  # an edge's ends know these by themselves


def method_of(fit: Fit, penalised: bool) -> Any:
    """The method of a fit; raises MethodError unless it fits the rest of it."""
    method = make(spec.method(fit.method, list(fit.set)), fit.eta, fit.rho)
    require_local(method, fit.mode)
    if penalised and not getattr(method, "takes_penalty", True):
        raise MethodError(
            f"{fit.method} cannot handle a penalty: use saga-pd or pg-extra, or leave it out"
        )
    if fit.bits is not None and fit.mode == "strict":
        raise MethodError(
            "bits is for tolerant peers, strict ones are to come to the simulator's numbers: leave "
            "it out; wire float32 halves their messages"
        )
    if fit.dual_noise and not isinstance(method, PrimalDual | PDMM):
        raise MethodError(f"{fit.method} has no duals to add dual_noise to: use saga-pd or pdmm")
    return method


def require_local(method: Any, mode: str = "strict") -> None:
    """Raises MethodError unless a peer and its neighbours can run it with what they know."""
    name = type(method).__name__
    if isinstance(method, DCS | PMGT):
        raise MethodError(
            f"{name} needs an eigenvalue of the whole network, which no peer knows: use saga-pd"
        )
    if mode == "tolerant" and not (method.heals or isinstance(method, PrimalDual)):
        raise MethodError(
            f"{name} never forgets a message that came late: use a primal-dual method or pdmm, or "
            "mode strict, in which every round waits for all neighbours"
        )
    for step in ("eta", "rho"):
        if np.ndim(getattr(method, step, 0.0)):
            raise MethodError(f"{name}'s {step} has several numbers: give one for all peers")
    if isinstance(method, PrimalDual | PDMM | DADMM):
        return
    if isinstance(method.eta, str):
        raise MethodError(
            f"{name}'s eta {method.eta!r} is the smallest over all peers, which no peer knows: "
            "give a number"
        )
    if not isinstance(method.mixing, str) or method.mixing not in LOCAL_MIXING:
        raise MethodError(
            f"{name}'s mixing {method.mixing!r} takes the whole network, which no peer knows: give "
            + " or ".join(LOCAL_MIXING)
        )
    if isinstance(method, NetworkDane) and isinstance(method.mu, str):
        raise MethodError(
            f"{name}'s mu {method.mu!r} is of the largest curvature over all peers, which no peer "
            "knows: give a number"
        )

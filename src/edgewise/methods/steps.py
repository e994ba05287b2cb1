"""Steps: numbers, or rules that a node can follow with its neighbours alone."""

from typing import Any

import numpy as np

from edgewise.errors import MethodError, UnknownName
from edgewise.gradients.contract import Estimator
from edgewise.graph.mixing import LOCAL_RULES, RULES, mixing_weights
from edgewise.methods.knowledge import Knowledge
from edgewise.problem.contract import Curvatures

KAPPA = 0.2  # near the best of a grid on ring, random and complete graphs


def node_steps(eta: Any, gradient: Estimator, k: Knowledge) -> np.ndarray:
    """(k,) eta_i of the nodes known: "auto", "theory", one number, or one per node."""
    if isinstance(eta, str):
        return by_rule(eta, gradient, k.curvatures)
    return per_node("eta", eta, k)


def common_step(name: str, eta: Any, gradient: Estimator, k: Knowledge) -> float:
    """One step for all nodes: a rule's least; with unequal ones nodes would weigh unequally."""
    if isinstance(eta, str):
        need = f"{name}'s eta {eta!r} is the smallest over all peers"
        return float(by_rule(eta, gradient, k.whole(need, "give a number").curvatures).min())
    steps = per_node("eta", eta, k)
    if steps.min() < steps.max():
        raise MethodError(f"{name} needs one step for all nodes, eta has several: give one number")
    return float(steps[0])


def common_convexity(name: str, mu: Any, least: float, k: Knowledge) -> float:
    """One mu for all nodes: the ridge, but at least so much, or a number."""
    if isinstance(mu, str):
        if mu != "auto":
            raise UnknownName("rule mu", mu, ["auto"])
        return max(k.strong_convexity, least)
    given = per_node("mu", mu, k)
    if given.min() < given.max():
        raise MethodError(f"{name} needs one mu for all nodes, it has several: give one number")
    return float(given[0])


def by_rule(eta: str, gradient: Estimator, nodes: Curvatures) -> np.ndarray:
    """(k,) each from a node's own numbers."""
    if eta not in ("auto", "theory"):
        raise UnknownName("step rule eta", eta, ["auto", "theory"])
    rule = gradient.auto_step if eta == "auto" else gradient.theory_step
    return np.asarray(rule(nodes), np.float64)


def trained_steps(eta: Any, gradient: Estimator, k: Knowledge) -> np.ndarray:
    """(k,) as `node_steps`, for several steps between two messages."""
    if isinstance(eta, str) and eta == "auto":
        return np.asarray(gradient.local_step(k.curvatures), np.float64)
    return node_steps(eta, gradient, k)


def dual_weights(rho: Any, eta: np.ndarray, k: Knowledge) -> np.ndarray:
    """(m,) rho_ij: "auto", from the ends' steps eta (k,) and degrees, "theory" (the lemmas hold for
    any constant; G_rho is least at 1), one number, or one per edge."""
    if isinstance(rho, str):
        if rho not in ("auto", "theory"):
            raise UnknownName("step rule rho", rho, ["auto", "theory"])
        if rho == "theory":
            return np.ones(len(k.edges))
        reach = np.sqrt(eta * np.maximum(k.degrees, 1))
        i, j = k.edges.T
        return np.asarray(KAPPA * k.edge_weights / (reach[i] * reach[j]))
    return positive("rho", rho, len(k.edges), "edge", k.network is not None)


def mixing_of(name: str, mixing: Any, k: Knowledge) -> np.ndarray:
    """(m,) weights from a rule's name, or from a (V, V) matrix that fits the graph."""
    if isinstance(mixing, str):
        if mixing not in RULES:
            raise UnknownName("mixing rule", mixing, RULES)
        if mixing in LOCAL_RULES:
            return LOCAL_RULES[mixing](k)
    what = repr(mixing) if isinstance(mixing, str) else "matrix"
    need = f"{name}'s mixing {what} takes the whole network"
    return mixing_weights(mixing, k.whole(need, "give " + " or ".join(LOCAL_RULES)).graph)


def per_node(name: str, value: Any, k: Knowledge) -> np.ndarray:
    """(k,) from one number, or from one per node of a network that is known."""
    return positive(name, value, len(k.degrees), "node", k.network is not None)


def positive(name: str, value: Any, length: int, per: str, several: bool = True) -> np.ndarray:
    """(length,) from one number or, where that makes sense here, from several."""
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError) as wrong:
        raise MethodError(f"{name}={value!r}: give a rule, one number, or one per {per}") from wrong
    if numbers.ndim == 0:
        numbers = np.full(length, float(numbers))
    elif not several:
        raise MethodError(f"{name} has several numbers: give one for all peers")
    if numbers.shape != (length,):
        raise MethodError(
            f"{name} has shape {numbers.shape}: give one number, or {length}, one per {per}"
        )
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise MethodError(f"{name} must be positive and finite, got {numbers.min()}")
    return numbers

"""Steps: numbers, or rules that a node can follow with its neighbours alone."""

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import MethodError, UnknownName

if TYPE_CHECKING:
    from edgewise.graph.graph import Graph
    from edgewise.problem.problem import Problem

KAPPA = 0.2  # near the best of a grid on ring, random and complete graphs


def local_steps(eta: Any, gradient: Any, problem: "Problem") -> np.ndarray:
    """(V,) eta_i: "auto", "theory", one number, or one per node."""
    if isinstance(eta, str):
        if eta not in ("auto", "theory"):
            raise UnknownName("step rule eta", eta, ["auto", "theory"])
        rule = gradient.auto_step if eta == "auto" else gradient.theory_step
        return np.asarray(rule(problem.smoothness), np.float64)
    return positive("eta", eta, problem.nodes, "node")


def dual_weights(rho: Any, eta: np.ndarray, graph: "Graph") -> np.ndarray:
    """(E,) rho_ij: "auto", "theory" (the lemmas hold for any constant; G_rho is least at 1), one
    number, or one per edge."""
    if isinstance(rho, str):
        if rho not in ("auto", "theory"):
            raise UnknownName("step rule rho", rho, ["auto", "theory"])
        if rho == "theory":
            return np.ones(len(graph.edges))
        reach = np.sqrt(eta * np.maximum(graph.degrees, 1))
        i, j = graph.edges.T
        return np.asarray(KAPPA * graph.weights / (reach[i] * reach[j]))
    return positive("rho", rho, len(graph.edges), "edge")


def positive(name: str, value: Any, length: int, per: str) -> np.ndarray:
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError) as wrong:
        raise MethodError(f"{name}={value!r}: give a rule, one number, or one per {per}") from wrong
    if numbers.ndim == 0:
        numbers = np.full(length, float(numbers))
    if numbers.shape != (length,):
        raise MethodError(
            f"{name} has shape {numbers.shape}: give one number, or {length}, one per {per}"
        )
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise MethodError(f"{name} must be positive and finite, got {numbers.min()}")
    return numbers

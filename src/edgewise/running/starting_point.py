"""Where a run begins, if the user says."""

from typing import Any

import numpy as np

from edgewise.errors import ProblemError
from edgewise.problem.problem import Problem
from edgewise.running.checks import as_numbers


def starting_models(X0: Any, problem: Problem, dtype: Any) -> np.ndarray:
    """(V, n)"""
    V, n = problem.nodes, problem.size
    X = as_numbers("X0", X0).astype(dtype)
    if X.shape not in ((V, n), (n,)):
        raise ProblemError(f"X0 has shape {X.shape}: give ({V}, {n}), or ({n},) for all nodes")
    if not np.isfinite(X).all():
        raise ProblemError("X0 has entries that are not finite: start from numbers")
    return np.array(np.broadcast_to(X, (V, n)))


def starting_duals(duals: Any, problem: Problem) -> np.ndarray | None:
    """(V, n), from a former result or its duals."""
    if duals is None:
        return None
    D = as_numbers("duals", getattr(duals, "duals", duals))
    if D.shape != (problem.nodes, problem.size) or not np.isfinite(D).all():
        raise ProblemError(
            f"duals have shape {D.shape}: give a former result of a problem with "
            f"{problem.nodes} nodes and {problem.size} unknowns"
        )
    return np.asarray(D - D.mean(0))  # duals cancel over every edge, so they add up to zero

"""Where a run begins, if the user says."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from edgewise.errors import ProblemError
from edgewise.problem.coupled import CoupledProblem
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


def coupled_models(X0: Any, problem: CoupledProblem, dtype: Any) -> np.ndarray:
    """(V, n) from a vector for each node, or one for all where all are of one size."""
    V, sizes = problem.nodes, problem.sizes
    each = list(X0) if isinstance(X0, Iterable) else [X0]
    if not problem.unequal and len(each) == sizes[0] and all(np.ndim(x) == 0 for x in each):
        each = [each] * V
    vectors = [as_numbers("X0", x) for x in each]
    if [x.shape for x in vectors] != [(n,) for n in sizes]:
        raise ProblemError(
            f"X0 does not fit: give a list with a vector for each of the {V} nodes, which have "
            f"{sizes.min()} to {sizes.max()} unknowns"
        )
    made = np.zeros((V, problem.size), dtype)
    for i, x in enumerate(vectors):
        made[i, : len(x)] = x
    if not np.isfinite(made).all():
        raise ProblemError("X0 has entries that are not finite: start from numbers")
    return made


def coupled_duals(duals: Any, problem: CoupledProblem) -> np.ndarray:
    """(2E, m) of all directed edges, from a former result or its multipliers."""
    given, d = getattr(duals, "multipliers", duals), problem.graph.directed
    made = np.zeros((len(d.owner), problem.rows))
    for k, (i, j, e) in enumerate(zip(d.owner, d.other, d.edge, strict=True)):
        edge, many = (int(min(i, j)), int(max(i, j))), len(problem.edge_rows[e].c)
        known = given.get(edge) if isinstance(given, Mapping) else None
        values = None if known is None else as_numbers("duals", known)
        if values is None or values.shape != (many,) or not np.isfinite(values).all():
            raise ProblemError(
                f"duals do not fit the edge {edge}, which has {many} rows: give a former result of "
                "the same couplings, or its multipliers"
            )
        made[k, :many] = values
    return made

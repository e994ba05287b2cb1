"""The centralised answer where edges carry couplings: all nodes in one place, no messages."""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.backend.threads import on_host
from edgewise.centralised.edge_terms import EdgeTerms
from edgewise.centralised.multipliers import Multipliers
from edgewise.centralised.node_terms import NodeTerms
from edgewise.errors import ProblemError, ReferenceWarning, whole_number
from edgewise.graph.graph import Graph
from edgewise.problem.coupled import CoupledProblem, couple
from edgewise.problem.feasibility import conflict
from edgewise.problem.problem import Problem

MOST_UNKNOWNS = 10_000  # of all nodes together
MOST_NUMBERS = 20_000_000  # of all nodes' Hessians
TOL, ITERATIONS = 1e-10, 2000
NAMED = 6  # edges in a message


@dataclass(frozen=True)
class CoupledReference:
    """The optimum of a problem whose edges carry couplings."""

    X: list[np.ndarray] = field(repr=False)  # (n_i,) each node's model
    multipliers: dict[tuple[int, int], np.ndarray] = field(repr=False)  # (m,) of an edge's rows:
    # grad f_i + sub h_i + sum_j A_ij' multiplier_ij = 0 at every node
    objective: float  # prices between neighbours included
    violation: float  # how far couplings are from being met
    residual: float  # of the optimality conditions, beside gradients and rows
    iterations: int  # linear systems solved
    reached: bool = True  # whether the residual is tol or less


def coupled_reference(
    problem: CoupledProblem, tol: float = TOL, iterations: int = ITERATIONS, stacklevel: int = 2
) -> CoupledReference:
    """Minimise the whole problem by the proximal method of multipliers (`Multipliers`), whose steps
    are those of semismooth Newton: it shares losses, penalties and edges' rows with the
    decentralised methods, and nothing of how they work. Where it falls short, or nothing satisfies
    the couplings, a ReferenceWarning says so."""
    whole_number("iterations", iterations, 1, ProblemError)
    if not 0 < tol < np.inf:
        raise ProblemError(f"tol is {tol!r}: give a number above 0, 1e-10 or so")
    require_small(problem)
    with on_host():
        nodes, edges = NodeTerms(problem), EdgeTerms(problem)
        found = Multipliers(nodes, edges).solve(tol, iterations)
        d = edges.differences(found.x)
        answer = CoupledReference(
            nodes.models(found.x),
            edges.by_edge(found.duals),
            nodes.value(found.x) + edges.price(d),
            float(np.linalg.norm(edges.missed(d))),
            found.residual,
            found.iterations,
            found.residual <= tol,
        )
    if not answer.reached:
        said = shortfall(problem, answer, tol, iterations)
        warnings.warn(said, ReferenceWarning, stacklevel=stacklevel)
    return answer


def is_coupled(problem: Problem, graph: Graph | None, between: Any) -> bool:
    """Whether nodes have models of their own; refuses what says so and does not say on which
    graph."""
    if graph is not None or isinstance(problem, CoupledProblem):
        return True
    if between is not None:
        raise ProblemError("between says what edges carry, and there is no graph: give graph=")
    if problem.cost is not None or problem.unequal:
        raise ProblemError(
            "nodes have costs, or models of different sizes, which goes with couplings: give "
            "graph=, and between= unless models are equal"
        )
    return False


def kept_reference(
    problem: Problem, graph: Any, between: Any, tol: float | None, iterations: int | None
) -> CoupledReference:
    """The last answer, if it was to the same question."""
    tol, iterations = TOL if tol is None else tol, ITERATIONS if iterations is None else iterations
    last, asked, spent, kept = problem.__dict__.get("_coupled_reference", ((), None, None, None))
    same = kept is not None and last[0] is graph and last[1] is between
    if same and asked <= tol and (kept.reached or iterations <= spent):
        found: CoupledReference = kept
        return found
    whole = coupled(problem, graph, between)
    answer = coupled_reference(whole, tol, iterations, stacklevel=4)
    problem.__dict__["_coupled_reference"] = (graph, between), tol, iterations, answer
    return answer


def coupled(problem: Problem, graph: Any, between: Any) -> CoupledProblem:
    if not isinstance(problem, CoupledProblem):
        return couple(problem, graph, between)
    if graph is not None or between is not None:
        raise ProblemError("the problem has a graph and couplings: leave graph and between out")
    return problem


def require_small(problem: CoupledProblem) -> None:
    total, numbers = int(np.sum(problem.sizes)), problem.nodes * problem.size**2
    if total > MOST_UNKNOWNS or numbers > MOST_NUMBERS:
        raise ProblemError(
            f"the nodes have {total:,} unknowns together, {problem.size:,} at most, which is too "
            f"much for a reference with couplings (up to {MOST_UNKNOWNS:,}, and {MOST_NUMBERS:,} "
            "numbers in all nodes' Hessians): give reference=False, and see the residual"
        )


def shortfall(
    problem: CoupledProblem, answer: CoupledReference, tol: float, iterations: int
) -> str:
    """One line: what was reached, and what to do."""
    how = (
        f"the centralised answer has a residual of {answer.residual:.1e}, {tol:.0e} wanted, and a "
        f"violation of {answer.violation:.1e}"
    )
    against = conflict(problem) if answer.violation > tol else []
    if against:
        named = ", ".join(str(edge) for edge in against[:NAMED])
        more = f" and {len(against) - NAMED} more" if len(against) > NAMED else ""
        return (
            f"{how}: no point satisfies the couplings at {named}{more} together with the nodes' "
            "bounds, as a linear programme shows: loosen one of them"
        )
    if answer.iterations >= iterations:
        return f"{how}: give edgewise.reference(problem, iterations=) more than {iterations}"
    return (
        f"{how}, and more steps did not help: it may be that no point satisfies couplings and "
        "penalties, that costs fall without end, or that units differ too much: rescale unknowns"
    )

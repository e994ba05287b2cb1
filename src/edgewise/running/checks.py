"""What `solve` was given, looked at before anything is computed."""

from numbers import Real
from typing import Any

import jax
import numpy as np

from edgewise.centralised.coupled_reference import CoupledReference
from edgewise.centralised.reference import Reference, require_convex
from edgewise.errors import GraphError, MethodError, ProblemError, whole_number
from edgewise.graph.directed import DirectedGraph
from edgewise.graph.from_text import graph_of
from edgewise.graph.graph import Graph
from edgewise.methods.auto import choose
from edgewise.problem.coupled import CoupledProblem
from edgewise.problem.problem import Problem
from edgewise.problem.whole_nodes import has_hessians


def check_run(rounds: Any, record_every: Any, seed: Any, tol: Any, oracle_budget: Any) -> None:
    for name, value, least in (
        ("rounds", rounds, 1),
        ("record_every", 1 if record_every is None else record_every, 1),
        ("seed", seed, 0),
    ):
        whole_number(name, value, least, MethodError)
    for name, value in (("tol", tol), ("oracle_budget", oracle_budget)):
        if value is not None and not (isinstance(value, Real) and float(value) > 0):
            raise MethodError(f"{name}={value!r}: give a positive number, or None")


def graph_for(problem: Any, graph: Any) -> Any:
    """A graph as it is, or from a text as the command line takes it: "ring"."""
    nodes = problem.nodes if isinstance(problem, Problem) else 1
    return graph_of(graph, nodes)


def check(problem: Any, graph: Any, method: Any, reference: Any) -> None:
    if not isinstance(problem, Problem):
        raise ProblemError(f"{problem!r} is no Problem: solve(problem, graph, ...) in this order")
    if not isinstance(graph, Graph):
        raise GraphError(
            f"{graph!r} is no Graph: use Graph.random(...) or Graph.from_networkx(...)"
        )
    if graph.nodes != problem.nodes:
        raise ProblemError(
            f"the graph has {graph.nodes} nodes, the problem {problem.nodes} shards: "
            "split the data over as many nodes as the graph has"
        )
    if problem.unequal:
        why = f" ({problem.unlike})" if problem.unlike else ""
        raise ProblemError(
            f"nodes have models of different sizes, which cannot be equal{why}: give every node "
            "the same columns, or say what holds between neighbours, "
            "between={(i, j): edgewise.Coupling(A, B), ...}"
        )
    if isinstance(graph, DirectedGraph):
        graph.require_strongly_connected()
    else:
        graph.require_connected()
    chosen = choose(method, problem, graph).method
    name = type(chosen).__name__
    if graph.one_way and not chosen.directed:
        raise MethodError(
            f"{name} needs links that go both ways: on a directed graph use push-saga or "
            "push-diging"
        )
    if graph.one_way and problem.penalised:
        raise MethodError(
            "no method here takes a penalty on a directed graph: leave it out, or give a Graph, "
            "whose links go both ways, and use saga-pd"
        )
    if problem.penalised and not chosen.takes_penalty:
        raise MethodError(
            f"{name} cannot handle a penalty: use saga-pd or pg-extra, or leave it out"
        )
    if chosen.second_order and not has_hessians(problem.loss):
        raise MethodError(
            f"{type(chosen).__name__} needs Hessians, and has those of losses of margins alone: "
            "use saga-pd, or lt-svr-pd-es, for a custom loss"
        )
    if reference is not None and not isinstance(reference, bool | Reference):
        raise ProblemError(
            f"reference={reference!r}: give True, False or edgewise.reference(problem)"
        )
    if reference is True:
        require_convex(problem)
    if isinstance(reference, Reference) and reference.gradients.shape != (
        problem.nodes,
        problem.size,
    ):
        raise ProblemError("this reference belongs to another problem: leave it out")


def check_coupled_reference(problem: CoupledProblem, reference: Any) -> None:
    if reference is None or isinstance(reference, bool):
        return
    if not isinstance(reference, CoupledReference):
        raise ProblemError(
            f"reference={reference!r}: with couplings give True, False or "
            "edgewise.reference(problem, graph=, between=)"
        )
    if [len(x) for x in reference.X] != list(problem.sizes):
        raise ProblemError("this reference belongs to another problem: leave it out")


def precision(dtype: Any) -> Any:
    if dtype is None:
        return np.dtype("float64" if jax.default_backend() == "cpu" else "float32")
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.dtype("float32"), np.dtype("float64")):
        raise ProblemError(f"dtype={dtype!r}: use 'float32' or 'float64'")
    return kind


def as_numbers(name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError) as wrong:
        raise ProblemError(
            f"{name} must be an array of numbers, not {type(value).__name__}"
        ) from wrong

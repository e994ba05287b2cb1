"""`result.summary()`: a fit's standard errors, in one process that has all nodes."""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

import numpy as np

from edgewise.data.disclosure import LEAST, require_samples
from edgewise.engines.faults import Faults
from edgewise.engines.mpi import MPI
from edgewise.errors import GraphError
from edgewise.graph.directed import DirectedGraph
from edgewise.graph.graph import Graph
from edgewise.inference.bootstrap import Bootstrap, bootstrap_steps
from edgewise.inference.estimates import Inference
from edgewise.inference.estimation import Ask, Wanted, estimation
from edgewise.problem.problem import Problem
from edgewise.running.network_sum import sum_over

T = TypeVar("T")
Add = Callable[[list[np.ndarray]], np.ndarray]


def summary_of(
    problem: Problem,
    graph: Graph | str,
    x: np.ndarray,
    wanted: Wanted,
    accuracy: float = 1e-12,
    faults: Faults | None = None,
    engine: MPI | None = None,
    least_count: int | Sequence[int] = LEAST,
) -> Inference:
    require_samples(problem.samples_of_nodes, least_count, "matrix")
    add = adding(graph, accuracy, faults, engine)
    return answered(estimation(problem, np.asarray(x, np.float64), wanted), problem, add)


def bootstrap_of(
    problem: Problem,
    graph: Graph | str,
    x: np.ndarray,
    replicates: int,
    seed: int,
    accuracy: float = 1e-12,
    faults: Faults | None = None,
    engine: MPI | None = None,
    least_count: int | Sequence[int] = LEAST,
) -> Bootstrap:
    require_samples(problem.samples_of_nodes, least_count, "matrix")
    add = adding(graph, accuracy, faults, engine)
    steps = bootstrap_steps(problem, np.asarray(x, np.float64), replicates, seed, problem.nodes)
    return answered(steps, problem, add)


def adding(graph: Graph | str, accuracy: float, faults: Faults | None, engine: MPI | None) -> Add:
    if isinstance(graph, DirectedGraph):
        raise GraphError(
            "sums go both ways along every link, and those of the fit go one way: give another "
            'graph, as graph="ring"'
        )

    def add(values: list[np.ndarray]) -> np.ndarray:
        return sum_over(graph, values, accuracy, faults=faults, engine=engine).value

    return add


def answered(steps: Generator[Ask, np.ndarray, T], problem: Problem, add: Add) -> T:
    """What the steps come to, where `add` adds up what all nodes have."""
    try:
        ask = next(steps)
        while True:
            ask = steps.send(add([ask(problem, i) for i in range(problem.nodes)]))
    except StopIteration as done:
        return done.value

"""`result.summary()`: a fit's standard errors, in one process that has all nodes."""

from typing import Any

import numpy as np

from edgewise.engines.faults import Faults
from edgewise.engines.mpi import MPI
from edgewise.graph.graph import Graph
from edgewise.inference.estimates import Inference
from edgewise.inference.estimation import Steps, Wanted, estimation
from edgewise.problem.problem import Problem
from edgewise.running.network_sum import sum_over


def summary_of(
    problem: Problem,
    graph: Graph,
    x: np.ndarray,
    wanted: Wanted,
    accuracy: float = 1e-12,
    faults: Faults | None = None,
    engine: MPI | None = None,
) -> Inference:
    def add(values: list[np.ndarray]) -> np.ndarray:
        made = sum_over(graph, values, accuracy, faults=faults, engine=engine)
        return made.value

    return answered(estimation(problem, np.asarray(x, np.float64), wanted), problem, add)


def answered(steps: Steps, problem: Problem, add: Any) -> Inference:
    """What the steps come to, where `add` adds up what all nodes have."""
    try:
        ask = next(steps)
        while True:
            ask = steps.send(add([ask(problem, i) for i in range(problem.nodes)]))
    except StopIteration as done:
        return done.value

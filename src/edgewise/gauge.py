"""Which optimum a run is measured against, and what at."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.faults import Faults, induced
from edgewise.graph import Graph
from edgewise.measure import Ends, Target, measure, target_of
from edgewise.problem import Problem
from edgewise.reference import Reference, reference


class Gauge:
    """Measures the nodes of a problem on a graph."""

    def __init__(self, problem: Problem, graph: Graph, rows: Any = None) -> None:
        self.problem, self.graph = problem, graph
        self.block = problem.block(None, np.float64, rows)
        i, j = graph.edges.T if len(graph.edges) else (np.zeros(0, int),) * 2
        self.ends = Ends(jnp.asarray(i), jnp.asarray(j))
        self.target: Target | None = None

    def aim(self, star: Reference | None) -> None:
        self.target = None if star is None else target_of(star)

    def read(self, X: Array, duals: Array, round: int) -> dict[str, Array]:
        """What a trace says of models (V, n) and duals after so many rounds."""
        problem = self.problem
        smoothness = jnp.asarray(problem.smoothness.sample)
        return measure(
            self.block, X, duals, self.target, self.ends, smoothness, problem.same_penalty
        )


class ShiftingGauge(Gauge):
    """Measures those present: after a round, those who took part in it."""

    def __init__(self, whole: Gauge, faults: Faults, aims: bool) -> None:
        self.problem, self.graph, self.block = whole.problem, whole.graph, whole.block
        self.faults, self.aims = faults, aims
        self.parts: dict[bytes, Gauge] = {}
        if whole.target is not None or not aims:
            self.parts[np.ones(whole.problem.nodes, bool).tobytes()] = whole

    def read(self, X: Array, duals: Array, round: int) -> dict[str, Array]:
        present = self.faults.present(self.problem.nodes, max(round - 1, 0))
        here = np.flatnonzero(present)
        if present.tobytes() not in self.parts:
            part = Gauge(self.problem.only(here), induced(self.graph, here))
            part.aim(reference(part.problem) if self.aims else None)
            self.parts[present.tobytes()] = part
        return self.parts[present.tobytes()].read(X[here], duals[here], round)

"""Which optimum a run is measured against, and what at."""

from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.centralised.reference import Reference, reference
from edgewise.engines.faults import Faults, induced
from edgewise.graph.graph import Graph
from edgewise.problem.problem import Problem
from edgewise.running.measures import Sight, Target, measure_whole, target_of


class Gauge:
    """Measures the nodes of a problem on a graph."""

    def __init__(self, problem: Problem, graph: Graph, rows: Any = None) -> None:
        self.problem, self.graph = problem, graph
        self.block = problem.block(None, np.float64, rows)
        self.target: Target | None = None

    def aim(self, star: Reference | None) -> None:
        self.target = None if star is None else target_of(star)

    def read(self, X: Array, duals: Array, round: int) -> dict[str, Array]:
        """What a trace says of models (V, n) and duals after so many rounds."""
        return measure_whole(
            self.block, X, None, duals, self.target, self.sight, self.problem.same_penalty
        )

    @cached_property
    def sight(self) -> Sight:
        i, j = map(
            jnp.asarray, self.graph.edges.T if len(self.graph.edges) else np.zeros((2, 0), int)
        )
        L = jnp.asarray(self.problem.smoothness.sample)
        return Sight(i, j, jnp.ones(()), L, L.sum(), jnp.asarray(float(len(L))))


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

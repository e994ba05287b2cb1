"""Which optimum a run is measured against, and what at."""

from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.placed import placed
from edgewise.backend.programs import interpreted
from edgewise.centralised.reference import Reference, reference
from edgewise.engines.base import Communicator, OneProcess
from edgewise.engines.early_rounds import EARLY_ROUNDS, FEW_NODES, is_numpy
from edgewise.engines.faults import Faults, induced
from edgewise.graph.graph import Graph
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures
from edgewise.problem.problem import Problem
from edgewise.running.measures import (
    NetworkView,
    Target,
    measure,
    measure_whole,
    target_of,
)

ROUNDINGS = 4 * np.finfo(np.float64).eps


class Evaluator:
    """Measures the nodes of a problem on a graph; `block` has the samples of those that are here,
    the communicator adds up over processes."""

    def __init__(
        self,
        problem: Problem,
        graph: Graph,
        block: Block,
        communicator: Communicator,
        curvatures: Curvatures,
    ) -> None:
        self.problem, self.graph, self.block = problem, graph, block
        self.communicator, self.curvatures = communicator, curvatures  # of all nodes
        self.target: Target | None = None

    def set_target(self, star: Reference | None) -> None:
        self.target = None
        if star is not None:
            target, own = target_of(star), self.communicator.own
            gradients, subgradients = own(target.gradients), own(target.subgradients)
            self.target = target._replace(gradients=gradients, subgradients=subgradients)

    def evaluate(self, X: Array, duals: Array, round: int) -> dict[str, Array]:
        """What a trace says of models (v, n) and duals after so many rounds."""
        far = self.communicator.remote_models(X)
        known = self.block, X, far, duals, self.target, self.network, self.problem.same_penalty
        if self.communicator.distributed:
            return measure(*known, self.communicator.total)
        early = None
        if round <= EARLY_ROUNDS and self.problem.nodes <= FEW_NODES and is_numpy((X, duals)):
            early = interpreted(measure_whole, known[:-1], same_penalty=self.problem.same_penalty)
        found: dict[str, Array] = measure_whole(*known) if early is None else early(*known[:-1])
        return found

    def settled(
        self, mean: np.ndarray, X: Array, duals: Array, round: int, converged: bool
    ) -> np.ndarray:
        """(n,) one model for all: the mean of theirs, with the exact zeros of the penalty.

        A mean has no zeros where a single node's model has none, nor does it lie on the edge of a
        constraint. A step of the map that the residual is of puts it there. That map moves no two
        models apart, so that a step leaves no larger residual than it found; at the end of a run
        that has converged it moves nothing else to speak of. Before that only zeros are taken from
        it: a step over all data is not what the nodes have come to. Where nodes have penalties of
        their own the mean is zero, once they have converged, where a step takes any to zero.
        Should the residual grow all the same, beyond rounding, the mean stays.
        """

        def residual(x: np.ndarray) -> float:
            xp = np if is_numpy(X) else jnp
            everywhere = xp.broadcast_to(xp.asarray(x), X.shape)
            return float(self.evaluate(everywhere, duals, round)["residual"])

        moved = np.asarray(self.evaluate(X, duals, round)["settled"])
        if not converged:  # one node's own penalty says nothing of the others' models yet
            moved = np.where(moved == 0, 0, mean) if self.problem.same_penalty else mean
        if not self.communicator.agree(int(not np.array_equal(moved, mean))):
            return mean
        rounding = ROUNDINGS * np.linalg.norm(mean) * self.curvatures.sample.sum()
        return moved if residual(moved) <= max(residual(mean), rounding) else mean

    @cached_property
    def network(self) -> NetworkView:
        i, j, share = self.communicator.edges(self.graph)
        L = np.asarray(self.curvatures.sample, np.float64)
        numbers = share, self.communicator.own(L), L.sum(), float(len(L))
        return NetworkView(*map(placed, (i, j, *map(np.float64, numbers))))


class PresentEvaluator(Evaluator):
    """Measures those present: after a round, those who took part in it."""

    def __init__(self, whole: Evaluator, faults: Faults, has_target: bool) -> None:
        known = whole.problem, whole.graph, whole.block, whole.communicator, whole.curvatures
        super().__init__(*known)
        self.faults, self.has_target = faults, has_target
        self.parts: dict[bytes, Evaluator] = {}
        if whole.target is not None or not has_target:
            self.parts[np.ones(whole.problem.nodes, bool).tobytes()] = whole

    def evaluate(self, X: Array, duals: Array, round: int) -> dict[str, Array]:
        present = self.faults.present(self.problem.nodes, max(round - 1, 0))
        here = np.flatnonzero(present)
        if present.tobytes() not in self.parts:
            problem = self.problem.only(here)
            block = problem.block(None, np.float64)
            graph = induced(self.graph, here)
            part = Evaluator(problem, graph, block, OneProcess(), problem.smoothness)
            part.set_target(reference(problem) if self.has_target else None)
            self.parts[present.tobytes()] = part
        return self.parts[present.tobytes()].evaluate(X[here], duals[here], round)

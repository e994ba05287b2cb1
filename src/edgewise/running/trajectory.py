"""Rounds one after another: where they led, how many there were, and what they took."""

from typing import Any, Generic, TypeVar

import numpy as np

from edgewise.backend.threads import one_blas_thread
from edgewise.engines.base import Counts, Executor, Rounds

E = TypeVar("E", bound=Rounds, covariant=True)


class Trajectory(Generic[E]):
    """An executor's rounds so far. Whatever runs rounds goes on by this: a run, an experiment that
    looks at every iterate, a sweep."""

    def __init__(self, executor: E) -> None:
        self.executor = executor
        self.phases = len(executor.method.phases)

    def start(self, X: np.ndarray, duals: np.ndarray | None = None) -> None:
        """At models (v, n) of the nodes here, and duals (V, n) of all."""
        self.carry = self.executor.start(X, duals)
        self.round, self.seconds = 0, self.executor.starting_seconds

    def advance(self, rounds: int) -> None:
        """At least so many rounds: a step of several phases is taken whole."""
        rounds = -(-rounds // self.phases) * self.phases
        with one_blas_thread():
            self.carry, spent = self.executor.advance(self.carry, self.round, rounds)
        self.round, self.seconds = self.round + rounds, self.seconds + spent

    def view(self: "Trajectory[Executor]") -> tuple[Any, Any]:
        """(v, n) the models of the nodes here, and their duals."""
        return self.executor.view(self.carry)

    def counts(self: "Trajectory[Executor]") -> Counts:
        return self.executor.counts(self.carry, self.round)

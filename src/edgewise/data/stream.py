"""Samples that keep coming: the paper's online setting, where no node has a K."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.data.shards import Shards
from edgewise.errors import DataError

Draw = Callable[[int, int, np.random.Generator], tuple[Any, Any]]


@dataclass(frozen=True)
class Stream:
    """`draw(node, size, rng)` gives the next `size` samples of a node, (X, y).

    A stream that makes its samples up uses `rng`, which depends on the seed, the node and the
    round, so that a run can be repeated; one that reads them from somewhere ignores it, and cannot
    be resumed to the identical result. Samples are asked for 64 rounds at a time. `holdout`
    is a finite set of samples, some at each node: what smoothness, classes and the trace are
    measured on.
    """

    draw: Draw
    holdout: Shards

    def __post_init__(self) -> None:
        if not callable(self.draw) or not isinstance(self.holdout, Shards):
            raise DataError("Stream takes a function draw(node, size, rng), and Shards to hold out")


class StreamReader:
    """A stream, read round by round: rounds are drawn `ROUNDS` at a time, by absolute number, so
    that a run does not depend on where it is recorded or resumed, and nothing drawn is lost."""

    ROUNDS = 64

    def __init__(self, stream: Stream, batch: int, seed: int) -> None:
        self.stream, self.batch, self.seed = stream, batch, seed
        self.kept: dict[int, tuple[int, np.ndarray, np.ndarray]] = {}

    def take(self, node: int, first: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
        """The samples of rounds first, first + 1, ...: X (rounds, batch, p), y (rounds, batch)."""
        batches = []
        for block in range(first // self.ROUNDS, -(-(first + rounds) // self.ROUNDS)):
            if node not in self.kept or self.kept[node][0] != block:
                self.kept[node] = (block, *self._draw(node, block))
            _, X, y = self.kept[node]
            start = block * self.ROUNDS
            cut = slice(max(first - start, 0), first + rounds - start)
            batches.append((X[cut], y[cut]))
        return np.concatenate([X for X, _ in batches]), np.concatenate([y for _, y in batches])

    def _draw(self, node: int, block: int) -> tuple[np.ndarray, np.ndarray]:
        size, features = self.ROUNDS * self.batch, self.stream.holdout.features
        X, y = self.stream.draw(node, size, np.random.default_rng([self.seed, node, block]))
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        y = np.asarray(y)
        if X.shape != (size, features) or y.shape != (size,):
            raise DataError(
                f"the stream gave X {X.shape} and y {y.shape} for node {node}: it must give "
                f"({size}, {features}) and ({size},)"
            )
        numbers = [a for a in (X, y) if a.dtype.kind in "fc"]
        if not all(np.isfinite(a).all() for a in numbers):
            raise DataError(f"the stream gave NaN or infinite values for node {node}: drop them")
        return X.reshape(self.ROUNDS, self.batch, -1), y.reshape(self.ROUNDS, self.batch)

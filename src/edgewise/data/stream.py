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
    round, so that a run can be repeated; one that reads them from somewhere ignores it. `holdout`
    is a finite set of samples, some at each node: what smoothness, classes and the trace are
    measured on.
    """

    draw: Draw
    holdout: Shards

    def take(
        self, node: int, size: int, seed: int, first_round: int
    ) -> tuple[np.ndarray, np.ndarray]:
        X, y = self.draw(node, size, np.random.default_rng([seed, node, first_round]))
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        y = np.asarray(y)
        if X.shape != (size, self.holdout.features) or y.shape != (size,):
            raise DataError(
                f"the stream gave X {X.shape} and y {y.shape} for node {node}: it must give "
                f"({size}, {self.holdout.features}) and ({size},)"
            )
        if not np.isfinite(X).all():
            raise DataError(f"the stream gave NaN or infinite features for node {node}: drop them")
        return X, y

"""How much each sample counts."""

from typing import Any

import numpy as np

from edgewise.data.folders import FolderShards
from edgewise.data.shards import Shards
from edgewise.errors import DataError, UnknownName
from edgewise.problem.offsets import of_each_sample


class Weights:
    """Factors a with f_i = (1/K_i) sum_k a_k loss_k. They are those of the whole problem, also
    where only some of its nodes are asked about, and their samples alone are here."""

    def __init__(
        self, weights: str, sample_weight: Any, nodes: int, samples: int, held: Any = None
    ) -> None:
        """held: weights that the shards themselves have, in the order of their rows."""
        if not isinstance(weights, str) or weights not in ("node", "sample"):
            raise UnknownName("weights", weights, ["node", "sample"])
        self.by_sample, self.nodes, self.samples = weights == "sample", nodes, samples
        self.each: np.ndarray | None = None
        self.in_order = sample_weight is None
        if sample_weight is None and held is None:
            return
        if sample_weight is not None and held is not None:
            raise DataError("the shards have weights of their own: leave sample_weight out")
        w = of_each_sample("sample_weight", held if self.in_order else sample_weight, samples)
        if (w < 0).any():
            raise DataError("sample_weight must be finite and not negative")
        self.each, self.total = w, w.sum()
        if self.by_sample and self.total == 0:
            raise DataError("sample_weight is zero for every sample: give some a positive weight")

    def factors(
        self, shards: Shards | FolderShards, ids: np.ndarray, rows: Any = slice(None)
    ) -> np.ndarray | None:
        """Those of the shards' samples, or None where all are one. The nodes have these ids, and
        lie at these rows of all the nodes' samples."""
        counts = np.repeat(shards.counts, shards.counts).astype(np.float64)
        if self.each is None:
            return counts * self.nodes / self.samples if self.by_sample else None
        w = self.of(shards, rows)
        assert w is not None
        if self.by_sample:
            return np.asarray(w * counts * self.nodes / self.total)
        sums = np.add.reduceat(w, shards.first)
        if (sums == 0).any():
            node = ids[np.argmin(sums)]
            raise DataError(
                f"sample_weight is zero for all of node {node}: drop the node, or weigh it"
            )
        return np.asarray(w * counts / np.repeat(sums, shards.counts))

    def of(self, shards: Shards | FolderShards, rows: Any = slice(None)) -> np.ndarray | None:
        """(N,) as they were given, in the order of the shards' rows."""
        if self.each is None:
            return None
        return np.asarray(
            self.each[rows if self.in_order or shards.order is None else shards.order]
        )

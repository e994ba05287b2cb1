"""Losses of a whole node: its samples become one row, which the loss alone knows how to read."""

from typing import Any, NamedTuple, TypeGuard

import numpy as np

from edgewise.data.shards import Shards
from edgewise.errors import DataError
from edgewise.problem.contract import NodeLoss


class WholeNodes(NamedTuple):
    shards: Shards  # a row per node
    loss: Any  # of such rows
    scale: np.ndarray | None  # (V,) what a node's mean loss is multiplied with; None: one


def is_whole(loss: Any) -> TypeGuard[NodeLoss]:
    return bool(getattr(loss, "whole", False))


def has_hessians(loss: Any) -> bool:
    """Whether Hessians of nodes' mean losses are to be had at the cost of a matrix per node."""
    return bool(loss.linear) or is_whole(loss)


def whole_nodes(
    shards: Shards, loss: Any, labels: np.ndarray, factors: np.ndarray | None
) -> WholeNodes:
    """labels: (N,) as the loss has encoded them; factors: (N,) of samples, as `Weights` has them.
    What they are on average scales the node; beside each other they weigh its samples."""
    loss = loss.for_columns(shards.features)
    weight = np.ones(shards.samples) if factors is None else factors
    mean = np.add.reduceat(weight, shards.first) / shards.counts
    if (mean == 0).any():
        raise DataError(
            f"sample_weight is zero for all of node {np.argmin(mean)}: drop the node, or weigh it"
        )
    rows = []
    for first, count, size in zip(shards.first, shards.counts, mean, strict=True):
        own = slice(int(first), int(first + count))
        each = weight[own] / size
        rows.append(loss.row(shards.X[own], labels[own], each, int(shards.counts.max())))
    made = Shards(np.stack(rows), np.zeros(len(rows)), np.ones(len(rows), np.int64))
    even = factors is None or np.allclose(mean, 1, rtol=1e-12)
    return WholeNodes(made, loss, None if even else mean)

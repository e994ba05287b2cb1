"""The ROC curve and the area under it, from histograms of scores."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.statistics.counts import LEAST, beyond, coarsened, sum_counts
from edgewise.statistics.metrics.inputs import by_node, checked_edges, quantile, zero_one

TWENTIETHS = tuple(k / 20 for k in range(1, 20))


@dataclass(frozen=True)
class RocCurve:
    auc: float  # pairs within one cell count half
    bounds: tuple[float, float]  # the area of the exact scores is between them
    standard_error: float  # DeLong's, with cells for ties
    interval: tuple[float, float]  # of the exact scores' area: bounds and sampling error
    fpr: np.ndarray = field(repr=False)  # of scores beyond each point of the grid
    tpr: np.ndarray = field(repr=False)
    grid: np.ndarray = field(repr=False)
    positives: int
    negatives: int
    nodes: np.ndarray = field(repr=False)  # (V,) areas of each node's own exact scores


def roc_auc(
    graph: Any,
    labels: Any,
    scores: Any,
    grid: Any = TWENTIETHS,
    positive: Any = 1,
    least_count: int | Sequence[int] = LEAST,
    coarsen: bool = False,
    confidence: float = 0.95,
    **options: Any,
) -> RocCurve:
    """The chance that a positive sample, of any node, scores higher than a negative one.

    Nodes count positive and negative scores in the cells between the points of the grid, with a
    cell below them all and one beyond. Pairs from two cells are ordered as they are; those of one
    cell may go either way, which `bounds` say, and `auc` has them for a half. Where a cell has one
    score alone, or labels of one kind, nothing is lost. `standard_error` is DeLong's (1988).

    grid     points that grow, agreed on beforehand; here for chances
    coarsen  leave points out until no node refuses

    >>> y, s = [[0, 0, 1], [0, 1, 1]], [[0.1, 0.6, 0.7], [0.2, 0.55, 0.9]]
    >>> roc_auc("path", y, s, grid=[0.3, 0.5, 0.65], least_count=1).bounds
    (0.8888888888888888, 1.0)
    """
    z, edges = quantile(confidence), checked_edges(grid)
    given = by_node(labels, scores)
    nodes = [(zero_one(y, positive, k), s) for k, (y, s) in enumerate(given)]

    if coarsen:
        fine = [histogram(y, s, edges) for y, s in nodes]
        cells, tails = [table[:, :-1] for table in fine], [beyond(table) for table in fine]
        edges = coarsened(graph, cells, tails, edges, least_count, options)

    def cell(kind: int, k: int) -> str:
        where = f"beyond {edges[-1]:g}" if k == len(edges) else f"up to {edges[k]:g}"
        return f"{'positive' if kind else 'negative'} samples with scores {where}"

    total = sum_counts(
        graph,
        [histogram(y, s, edges) for y, s in nodes],
        least_count,
        cell=cell,
        coarser="give fewer cells (coarsen=True leaves points out)",
        **options,
    )
    neg, pos = total.value
    auc, low, high, error = area(neg, pos)
    lost = np.cumsum(np.stack([neg, pos]), 1)[:, :-1]
    with np.errstate(invalid="ignore"):
        fpr, tpr = 1 - lost / total.value.sum(1, keepdims=True)
    own = [area(*histogram(y, s, np.unique(s)))[0] for y, s in nodes]
    return RocCurve(
        auc,
        (low, high),
        error,
        (max(low - z * error, 0.0), min(high + z * error, 1.0)),
        fpr,
        tpr,
        edges,
        int(pos.sum()),
        int(neg.sum()),
        np.array(own),
    )


def histogram(positive: np.ndarray, scores: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(2, J + 1) negative and positive samples, a cell up to and with each edge, and one beyond."""
    cells = np.searchsorted(edges, scores, side="left")
    flat = positive.astype(np.int64) * (len(edges) + 1) + cells
    return np.bincount(flat, minlength=2 * len(edges) + 2).reshape(2, -1)


def area(neg: np.ndarray, pos: np.ndarray) -> tuple[float, float, float, float]:
    """The area, the least and the largest that it can be, and DeLong's standard error; NaN where
    there is one class alone, or one sample of a class."""
    N, P = float(neg.sum()), float(pos.sum())
    if not N or not P:
        return (float("nan"),) * 4
    below = (np.cumsum(neg) - neg) / N  # for each positive of a cell, what it beats for sure
    above = 1 - np.cumsum(pos) / P  # for each negative, what beats it for sure
    low, same = float(pos @ below) / P, float(pos @ neg) / (P * N)
    auc = low + same / 2
    of_pos, of_neg = below + neg / (2 * N), above + pos / (2 * P)
    if N < 2 or P < 2:
        return auc, low, low + same, float("nan")
    spread = pos @ (of_pos - auc) ** 2 / (P - 1) / P + neg @ (of_neg - auc) ** 2 / (N - 1) / N
    return auc, low, low + same, float(np.sqrt(spread))

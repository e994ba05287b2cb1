"""Whether chances that a model gives come true as often as they say."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.statistics.counts import LEAST, beyond, coarsened, sum_counts
from edgewise.statistics.metrics.inputs import (
    by_node,
    checked_edges,
    quantile,
    sums,
    wilson,
    zero_one,
)
from edgewise.statistics.metrics.roc import histogram

TENTHS = tuple(k / 10 for k in range(1, 10))


@dataclass(frozen=True)
class CalibrationCurve:
    """By cells; NaN where a cell has no sample."""

    predicted: np.ndarray  # (J + 1,) the mean chance
    observed: np.ndarray  # (J + 1,) how many were positive, of all
    interval: np.ndarray = field(repr=False)  # (2, J + 1) of `observed`, Wilson's
    samples: np.ndarray = field(repr=False)  # (J + 1,)
    grid: np.ndarray = field(repr=False)
    error: float  # mean of |predicted - observed| over samples
    in_the_large: float  # positive samples over the sum of chances
    nodes: list[tuple[np.ndarray, np.ndarray]] = field(repr=False)  # predicted, observed of each


def calibration_curve(
    graph: Any,
    labels: Any,
    chances: Any,
    grid: Any = TENTHS,
    positive: Any = 1,
    least_count: int | Sequence[int] = LEAST,
    coarsen: bool = False,
    confidence: float = 0.95,
    **options: Any,
) -> CalibrationCurve:
    """Chances against how often what they are of came true, in cells between points of a grid.

    coarsen  leave points out until no node refuses

    >>> y, p = [[0, 1, 1], [0, 0, 1]], [[0.2, 0.3, 0.9], [0.1, 0.6, 0.8]]
    >>> calibration_curve("path", y, p, grid=[0.5], least_count=1).observed.round(3)
    array([0.333, 0.667])
    """
    z, edges = quantile(confidence), checked_edges(grid)
    nodes = []
    for node, (y, p) in enumerate(by_node(labels, chances)):
        if (p < 0).any() or (p > 1).any():
            raise DataError(f"node {node} has chances that are not from 0 to 1")
        nodes.append((zero_one(y, positive, node), p))

    if coarsen:
        fine = [histogram(y, p, edges) for y, p in nodes]
        cells, tails = [table[:, :-1] for table in fine], [beyond(table) for table in fine]
        edges = coarsened(graph, cells, tails, edges, least_count, options)

    def cell(kind: int, k: int) -> str:
        where = f"beyond {edges[-1]:g}" if k == len(edges) else f"up to {edges[k]:g}"
        return f"{'positive' if kind else 'negative'} samples with chances {where}"

    tables = [histogram(y, p, edges) for y, p in nodes]
    total = sum_counts(
        graph,
        tables,
        least_count,
        cell=cell,
        coarser="give fewer cells (coarsen=True leaves points out)",
        **options,
    )
    added = [chance_sums(p, edges) for _, p in nodes]
    in_cells, count = sums(graph, added, options), total.value.sum(0)
    predicted, observed = curve(in_cells, total.value)
    positives = total.value[1]
    apart = np.abs(np.nan_to_num(predicted - observed))
    return CalibrationCurve(
        predicted,
        observed,
        np.stack(wilson(positives, count, z)),
        count,
        edges,
        float(apart @ count / count.sum()),
        float(positives.sum() / in_cells.sum()),
        [curve(each, table) for each, table in zip(added, tables, strict=True)],
    )


def chance_sums(chances: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.bincount(
        np.searchsorted(edges, chances, side="left"), weights=chances, minlength=len(edges) + 1
    )


def curve(in_cells: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return in_cells / table.sum(0), table[1] / table.sum(0)

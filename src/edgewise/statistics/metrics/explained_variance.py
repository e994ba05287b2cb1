"""The share of the labels' variance that a model explains."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.statistics.counts import LEAST
from edgewise.statistics.metrics.inputs import by_node, quantile, require_samples, sums


@dataclass(frozen=True)
class R2:
    value: float
    standard_error: float  # by the delta method, whatever the errors' distribution
    interval: tuple[float, float]
    samples: int
    nodes: np.ndarray = field(repr=False)  # (V,) about each node's own mean


def r2(
    graph: Any,
    labels: Any,
    predicted: Any,
    least_count: int | Sequence[int] = LEAST,
    confidence: float = 0.95,
    **options: Any,
) -> R2:
    """1 - sum (y - prediction)^2 / sum (y - mean)^2, about the mean of all nodes' labels, which
    one sum finds before another takes the squares.

    >>> y, predicted = [[1.0, 2.0], [3.0, 5.0]], [[1.5, 2.0], [3.0, 4.0]]
    >>> round(r2("path", y, predicted, least_count=1).value, 4)
    0.8571
    """
    z = quantile(confidence)
    nodes = [(y.astype(np.float64), s) for y, s in by_node(labels, predicted)]
    require_samples(graph, [len(y) for y, _ in nodes], least_count)
    n, total = sums(graph, [[len(y), y.sum()] for y, _ in nodes], options)
    mean = total / n
    terms = []
    for y, s in nodes:
        a, b = (y - s) ** 2, (y - mean) ** 2
        terms.append([a.sum(), b.sum(), a @ a, a @ b, b @ b])
    A, B, aa, ab, bb = sums(graph, terms, options) / n
    if B == 0:
        value = error = float("nan")
    else:
        share = A / B
        value = 1 - share
        # each sample moves A / B by (a - share b) / B
        error = float(np.sqrt(max(aa - 2 * share * ab + share**2 * bb, 0) / n) / B)
    own = [
        1 - np.sum((y - s) ** 2) / spread if (spread := np.sum((y - y.mean()) ** 2)) else np.nan
        for y, s in nodes
    ]
    interval = (value - z * error, min(value + z * error, 1.0))
    return R2(float(value), error, interval, round(n), np.array(own))

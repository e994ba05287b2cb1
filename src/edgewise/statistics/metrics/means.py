"""Scores that are means over samples: log loss, squared errors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.statistics.counts import LEAST
from edgewise.statistics.metrics.inputs import by_node, quantile, require_samples, sums


@dataclass(frozen=True)
class MeanScore:
    value: float
    standard_error: float  # by the spread of the samples' losses
    interval: tuple[float, float]  # normal
    samples: int
    nodes: np.ndarray = field(repr=False)  # (V,) means of each node


def pooled(
    graph: Any,
    losses: list[np.ndarray],
    least_count: int | Sequence[int],
    confidence: float,
    options: dict[str, Any],
) -> MeanScore:
    z = quantile(confidence)
    require_samples(graph, [len(each) for each in losses], least_count)
    n, total = sums(graph, [[len(each), each.sum()] for each in losses], options)
    mean = total / n
    (squares,) = sums(graph, [[np.sum((each - mean) ** 2)] for each in losses], options)
    error = float(np.sqrt(squares / (n - 1) / n)) if n > 1 else float("nan")
    own = np.array([each.mean() if len(each) else np.nan for each in losses])
    return MeanScore(float(mean), error, (mean - z * error, mean + z * error), round(n), own)


def log_loss(
    graph: Any,
    labels: Any,
    chances: Any,
    classes: Any = (0, 1),
    least_count: int | Sequence[int] = LEAST,
    confidence: float = 0.95,
    **options: Any,
) -> MeanScore:
    """The mean of -log of the chance that the model gave to what was so.

    chances  per node (N,) of the last of two classes, or (N, C) of each, in the order of `classes`

    >>> round(log_loss("path", [[0, 1], [1, 1]], [[0.2, 0.8], [0.5, 0.9]], least_count=1).value, 4)
    0.3112
    """
    known = {each: k for k, each in enumerate(classes)}
    losses = []
    for node, (y, p) in enumerate(by_node(labels, chances, width=2)):
        if p.ndim == 1:
            p = np.stack([1 - p, p], 1)
        if p.shape[1] != len(known):
            raise DataError(f"node {node} has chances of {p.shape[1]} classes, not {len(known)}")
        if (p < 0).any() or not np.allclose(p.sum(1), 1, atol=1e-6):
            raise DataError(f"node {node} has chances that are below 0 or do not add up to 1")
        strange = [each for each in y.tolist() if each not in known]
        if strange:
            raise DataError(f"node {node} has label {strange[0]!r}, none of {list(known)}")
        own = p[np.arange(len(y)), [known[each] for each in y.tolist()]]
        losses.append(-np.log(np.maximum(own, np.finfo(np.float64).eps)))  # as scikit-learn clips
    return pooled(graph, losses, least_count, confidence, options)


def mean_squared_error(
    graph: Any,
    labels: Any,
    predicted: Any,
    least_count: int | Sequence[int] = LEAST,
    confidence: float = 0.95,
    **options: Any,
) -> MeanScore:
    """The mean of (y - prediction)^2; of 0 and 1 and chances it is Brier's score.

    >>> mean_squared_error("path", [[0.0, 1.0], [2.0]], [[1.0, 1.0], [4.0]], least_count=1).nodes
    array([0.5, 4. ])
    """
    nodes = by_node(labels, predicted)
    losses = [(y.astype(np.float64) - s) ** 2 for y, s in nodes]
    return pooled(graph, losses, least_count, confidence, options)

"""Which classes are taken for which."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.statistics.counts import LEAST, sum_counts
from edgewise.statistics.metrics.inputs import by_node, quantile, wilson


@dataclass(frozen=True)
class ConfusionMatrix:
    """Intervals are Wilson's."""

    counts: np.ndarray  # (C, C) true classes in rows, predicted ones in columns
    classes: list[Any]
    accuracy: float
    interval: tuple[float, float]  # of the accuracy
    recall: np.ndarray = field(repr=False)  # (C,) of each true class; the last of two: sensitivity
    recall_interval: np.ndarray = field(repr=False)  # (2, C)
    precision: np.ndarray = field(repr=False)  # (C,) of each predicted class
    precision_interval: np.ndarray = field(repr=False)  # (2, C)
    nodes: np.ndarray = field(repr=False)  # (V, C, C)


def confusion_matrix(
    graph: Any,
    labels: Any,
    predicted: Any,
    classes: Any,
    least_count: int | Sequence[int] = LEAST,
    confidence: float = 0.95,
    **options: Any,
) -> ConfusionMatrix:
    """Counts of true and predicted classes over all nodes.

    >>> y, said = [["a", "b", "b"], ["a", "a"]], [["a", "a", "b"], ["a", "b"]]
    >>> confusion_matrix("path", y, said, ["a", "b"], least_count=1).counts
    array([[2, 1],
           [1, 1]])
    """
    z, known = quantile(confidence), list(classes)
    place = {each: k for k, each in enumerate(known)}
    C, tables = len(known), []
    for node, (y, said) in enumerate(by_node(labels, predicted)):
        strange = [each for each in (*y.tolist(), *said.tolist()) if each not in place]
        if strange:
            raise DataError(f"node {node} has class {strange[0]!r}, which is none of {known}")
        pairs = [place[a] * C + place[b] for a, b in zip(y.tolist(), said.tolist(), strict=True)]
        tables.append(np.bincount(np.array(pairs, np.int64), minlength=C * C).reshape(C, C))

    def cell(a: int, b: int) -> str:
        return f"samples of class {known[a]!r} taken for {known[b]!r}"

    total = sum_counts(
        graph, tables, least_count, cell=cell, coarser="give fewer classes", **options
    )
    counts = total.value
    right, true, said = np.diag(counts), counts.sum(1), counts.sum(0)
    low, high = wilson(right.sum(), counts.sum(), z)
    with np.errstate(divide="ignore", invalid="ignore"):
        recall, precision = right / true, right / said
    return ConfusionMatrix(
        np.round(counts).astype(np.int64),
        known,
        float(right.sum() / counts.sum()),
        (float(low), float(high)),
        recall,
        np.stack(wilson(right, true, z)),
        precision,
        np.stack(wilson(right, said, z)),
        np.stack(tables),
    )

"""Labels and predictions of each node, as arrays that fit each other, and intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import norm

from edgewise.errors import DataError
from edgewise.running.network_sum import sum_over
from edgewise.statistics.counts import least_counts, require_cells, stricter


def by_node(labels: Any, said: Any, width: int = 1) -> list[tuple[np.ndarray, np.ndarray]]:
    """(y, s) of each node: labels of any kind, and finite numbers of one column or, with width 2,
    of several."""
    if not isinstance(labels, Sequence) or not isinstance(said, Sequence):
        raise DataError("give labels and predictions as lists with one array per node")
    if len(labels) != len(said):
        raise DataError(f"labels of {len(labels)} nodes and predictions of {len(said)}: give both")
    made = []
    for node, (y, s) in enumerate(zip(labels, said, strict=True)):
        each, scores = np.asarray(y), np.asarray(s)
        if scores.dtype.kind in "biuf":
            if not np.isfinite(scores).all():
                raise DataError(f"node {node} has predictions that are not finite")
            scores = scores.astype(np.float64)
        if each.ndim != 1 or scores.shape[:1] != each.shape or not 1 <= scores.ndim <= width:
            raise DataError(
                f"node {node} has labels of shape {each.shape} and predictions of shape "
                f"{scores.shape}: give one of each per sample"
            )
        made.append((each, scores))
    return made


def zero_one(y: np.ndarray, positive: Any, node: int) -> np.ndarray:
    """Which labels are `positive`; of two there may be at most."""
    if len(values := np.unique(y)) > 2 or (len(values) == 2 and positive not in values.tolist()):
        raise DataError(
            f"node {node} has labels {values[:3].tolist()}: give two classes, and the one that "
            f"scores are for as positive= (it is {positive!r})"
        )
    return np.asarray(y == positive)


def checked_edges(grid: Any) -> np.ndarray:
    edges = np.asarray(grid, np.float64)
    if edges.ndim != 1 or not edges.size or not (np.diff(edges) > 0).all():
        raise DataError("the grid must be a list of numbers that grow, one at least")
    return edges


def require_samples(graph: Any, sizes: Sequence[int], least_count: Any) -> None:
    """That every node has none, or enough to tell sums over its samples."""
    for node, (size, least) in enumerate(
        zip(sizes, least_counts(stricter(graph, least_count), len(sizes)), strict=True)
    ):
        require_cells(np.array([size]), int(least), node, lambda _: "samples", "leave the node out")


def sums(graph: Any, terms: Any, options: dict[str, Any]) -> np.ndarray:
    return np.asarray(sum_over(graph, [np.asarray(t, np.float64) for t in terms], **options).value)


def quantile(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise DataError(f"confidence={confidence!r}: give a number between 0 and 1")
    return float(norm.ppf(0.5 + confidence / 2))


def wilson(successes: Any, trials: Any, z: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval of a proportion; NaN where there are no trials."""
    k, n = np.asarray(successes, np.float64), np.asarray(trials, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = k / n
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)

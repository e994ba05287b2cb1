"""Harrell's concordance index: whether those of higher risk have their event earlier."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.problem.survival_labels import as_labels, times_and_events
from edgewise.statistics.counts import LEAST
from edgewise.statistics.metrics.inputs import by_node, quantile, require_samples, sums

CHUNK = 4_000_000  # pairs that are compared at once


@dataclass(frozen=True)
class Concordance:
    value: float
    standard_error: float  # by the infinitesimal jackknife, as R's `concordance`
    interval: tuple[float, float]
    pairs: int
    nodes: np.ndarray = field(repr=False)  # (V,) of each node's own pairs


def concordance_index(
    graph: Any,
    labels: Any,
    risk: Any,
    least_count: int | Sequence[int] = LEAST,
    confidence: float = 0.95,
    **options: Any,
) -> Concordance:
    """The share of pairs, each of two samples of one node, in which the one who had the event first
    has the higher risk; equal risks count half. Nobody is compared across nodes, so that it goes
    with models that are stratified by node, and no approximation is in it.

    >>> days, risk = [[1.0, 2.0, -3.0], [4.0, 1.0]], [[0.9, 0.1, 0.5], [0.2, 0.3]]
    >>> concordance_index("path", days, risk, least_count=1).value
    0.75
    """
    z = quantile(confidence)
    nodes = by_node([as_labels(y) for y in labels], risk)
    require_samples(graph, [len(y) for y, _ in nodes], least_count)
    terms, own = [], []
    for y, s in nodes:
        right, compared = pairs_of(y, s)
        own.append(right.sum() / compared.sum() if compared.any() else np.nan)
        terms.append(
            [right.sum(), compared.sum(), right @ right, right @ compared, compared @ compared]
        )
    right, compared, rr, rc, cc = sums(graph, terms, options)
    value = right / compared if compared else float("nan")
    # a sample moves the share by (right - value compared) / (number of pairs)
    spread = max(rr - 2 * value * rc + value**2 * cc, 0.0)
    error = float(np.sqrt(spread) / (compared / 2)) if compared else float("nan")
    interval = (max(value - z * error, 0.0), min(value + z * error, 1.0))
    return Concordance(float(value), error, interval, round(compared / 2), np.array(own))


def pairs_of(y: np.ndarray, risk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(K,) of each sample the pairs it is in that are right, and those that can be compared: one
    had the event, and the other was still there, or was lost at that same time."""
    time, event = times_and_events(y)
    right, compared = np.zeros(len(y)), np.zeros(len(y))
    died = np.flatnonzero(event)
    for part in np.array_split(died, max(1, len(died) * len(y) // CHUNK)):
        later = (time > time[part, None]) | ((time == time[part, None]) & ~event)
        score = np.where(risk[part, None] > risk, 1.0, 0.5 * (risk[part, None] == risk)) * later
        right += score.sum(0)
        compared += later.sum(0)
        right[part] += score.sum(1)
        compared[part] += later.sum(1)
    return right, compared

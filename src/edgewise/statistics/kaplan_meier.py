"""Kaplan and Meier's curve of all nodes' samples, from summed counts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import norm

from edgewise.errors import DataError
from edgewise.statistics.counts import LEAST
from edgewise.statistics.risk_counts import risk_counts


@dataclass(frozen=True)
class SurvivalCurve:
    """How many are left, at the times of the grid."""

    times: np.ndarray  # (J,)
    survival: np.ndarray  # (J,)
    standard_error: np.ndarray = field(repr=False)  # (J,) Greenwood's
    lower: np.ndarray = field(repr=False)  # (J,) interval, by log(-log S)
    upper: np.ndarray = field(repr=False)
    at_risk: np.ndarray = field(repr=False)
    events: np.ndarray = field(repr=False)  # since the time before
    censored: np.ndarray = field(repr=False)  # since the time before
    bounds: np.ndarray = field(repr=False)  # (2, J) the curve of the exact times is between them
    exact: bool  # whether it is the curve of the exact times at `times`, as no event is in between
    rounds: int = field(repr=False)
    bytes_sent: float = field(repr=False)

    def at(self, time: Any) -> np.ndarray:
        """S at any time up to the last of the grid; NaN beyond."""
        t = np.asarray(time, np.float64)
        steps = np.append(1.0, self.survival)
        found = steps[np.searchsorted(self.times, t, side="right")]
        return np.where(t > self.times[-1], np.nan, found)

    def quantile(self, p: float) -> float:
        """The first time of the grid at which S <= p; infinity where it stays above."""
        below = np.flatnonzero(self.survival <= p)
        return float(self.times[below[0]]) if len(below) else float("inf")

    @property
    def median(self) -> float:
        return self.quantile(0.5)


def curve(
    grid: np.ndarray, n: np.ndarray, d: np.ndarray, c: np.ndarray, exact: bool, level: float
) -> dict[str, Any]:
    """Of one group. Events that fall between times are taken to be at the next one, after all who
    were censored in between; the bounds have them all before, or all after."""
    left = np.divide(d, n, out=np.zeros_like(d), where=n > 0)
    first = np.divide(d, n + c, out=np.zeros_like(d), where=n + c > 0)
    S = np.cumprod(1 - left)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(d > 0, d / (n * (n - d)), 0)
        spread = np.cumsum(terms)
        error = np.where(S > 0, S * np.sqrt(spread), np.nan)
        z = norm.ppf(0.5 + level / 2)
        wide = z * np.sqrt(spread) / np.log(S)
        lower, upper = S ** np.exp(-wide), S ** np.exp(wide)
    whole = S == 1
    lower, upper = np.where(whole, 1.0, lower), np.where(whole, 1.0, upper)
    bounds = np.stack([S, S if exact else np.cumprod(1 - first)])
    return {
        "times": grid,
        "survival": S,
        "standard_error": error,
        "lower": np.where(S > 0, lower, np.nan),
        "upper": np.where(S > 0, upper, np.nan),
        "at_risk": n,
        "events": d,
        "censored": c,
        "bounds": bounds,
        "exact": exact,
    }


def kaplan_meier(
    graph: Any,
    labels: Any,
    grid: Any,
    groups: Any = None,
    levels: Any = None,
    least_count: int | Sequence[int] = LEAST,
    coarsen: bool = False,
    confidence: float = 0.95,
    **options: Any,
) -> Any:
    """The share S(t) of all nodes' samples that have had no event by t, from counts on a grid:

        S(t_k) = prod_{l <= k} (1 - d_l / n_l)

    d_l are events after t_{l-1} up to t_l, and n_l is everybody but those who had an event, or were
    censored, before. Where the grid has the time of every event of every node, this is the curve of
    all samples in one place, and `exact` says so. Otherwise `bounds` hold that curve at the grid's
    times: whatever the order of events and censoring between two times, it is between them.

    labels       per node, `survival_labels(time, event)`, or two columns, or a structured array
    grid         times that grow, agreed on by all nodes beforehand
    groups       per node, the group of each sample, of `levels`; there is then a curve for each
    least_count  a node refuses to tell smaller counts (`sum_counts`)
    coarsen      leave times out until no node refuses
    confidence   of the interval at each time
    options      of `sum_over`

    >>> days = [[1, 2, -2, 4], [2, 3, 4, -4]]
    >>> kaplan_meier("path", days, [1, 2, 3, 4], least_count=1).survival.round(3)
    array([0.875, 0.625, 0.469, 0.156])
    """
    if not 0 < confidence < 1:
        raise DataError(f"confidence={confidence!r}: give a number between 0 and 1")
    found, known = risk_counts(graph, labels, grid, groups, levels, least_count, coarsen, options)
    curves = [
        SurvivalCurve(
            **curve(found.grid, n, d, c, found.exact, confidence),
            rounds=found.rounds,
            bytes_sent=found.bytes_sent,
        )
        for n, d, c in zip(found.at_risk, found.events, found.censored, strict=True)
    ]
    return curves[0] if groups is None else dict(zip(known, curves, strict=True))

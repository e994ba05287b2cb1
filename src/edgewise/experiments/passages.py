"""When a run came to a level: as exactly as its trace tells, and no more.

A trace has a look every so many rounds. A run has come to a level at the first look from which on
it stays at or below it to its end. What that took lies between two looks, and is given as such a
span. Of a run that did not come there we know that it would have taken more than all it spent.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from edgewise.plotting.axes import DrawableTrace

CALLS, ROUNDS, SECONDS = "oracle_calls", "rounds", "seconds"
IN = {CALLS: "calls", ROUNDS: "rounds", SECONDS: "s"}


class Span(NamedTuple):
    """More than `low`, at most `high`; of what did not come there `high` is infinite."""

    low: float
    high: float

    def times(self, factor: float) -> "Span":
        return Span(factor * self.low, factor * self.high)


class Curves:
    """The runs of one setting with one seed, by method."""

    def __init__(self, traces: Mapping[str, DrawableTrace]) -> None:
        self.traces = traces

    def __contains__(self, method: str) -> bool:
        return method in self.traces

    def values(self, method: str) -> np.ndarray:
        """The divergence at every look; infinite where the run had diverged."""
        return np.nan_to_num(self.traces[method]["bregman"], nan=np.inf)

    def first(self, method: str) -> float:
        return float(self.values(method)[0])

    def last(self, method: str) -> float:
        return float(self.values(method)[-1])

    def lowest(self, method: str) -> float:
        return float(self.values(method).min())

    def part(self, method: str) -> float:
        """Of the divergence at the start, that was left at the end."""
        return self.last(method) / self.first(method)

    def after(self, method: str, rounds: float) -> float:
        """The divergence at the last look up to this round."""
        seen = np.flatnonzero(self.traces[method]["rounds"] <= rounds)
        return float(self.values(method)[seen[-1]])

    def span(self, method: str, level: float, unit: str = CALLS) -> Span:
        """What it took to come to this part of the divergence at the start, for good."""
        costs, values = self.traces[method][unit], self.values(method)
        above = np.flatnonzero(~(values <= level * values[0]))
        if len(above) == 0:
            return Span(0.0, float(costs[0]))
        last = int(above[-1])
        high = float(costs[last + 1]) if last + 1 < len(values) else np.inf
        return Span(float(costs[last]), high)

    def alike(self, one: str, other: str) -> bool:
        """Whether two methods made the very same run."""
        a, b = self.traces[one], self.traces[other]
        return len(a) == len(b) and all(np.array_equal(a[c], b[c]) for c in (CALLS, "bregman"))


def slowest(spans: Iterable[Span]) -> Span:
    each = list(spans)
    return Span(max(s.low for s in each), max(s.high for s in each))


def quickest(spans: Iterable[Span]) -> Span:
    each = list(spans)
    return Span(min(s.low for s in each), min(s.high for s in each))


def amount(cost: float) -> str:
    return "never" if cost == np.inf else f"{cost:,.0f}" if cost >= 10 else f"{cost:.3g}"

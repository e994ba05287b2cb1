"""What the paper says of its figures, held against runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgewise.plotting.axes import DrawableTrace
from edgewise.study.curves import Curve


class Curves:
    """The runs of one setting, by method."""

    def __init__(self, traces: Mapping[str, DrawableTrace]) -> None:
        self.traces = traces

    def __contains__(self, method: str) -> bool:
        return method in self.traces

    def curve(self, method: str) -> Curve:
        trace = self.traces[method]
        known = np.nan_to_num(trace["bregman"], nan=np.inf)
        return Curve({u: trace[u] for u in ("oracle_calls", "rounds", "seconds")}, known)

    def cost(self, method: str, level: float, unit: str = "oracle_calls") -> float:
        """What it took to come to this divergence; infinite where it did not."""
        return self.curve(method).cost_to(unit, level)

    def last(self, method: str) -> float:
        return float(self.curve(method).values[-1])

    def lowest(self, method: str) -> float:
        return float(self.curve(method).values.min())

    def late(self, methods: Iterable[str]) -> float:
        """Three quarters of the way, in logarithms, from the start to the lowest that all of these
        reach."""
        pairs = [(self.first(m), self.lowest(m)) for m in methods]
        return float(pairs[0][0] ** 0.25 * max(low for _, low in pairs) ** 0.75)

    def first(self, method: str) -> float:
        return float(self.curve(method).values[0])

    def quickest(
        self, among: Iterable[str], level: float, unit: str = "oracle_calls"
    ) -> tuple[str, float]:
        """Where none gets there, the one that came nearest."""
        costs = {m: self.cost(m, level, unit) for m in among if m in self}
        best = min(costs, key=lambda m: (costs[m], self.lowest(m)))
        return best, costs[best]


Judged = tuple[bool, str]  # whether it holds, and what was measured
Beside = Callable[[str, Sequence[str]], Curves]  # the same setting of another figure, some methods
Judge = Callable[[Curves, Beside], Judged]


@dataclass(frozen=True)
class Claim:
    """In our words, and how it is judged: from a setting's curves, and from another figure's."""

    says: str
    judge: Judge


def fastest(
    ours: Iterable[str], others: Iterable[str], margin: float = 1.0, unit: str = "oracle_calls"
) -> Judge:
    """Each of ours comes to a level `margin` times as cheaply as the best of the others.

    The level is three quarters of the way, in logarithms, from the start to the lowest that all of
    ours reach.
    """

    def judge(curves: Curves, _: Beside) -> Judged:
        mine = [m for m in ours if m in curves]
        level = curves.late(mine)
        slowest = max(mine, key=lambda m: curves.cost(m, level, unit))
        rival, cost = curves.quickest(others, level, unit)
        own = curves.cost(slowest, level, unit)
        evidence = f"to {level:.1e}: {slowest} {amount(own)}, {rival} {amount(cost)}"
        return margin * own <= cost, evidence

    return judge


def amount(cost: float) -> str:
    return "never" if cost == np.inf else f"{cost:,.0f}" if cost >= 10 else f"{cost:.3g}"

"""Runs as curves: how far from the optimum at which cost, and at which cost how near."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from edgewise.centralised.reference import Reference
from edgewise.errors import MethodError, UnknownName

UNITS = ("oracle_calls", "bytes_sent", "rounds")
FIRST_LOOK = 1 / 300  # of the budget
IDLE = 1000  # steps that may go by before anything is spent
TINY = 1e-300


class Curve(NamedTuple):
    """One run, a number per look at it."""

    costs: dict[str, np.ndarray]  # in each unit, and in seconds
    values: np.ndarray  # divergence from the optimum, as a part of what it was at the start
    for_good: bool = False  # whether it has come to a level only where it stays there to the end

    def cost_to(self, unit: str, level: float) -> float:
        """What it took to come to the level; infinite where it did not. Between two looks the
        logarithm is taken to be straight."""
        there = np.flatnonzero(self.values <= level)
        if self.for_good:
            above = np.flatnonzero(~(self.values <= level))
            there = np.arange(above[-1] + 1 if len(above) else 0, len(self.values))
        if len(there) == 0:
            return float("inf")
        t, costs = there[0], self.costs[unit]
        if t == 0:
            return float(costs[0])
        high, low = logs(self.values[t - 1 : t + 1])
        part = 1.0 if not high > low else (high - np.log(level)) / (high - low)
        return float(costs[t - 1] + part * (costs[t] - costs[t - 1]))

    def value_at(self, unit: str, cost: float) -> float:
        """The divergence when so much was spent; infinite where the run had diverged."""
        value = float(np.exp(np.interp(cost, self.costs[unit], logs(self.values))))
        return value if value < 0.1 / TINY else float("inf")


class Sought(NamedTuple):
    """What runs are for."""

    budget: float
    unit: str
    goal: float
    star: Reference
    last_event: int | None = None  # the round of the last fault that has a round; None: no faults


class Followed(Protocol):
    """Cells on their way: a sweep, or one run by itself."""

    @property
    def round(self) -> int: ...
    @property
    def phases(self) -> int: ...
    @property
    def method_name(self) -> str: ...
    def begin(self) -> None: ...
    def advance(self, rounds: int, /) -> None: ...
    def spending(self) -> dict[str, np.ndarray]:
        """(cells,) in each unit, and in seconds."""


def logs(values: np.ndarray) -> np.ndarray:
    return np.log(np.clip(values, TINY, 1 / TINY))


def follow(
    cells: Followed,
    sought: Sought,
    divergences: Callable[[], np.ndarray],
    looks: int,
    tell: Callable[[float, float], Any] = lambda part, best: None,
    stop: Callable[[], bool] = lambda: False,
    most: float = np.inf,
) -> list[Curve]:
    """A curve per cell: until each has spent the budget, or what the quickest took to the goal, or
    `most`. Where there are faults no run ends before the last of them that has a round.

    Looks are spread evenly over the logarithm of the cost. Raises MethodError where a cell spends
    nothing, and so would never end.
    """
    budget, unit, goal, _, last_event = sought
    for_good = last_event is not None
    cells.begin()
    seen = [look(cells, divergences)]
    began, spent, rate = seen[0][unit].min(), seen[0][unit].min(), 0.0
    for mark in budget * np.geomspace(FIRST_LOOK, 1, looks):
        while spent < mark and not stop():
            steps = max(1, int((mark - spent) / rate)) if rate else 1
            cells.advance(steps * cells.phases)
            spent, done = cells.spending()[unit].min(), cells.round / cells.phases
            rate = (spent - began) / done
            if not rate and done >= IDLE:
                raise MethodError(
                    f"{cells.method_name} spent no {unit} in {cells.round:,} rounds, so that a "
                    'budget of them has no end: give it per="rounds"'
                )
        if cells.round > seen[-1]["rounds"][0]:
            seen.append(look(cells, divergences))
        curves = gathered(seen, for_good)
        tell(min(float(spent / budget), 1.0), min(float(c.values[-1]) for c in curves))
        enough = min(most, *(c.cost_to(unit, goal) for c in curves)) <= spent
        if stop() or (enough and cells.round > (last_event or 0)):
            break
    return gathered(seen, for_good)


def look(cells: Followed, divergences: Callable[[], np.ndarray]) -> dict[str, np.ndarray]:
    return {**cells.spending(), "value": divergences()}


def gathered(seen: list[dict[str, np.ndarray]], for_good: bool) -> list[Curve]:
    columns = {k: np.stack([row[k] for row in seen], 1) for k in seen[0]}
    values = columns.pop("value")
    values = values / np.maximum(values[:, :1], TINY)
    costs = [{k: c[i] for k, c in columns.items()} for i in range(len(values))]
    return [Curve(c, v, for_good) for c, v in zip(costs, values, strict=True)]


def check_budget(budget: Any, unit: str) -> float:
    if unit not in UNITS:
        raise UnknownName("unit of a budget", unit, UNITS)
    if not isinstance(budget, int | float | np.number) or not 0 < float(budget) < np.inf:
        raise MethodError(f"budget={budget!r}: give a positive number of {unit}")
    return float(budget)

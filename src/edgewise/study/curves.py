"""Runs as curves: how far from the optimum at which cost, and at which cost how near."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import MethodError, UnknownName
from edgewise.running.measures import Target
from edgewise.study.sweep import Sweep

UNITS = ("oracle_calls", "bytes_sent", "rounds")
FIRST_LOOK = 1 / 300  # of the budget
IDLE = 1000  # steps that may go by before anything is spent
TINY = 1e-300


class Curve(NamedTuple):
    """One run, a number per look at it."""

    costs: dict[str, np.ndarray]  # in each unit, and in seconds
    values: np.ndarray  # divergence from the optimum, as a part of what it was at the start

    def cost_to(self, unit: str, level: float) -> float:
        """What it took to come to the level; infinite where it did not. Between two looks the
        logarithm is taken to be straight."""
        there = np.flatnonzero(self.values <= level)
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


def logs(values: np.ndarray) -> np.ndarray:
    return np.log(np.clip(values, TINY, 1 / TINY))


def follow(
    sweep: Sweep,
    budget: float,
    unit: str,
    goal: float,
    target: Target,
    looks: int,
    tell: Callable[[float, float], Any] = lambda part, best: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[Curve]:
    """A curve per cell: until each has spent the budget, or what the quickest took to the goal.

    Looks are spread evenly over the logarithm of the cost. Raises MethodError where a cell spends
    nothing, and so would never end.
    """
    sweep.start(sweep.base.origin())
    seen = [look(sweep, target)]
    began, spent, rate = seen[0][unit].min(), seen[0][unit].min(), 0.0
    for mark in budget * np.geomspace(FIRST_LOOK, 1, looks):
        while spent < mark and not stop():
            steps = max(1, int((mark - spent) / rate)) if rate else 1
            sweep.advance(steps * sweep.phases)
            spent, done = spending(sweep)[unit].min(), sweep.round / sweep.phases
            rate = (spent - began) / done
            if not rate and done >= IDLE:
                name = type(sweep.base.method).__name__
                raise MethodError(
                    f"{name} spent no {unit} in {sweep.round:,} rounds, so that a budget of them "
                    'has no end: give it per="rounds"'
                )
        if sweep.round > seen[-1]["rounds"][0]:
            seen.append(look(sweep, target))
        curves = gathered(seen)
        tell(min(float(spent / budget), 1.0), min(float(c.values[-1]) for c in curves))
        if stop() or min(c.cost_to(unit, goal) for c in curves) <= spent:
            break
    return gathered(seen)


def look(sweep: Sweep, target: Target) -> dict[str, np.ndarray]:
    return {**spending(sweep), "value": sweep.divergences(target)}


def spending(sweep: Sweep) -> dict[str, np.ndarray]:
    each = np.ones(sweep.form.size)
    return {
        "oracle_calls": each * sweep.calls(),
        "rounds": each * sweep.round,
        "bytes_sent": each * sweep.bytes_sent(),
        "seconds": each * sweep.seconds / sweep.form.size,
    }


def gathered(seen: list[dict[str, np.ndarray]]) -> list[Curve]:
    columns = {k: np.stack([row[k] for row in seen], 1) for k in seen[0]}
    values = columns.pop("value")
    values = values / np.maximum(values[:, :1], TINY)
    return [Curve({k: c[i] for k, c in columns.items()}, values[i]) for i in range(len(values))]


def check_budget(budget: Any, unit: str) -> float:
    if unit not in UNITS:
        raise UnknownName("unit of a budget", unit, UNITS)
    if not isinstance(budget, int | float | np.number) or not 0 < float(budget) < np.inf:
        raise MethodError(f"budget={budget!r}: give a positive number of {unit}")
    return float(budget)

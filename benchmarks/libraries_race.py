"""The clock, the goal and the search for steps that benchmarks/libraries.py gives every library.

NumPy alone: it also runs where edgewise is not installed. Seconds are of the CPU, by a process
that keeps to one core, so that neighbours on the machine count for little; what is measured on
the way does not count.
"""

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LEVELS = (1e-3, 1e-6)
APART = 1.03  # a look every 3 % of the iterations
MOST_RUNS = 8  # of one search for steps
SHARE = 4  # the part of its time that a run has in a search
FACTORS = (4.0, 2.0)  # what a parameter is multiplied with and divided by, the second at the end
WORSE = 1e6  # times the gap at zero: diverged


class Shared(NamedTuple):
    """A problem that all libraries solve: nodes of equal size, each weighing the same."""

    name: str
    loss: str  # logistic (y is -1 or 1) or squared
    X: np.ndarray  # (V, K, n)
    y: np.ndarray  # (V, K)
    edges: np.ndarray  # (E, 2)
    ridge: float
    l1: float
    optimum: np.ndarray  # (n,)

    def save(self, folder: Path) -> None:
        np.savez(folder / f"{self.name}.npz", **self._asdict())

    def objective(self, models: np.ndarray) -> np.ndarray:
        """(m,) for models (m, n): the mean over all samples, and the penalties."""
        scores = models @ self.X.reshape(-1, self.X.shape[2]).T
        y = self.y.reshape(-1)
        if self.loss == "logistic":
            losses = np.logaddexp(0, -scores * y).mean(1)
        else:
            losses = ((scores - y) ** 2).mean(1) / 2
        return losses + self.ridge / 2 * (models**2).sum(1) + self.l1 * np.abs(models).sum(1)

    def gradient(self, models: np.ndarray) -> np.ndarray:
        """(V, n) of the smooth parts of all nodes, each at its model."""
        scores = np.einsum("vkn,vn->vk", self.X, models)
        if self.loss == "logistic":
            slopes = -self.y / (1 + np.exp(self.y * scores))
        else:
            slopes = scores - self.y
        means = np.einsum("vk,vkn->vn", slopes, self.X) / self.X.shape[1]
        return means + self.ridge * models

    def smoothness(self) -> float:
        """The largest constant of a node."""
        curvature = 0.25 if self.loss == "logistic" else 1.0
        largest = max(np.linalg.norm(X, 2) ** 2 for X in self.X) / self.X.shape[1]
        return float(curvature * largest + self.ridge)

    def condition(self) -> float:
        """Of the Hessian of the whole smooth part at the optimum."""
        rows = self.X.reshape(-1, self.X.shape[2])
        weights = np.ones(len(rows))
        if self.loss == "logistic":
            chance = 1 / (1 + np.exp(-rows @ self.optimum))
            weights = chance * (1 - chance)
        values = np.linalg.eigvalsh((rows.T * weights) @ rows / len(rows))
        return float((values[-1] + self.ridge) / (max(values[0], 0.0) + self.ridge + 1e-300))


def load(path: Path) -> Shared:
    with np.load(path) as kept:
        parts = {name: kept[name] for name in Shared._fields}
    scalars = {name: parts[name].item() for name in ("name", "loss", "ridge", "l1")}
    return Shared(**parts | scalars)


class Enough(Exception):
    """Raised where a library has no other way to be stopped."""


class Race:
    """A run against the clock. Worst node: the largest (F(x_i) - F*) / F* of any node's model."""

    def __init__(self, problem: Shared, limit: float) -> None:
        self.problem, self.limit = problem, limit
        self.least = float(problem.objective(problem.optimum[None])[0])
        zeros = np.zeros((1, problem.X.shape[2]))
        self.first = self.gap = self.worst(zeros)
        self.spent, self.iterations, self.next = 0.0, 0, 1
        self.seconds: dict[str, float] = {}
        self.rounds: dict[str, float] = {}
        self.ended = ""

    def worst(self, models: np.ndarray) -> float:
        gap = float(self.problem.objective(models).max() - self.least) / self.least
        return gap if math.isfinite(gap) else math.inf

    def begin(self) -> None:
        self.mark = time.process_time()

    def iteration(self, models: Callable[[], np.ndarray], rounds: int | None = None) -> bool:
        """After every iteration: whether to stop. `rounds` where they are not iterations."""
        self.iterations += 1
        if self.iterations < self.next:
            return False
        self.spent += time.process_time() - self.mark
        self.next = max(self.iterations + 1, int(APART * self.iterations))
        self.look(models(), self.iterations if rounds is None else rounds)
        self.mark = time.process_time()
        return bool(self.ended)

    def look(self, models: np.ndarray, rounds: int) -> None:
        self.gap = self.worst(models)
        for level in LEVELS:
            if self.gap <= level:
                self.seconds.setdefault(f"{level:.0e}", self.spent)
                self.rounds.setdefault(f"{level:.0e}", rounds)
        if self.gap <= LEVELS[-1]:
            self.ended = "reached"
        elif self.gap > WORSE * self.first:
            self.ended = "diverged"
        elif self.spent > self.limit:
            self.ended = "time"

    def result(self) -> dict[str, Any]:
        last = self.gap if math.isfinite(self.gap) else None
        told = {"seconds": self.seconds, "rounds": self.rounds, "gap": last, "ended": self.ended}
        return told | {"spent": self.spent, "iterations": self.iterations}


def rounded(value: Any) -> Any:
    """To four digits, wherever numbers are in it."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def score(result: dict[str, Any]) -> tuple[int, float]:
    """Less is better: there sooner, or at least nearer, or away later."""
    if result["ended"] == "reached":
        return 0, result["seconds"][f"{LEVELS[-1]:.0e}"]
    if result["ended"] == "diverged":
        return 2, -result["iterations"]
    return 1, result["gap"]


def middle(run: Callable[[], dict[str, Any]], times: int = 3) -> dict[str, Any]:
    """The median run of a few, where it takes less than a second; else the only one."""
    runs = [run()]
    while len(runs) < times and runs[0]["ended"] == "reached" and runs[0]["spent"] < 1:
        runs.append(run())
    return sorted(runs, key=score)[len(runs) // 2]


def search(
    run: Callable[[dict[str, float], float], dict[str, Any]],
    start: dict[str, float],
    limit: float,
) -> tuple[dict[str, float], dict[str, Any], int]:
    """The steps that are there first, by one rule for all: from `start`, each parameter times and
    over four, moved to what is best until nothing is better, then the same with two. A run may
    take what the best took so far, and half as much again."""
    seen: dict[tuple[float, ...], tuple[int, float]] = {}
    found = start, run(start, limit)
    best = score(found[1])
    seen[tuple(start.values())] = best
    for factor in FACTORS:
        moved = True
        while moved and len(seen) < MOST_RUNS:
            moved = False
            around = [(n, f) for n in start for f in (factor, 1 / factor)]
            middle = found[0]
            for name, times in around:
                steps = middle | {name: middle[name] * times}
                key = tuple(steps.values())
                if key in seen or len(seen) >= MOST_RUNS:
                    continue
                allowed = min(limit, 1.5 * best[1] + 0.1) if best[0] == 0 else limit
                result = run(steps, allowed)
                seen[key] = score(result)
                if seen[key] < best:
                    best, found, moved = seen[key], (steps, result), True
    return *found, len(seen)


def timed(problem: Shared, method: Any, steps: dict[str, float], variant: Any, limit: float) -> Any:
    race = Race(problem, limit)
    try:
        with np.errstate(all="ignore"):
            method.run(problem, race, steps, variant)
    except Enough:
        pass
    return race.result()


def measured(problem: Shared, method: Any, limit: float) -> list[dict[str, Any]]:
    """Rows: with the documented steps, and tuned."""

    def run(steps: dict[str, float], variant: Any, allowed: float) -> dict[str, Any]:
        return timed(problem, method, steps, variant, allowed)

    documented = method.start(problem) | method.documented
    first = middle(lambda: run(documented, method.variants[0], limit))
    rows = [first | {"steps": "documented"}]
    rows[0]["values"] = documented
    tuned: dict[str, Any] | None = None
    runs = 0
    for variant in method.variants:

        def given(
            steps: dict[str, float], allowed: float, variant: Any = variant
        ) -> dict[str, Any]:
            return run(steps, variant, allowed)

        steps, result, count = search(given, method.start(problem), limit / SHARE)
        runs += count
        result = middle(lambda given=given, steps=steps: given(steps, limit))
        if tuned is None or score(result) < score(tuned):
            shown = steps if variant is None else steps | {"batch": variant}
            tuned = result | {"steps": "tuned", "values": shown}
    assert tuned is not None
    return [*rows, tuned | {"runs": runs}]


def again(
    problem: Shared, method: Any, limit: float, kept: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The same rows, with the steps that were found before."""
    rows = []
    for old in kept:
        steps = dict(old["values"])
        batch = steps.pop("batch", None)
        more = middle(lambda s=steps, b=batch: timed(problem, method, s, b, limit))
        rows.append(old | more)
    return rows


def one_core(core: int | None = None) -> None:
    """Before NumPy's threads begin, for the CPU seconds of several are not seconds."""
    if hasattr(os, "sched_setaffinity"):
        there = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {there[-1] if core is None else core})

"""Cells of one method as curves: side by side in one program, or, under faults and over ranks, one
after another by the engines of `solve`."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgewise.engines.choose import make_engine
from edgewise.engines.faults import Faults
from edgewise.engines.mpi import MPI
from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.problem.problem import Problem
from edgewise.running.measures import target_of
from edgewise.running.run import Run
from edgewise.study.curves import Curve, Sought, follow
from edgewise.study.sweep import Sweep

Tell = Callable[[float, float], Any]
# Steps of one program: each number has a program of its own, so that there must be few.
STEPS = (512, 64, 8, 1)


@dataclass(frozen=True, eq=False)
class Setting:
    """What all runs of a study have in common."""

    problem: Problem
    graph: Graph
    dtype: Any
    faults: Faults | None
    engine: MPI | None
    stop: threading.Event

    def runs(self, seed: int, fault_seed: int = 0) -> "Runs":
        """Runs that draw samples by this seed, and faults by theirs and `fault_seed`."""
        if self.faults is None:
            return Runs(self, seed)
        faults = replace(self.faults, seed=self.faults.seed + fault_seed)
        return Runs(replace(self, faults=faults), seed)

    def stopped(self) -> bool:
        """Whether the user, at any rank, has had enough."""
        stop = self.stop.is_set()
        return stop if self.engine is None else self.engine.largest(float(stop)) > 0


class Runs:
    """Of cells of one structure."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting, self.seed = setting, seed
        self.sweep: Sweep | None = None

    def curves(
        self, cells: Sequence[Method], sought: Sought, looks: int, tell: Tell
    ) -> list[Curve]:
        """A curve per cell; fewer where the user has had enough."""
        s = self.setting
        if s.faults is not None or s.engine is not None:
            return self.one_after_another(cells, sought, looks, tell)
        if self.sweep is None:
            self.sweep = Sweep(s.problem, s.graph, cells, self.seed, s.dtype)
        else:
            self.sweep.load(cells)
        sweep, target = self.sweep, target_of(sought.star)
        return follow(sweep, sought, lambda: sweep.divergences(target), looks, tell, s.stopped)

    def one_after_another(
        self, cells: Sequence[Method], sought: Sought, looks: int, tell: Tell
    ) -> list[Curve]:
        s, curves, least = self.setting, [], np.inf
        for at, cell in enumerate(cells):
            given = s.problem, s.graph, cell, self.seed, s.dtype, s.faults
            with make_engine(*given, engine=s.engine) as engine:
                run = Run(s.problem, s.graph, engine, faults=s.faults)
                run.set_target(sought.star)
                single = SingleRun(run)

                def told(part: float, best: float, at: int = at) -> None:
                    tell((at + part) / len(cells), best)

                curves += follow(single, sought, single.divergences, looks, told, s.stopped, least)
            least = min(least, curves[-1].cost_to(sought.unit, sought.goal))
            if s.stopped():
                break
        return curves


class SingleRun:
    """A run of `solve`, as `follow` takes it: one cell."""

    def __init__(self, run: Run) -> None:
        self.run = run
        breaks = () if run.faults is None else run.faults.breaks
        self.stops = [-(-r // self.phases) * self.phases for r in breaks]

    @property
    def round(self) -> int:
        return self.run.round

    @property
    def phases(self) -> int:
        return self.run.phases

    @property
    def method_name(self) -> str:
        return type(self.run.method).__name__

    def begin(self) -> None:
        """It is at its start since it was made."""

    def advance(self, rounds: int) -> None:
        end = self.round + rounds
        while self.round < end:
            until = min((r for r in self.stops if self.round < r < end), default=end)
            steps = (until - self.round) // self.phases
            self.run.advance(next(size for size in STEPS if size <= steps) * self.phases)

    def spending(self) -> dict[str, np.ndarray]:
        return {name: np.array([value]) for name, value in self.run.spent().items()}

    def divergences(self) -> np.ndarray:
        """(1,) from the optimum of those present; the same number at all ranks."""
        value = float(self.run.measured()[0]["bregman"])
        return np.array([self.run.communicator.slowest(value if np.isfinite(value) else np.inf)])


@contextmanager
def study_of(engine: Any, faults: Any) -> Iterator[bool]:
    """Errors at one rank are errors at all; whether this process tells the user."""
    if engine is not None and not isinstance(engine, MPI):
        raise MethodError(f"engine={engine!r}: give edgewise.MPI(), or None")
    with nullcontext() if engine is None else engine.together():
        if engine is not None and faults is not None:
            raise MethodError("an MPI engine with faults: leave one of them out")
        yield engine is None or engine.rank == 0

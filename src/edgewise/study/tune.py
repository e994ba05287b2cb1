"""The best steps of a method for a problem, by one rule for all methods."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np

from edgewise.centralised.reference import Reference
from edgewise.centralised.reference import reference as solve_reference
from edgewise.engines.faults import Faults, links_in_time, under_faults
from edgewise.engines.mpi import MPI
from edgewise.errors import DivergenceWarning, MethodError
from edgewise.graph.graph import Graph
from edgewise.graph.varying import TimeVarying
from edgewise.methods.auto import choose
from edgewise.methods.contract import Method
from edgewise.methods.knowledge import whole_network
from edgewise.problem.problem import Problem
from edgewise.running.checks import check, check_run, graph_for, precision
from edgewise.running.interrupt import deferred_interrupt
from edgewise.running.progress import Progress
from edgewise.study.curves import Curve, Sought, check_budget
from edgewise.study.runs import Setting, study_of

FACTORS = (1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
PASSES = 30  # the budget where none is given
MOVES = 2  # times that the grid may follow a best cell at its edge
LOOKS = 20  # at the cells of a grid, on their way

Factors = tuple[float, ...]


@dataclass(frozen=True)
class Tuning:
    """The best cell, and all that were tried."""

    method: Method = field(repr=False)  # with the best steps, for `solve`
    factors: dict[str, float]  # best step / the step by its rule
    steps: dict[str, np.ndarray] = field(repr=False)  # the best steps in numbers
    surface: dict[str, np.ndarray] = field(repr=False)  # a column a factor, `cost`, `divergence`
    diverged: int  # cells that did
    message: str
    unit: str = field(repr=False)

    def to_pandas(self) -> Any:
        import pandas

        return pandas.DataFrame(self.surface)

    def plot(self, ax: Any = None, path: str | Path | None = None) -> Any:
        """The divergence over the grid, the best cell marked; saved where `path` says."""
        from edgewise.plotting.studies import plot_surface

        return plot_surface(self, ax, path)


def tune(
    problem: Problem,
    graph: Graph | TimeVarying | str,
    method: Method | str = "auto",
    budget: float | None = None,
    per: str = "oracle_calls",
    *,
    target: float = 1e-9,
    factors: Sequence[float] = FACTORS,
    seed: int = 0,
    reference: Reference | None = None,
    faults: Faults | None = None,
    engine: MPI | None = None,
    dtype: Any = None,
    progress: bool | None = None,
) -> Tuning:
    """Try a grid of steps and say which was best.

    A cell of the grid is the method with each of its own step parameters (eta, and rho, mu or
    beta where it has one) at a multiple of what its rule says, or of the number that it was given.
    All cells run side by side from the same start with the same samples, until each has spent the
    budget, or what the quickest took to the target. Best is the first to the target; if none gets
    there, the nearest to the optimum when the budget is spent. A best cell at the edge of the grid
    moves the grid there, twice at most. It is the same rule for every method.

    method     a name from `edgewise.list_methods()` or an object; "auto" takes one that has steps
    budget     what a cell may spend; default 30 passes over the data
    per        the budget's unit: "oracle_calls" (mean per node), "bytes_sent" or "rounds"
    target     the Bregman divergence to reach, as a part of what it is at the start
    factors    the multiples to try for each parameter
    seed       use another one for runs that are to be compared
    reference  `edgewise.reference(problem)`, if it is there already
    faults     `edgewise.Faults(...)`, as in `solve`: every cell meets the same. A cell has come to
               the target where it stays there, and none ends before the last event
    engine     `edgewise.MPI()`, as in `solve`; every rank works the reference out

    Under faults and over ranks a cell is a run of its own, one after another.

    >>> X, y = edgewise.data.epsilon_like(rows=200, features=5)
    >>> problem = edgewise.Problem(edgewise.split(X, y, nodes=4), edgewise.Logistic(ridge=0.1))
    >>> tuning = tune(problem, Graph.ring(4), "pd", budget=2000)
    >>> tuning.factors
    {'eta': 1.0, 'rho': 4.0}
    >>> result = edgewise.solve(problem, Graph.ring(4), tuning.method, rounds=200)
    """
    with study_of(engine, faults) as speaks:
        graph, faults = links_in_time(graph_for(problem, graph), faults)
        check_run(1, 1, seed, target, None)
        check(problem, graph, method, reference or True)
        chosen, name, _ = choose(method, problem, graph, tunable=True)
        if problem.stream is not None:
            raise MethodError("tune needs a finite set of samples, this problem has a stream")
        if faults is not None:
            chosen = under_faults(chosen, faults, problem, graph)
        budget = check_budget(PASSES * problem.counts.mean() if budget is None else budget, per)
        kind = precision(dtype)
        multiples = checked_factors(factors)
        star = solve_reference(problem) if reference is None else reference
        with (
            jax.enable_x64(True),
            Progress(100, f"tune {name}", progress if speaks else False, "divergence") as bar,
            deferred_interrupt() as stop,
        ):
            last_event = None if faults is None else faults.last_event
            sought = Sought(budget, per, target, star, last_event)
            search = Search(problem, graph, chosen, sought)
            setting = Setting(problem, graph, kind, faults, engine, stop)
            search.run(multiples, setting, int(seed), bar.portion(0, 1))
        return search.result(name)


class Search:
    """The cells tried so far."""

    def __init__(self, problem: Problem, graph: Graph, method: Method, sought: Sought) -> None:
        self.problem, self.graph, self.method, self.sought = problem, graph, method, sought
        self.names: tuple[str, ...] = method.tunes
        self.curves: dict[Factors, Curve] = {}

    def run(
        self, factors: Factors, setting: Setting, seed: int, tell: Callable[[float, float], None]
    ) -> None:
        """The grid, and the grids around best cells at its edge."""
        multiples, runs = [factors] * len(self.names), setting.runs(seed)
        for _ in range(MOVES + 1):
            grid = list(product(*multiples))
            cells = [self.cell(factors) for factors in grid]
            curves = runs.curves(cells, self.sought, LOOKS, tell)
            self.curves |= dict(zip(grid, curves, strict=False))  # fewer where it was stopped
            multiples = self.around_best(multiples)
            if not multiples or setting.stopped():
                return

    def cell(self, factors: Factors) -> Method:
        named = dict(zip(self.names, factors, strict=True))
        return with_factors(self.method, self.problem, self.graph, named)

    def outcome(self, factors: Factors) -> tuple[float, float]:
        """What the target cost, and how far the cell was when all had spent the same."""
        unit = self.sought.unit
        spent = min(float(c.costs[unit][-1]) for c in self.curves.values())
        curve = self.curves[factors]
        return curve.cost_to(unit, self.sought.goal), curve.value_at(unit, spent)

    def around_best(self, multiples: list[Factors]) -> list[Factors]:
        """The grid moved to a best cell at its edge; nothing where that is not at an edge."""
        best = min(self.curves, key=self.outcome)
        if not np.isfinite(self.outcome(best)[1]):  # all diverged
            return [scaled(m, m[0] / m[-1] / 2) for m in multiples]
        after = []
        for factor, m in zip(best, multiples, strict=True):
            inside = min(1, max(len(m) - 2, 0))  # one cell from the edge, where there are three
            edge = {m[0]: factor / m[-1 - inside], m[-1]: factor / m[inside]}
            after.append(scaled(m, edge.get(factor, 1.0) if len(m) > 1 else 1.0))
        return after if after != multiples else []

    def cost_text(self, factors: Factors) -> str:
        cost, value = self.outcome(factors)
        if cost == np.inf:
            return f"divergence {value:.1e}"
        return f"{self.sought.goal:.0e} after {cost:,.0f} {self.sought.unit}"

    def result(self, name: str) -> Tuning:
        tried = sorted(self.curves)
        outcomes = np.array([self.outcome(f) for f in tried])
        best = min(tried, key=self.outcome)
        surface = dict(zip(self.names, np.array(tried).T, strict=True))
        surface |= {"cost": outcomes[:, 0], "divergence": outcomes[:, 1]}
        diverged = int((~(outcomes[:, 1] < 1)).sum())
        factors = dict(zip(self.names, best, strict=True))
        cell = self.cell(best)
        steps = {k: np.asarray(getattr(cell, k)) for k in self.names}
        chosen = ", ".join(f"{k} x {f:.4g}" for k, f in factors.items())
        message = (
            f"{name}: {chosen}, {self.cost_text(best)}; {len(tried)} cells, {diverged} diverged"
        )
        rule = (1.0,) * len(best)
        if rule in self.curves and rule != best:
            message += f"; by rule {self.cost_text(rule)}"
        if diverged == len(tried):
            message = f"{name}: all {len(tried)} cells diverged, give smaller factors"
            warnings.warn(message, DivergenceWarning, stacklevel=3)
        return Tuning(cell, factors, steps, surface, diverged, message, self.sought.unit)


def with_factors(
    method: Method, problem: Problem, graph: Graph, factors: Mapping[str, float]
) -> Method:
    """The method with its steps at these multiples of what their rules say for the problem.

    One after another: the rule of the next may depend on those before it.
    """
    for name, factor in factors.items():
        prepared, weights = method.prepare(whole_network(problem, graph))
        value = np.asarray(weights[name] if name in weights else getattr(prepared, name))
        numbers = value[:, 0] if value.ndim == 2 else value
        method = replace(method, **{name: factor * numbers})
    return method


def scaled(multiples: Factors, by: float) -> Factors:
    return tuple(float(m * by) for m in multiples)


def checked_factors(factors: Sequence[float]) -> Factors:
    try:
        numbers = sorted({float(f) for f in factors})
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not 0 < numbers[0] <= numbers[-1] < np.inf:
        raise MethodError(f"factors={factors!r}: give positive numbers, as (0.25, 0.5, 1, 2, 4)")
    return tuple(numbers)

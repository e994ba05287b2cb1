"""Several methods on one problem, each with its steps found by the same rule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console

from edgewise.centralised.reference import Reference
from edgewise.centralised.reference import reference as solve_reference
from edgewise.engines.faults import Faults, harm, healing_form, links_in_time
from edgewise.engines.mpi import MPI
from edgewise.engines.simulator import describe
from edgewise.errors import MethodError, UnknownName, whole_number
from edgewise.graph.graph import Graph
from edgewise.graph.varying import TimeVarying
from edgewise.methods.auto import choose, require_bounded_curvature
from edgewise.methods.contract import Method
from edgewise.methods.knowledge import whole_network
from edgewise.plotting.displays import shown
from edgewise.problem.problem import Problem
from edgewise.running.checks import check, graph_for, precision
from edgewise.running.interrupt import deferred_interrupt
from edgewise.running.progress import Progress
from edgewise.study.curves import UNITS, Curve, Sought, check_budget
from edgewise.study.runs import Setting, study_of
from edgewise.study.tables import comparison_html, comparison_markdown, comparison_table
from edgewise.study.tune import FACTORS, Search, Tuning

ACCURACIES = (1e-3, 1e-6, 1e-9)
LOOKS = 60  # at a run, on its way
ALL_UNITS = (*UNITS, "seconds")
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Comparison:
    """What it cost each method to come how near to the optimum."""

    runs: dict[str, list[Curve]] = field(repr=False)  # a curve per seed
    tunings: dict[str, Tuning] = field(repr=False)  # empty if steps were not tuned
    refused: dict[str, str]  # methods that cannot take this problem, and why
    accuracies: tuple[float, ...]
    unit: str  # of the budget
    budget: float
    faults: Faults | None = None  # that all runs met
    harmed: dict[str, str] = field(default_factory=dict)  # methods that these keep from the
    # optimum, and why

    def cost(self, method: str, accuracy: float, unit: str | None = None) -> np.ndarray:
        """(3,) lower quartile, median and upper quartile over seeds; infinite where the budget
        did not do."""
        unit = self.known(unit)
        costs = [c.cost_to(unit, accuracy) for c in self.runs[method]]
        return np.quantile(costs, QUARTILES, method="inverted_cdf")

    def best(self, accuracy: float, unit: str | None = None) -> str | None:
        """The method with the least median; None where none got there."""
        costs = {m: self.cost(m, accuracy, unit)[1] for m in self.runs}
        first = min(costs, key=costs.__getitem__, default=None)
        return first if first is not None and costs[first] < np.inf else None

    def ended(self, method: str) -> np.ndarray:
        """(3,) lower quartile, median and upper quartile of the divergence that runs ended with, as
        a part of what it was at the start: 1 and more is no nearer, so it has diverged."""
        values = [c.values[-1] for c in self.runs[method]]
        return np.quantile(values, QUARTILES, method="inverted_cdf")

    def diverged(self, method: str) -> bool:
        """Whether half of the runs or more did."""
        return not self.ended(method)[1] < 1

    def known(self, unit: str | None) -> str:
        unit = self.unit if unit is None else unit
        if unit not in ALL_UNITS:
            raise UnknownName("unit", unit, ALL_UNITS)
        return unit

    def to_pandas(self) -> Any:
        """One row per method, accuracy and unit."""
        import pandas

        rows = [
            (m, a, u, *self.cost(m, a, u))
            for m in self.runs
            for a in self.accuracies
            for u in ALL_UNITS
        ]
        names = ["method", "accuracy", "unit", "lower", "median", "upper"]
        return pandas.DataFrame(rows, columns=names)

    def table(self, unit: str | None = None) -> Any:
        """A rich table of medians and quartiles, the best in bold."""
        return comparison_table(self, self.known(unit))

    @shown
    def _repr_html_(self) -> str:
        return comparison_html(self, self.unit)

    def markdown(self, unit: str | None = None) -> str:
        return comparison_markdown(self, self.known(unit))

    def plot(
        self,
        x: str | Sequence[str] = ALL_UNITS,
        path: str | Path | None = None,
        log_x: bool = False,
    ) -> Any:
        """Divergence against cost, medians and quartiles, a panel per unit; `log_x` where costs
        differ by orders of magnitude."""
        from edgewise.plotting.studies import plot_comparison

        units = [self.known(u) for u in ([x] if isinstance(x, str) else x)]
        return plot_comparison(self, units, path, log_x)


def compare(
    problem: Problem,
    graph: Graph | TimeVarying | str,
    methods: Sequence[Any] | Mapping[str, Any],
    budget: float,
    per: str = "oracle_calls",
    *,
    tune: bool = True,
    accuracies: Sequence[float] = ACCURACIES,
    seeds: int = 5,
    reference: Reference | None = None,
    faults: Faults | None = None,
    engine: MPI | None = None,
    dtype: Any = None,
    progress: bool | None = None,
    show: bool = True,
) -> Comparison:
    """Run all methods and say what each accuracy cost them.

    methods     names from `edgewise.list_methods()`, "auto" or objects; as a dict to name them
                yourself
    budget      what each run may spend, in tuning and after
    per         its unit: "oracle_calls" (mean per node), "bytes_sent" or "rounds"
    tune        find every method's steps by `edgewise.tune` first, with that budget and seed 0;
                else they take their own
    accuracies  Bregman divergences to reach, as parts of what it is at the start
    seeds       runs per method, with seeds 1, 2, ...; one where nothing is random
    faults      `edgewise.Faults(...)`, as in `solve`, where steps are found too: the k-th run of
                every method meets those of faults.seed + k. Methods that do not heal run as they
                are, are listed in `harmed`, and the table says where they ended
    engine      `edgewise.MPI()`, as in `solve`; every rank works the reference out
    show        print the table

    Costs between two looks are interpolated. A method that cannot take the problem is listed with
    its reason in `refused`. Under faults a run has come to an accuracy where it stays there to its
    end, and none ends before the last event.

    >>> X, y = edgewise.data.epsilon_like(rows=200, features=5)
    >>> shards = edgewise.split(X, y, nodes=4)
    >>> problem = edgewise.Problem(shards, edgewise.Logistic(ridge=0.1), edgewise.L1(0.01))
    >>> comparison = compare(problem, Graph.ring(4), ["pd", "extra"], budget=2000, show=False)
    >>> comparison.best(1e-6), list(comparison.refused)
    ('pd', ['extra'])
    """
    with study_of(engine, faults) as speaks:
        graph, faults = links_in_time(graph_for(problem, graph), faults)
        budget = check_budget(budget, per)
        seeds = whole_number("seeds", seeds, 1, MethodError)
        levels = checked_accuracies(accuracies)
        named = labelled(methods)
        star = solve_reference(problem) if reference is None else reference
        refused = {m: why for m, made in named.items() if (why := refusal(problem, graph, made))}
        chosen = {
            m: choose(made, problem, graph).method for m, made in named.items() if m not in refused
        }
        harmed: dict[str, str] = {}
        if faults is not None:
            chosen = {m: healing_form(c, faults, problem, graph) for m, c in chosen.items()}
            harmed = {m: why for m, c in chosen.items() if (why := harm(c, faults))}
        last_event = None if faults is None else faults.last_event
        sought = Sought(budget, per, levels[-1], star, last_event)
        found = Comparison({}, {}, refused, levels, per, budget, faults, harmed)
        with (
            jax.enable_x64(True),
            Progress(
                100 * len(chosen), "compare", progress if speaks else False, "divergence"
            ) as bar,
            deferred_interrupt() as stop,
        ):
            setting = Setting(problem, graph, precision(dtype), faults, engine, stop)
            for at, (label, method) in enumerate(chosen.items()):
                if setting.stopped():
                    break
                bar.title = label
                tell = bar.portion(at / len(chosen), 1 / len(chosen))
                if tune:
                    search = Search(problem, graph, method, sought)
                    search.run(FACTORS, setting, 0, tell)
                    found.tunings[label] = search.result(label)
                    method = found.tunings[label].method
                random = method.random_draws > 0 or (faults is not None and faults.random)
                curves = found.runs[label] = []
                for seed in range(1, 1 + (seeds if random else 1)):
                    curves += setting.runs(seed, seed).curves([method], sought, LOOKS, tell)
                    if setting.stopped():
                        break
    if show and speaks:
        Console().print(found.table())
    return found


def refusal(problem: Problem, graph: Graph, method: Method | str) -> str:
    """Why the method cannot take the problem; nothing if it can."""
    try:
        check(problem, graph, method, True)
        chosen = require_bounded_curvature(choose(method, problem, graph).method, problem)
        chosen.prepare(whole_network(problem, graph))
    except MethodError as reason:
        return str(reason)
    return ""


def labelled(methods: Any) -> dict[str, Any]:
    if isinstance(methods, Mapping):
        return dict(methods)
    if isinstance(methods, str):
        methods = [methods]
    named: dict[str, Any] = {}
    for method in methods:
        label = method if isinstance(method, str) else describe(method)
        if label in named:
            raise MethodError(f"two methods are called {label!r}: give a dict with names of yours")
        named[label] = method
    return named


def checked_accuracies(accuracies: Sequence[float]) -> tuple[float, ...]:
    levels = tuple(sorted({float(a) for a in accuracies}, reverse=True))
    if not levels or not 0 < levels[-1] <= levels[0] < 1:
        raise MethodError(
            f"accuracies={accuracies!r}: give numbers between 0 and 1, as (1e-3, 1e-6)"
        )
    return levels

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
from edgewise.engines.simulator import describe
from edgewise.errors import MethodError, UnknownName, whole_number
from edgewise.graph.graph import Graph
from edgewise.methods.auto import choose
from edgewise.methods.contract import Method
from edgewise.methods.knowledge import whole_network
from edgewise.problem.problem import Problem
from edgewise.running.checks import check, precision
from edgewise.running.interrupt import deferred_interrupt
from edgewise.running.measures import target_of
from edgewise.running.progress import Progress
from edgewise.study.curves import UNITS, Curve, check_budget, follow
from edgewise.study.sweep import Sweep
from edgewise.study.tables import comparison_markdown, comparison_table
from edgewise.study.tune import FACTORS, Search, Sought, Tuning

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

    def markdown(self, unit: str | None = None) -> str:
        return comparison_markdown(self, self.known(unit))

    def plot(self, x: str | Sequence[str] = ALL_UNITS, path: str | Path | None = None) -> Any:
        """Divergence against cost, medians and quartiles, a panel per unit."""
        from edgewise.plotting.studies import plot_comparison

        return plot_comparison(
            self, [self.known(u) for u in ([x] if isinstance(x, str) else x)], path
        )


def compare(
    problem: Problem,
    graph: Graph,
    methods: Sequence[Any] | Mapping[str, Any],
    budget: float,
    per: str = "oracle_calls",
    *,
    tune: bool = True,
    accuracies: Sequence[float] = ACCURACIES,
    seeds: int = 5,
    reference: Reference | None = None,
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
    show        print the table

    Costs between two looks are interpolated. A method that cannot take the problem is listed with
    its reason in `refused`.

    >>> X, y = edgewise.data.epsilon_like(rows=200, features=5)
    >>> shards = edgewise.split(X, y, nodes=4)
    >>> problem = edgewise.Problem(shards, edgewise.Logistic(ridge=0.1), edgewise.L1(0.01))
    >>> comparison = compare(problem, Graph.ring(4), ["pd", "extra"], budget=2000, show=False)
    >>> comparison.best(1e-6), list(comparison.refused)
    ('pd', ['extra'])
    """
    budget = check_budget(budget, per)
    seeds = whole_number("seeds", seeds, 1, MethodError)
    levels = checked_accuracies(accuracies)
    named = labelled(methods)
    star = solve_reference(problem) if reference is None else reference
    refused = {m: why for m, method in named.items() if (why := refusal(problem, graph, method))}
    runs: dict[str, list[Curve]] = {}
    tunings: dict[str, Tuning] = {}
    sought = Sought(budget, per, levels[-1], star)
    kind = precision(dtype)
    with (
        jax.enable_x64(True),
        Progress(100 * len(named), "compare", progress, "divergence") as bar,
        deferred_interrupt() as stop,
    ):
        for at, (label, method) in enumerate(named.items()):
            if label in refused or stop.is_set():
                continue
            chosen = choose(method, problem, graph).method
            bar.title = label
            tell = bar.portion(at / len(named), 1 / len(named))
            if tune:
                search = Search(problem, graph, chosen, sought)
                search.run(FACTORS, 0, kind, tell, stop.is_set)
                tunings[label] = search.result(label)
                chosen = tunings[label].method
            runs[label] = []
            for seed in range(1, 1 + (seeds if chosen.random_draws else 1)):
                sweep = Sweep(problem, graph, [chosen], seed, kind)
                found = follow(sweep, *sought[:3], target_of(star), LOOKS, tell, stop.is_set)
                runs[label].extend(found)
    comparison = Comparison(runs, tunings, refused, levels, per, budget)
    if show:
        Console().print(comparison.table())
    return comparison


def refusal(problem: Problem, graph: Graph, method: Method | str) -> str:
    """Why the method cannot take the problem; nothing if it can."""
    try:
        check(problem, graph, method, 1, 1, 0, None, None, True)
        choose(method, problem, graph).method.prepare(whole_network(problem, graph))
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

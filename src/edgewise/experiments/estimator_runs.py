"""Estimators against each other, biased or not, in two methods: what the experiments share that go
beyond the paper.

Every method's step is tuned by one rule. Its automatic step, times each of `FACTORS`, is run with
another seed than those that are shown; the best is the first to the level, by oracle calls, or
where none comes there the lowest once a budget of calls is spent. rho goes by its rule, which goes
by the step. Costs are medians over `SEEDS` seeds. What counts is the residual: the norm of the
gradient of all losses at the mean model and, in the units of a gradient, how nodes disagree.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise import __version__
from edgewise.experiments.experiment import AUTOMATIC, TUNED, Job
from edgewise.experiments.work import kept
from edgewise.gradients import LSVRG, PAGE, SAG, SAGA, SARAH, SVRG, Full
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.methods.primal_dual import PrimalDual
from edgewise.methods.tracking import GradientTracking
from edgewise.plotting.page import PageRun
from edgewise.problem.problem import Problem
from edgewise.running.solve import solve
from edgewise.running.trace import Trace
from edgewise.study.curves import Curve
from edgewise.study.tune import with_factors

UNBIASED: dict[str, Callable[[], Any]] = {"Full": Full, "SAGA": SAGA, "SVRG": SVRG, "L-SVRG": LSVRG}
BIASED: dict[str, Callable[[], Any]] = {"SAG": SAG, "PAGE": PAGE, "SARAH": SARAH}
ESTIMATORS = UNBIASED | BIASED
METHODS: Mapping[str, Callable[[Any], Method]] = {
    "pd": PrimalDual,
    "tracking": GradientTracking,
}
NAMES = {"pd": "primal-dual", "tracking": "gradient tracking"}
FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
LOOKS = 200  # at a run
SEEDS = 3  # that are shown
RUNAWAY = 1e4  # times the residual at the start: it has diverged
PASSES = 60  # over the data, the budget where no step comes to the level
LOWEST = 1e-13  # that is drawn: nodes begin alike
DROPPED = 1e-3  # below the level, where a run is shown no further


class Cell(NamedTuple):
    problem: str
    method: str
    estimator: str
    factor: float
    seed: int


@dataclass(frozen=True)
class Bench:
    """A problem, its graph, and where runs begin and end."""

    problem: Problem
    graph: Graph
    rounds: int
    level: float  # of the residual at the start, to count to
    X0: np.ndarray | None = None

    @property
    def budget(self) -> float:
        return PASSES * float(self.problem.counts.mean())

    def run(self, cell: Cell, stop: threading.Event) -> Trace:
        method = METHODS[cell.method](ESTIMATORS[cell.estimator]())
        method = with_factors(method, self.problem, self.graph, {"eta": cell.factor})
        first: list[float] = []

        def enough(row: Mapping[str, float]) -> bool:
            first.append(row["residual"])
            end = self.level * DROPPED, RUNAWAY
            part = row["residual"] / first[0]
            return stop.is_set() or not end[0] < part < end[1]

        result = solve(
            self.problem,
            self.graph,
            method,
            rounds=self.rounds,
            seed=cell.seed,
            record_every=max(1, self.rounds // LOOKS),
            reference=False,
            X0=self.X0,
            dtype="float64",
            progress=False,
            callback=enough,
        )
        if stop.is_set():
            raise KeyboardInterrupt
        return result.trace


def curve(trace: Any) -> Curve:
    """The residual, a part of what it was at the start; at a level once it stays there."""
    values = np.nan_to_num(trace["residual"], nan=np.inf) / trace["residual"][0]
    return Curve({u: trace[u] for u in ("oracle_calls", "rounds")}, values, for_good=True)


class Runs:
    """All runs of an experiment."""

    def __init__(self, name: str, job: Job, benches: Mapping[str, Bench]) -> None:
        self.benches, self.seed = benches, job.seed
        tried = [
            Cell(p, m, e, factor, job.seed + 1)
            for p in benches
            for m in METHODS
            for e in ESTIMATORS
            for factor in FACTORS
        ]
        made = partial(self.made, job, name)
        self.tried = made(tried)
        self.best = {key: self.best_factor(*key) for key in dict.fromkeys(c[:3] for c in tried)}
        self.seeds = [job.seed, *(job.seed + 2 + k for k in range(SEEDS - 1))]
        wanted = {
            Cell(*key, factor, seed)
            for key, best in self.best.items()
            for factor in (1.0, best)
            for seed in self.seeds
        }
        self.shown = made(sorted(wanted))

    def made(self, job: Job, name: str, cells: Sequence[Cell]) -> dict[Cell, Trace]:
        def run(cell: Cell, stop: threading.Event) -> Trace:
            return self.benches[cell.problem].run(cell, stop)

        def key(cell: Cell) -> str:
            bench = self.benches[cell.problem]
            size = bench.problem.counts.tolist(), bench.problem.size, repr(bench.problem.loss)
            given = bench.rounds, LOOKS, bench.level, job.data, job.scale.name
            return json.dumps([__version__, cell, size, given], default=str)

        def path(cell: Cell) -> Path:
            name = "-".join(map(str, cell)).replace(" ", "-").lower()
            return job.folder / "traces" / f"{name}.npz"

        return kept(cells, path, key, lambda missing: run, job, name)

    def outcome(self, cell: Cell) -> tuple[float, float]:
        """Calls to the level, and the residual once the budget is spent."""
        bench, seen = self.benches[cell.problem], curve(self.tried[cell])
        value = seen.value_at("oracle_calls", bench.budget)
        return seen.cost_to("oracle_calls", bench.level), value

    def best_factor(self, problem: str, method: str, estimator: str) -> float:
        return min(
            FACTORS,
            key=lambda f: self.outcome(Cell(problem, method, estimator, f, self.seed + 1)),
        )

    def longest(self, problem: str, method: str, estimator: str) -> float:
        """The longest step tried, as a multiple of the rule's, up to which all runs came below a
        tenth of where they began; zero if none did."""
        longest = 0.0
        for f in FACTORS:
            ended = curve(self.tried[Cell(problem, method, estimator, f, self.seed + 1)]).values[-1]
            if not ended < 0.1:
                break
            longest = f
        return longest

    def traces(self, key: tuple[str, str, str], setting: str) -> list[Trace]:
        """One per seed."""
        factor = 1.0 if setting == AUTOMATIC else self.best[key]
        return [self.shown[Cell(*key, factor, seed)] for seed in self.seeds]

    def costs(self, key: tuple[str, str, str], setting: str, unit: str) -> np.ndarray:
        """(seeds,) to the level, ascending; infinite where it was not reached for good."""
        level = self.benches[key[0]].level
        return np.sort([curve(t).cost_to(unit, level) for t in self.traces(key, setting)])

    def cost(self, key: tuple[str, str, str], setting: str, unit: str) -> float:
        return float(self.costs(key, setting, unit)[SEEDS // 2])

    def pages(self) -> list[PageRun]:
        """A panel for each problem, method and setting; the first seed."""
        return [
            PageRun(
                key[2],
                self.traces(key, setting)[0],
                panel(*key[:2], setting, len(self.benches)),
                {"eta by rule, times": 1.0 if setting == AUTOMATIC else best},
            )
            for setting in (TUNED, AUTOMATIC)
            for key, best in self.best.items()
        ]

    def table(self) -> list[dict[str, Any]]:
        """A row for each problem, method and estimator: what it took to the level tuned, at so many
        times the rule's step, and by the rule; where the tuned run was left, as a part of where it
        began, and how far nodes were apart there; and the longest step that converged."""
        rows = []
        for key, best in self.best.items():
            last = self.traces(key, TUNED)[0]
            row: dict[str, Any] = {"problem": key[0]} if len(self.benches) > 1 else {}
            row |= {"method": key[1], "estimator": key[2], "eta x": best}
            for name, setting in (("", TUNED), ("by rule: ", AUTOMATIC)):
                row[f"{name}calls"] = spread_of(self.costs(key, setting, "oracle_calls"))
                row[f"{name}rounds"] = spread_of(self.costs(key, setting, "rounds"))
            part = last["residual"][-1] / last["residual"][0]
            row |= {"ends at": f"{part:.0e}", "apart": f"{last['consensus'][-1]:.0e}"}
            rows.append(row | {"most eta x": self.longest(*key)})
        return rows


def spread_of(costs: np.ndarray) -> str:
    """The median, and the least and the most."""
    middle = costs[len(costs) // 2]
    if middle == costs[0] == costs[-1] or np.isinf(middle):
        return whole(middle)
    return f"{whole(middle)} ({whole(costs[0])} to {whole(costs[-1])})"


def whole(cost: float) -> str:
    return "never" if cost == np.inf else f"{cost:.0f}"


def panel(problem: str, method: str, setting: str, problems: int) -> str:
    name = NAMES[method]
    return f"{name}, {setting}" if problems == 1 else f"{problem}, {name}, {setting}"


# --- the picture ----------------------------------------------------------------------------------

COLOURS = {"Full": "0.3", "SAGA": "C0", "SVRG": "C2", "L-SVRG": "C9", "SAG": "C3", "PAGE": "C1"}
PANELS = (
    ("oracle_calls", "residual", "oracle calls per node"),
    ("rounds", "residual", "rounds"),
    ("rounds", "consensus", "rounds"),
)
LABELS = {
    "residual": "gradient norm at the mean model\n(residual)",
    "consensus": "disagreement\nbetween nodes",
}


def look(estimator: str) -> dict[str, Any]:
    """Biased ones are dashed."""
    dash = "--" if estimator in BIASED else "-"
    return {"color": COLOURS.get(estimator, "C4"), "linestyle": dash, "linewidth": 1.4}


def draw(runs: Runs, title: str, path: Path) -> None:
    """A row per problem and method, tuned: against calls, against rounds, and the disagreement."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    rows = [(p, m) for p in runs.benches for m in METHODS]
    size = (12, 1 + 2.7 * len(rows))
    figure, grid = plt.subplots(len(rows), 3, figsize=size, squeeze=False, layout="constrained")
    for panels, (p, m) in zip(grid, rows, strict=True):
        traces = {e: runs.traces((p, m, e), TUNED)[0] for e in ESTIMATORS}
        sampled = [t for e, t in traces.items() if e != "Full"]
        for ax, (x, y, label) in zip(panels, PANELS, strict=True):
            for e, trace in traces.items():
                ax.plot(trace[x], np.where(trace[y] > LOWEST, trace[y], np.nan), **look(e))
            ax.set(yscale="log", xlabel=label, ylabel=LABELS[y])
            # whole gradients would squeeze all else
            ax.set_xlim(0, 1.02 * max(float(t[x][-1]) for t in sampled))
            ax.grid(alpha=0.3)
        named = NAMES[m] if len(runs.benches) == 1 else f"{p}: {NAMES[m]}"
        panels[0].set_title(named, loc="left", fontsize=11)
    handles = [Line2D([], [], label=e, **look(e)) for e in ESTIMATORS]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    plt.close(figure)

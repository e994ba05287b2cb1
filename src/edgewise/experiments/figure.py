"""A figure of the paper: many methods on one problem, in three settings side by side."""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise import __version__
from edgewise.centralised.reference import Reference, reference
from edgewise.experiments import data
from edgewise.experiments.claims import Claim, Setting
from edgewise.experiments.experiment import (
    AUTOMATIC,
    PRINTED,
    SCALES,
    TUNED,
    Job,
    Outcome,
    Scale,
    Verdict,
)
from edgewise.experiments.lineup import LINEUP, oracle_budget
from edgewise.experiments.passages import Curves
from edgewise.experiments.work import kept, spread
from edgewise.fileio import write_json
from edgewise.gradients import ASVRG, SAGA
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.plotting.page import PageRun
from edgewise.problem.problem import Problem
from edgewise.running.solve import solve
from edgewise.running.trace import Trace
from edgewise.study.tune import tune, with_factors

SETTINGS = (PRINTED, TUNED, AUTOMATIC)
TUNING = "tuning"
TARGET = 1e-9  # of tuning, as a part of the divergence at the start
LOOKS = 400  # at a run that goes on beyond the printed rounds, about: they cost as much as it
FINER = 10  # times as many looks at whole-gradient methods, whose rounds are few and costly
FLOOR = 1e-13  # of the same: nothing is learnt of whole-gradient methods below, nor above 1/FLOOR


class FigureRun(NamedTuple):
    setting: str
    method: str
    seed: int = 1


@dataclass(frozen=True)
class Figure:
    """One problem, and what is claimed of it."""

    name: str
    title: str
    source: str
    claims: tuple[Claim, ...] = ()
    samples: int = 2000  # K, the paper's
    ring: bool = False
    ridge: float = 0.0014  # tau
    methods: tuple[str, ...] = tuple(LINEUP)
    until: float = 0.0  # stop at this divergence
    patience: int = 1  # budgets of methods that draw samples, while until is not reached
    literal: bool = True  # as printed with the ridge in the samples, as the paper's algorithms

    def run(self, job: Job) -> Outcome:
        cells = [cell for s in SETTINGS for m in self.methods for cell in self.cells(job, s, m)]
        traces = self.traces(job, cells)
        runs = [
            PageRun(cell.method, trace, cell.setting, trace.meta["steps"])
            for cell, trace in traces.items()
        ]
        verdicts = [self.judged(claim, traces, job) for claim in self.claims]
        scale = job.scale
        about = {
            "data": data.source(job.data),
            "samples a node": scale.samples[self.samples],
            "features": scale.features,
            "ridge": self.ridge * scale.easier,
            "seeds": ", ".join(map(str, self.seeds(job))),
            "tuned at scale": job.tune_at,
            "precision": scale.dtype,
        }
        return Outcome(runs, verdicts, data.graph_of(scale, self.ring), about)

    def seeds(self, job: Job) -> range:
        return range(job.seed, job.seed + job.scale.seeds)

    def cells(self, job: Job, setting: str, method: str) -> list[FigureRun]:
        """One run where nothing is drawn."""
        seeds = self.seeds(job)[:1] if LINEUP[method].whole else self.seeds(job)
        return [FigureRun(setting, method, seed) for seed in seeds]

    def judged(self, claim: Claim, traces: Mapping[FigureRun, Trace], job: Job) -> Verdict:
        from edgewise.experiments import named

        holds: dict[str, bool | None] = {}
        evidence = []
        for setting in SETTINGS:

            def beside(name: str, methods: Sequence[str], setting: str = setting) -> list[Curves]:
                figure, other = named(name), replace(job, folder=job.folder.parent / name)
                cells = [cell for m in methods for cell in figure.cells(other, setting, m)]
                return by_seed(figure.traces(other, cells), setting)

            said = claim.judge(Setting(by_seed(traces, setting), beside))
            holds[setting] = said.holds
            evidence.append(f"{setting}: {said.numbers}")
        return Verdict(claim.says, holds, "; ".join(evidence))

    # --- runs -------------------------------------------------------------------------------------

    def traces(self, job: Job, cells: Sequence[FigureRun]) -> dict[FigureRun, Trace]:
        def bench(missing: list[FigureRun]) -> Any:
            tuned = [c.method for c in missing if c.setting == TUNED]
            return FigureProblem(self, job, self.factors(job, tuned) if tuned else {}).run

        def path(cell: FigureRun) -> Path:
            name = "-".join(map(str, cell)).replace(" ", "-").replace(",", "").lower()
            return job.folder / "traces" / f"{name}.npz"

        return kept(cells, path, lambda cell: self.key(job, cell), bench, job, self.name)

    def key(self, job: Job, cell: FigureRun) -> str:
        """What the cell's numbers depend on."""
        scale = asdict(job.scale) | {"samples": None, "seeds": None}
        how: dict[str, Any] = {"data": job.data}
        own = {k: getattr(self, k) for k in ("samples", "ring", "ridge", "until", "patience")}
        own |= {"literal": self.literal and cell.setting == PRINTED}
        own |= {"finer": FINER} if LINEUP[cell.method].whole else {}
        if cell.setting == TUNING:  # which these have no say in
            scale |= {"looks": None}
            own |= {"until": None, "patience": None}
        if cell.setting == TUNED:
            how |= {"tune_at": job.tune_at}
        method = repr(LINEUP[cell.method].make(job.scale)), dict(LINEUP[cell.method].printed)
        return json.dumps([__version__, cell, method, scale, own, how])

    def factors(self, job: Job, methods: Iterable[str]) -> dict[str, dict[str, float]]:
        """By how much tuning changes each method's automatic steps."""
        there = replace(job, scale=SCALES[job.tune_at])
        keys = {m: self.key(there, FigureRun(TUNING, m)) for m in methods}
        path = job.tuning_file()
        known = kept_factors(path)
        missing = [m for m, key in keys.items() if key not in known]
        if missing:
            bench = FigureProblem(self, there, {})
            for method, found in spread(missing, bench.tune, job, f"{self.name}, tuning"):
                # read anew: other figures may be tuned in other processes
                known = kept_factors(path) | known | {keys[method]: found}
                write_json(path, known)
        return {m: known[key] for m, key in keys.items()}


def kept_factors(path: Path) -> dict[str, dict[str, float]]:
    return json.loads(path.read_text()) if path.exists() else {}


def by_seed(traces: Mapping[FigureRun, Trace], setting: str) -> list[Curves]:
    """A setting's runs for each seed; those of methods that draw nothing for every one."""
    here = {cell: trace for cell, trace in traces.items() if cell.setting == setting}
    always = {c.method: t for c, t in here.items() if LINEUP[c.method].whole}
    seeds = sorted({c.seed for c in here if not LINEUP[c.method].whole} or {1})
    return [Curves(always | {c.method: t for c, t in here.items() if c.seed == s}) for s in seeds]


@lru_cache(maxsize=1)  # figures of one problem, asked for together, share it
def problem_and_optimum(
    scale: Scale, K: int, ridge: float, path: str | None
) -> tuple[Problem, Reference]:
    problem = data.problem_of(scale, K, ridge, path)
    return problem, reference(problem)


class FigureProblem:
    """A figure's problem at one scale, made once for all methods."""

    def __init__(self, figure: Figure, job: Job, factors: Mapping[str, Any]) -> None:
        self.figure, self.job, self.factors = figure, job, factors
        self.scale: Scale = job.scale
        self.K = self.scale.samples[figure.samples]
        self.graph: Graph = data.graph_of(self.scale, figure.ring)
        self.budget = oracle_budget(self.scale, self.K)
        self.ridge = figure.ridge * self.scale.easier
        self.problem, self.star = problem_and_optimum(self.scale, self.K, self.ridge, job.data)
        self.one_at_a_time = threading.Lock()

    def problem_for(self, cell: FigureRun, method: Method) -> Problem:
        """As printed the ridge is in the samples, where that makes a difference."""
        gradient = getattr(method, "gradient", None)
        differs = self.ridge > 0 and isinstance(gradient, SAGA | ASVRG)
        as_printed = cell.setting == PRINTED and self.figure.literal
        return self.literal if as_printed and differs else self.problem

    @cached_property
    def literal(self) -> Problem:
        return data.to_the_letter(self.problem)

    def tune(self, name: str, stop: threading.Event) -> dict[str, float]:
        method = LINEUP[name].make(self.scale)
        found = tune(
            self.problem,
            self.graph,
            method,
            self.budget,
            target=TARGET,
            reference=self.star,
            dtype=self.scale.dtype,
            progress=False,
        )
        return found.factors

    def run(self, cell: FigureRun, stop: threading.Event) -> Trace:
        entry, scale = LINEUP[cell.method], self.scale
        method = entry.make(scale)
        patience = 1 if entry.whole else self.figure.patience
        rounds, budget = scale.rounds * patience, self.budget * patience
        if cell.setting == TUNED:
            method = with_factors(method, self.problem, self.graph, self.factors[cell.method])
        if cell.setting == PRINTED:
            method, budget = entry.with_printed(scale), 0.0
        long = max(rounds, int(np.ceil(budget / entry.calls(self.K, scale))))
        every = max(scale.rounds // scale.looks // (FINER if entry.whole else 1), 1)
        if long > rounds:
            every = max(every, long // (LOOKS * patience))
        # four times as long where calls are rarer than they are on the whole
        most = 4 * long if budget else rounds
        start: list[float] = []

        def enough(row: Mapping[str, float]) -> bool:
            start.append(row["bregman"])
            spent = row["rounds"] >= rounds and row["oracle_calls"] >= budget
            at_floor = entry.whole and not FLOOR < row["bregman"] / start[0] < 1 / FLOOR
            reached = row["bregman"] <= self.figure.until
            return stop.is_set() or spent or at_floor or reached

        with self.one_at_a_time:
            problem = self.problem_for(cell, method)
        result = solve(
            problem,
            self.graph,
            method,
            rounds=most,
            seed=cell.seed,
            record_every=every,
            reference=self.star,
            dtype=scale.dtype,
            progress=False,
            callback=enough,
        )
        if stop.is_set():
            raise KeyboardInterrupt
        result.trace.meta["steps"] = self.steps(cell, result.method)
        return result.trace

    def steps(self, cell: FigureRun, method: Method) -> dict[str, Any]:
        """What a table says of the cell's parameters."""
        if cell.setting == TUNED:
            return {f"{k} by rule, times": f for k, f in self.factors[cell.method].items()}
        printed = LINEUP[cell.method].printed
        if cell.setting == PRINTED and printed:
            return dict(printed)
        eta = np.asarray(method.eta)
        ends = [f"{end:.3g}" for end in (eta.min(), eta.max())]
        span = " to ".join(dict.fromkeys(ends))
        return {"eta": f"{span} (by rule; none is printed)" if cell.setting == PRINTED else span}

"""A figure of the paper: many methods on one problem, in three settings side by side."""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise import __version__
from edgewise.centralised.reference import Reference, reference
from edgewise.experiments import data
from edgewise.experiments.claims import Claim, Curves
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
from edgewise.experiments.work import kept, spread
from edgewise.fileio import write_json
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


class FigureRun(NamedTuple):
    setting: str
    method: str


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
    patience: int = 1  # budgets, while until is not reached

    def run(self, job: Job) -> Outcome:
        cells = [FigureRun(setting, method) for setting in SETTINGS for method in self.methods]
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
            "seed": job.seed,
            "tuned at scale": job.tune_at,
            "precision": scale.dtype,
        }
        return Outcome(runs, verdicts, data.graph_of(scale, self.ring), about)

    def judged(self, claim: Claim, traces: Mapping[FigureRun, Trace], job: Job) -> Verdict:
        from edgewise.experiments import named

        holds, evidence = {}, []
        for setting in SETTINGS:
            here = {c.method: t for c, t in traces.items() if c.setting == setting}

            def beside(name: str, methods: Sequence[str], setting: str = setting) -> Curves:
                other = replace(job, folder=job.folder.parent / name)
                cells = named(name).traces(other, [FigureRun(setting, m) for m in methods])
                return Curves({c.method: t for c, t in cells.items()})

            holds[setting], numbers = claim.judge(Curves(here), beside)
            evidence.append(f"{setting}: {numbers}")
        return Verdict(claim.says, holds, "; ".join(evidence))

    # --- runs -------------------------------------------------------------------------------------

    def traces(self, job: Job, cells: Sequence[FigureRun]) -> dict[FigureRun, Trace]:
        def bench(missing: list[FigureRun]) -> Any:
            tuned = [c.method for c in missing if c.setting == TUNED]
            return FigureProblem(self, job, self.factors(job, tuned) if tuned else {}).run

        def path(cell: FigureRun) -> Path:
            name = f"{cell.setting}-{cell.method}".replace(" ", "-").replace(",", "").lower()
            return job.folder / "traces" / f"{name}.npz"

        return kept(cells, path, lambda cell: self.key(job, cell), bench, job, self.name)

    def key(self, job: Job, cell: FigureRun) -> str:
        """What the cell's numbers depend on."""
        scale, how = asdict(job.scale) | {"samples": None}, {"data": job.data, "seed": job.seed}
        own = {k: getattr(self, k) for k in ("samples", "ring", "ridge", "until", "patience")}
        if cell.setting == TUNING:  # which these have no say in
            scale, how = scale | {"looks": None}, how | {"seed": None}
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
        known = json.loads(path.read_text()) if path.exists() else {}
        missing = [m for m, key in keys.items() if key not in known]
        if missing:
            bench = FigureProblem(self, there, {})
            for method, found in spread(missing, bench.tune, job, f"{self.name}, tuning"):
                known[keys[method]] = found
                write_json(path, known)
        return {m: known[key] for m, key in keys.items()}


class FigureProblem:
    """A figure's problem at one scale, made once for all methods."""

    def __init__(self, figure: Figure, job: Job, factors: Mapping[str, Any]) -> None:
        self.figure, self.job, self.factors = figure, job, factors
        self.scale: Scale = job.scale
        self.K = self.scale.samples[figure.samples]
        self.graph: Graph = data.graph_of(self.scale, figure.ring)
        self.budget = oracle_budget(self.scale, self.K)
        self.problem: Problem = data.problem_of(
            self.scale, self.K, figure.ridge * self.scale.easier, job.data
        )
        self.star: Reference = reference(self.problem)

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
        budget = self.budget * self.figure.patience
        rounds = int(np.ceil(budget / entry.calls(self.K, scale)))
        most = 4 * rounds  # where calls are rarer than they are on the whole
        if cell.setting == TUNED:
            method = with_factors(method, self.problem, self.graph, self.factors[cell.method])
        if cell.setting == PRINTED:
            method = entry.with_printed(scale)
            if not entry.whole:
                rounds = most = scale.rounds * self.figure.patience

        def enough(row: Mapping[str, float]) -> bool:
            return stop.is_set() or row["bregman"] <= self.figure.until

        result = solve(
            self.problem,
            self.graph,
            method,
            rounds=most,
            seed=self.job.seed,
            record_every=max(1, rounds // scale.looks),
            oracle_budget=budget,
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

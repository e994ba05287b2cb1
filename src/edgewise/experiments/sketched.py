"""Appendix C: SkPD, which sees one coordinate of a gradient a round, or two function values.

On the paper's problem with few features, for with n of them it takes n times the rounds of PD; and
with few samples, for the simulator computes all of a gradient to show one coordinate of it. Numbers
are float64 at every scale: finite differences live on digits.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.lines import Line2D

from edgewise import __version__
from edgewise.centralised.reference import Reference, reference
from edgewise.experiments import data
from edgewise.experiments.experiment import AUTOMATIC, Job, Outcome, Scale, Verdict
from edgewise.experiments.looks import LOWEST, draw_method, look
from edgewise.experiments.passages import Curves, amount
from edgewise.experiments.work import kept
from edgewise.gradients import SEGA, ExactCoordinates, FiniteDifference
from edgewise.graph.graph import Graph
from edgewise.methods.primal_dual import PrimalDual
from edgewise.plotting.axes import close, new_axes
from edgewise.plotting.page import PageRun
from edgewise.problem.problem import Problem
from edgewise.running.solve import solve
from edgewise.running.trace import Trace
from edgewise.study import theory

THEORY = "theory steps"
STEPS = {AUTOMATIC: "auto", THEORY: "theory"}
WIDE = 1e-3  # a step of finite differences so wide that its error can be foretold
COORDINATES, VALUES, COARSE = "coordinates", "function values", f"function values {WIDE:g} apart"
ORACLES: dict[str, Any] = {
    COORDINATES: ExactCoordinates(),
    VALUES: FiniteDifference(),
    COARSE: FiniteDifference(WIDE),
}
RIDGE = 0.0014
FEATURES = {"small": 20, "paper": 50}
SAMPLES = 100  # a node, at most
NEAR, EXACT = 1e-6, 1e-15  # parts of the divergence at the start: to count to, to stop at
FLAT = 40  # looks, of the last quarter of which a floor is told
MOST = 4_000_000  # rounds
NOISE = 0.1  # of an exponent


class SketchedRun(NamedTuple):
    setting: str
    oracle: str

    @property
    def method(self) -> PrimalDual:
        steps = STEPS[self.setting]
        return PrimalDual(SEGA(ORACLES[self.oracle]), steps, steps)


def reduced(scale: Scale) -> Scale:
    n = min(scale.features, FEATURES.get(scale.name, scale.features))
    return replace(scale, features=n, dtype="float64")


@dataclass(frozen=True)
class SketchedProblem:
    problem: Problem
    graph: Graph
    star: Reference
    seed: int

    def run(self, cell: SketchedRun, stop: threading.Event) -> Trace:
        """To the optimum, or to where it falls no further."""
        seen: list[float] = []

        def enough(row: Mapping[str, float]) -> bool:
            seen.append(row["bregman"])
            late = len(seen) * 3 // 4
            flat = len(seen) > FLAT and min(seen[late:]) > min(seen[:late]) / 2
            return stop.is_set() or flat or seen[-1] <= EXACT * seen[0]

        shorter = 8 if cell.setting == THEORY else 1  # theory's steps, than the automatic ones
        result = solve(
            self.problem,
            self.graph,
            cell.method,
            rounds=MOST,
            seed=self.seed,
            record_every=max(1, 5 * self.problem.size * shorter // 2),
            reference=self.star,
            dtype="float64",
            progress=False,
            callback=enough,
        )
        if stop.is_set():
            raise KeyboardInterrupt
        return result.trace

    def floor(self) -> float:
        """Where WIDE ends: coordinate j is too large by WIDE/2 times H_jj, H being the Hessian of
        all losses together, so models end at x* - (WIDE/2) H^-1 diag(H)."""
        n, ridge = self.problem.size, float(self.problem.loss.ridge)
        H = self.problem.nodes * ridge * np.eye(n)
        for i in range(self.problem.nodes):
            D, _ = self.problem.shards[i]
            chance = 1 / (1 + np.exp(-D @ self.star.x))
            H += D.T @ ((chance * (1 - chance))[:, None] * D) / len(D)
        diagonal = np.diag(H)
        return float(WIDE**2 / 8 * diagonal @ np.linalg.solve(H, diagonal))

    def bound(self) -> float:
        """On the sum of all divergences of a run with theory's steps."""
        method = SketchedRun(THEORY, COORDINATES).method
        start = theory.Start(self.problem, self.graph, method, reference=self.star)
        return theory.bound(start, 1)


@dataclass(frozen=True)
class Sketched:
    name: str
    title: str
    source: str

    def run(self, job: Job) -> Outcome:
        scale = reduced(job.scale)
        K = min(scale.samples[2000], SAMPLES)
        problem = data.problem_of(scale, K, RIDGE * scale.easier, job.data)
        graph = data.graph_of(scale, False)
        bench = SketchedProblem(problem, graph, reference(problem), job.seed)
        traces = self.traces(job, scale, bench)
        curves = {s: Curves({o: traces[SketchedRun(s, o)] for o in ORACLES}) for s in STEPS}
        verdicts = [
            converges(curves),
            falls_like_one_over_t(curves, bench),
            values_do(curves),
            ends_at_its_floor(curves, bench),
        ]
        runs = [PageRun(c.oracle, trace, c.setting) for c, trace in traces.items()]
        about = {
            "data": data.source(job.data),
            "samples a node": K,
            "features": problem.size,
            "ridge": float(problem.loss.ridge),
            "an oracle call": "one coordinate, or two function values",
            "seed": job.seed,
        }
        return Outcome(runs, verdicts, graph, about, lambda path: draw(curves, bench, path))

    def traces(self, job: Job, scale: Scale, bench: SketchedProblem) -> dict[SketchedRun, Trace]:
        def key(cell: SketchedRun) -> str:
            size = {k: v for k, v in asdict(scale).items() if k != "samples"}
            K = int(bench.problem.counts[0])
            return json.dumps([__version__, cell, size, K, job.data, job.seed])

        def path(cell: SketchedRun) -> Path:
            return job.folder / "traces" / f"{'-'.join(cell).replace(' ', '-')}.npz"

        cells = [SketchedRun(setting, oracle) for setting in STEPS for oracle in ORACLES]
        return kept(cells, path, key, lambda missing: bench.run, job, self.name)


def draw(curves: Mapping[str, Curves], bench: SketchedProblem, path: Path) -> None:
    """A column per setting: the divergence; and below, the mean of it so far beside its bound."""
    axes = new_axes(path, nrows=2, ncols=len(curves), figsize=(11, 7.5), sharex="col")
    for (top, below), (setting, c) in zip(axes.T, curves.items(), strict=True):
        for oracle in ORACLES:
            draw_method(top, oracle, [c.traces[oracle]], "oracle_calls")
        t, mean = running_mean(c)
        style = look(COORDINATES) | {"marker": "", "label": "mean of the run so far"}
        below.plot(t, mean, **style)
        below.plot(t, mean[-1] * t[-1] / t, color="0.6", linestyle=":", label="1/T")
        if setting == THEORY:
            below.plot(t, bench.bound() / t, color="black", linestyle="--", label="bound")
        first = c.first(COORDINATES)
        top.axhline(bench.floor(), color="0.6", linestyle=":")
        top.text(t[0], bench.floor(), " foretold", va="bottom", color="0.4", fontsize=8)
        top.set(title=setting, yscale="log", xscale="log", ylim=(LOWEST * first, 10 * first))
        top.set(ylabel="Bregman divergence")
        below.set(yscale="log", xlabel="coordinates per node, which are rounds")
        below.set(ylabel="mean divergence of the run so far")
        below.legend(loc="lower left")
        for ax in (top, below):
            ax.grid(alpha=0.3)
    handles = [Line2D([], [], label=o, **look(o)) for o in ORACLES]
    axes[0, 0].legend(handles=handles, loc="lower left")
    axes[0, 0].figure.savefig(path, dpi=110)
    close(axes[0, 0])


def running_mean(c: Curves) -> tuple[np.ndarray, np.ndarray]:
    t, each = c.traces[COORDINATES]["rounds"], c.traces[COORDINATES]["bregman"]
    sums = np.cumsum(np.diff(t) * (each[1:] + each[:-1]) / 2)
    return t[1:], sums / t[1:]


# --- what is claimed ------------------------------------------------------------------------------


def converges(curves: Mapping[str, Curves]) -> Verdict:
    ends = {s: c.lowest(COORDINATES) / c.first(COORDINATES) for s, c in curves.items()}
    costs = {s: c.span(COORDINATES, NEAR).high for s, c in curves.items()}
    evidence = [f"{s}: {ends[s]:.0e}, {amount(costs[s])} coordinates to {NEAR:g}" for s in curves]
    return Verdict(
        "SkPD with exact coordinates comes to the optimum",
        {s: end <= 1e-12 for s, end in ends.items()},
        f"divergence, as a part of the start's: {'; '.join(evidence)}",
    )


def falls_like_one_over_t(curves: Mapping[str, Curves], bench: SketchedProblem) -> Verdict:
    """The mean of the run so far; from a hundredth of it on, for the exponent."""
    holds, evidence = {}, []
    for setting, c in curves.items():
        t, mean = running_mean(c)
        late = t >= t[-1] / 100
        exponent = float(np.polyfit(np.log(t[late]), np.log(mean[late]), 1)[0])
        holds[setting] = exponent <= NOISE - 1
        evidence.append(f"{setting}: exponent {exponent:.2f}")
        if setting == THEORY:
            ratio = float((bench.bound() / (mean * t)).min())
            holds[setting] &= ratio >= 1
            evidence[-1] += f", bound at least {ratio:.2g} times the mean"
    return Verdict(
        "the mean divergence falls like 1/T, within the bound behind (E + V (1 + nL)) / eps calls",
        holds,
        "; ".join(evidence),
    )


def values_do(curves: Mapping[str, Curves]) -> Verdict:
    holds, evidence = {}, []
    for setting, c in curves.items():
        exact, own = c.span(COORDINATES, NEAR).high, c.span(VALUES, NEAR).high
        holds[setting] = own <= 1.05 * exact
        evidence.append(
            f"{setting}: {amount(own)} coordinates from values, {amount(exact)} exact ones"
        )
    return Verdict(
        "function values will do: two a coordinate, and as many coordinates as of exact ones",
        holds,
        f"to {NEAR:g} of the start: {'; '.join(evidence)}",
    )


def ends_at_its_floor(curves: Mapping[str, Curves], bench: SketchedProblem) -> Verdict:
    foretold, holds, evidence = bench.floor(), {}, []
    for setting, c in curves.items():
        wide, usual = c.last(COARSE), c.lowest(VALUES) / c.first(VALUES)
        holds[setting] = bool(0.9 < wide / foretold < 1.1) and usual < 1e-12
        evidence.append(
            f"{setting}: {wide:.3e}; with the usual step down to {usual:.0e} of the start"
        )
    return Verdict(
        "ours: finite differences end at a floor, that of their error",
        holds,
        f"divergence foretold for a step of {WIDE:g}: {foretold:.3e}; {'; '.join(evidence)}",
    )


EXPERIMENT = Sketched(
    "sketched", "SkPD: coordinates, and function values alone", "Appendix C, Algorithm 6"
)

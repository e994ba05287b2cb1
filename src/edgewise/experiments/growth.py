"""What Table 2 leaves out: Stochastic-PD's 1/eps^2, and SkPD's growth with n.

Least squares with V, E, L and W_1 fixed, as in complexity_runs.py, and theory's steps.
Stochastic-PD has its lemma's: for T rounds the lesser of 1/(4L) and sqrt(W_1)/(sigma_i sqrt T). So
every length is a run of its own, and its mean divergence is what it came to. SkPD has the same
problem in n coordinates: n - 14 columns of zeros, all of it rotated, which changes neither the
smoothness nor how far the least optimum is. Counted is to a mean divergence of the run so far.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgewise import __version__
from edgewise.centralised.reference import Reference, reference
from edgewise.experiments.complexity import NOISE, STEPS, count, slope
from edgewise.experiments.complexity_runs import FEATURES, graph_of, problem_of
from edgewise.experiments.experiment import Job, Outcome, Verdict
from edgewise.experiments.looks import look
from edgewise.experiments.work import kept
from edgewise.gradients import SEGA, SGD
from edgewise.methods.primal_dual import PrimalDual
from edgewise.plotting.axes import close, new_axes
from edgewise.plotting.page import PageRun
from edgewise.problem.losses import Squared
from edgewise.problem.problem import Problem
from edgewise.running.solve import solve
from edgewise.running.trace import Trace
from edgewise.study import theory

STOCHASTIC, SKETCHED = "Stochastic-PD", "SkPD"
K, L, LEVEL = 16, 4.0, 0.05
OFTEN = (
    20  # rounds between two looks at Stochastic-PD: what is left of the start must not be seen long
)
MOST = 3_000_000


class Case(NamedTuple):
    method: str
    size: int  # rounds of Stochastic-PD, coordinates of SkPD
    seed: int


@dataclass(frozen=True)
class Sizes:
    nodes: int
    edges: int
    rounds: tuple[int, ...]
    coordinates: tuple[int, ...]
    seeds: int


def problem_for(case: Case, sizes: Sizes) -> tuple[Problem, Reference]:
    """With the least of its optima."""
    problem = problem_of(sizes.nodes, K, L)
    star = reference(problem)
    if case.method == STOCHASTIC:
        return problem, star
    n = case.size
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((n, n)))[0][:FEATURES]
    turned = {k: getattr(star, k) @ rotation for k in ("x", "gradients", "subgradients")}
    parts = [
        (problem.shards[i][0] @ rotation, problem.labels[problem.own(i)])
        for i in range(problem.nodes)
    ]
    return Problem(parts, Squared()), replace(star, **turned)


def method_for(case: Case, problem: Problem, sizes: Sizes) -> PrimalDual:
    if case.method == SKETCHED:
        return PrimalDual(SEGA(), "theory", 1.0)
    graph = graph_of(sizes.nodes, sizes.edges)
    start = theory.Start(problem, graph, PrimalDual(SGD(), "theory", 1.0))
    sigma = np.sqrt(theory.constants(start).sigma2)
    most = np.sqrt(start.w1) / (np.maximum(sigma, 1e-300) * np.sqrt(case.size))
    return PrimalDual(SGD(), np.minimum(1 / (4 * start.L), most), 1.0)


def measured(case: Case, sizes: Sizes, stop: threading.Event) -> Trace:
    """The trace's `bregman` is the mean of the run so far."""
    (problem, star), graph = problem_for(case, sizes), graph_of(sizes.nodes, sizes.edges)
    method, rounds, every = method_for(case, problem, sizes), case.size, OFTEN
    if case.method == SKETCHED:
        rounds, every = MOST, 10 * case.size
    sums, seen = [0.0], [(0.0, np.nan)]

    def enough(row: Mapping[str, float]) -> bool:
        t, value = seen[-1]
        if row["rounds"] > t:
            sums.append(sums[-1] + (row["rounds"] - t) * (value + row["bregman"]) / 2)
        seen.append((row["rounds"], row["bregman"]))
        reached = case.method == SKETCHED and 0 < sums[-1] <= LEVEL * row["rounds"] / 2
        return stop.is_set() or reached

    result = solve(
        problem,
        graph,
        method,
        rounds=rounds,
        seed=case.seed,
        record_every=max(1, every),
        reference=star,
        dtype="float64",
        progress=False,
        callback=enough,
    )
    if stop.is_set():
        raise KeyboardInterrupt
    trace = result.trace
    t, each = trace["rounds"], trace["bregman"]
    total = np.append(0, np.cumsum(np.diff(t) * (each[1:] + each[:-1]) / 2))
    trace.columns["bregman"] = np.where(t > 0, total / np.maximum(t, 1), each)
    return trace


def bound(case: Case, sizes: Sizes, rounds: int) -> float:
    """On the mean divergence of so many rounds."""
    (problem, star), graph = problem_for(case, sizes), graph_of(sizes.nodes, sizes.edges)
    method = method_for(case, problem, sizes)
    return theory.bound(theory.Start(problem, graph, method, reference=star), rounds)


@dataclass(frozen=True)
class Growth:
    name: str
    title: str
    source: str
    small: Sizes
    paper: Sizes

    def run(self, job: Job) -> Outcome:
        sizes = self.paper if job.scale.name == "paper" else self.small
        traces = self.traces(job, sizes)
        stochastic, sketched = spd(traces, sizes), skpd(traces, sizes)
        runs = [
            PageRun(c.method, t, f"{c.method}, {c.size:,}")
            for c, t in traces.items()
            if c.seed == job.seed
        ]
        about = {
            "data": "least squares, eigenvalues that halve, W_1 = 1",
            "divergence": "mean of the run so far",
            "K": K,
            "L": L,
            "SkPD counted to": f"{LEVEL:g}",
            "seeds": ", ".join(map(str, range(job.seed, job.seed + sizes.seeds))),
            "nodes": sizes.nodes,
        }
        graph = graph_of(sizes.nodes, sizes.edges)
        return Outcome(
            runs,
            [stochastic.verdict(), sketched.verdict()],
            graph,
            about,
            lambda path: draw(stochastic, sketched, path),
        )

    def traces(self, job: Job, sizes: Sizes) -> dict[Case, Trace]:
        seeds = range(job.seed, job.seed + sizes.seeds)
        cases = [Case(STOCHASTIC, size, seed) for size in sizes.rounds for seed in seeds]
        cases += [Case(SKETCHED, size, seed) for size in sizes.coordinates for seed in seeds]

        def key(case: Case) -> str:
            return json.dumps([__version__, case, sizes.nodes, sizes.edges, K, L, LEVEL, OFTEN])

        def path(case: Case) -> Path:
            name = f"{case.method}-{case.size}-{case.seed}".lower()
            return job.folder / "traces" / f"{name}.npz"

        def run(case: Case, stop: threading.Event) -> Trace:
            return measured(case, sizes, stop)

        return kept(cases, path, key, lambda missing: run, job, self.name)


# --- what grows -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grown:
    """Counts over one number: the median over seeds, from where to where, and the bound's."""

    says: str
    name: str
    most: float  # exponent
    at: np.ndarray
    counts: np.ndarray  # (sizes, seeds)
    bounds: np.ndarray

    def verdict(self) -> Verdict:
        own = [slope(self.at, column) for column in self.counts.T]
        middle, ratios = float(np.median(own)), self.bounds[:, None] / self.counts
        holds = middle <= self.most + NOISE and bool((ratios >= 1).all())
        return Verdict(
            self.says,
            {STEPS: holds},
            f"exponent of {self.name} {middle:.2f} ({min(own):.2f} to {max(own):.2f} over "
            f"the runs), the bound's {slope(self.at, self.bounds):.2f}, the lemma's "
            f"{self.most:g}; the bound is {ratios.min():.3g} to {ratios.max():.3g} times what was "
            "needed",
        )


def by_size(traces: dict[Case, Trace], method: str, size: int) -> list[Trace]:
    return [t for c, t in traces.items() if (c.method, c.size) == (method, size)]


def spd(traces: dict[Case, Trace], sizes: Sizes) -> Grown:
    """Rounds over 1/eps, eps being what the run of that length came to on the mean; for the bound
    the rounds after which it is at that eps."""
    each = [by_size(traces, STOCHASTIC, T) for T in sizes.rounds]
    came = np.array([np.mean([t["bregman"][-1] for t in several]) for several in each])
    proofs = np.array([bound(Case(STOCHASTIC, T, 0), sizes, T) for T in sizes.rounds])
    rounds = np.array(sizes.rounds, float)
    promised = np.exp(np.interp(-np.log(came), -np.log(proofs), np.log(rounds)))
    beyond = came < proofs[-1]  # the bound comes there after longer runs than were made
    steep = slope(1 / proofs[-2:], rounds[-2:])
    promised[beyond] = rounds[-1] * (proofs[-1] / came[beyond]) ** steep
    return Grown(
        "Stochastic-PD: oracle calls and rounds grow with 1/eps^2, or slower",
        "1/eps",
        2.0,
        1 / came,
        rounds[:, None],
        promised,
    )


def skpd(traces: dict[Case, Trace], sizes: Sizes) -> Grown:
    each = [by_size(traces, SKETCHED, n) for n in sizes.coordinates]
    counts = [[count(t, "oracle_calls", LEVEL) for t in several] for several in each]
    proofs = [bound(Case(SKETCHED, n, 0), sizes, 1) / LEVEL for n in sizes.coordinates]
    return Grown(
        "SkPD: coordinates grow with n, or slower",
        "n",
        1.0,
        np.array(sizes.coordinates, float),
        np.array(counts),
        np.array(proofs),
    )


def draw(stochastic: Grown, sketched: Grown, path: Path) -> None:
    left, right = new_axes(path, ncols=2, figsize=(11, 4.5))
    labels = (
        (left, stochastic, "1 / mean divergence", "rounds, which are oracle calls", "SVR-PD"),
        (right, sketched, "coordinates of the model, n", f"coordinates, to {LEVEL:g}", "SAGA-PD"),
    )
    for ax, grown, x, y, like in labels:
        middle = np.median(grown.counts, 1)
        ax.fill_between(grown.at, grown.counts.min(1), grown.counts.max(1), alpha=0.2)
        ax.plot(grown.at, middle, **(look(like) | {"label": "measured"}))
        ax.plot(grown.at, grown.bounds, "k--", label="bound")
        along = middle[-1] * (grown.at / grown.at[-1]) ** grown.most
        ax.plot(grown.at, along, ":", color="0.5", label=f"power {grown.most:g}")
        ax.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
        ax.grid(alpha=0.3)
        ax.legend()
    left.set_title(STOCHASTIC)
    right.set_title(SKETCHED)
    left.figure.savefig(path, dpi=110)
    close(left)


EXPERIMENT = Growth(
    "growth",
    "Stochastic-PD with the accuracy, SkPD with the number of unknowns",
    "Lemmas on Stochastic-PD and SkPD",
    Sizes(16, 32, (400, 1600, 6400, 25_600, 102_400), (14, 28, 56, 112), 3),
    Sizes(50, 250, (400, 1600, 6400, 25_600, 102_400, 409_600), (14, 28, 56, 112, 224), 5),
)

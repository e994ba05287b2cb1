"""Beyond the paper: how fast the methods are where losses are strongly convex.

The paper proves 1/T for convex losses and asks for strongly convex ones first of all. Here the
factor per round is measured over condition numbers, graphs and estimators, on logistic regression
and on squares that are as slow as their class allows, and held against the certificate of
`edgewise.study.linear_rate`.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise import __version__
from edgewise.centralised.reference import reference
from edgewise.data.synthetic import epsilon_like
from edgewise.experiments.experiment import BEYOND, Job, Outcome, Verdict
from edgewise.experiments.work import kept
from edgewise.gradients import LSVRG, SAGA, SVRG, Full
from edgewise.graph.graph import Graph
from edgewise.methods.primal_dual import PrimalDual
from edgewise.plotting.page import PageRun
from edgewise.problem.losses import Logistic, Squared
from edgewise.problem.problem import Problem
from edgewise.running.solve import solve
from edgewise.running.trace import Trace
from edgewise.study.linear_rate import LinearRate, balanced_steps, linear_rate, rule_of_thumb

LOGISTIC, HARD = "logistic", "squares, as slow as can be"
ESTIMATORS: dict[str, Any] = {
    "PD": Full(),
    "SAGA-PD": SAGA(),
    "LSVR-PD": LSVRG(),
    "SVR-PD": SVRG(),
}
CERTIFIED = ("PD", "SAGA-PD", "LSVR-PD")
CONDITIONS = (10, 100, 1000)  # L / ridge, L of one sample, ridge apart
NODES, FEATURES = 10, 8
SAMPLES = {"small": 40, "paper": 400}
FROM, TO = 1e-4, 1e-10  # parts of the start between which the factor is measured
MOST = 400_000  # rounds
LOOKS = 1600
MARKS = {"PD": "o", "SAGA-PD": "s", "LSVR-PD": "^", "SVR-PD": "D"}


class Case(NamedTuple):
    loss: str
    graph: str
    condition: int
    method: str

    def file(self, folder: Path) -> Path:
        loss = self.loss.split(",")[0]
        return folder / "traces" / f"{loss}-{self.graph}-{self.condition}-{self.method}.npz"


def graph_of(name: str) -> Graph:
    if name == "random":
        return Graph.random(NODES, 2 * NODES, seed=0)
    return Graph.ring(NODES) if name == "ring" else Graph.complete(NODES)


GRAPHS = ("ring", "random", "complete")


def problem_of(loss: str, condition: int, samples: int) -> Problem:
    """Rows of length one; the hard ones see one coordinate each and the last is seen by none, so
    that curvatures go from the ridge to the longest row's, and all nodes have the same."""
    if loss == LOGISTIC:
        X, y = epsilon_like(rows=NODES * samples, features=FEATURES, seed=0)
        blocks = np.split(X, NODES), np.split(y, NODES)
        return Problem(list(zip(*blocks, strict=True)), Logistic(ridge=0.25 / condition))
    rows = np.zeros((samples, FEATURES))
    lengths = np.geomspace(1, 0.1, FEATURES - 1)
    for k in range(samples):
        rows[k, k % (FEATURES - 1)] = lengths[k % (FEATURES - 1)]
    y = np.random.default_rng(0).standard_normal((NODES, samples))
    return Problem([(rows, labels) for labels in y], Squared(ridge=1 / condition))


def rate_of(case: Case, problem: Problem, graph: Graph) -> LinearRate:
    """Of epochs, which no proof covers, that of the same problem with SAGA."""
    covered = case if case.method in CERTIFIED else case._replace(method="SAGA-PD")
    return linear_rate(problem, graph, method_of(covered, problem, graph))


def method_of(case: Case, problem: Problem, graph: Graph) -> PrimalDual:
    gradient = ESTIMATORS[case.method]
    eta, rho = balanced_steps(problem, graph, gradient)
    return PrimalDual(gradient, eta=eta, rho=rho)


def measured(trace: Trace) -> float:
    """The factor per round, of a line through the logarithms between FROM and TO."""
    t, size = trace["rounds"], trace["bregman"]
    late = (size < FROM * size[0]) & (size > TO * size[0])
    if late.sum() < 4:
        return float("nan")
    return float(np.exp(np.polyfit(t[late], np.log(size[late]), 1)[0]))


@dataclass(frozen=True)
class Measured:
    case: Case
    factor: float
    certified: float  # NaN where no proof covers the method
    quadratics: float
    rule: float  # of thumb, for 1 - quadratics
    sampled: float  # b / K


@dataclass(frozen=True)
class LinearRates:
    name: str
    title: str
    source: str
    conditions: tuple[int, ...] = CONDITIONS
    graphs: tuple[str, ...] = GRAPHS

    def run(self, job: Job) -> Outcome:
        samples = SAMPLES[job.scale.name]
        cases = [
            Case(loss, graph, condition, method)
            for loss in (LOGISTIC, HARD)
            for graph in self.graphs
            for condition in self.conditions
            for method in ESTIMATORS
        ]
        problems = {(c.loss, c.condition): problem_of(c.loss, c.condition, samples) for c in cases}
        graphs = {name: graph_of(name) for name in self.graphs}
        stars = {at: reference(problem) for at, problem in problems.items()}

        rates = {c: rate_of(c, problems[c.loss, c.condition], graphs[c.graph]) for c in cases}

        def run(case: Case, stop: threading.Event) -> Trace:
            at = case.loss, case.condition
            problem, graph = problems[at], graphs[case.graph]
            rounds = min(MOST, int(2 * rates[case].rounds(TO / 100)))
            start: list[float] = []

            def enough(row: Mapping[str, float]) -> bool:
                start.append(row["bregman"])
                return stop.is_set() or start[-1] < TO / 10 * start[0]

            result = solve(
                problem,
                graph,
                method_of(case, problem, graph),
                rounds=rounds,
                seed=job.seed,
                record_every=max(1, rounds // LOOKS),
                reference=stars[at],
                # all coordinates are set in motion, those too that no sample sees
                X0=np.random.default_rng(1).standard_normal((NODES, problem.size)),
                progress=False,
                callback=enough,
            )
            if stop.is_set():
                raise KeyboardInterrupt
            return result.trace

        def key(case: Case) -> str:
            return json.dumps([__version__, case, samples, job.seed])

        traces = kept(cases, lambda c: c.file(job.folder), key, lambda missing: run, job, self.name)
        found = [
            Measured(
                case,
                measured(trace),
                rates[case].factor if case.method in CERTIFIED else float("nan"),
                rates[case].quadratics,
                rule_of_thumb(rates[case].of),
                1 / samples,
            )
            for case, trace in traces.items()
        ]
        runs = [
            PageRun(c.method, trace, f"{c.loss}, {c.graph}, L/ridge {c.condition}")
            for c, trace in traces.items()
        ]
        about = {"nodes": NODES, "samples a node": samples, "features": FEATURES, "seed": job.seed}
        return Outcome(
            runs,
            [
                is_linear(found),
                no_faster_than_proved(found),
                tight(found),
                two_terms(found),
                adds_up(found),
            ],
            None,
            about,
            lambda path: draw(found, path),
        )


def is_linear(found: list[Measured]) -> Verdict:
    holds, evidence = {}, []
    for method in ESTIMATORS:
        gaps = [1 - f.factor for f in found if f.case.method == method]
        holds[method] = bool(np.isfinite(gaps).all() and min(gaps) > 0)
        evidence.append(f"{method}: 1 - factor from {min(gaps):.2g} to {max(gaps):.2g}")
    return Verdict("ours: with a ridge the divergence falls linearly", holds, "; ".join(evidence))


def no_faster_than_proved(found: list[Measured]) -> Verdict:
    """A certified factor is one that no problem of the class exceeds."""
    holds, evidence = {}, []
    for method in CERTIFIED:
        ratios = [(1 - f.factor) / (1 - f.certified) for f in found if f.case.method == method]
        holds[method] = bool(min(ratios) > 0.95)
        evidence.append(f"{method}: {min(ratios):.2f} to {max(ratios):.0f} times as fast")
    return Verdict("ours: no run is slower than its certificate", holds, "; ".join(evidence))


def tight(found: list[Measured]) -> Verdict:
    holds, evidence = {}, []
    for method in CERTIFIED:
        gaps = [(1 - f.certified) / (1 - f.quadratics) for f in found if f.case.method == method]
        holds[method] = bool(min(gaps) > 0.95)
        evidence.append(f"{method}: {min(gaps):.2f} to {max(gaps):.2f}")
    return Verdict(
        "ours: the certificate is that of the worst quadratic problem",
        holds,
        f"certified 1 - r as a part of the quadratic's; {'; '.join(evidence)}",
    )


def two_terms(found: list[Measured]) -> Verdict:
    """Where samples decide, and not the condition or the graph."""
    holds, evidence = {}, []
    for method in CERTIFIED[1:]:
        parts = [
            (1 - f.certified) / min(1 - f.quadratics, f.sampled)
            for f in found
            if f.case.method == method
        ]
        holds[method] = bool(min(parts) > 0.5)
        evidence.append(f"{method}: {min(parts):.2f} to {max(parts):.2f}")
    return Verdict(
        "ours: certified 1 - r is half the lesser of whole gradients' and 1/K, or more",
        holds,
        f"as a part of the lesser; {'; '.join(evidence)}",
    )


def adds_up(found: list[Measured]) -> Verdict:
    ratios = [(1 - f.certified) / f.rule for f in found if f.case.method == "PD"]
    return Verdict(
        "ours: condition and graph add up: 1 - r is min(m / (kappa + 1/2), 2 (1 - a_2) / l, "
        "(1 + a_V) / kappa), or up to twice that",
        {"PD": min(ratios) > 0.97 and max(ratios) < 2.03},
        f"certified 1 - r over the formula: {min(ratios):.2f} to {max(ratios):.2f}",
    )


def draw(found: list[Measured], path: Path) -> None:
    """Measured against certified; and what decides, the condition or the samples."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
    for panel, loss in zip(panels, (LOGISTIC, HARD), strict=True):
        ends = [1 - f.certified for f in found if f.case.method in CERTIFIED]
        line = np.array([min(ends) / 2, max(ends) * 2])
        panel.plot(line, line, color="0.6", linewidth=1, label="as certified")
        for k, method in enumerate(CERTIFIED):
            own = [f for f in found if f.case.loss == loss and f.case.method == method]
            panel.plot(
                [1 - f.certified for f in own],
                [1 - f.factor for f in own],
                MARKS[method],
                color=f"C{k}",
                markerfacecolor="none",
                label=method,
            )
        panel.set(xscale="log", yscale="log", xlabel="1 - factor, certified", title=loss)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("1 - factor per round, measured")
    panels[1].legend()
    figure.suptitle("Strongly convex losses: no run is slower than its certificate")
    figure.savefig(path, dpi=110)
    plt.close(figure)


EXPERIMENT = LinearRates("linear-rates", "Linear rates with strongly convex losses", BEYOND)

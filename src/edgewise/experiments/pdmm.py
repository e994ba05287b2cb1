"""Appendix B: with exact gradients the primal-dual iterates are those of PDMM with f_i replaced by
its quadratic approximation."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from edgewise import __version__
from edgewise.centralised.reference import reference
from edgewise.engines.simulator import Simulator
from edgewise.experiments import data
from edgewise.experiments.claims import Curves, amount
from edgewise.experiments.experiment import AUTOMATIC, PRINTED, Job, Outcome, Scale, Verdict
from edgewise.experiments.work import kept
from edgewise.gradients import Full
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.methods.pdmm import PDMM
from edgewise.methods.primal_dual import PrimalDual
from edgewise.plotting.page import PageRun
from edgewise.problem.problem import Problem
from edgewise.running.solve import solve
from edgewise.running.trace import Trace
from edgewise.running.trajectory import Trajectory

RIDGE = 0.0014
ETA, RHO = 0.7, 0.9  # SVR-PD's in Table 3: none are printed for exact gradients
ROUNDS = 200  # that iterates are compared for
FEATURES, SAMPLES = 100, 400  # at most: every round takes all gradients
LEVEL = 1e-6  # of the divergence at the start, to which costs are compared
ALIKE = 1e-10  # of the largest entry, in float64
MOST = 200_000  # rounds


def quadratic_pdmm(
    problem: Problem, graph: Graph, eta: float, rho: float, rounds: int
) -> np.ndarray:
    """(rounds, V, n) from zero: the appendix's updates, an edge and a node at a time.

    The constraint of edge (i, j) is a_ij x_i + a_ji x_j = 0 with a_ij = 1 = -a_ji for i < j.
    """
    V, n, ridge = problem.nodes, problem.size, float(problem.loss.ridge)
    neighbours: list[list[int]] = [[] for _ in range(V)]
    for i, j in graph.edges.tolist():
        neighbours[i].append(j)
        neighbours[j].append(i)
    x, dual = np.zeros((V, n)), {(i, j): np.zeros(n) for i in range(V) for j in neighbours[i]}
    out = []
    for _ in range(rounds):
        new = np.empty_like(x)
        for i in range(V):
            D, _ = problem.shards[i]
            c = problem.labels[problem.own(i)]
            gradient = D.T @ (-c / (1 + np.exp(c * (D @ x[i])))) / len(c) + ridge * x[i]
            pull = x[i] / eta - gradient
            for j in neighbours[i]:
                pull += sign(i, j) * dual[j, i] + rho * x[j]
            new[i] = pull / (1 / eta + rho * len(neighbours[i]))
        dual = {
            (i, j): dual[j, i] + rho * sign(i, j) * (x[j] - new[i])
            for i in range(V)
            for j in neighbours[i]
        }
        x = new
        out.append(x)
    return np.array(out)


def sign(i: int, j: int) -> int:
    return 1 if i < j else -1


def primal_dual(
    problem: Problem, graph: Graph, eta: float, rho: float, rounds: int, form: str
) -> np.ndarray:
    """The same from the library."""
    out = []
    with jax.enable_x64(True):
        method = PrimalDual(Full(), eta, rho, form)
        executor = Simulator(problem, graph, method, 0, np.dtype("float64"))
        iterates = Trajectory(executor)
        iterates.start(executor.origin())
        for _ in range(rounds):
            iterates.advance(1)
            out.append(np.array(iterates.view()[0]))
    return np.array(out)


def problem_of(scale: Scale, path: str | None) -> Problem:
    """The paper's, smaller, in float64."""
    less = replace(scale, features=min(scale.features, FEATURES), dtype="float64")
    K = min(scale.samples[2000], SAMPLES)
    return data.problem_of(less, K, RIDGE * scale.easier, path)


class Cell(NamedTuple):
    setting: str
    method: str


# and how often to look: exact PDMM takes few rounds
METHODS: dict[Cell, tuple[Method, int]] = {
    Cell(PRINTED, "PD"): (PrimalDual(Full(), ETA, RHO), 20),
    Cell(AUTOMATIC, "PD"): (PrimalDual(Full()), 5),
    Cell(AUTOMATIC, "PDMM"): (PDMM(), 1),
}


@dataclass(frozen=True)
class QuadraticPDMM:
    name: str
    title: str
    source: str

    def run(self, job: Job) -> Outcome:
        problem, graph = problem_of(job.scale, job.data), data.graph_of(job.scale, False)
        traces = self.traces(job, problem, graph)
        about = {
            "data": data.source(job.data),
            "samples a node": int(problem.counts[0]),
            "features": problem.size,
            "ridge": float(problem.loss.ridge),
            PRINTED: f"eta {ETA}, rho {RHO}",
        }
        about |= {f"{c.method}, {c.setting}": costs(trace) for c, trace in traces.items()}
        runs = [PageRun(c.method, trace, c.setting) for c, trace in traces.items()]
        return Outcome(runs, [same(problem, graph)], graph, about)

    def traces(self, job: Job, problem: Problem, graph: Graph) -> dict[Cell, Trace]:
        """To a tenth of LEVEL, for information."""

        def key(cell: Cell) -> str:
            size = [problem.nodes, graph.edge_count, int(problem.counts[0]), problem.size]
            return json.dumps([__version__, cell, size, float(problem.loss.ridge), job.data])

        def path(cell: Cell) -> Path:
            return job.folder / "traces" / f"{'-'.join(cell).replace(' ', '-').lower()}.npz"

        def run(cell: Cell, stop: threading.Event) -> Trace:
            seen: list[float] = []

            def enough(row: Mapping[str, float]) -> bool:
                seen.append(row["bregman"])
                return stop.is_set() or seen[-1] <= LEVEL * seen[0] / 10

            method, every = METHODS[cell]
            result = solve(
                problem,
                graph,
                method,
                rounds=MOST,
                record_every=every,
                reference=reference(problem),
                dtype="float64",
                progress=False,
                callback=enough,
            )
            if stop.is_set():
                raise KeyboardInterrupt
            return result.trace

        def bench(missing: list[Cell]) -> Callable[[Cell, threading.Event], Trace]:
            reference(problem)  # kept with it, before several threads ask
            return run

        return kept(METHODS, path, key, bench, job, self.name)


def same(problem: Problem, graph: Graph) -> Verdict:
    theirs = quadratic_pdmm(problem, graph, ETA, RHO, ROUNDS)
    size = float(np.abs(theirs).max())
    apart = {
        form: float(np.abs(primal_dual(problem, graph, ETA, RHO, ROUNDS, form) - theirs).max())
        for form in ("node", "edge")
    }
    said = ", ".join(f"{form} form {a:.1e}" for form, a in apart.items())
    return Verdict(
        "PD with exact gradients has the iterates of PDMM with quadratic approximations",
        {PRINTED: max(apart.values()) <= ALIKE * size},
        f"largest difference in {ROUNDS} rounds, entries up to {size:.2g}: {said}",
    )


def costs(trace: Trace) -> str:
    curves = Curves({"": trace})
    level = LEVEL * curves.first("")
    rounds, calls = (amount(curves.cost("", level, u)) for u in ("rounds", "oracle_calls"))
    return f"{rounds} rounds, {calls} oracle calls a node to {LEVEL:g} of the start"


EXPERIMENT = QuadraticPDMM(
    "pdmm", "PDMM with quadratic approximations is PD with exact gradients", "Appendix B"
)

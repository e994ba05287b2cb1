"""Appendix B: with exact gradients the primal-dual iterates are those of PDMM with f_i replaced by
its quadratic approximation."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edgewise import __version__
from edgewise.centralised.reference import reference
from edgewise.engines.simulator import Simulator
from edgewise.experiments import data
from edgewise.experiments.experiment import AUTOMATIC, PRINTED, Job, Outcome, Scale, Verdict
from edgewise.experiments.looks import LOWEST, draw_method, look, places
from edgewise.experiments.passages import CALLS, ROUNDS, Curves, amount
from edgewise.experiments.work import kept
from edgewise.gradients import Full
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.methods.pdmm import PDMM
from edgewise.methods.primal_dual import PrimalDual
from edgewise.plotting.axes import close, new_axes
from edgewise.plotting.page import PageRun
from edgewise.problem.problem import Problem
from edgewise.running.measures import bregman, target_of
from edgewise.running.solve import solve
from edgewise.running.trace import Trace
from edgewise.running.trajectory import Trajectory

RIDGE = 0.0014
ETA, RHO = 0.7, 0.9  # SVR-PD's in Table 3: none are printed for exact gradients
COMPARED = 200  # rounds that iterates are compared for
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
        found = both(problem, graph)
        return Outcome(runs, [same(found)], graph, about, lambda path: draw(traces, found, path))

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


class Both(NamedTuple):
    """Iterates side by side."""

    largest: float  # entry
    divergences: np.ndarray  # (COMPARED,) of the appendix's updates
    apart: dict[str, np.ndarray]  # (COMPARED,) by form: the largest difference so far


def both(problem: Problem, graph: Graph) -> Both:
    theirs = quadratic_pdmm(problem, graph, ETA, RHO, COMPARED)
    apart = {
        form: np.abs(primal_dual(problem, graph, ETA, RHO, COMPARED, form) - theirs).max((1, 2))
        for form in ("node", "edge")
    }
    with jax.enable_x64(True):
        block, target = problem.block(None, np.float64), target_of(reference(problem))
        divergence = jax.jit(bregman)
        along = np.array([divergence(block, jnp.asarray(X), target) for X in theirs])
    return Both(float(np.abs(theirs).max()), along, apart)


def same(found: Both) -> Verdict:
    most = {form: float(a.max()) for form, a in found.apart.items()}
    said = ", ".join(f"{form} form {a:.1e}" for form, a in most.items())
    return Verdict(
        "PD with exact gradients has the iterates of PDMM with quadratic approximations",
        {PRINTED: max(most.values()) <= ALIKE * found.largest},
        f"largest difference in {COMPARED} rounds, entries up to {found.largest:.2g}: {said}",
    )


def draw(traces: Mapping[Cell, Trace], found: Both, path: Path) -> None:
    """Left all of them, and quadratic PDMM on PD's line; right how far apart these two are."""
    left, right = new_axes(path, ncols=2, figsize=(12, 4.5))
    for cell, trace in traces.items():
        draw_method(left, cell.method, [trace], ROUNDS)
        line = left.lines[-1]
        line.set_label(f"{cell.method}, {cell.setting}")
        if cell == Cell(AUTOMATIC, "PD"):
            line.set(color="#56b4e9", marker="D", markerfacecolor="#56b4e9")
    rounds, style = np.arange(1, COMPARED + 1), look("quadratic PDMM") | {"linestyle": ""}
    every = places(rounds, 0) + places(rounds, 1)
    left.plot(rounds[every], found.divergences[every], **style, label="quadratic PDMM, as printed")
    first = found.divergences[0]
    left.set(xscale="log", yscale="log", xlabel="communication rounds", ylabel="Bregman divergence")
    left.set(ylim=(max(left.get_ylim()[0], LOWEST * first) / 100, 10 * first))
    left.legend(loc="lower left")
    for form, dash in (("node", "-"), ("edge", "--")):
        right.plot(rounds, found.apart[form], dash, label=f"{form} form")
    right.axhline(np.finfo(float).eps * found.largest, color="0.6", linestyle=":")
    right.set(yscale="log", xlabel="communication rounds")
    right.set(ylabel="largest difference, PD and quadratic PDMM")
    right.legend(title=f"entries are up to {found.largest:.2g}")
    for ax in (left, right):
        ax.grid(alpha=0.3)
    left.figure.savefig(path, dpi=110)
    close(left)


def costs(trace: Trace) -> str:
    curves = Curves({"": trace})
    rounds, calls = (amount(curves.span("", LEVEL, unit).high) for unit in (ROUNDS, CALLS))
    return f"{rounds} rounds, {calls} oracle calls a node to {LEVEL:g} of the start"


EXPERIMENT = QuadraticPDMM(
    "pdmm", "PDMM with quadratic approximations is PD with exact gradients", "Appendix B"
)

"""The only loop: prepare, run a stretch of rounds, record, stop."""

import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgewise import checkpoint as saved
from edgewise.checks import check, precision
from edgewise.errors import DivergenceWarning
from edgewise.faults import Faults, weatherproof
from edgewise.gauge import Gauge, ShiftingGauge
from edgewise.graph import Graph
from edgewise.interrupt import deferred_interrupt
from edgewise.methods import make
from edgewise.native import simulator
from edgewise.network.sharded import HostGauge, ShardedSimulator, choose_devices
from edgewise.network.simulated import Simulator
from edgewise.network.simulated_faults import FaultySimulator
from edgewise.problem import Problem
from edgewise.progress import Progress
from edgewise.reference import Reference, reference
from edgewise.start import starting_duals, starting_models
from edgewise.trace import COLUMNS, Trace

CONVERGED = 1e-6  # the residual that counts as converged where no tol was given
LOOKS = 10  # rows of a trace from which a residual that did not fall is worth a word
RUNAWAY = 1e8  # growth of the residual that counts as divergence


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    x: np.ndarray  # (n,) the mean of the nodes' models
    X: np.ndarray = field(repr=False)  # (V, n) each node's model
    trace: Trace = field(repr=False)
    converged: bool
    message: str
    duals: np.ndarray = field(repr=False)  # (V, n) each node's sum of duals: `solve(duals=...)`
    method: Any = field(repr=False)  # with the steps that were used
    apart: np.ndarray = field(repr=False)  # (T, V) distance of each node from the mean, by row
    graph: Graph = field(repr=False)

    def plot(self, path: str | Path | None = None) -> Any:
        """The nodes on their graph, and how they came to agree; saved where `path` says."""
        from edgewise.plots import plot_result

        return plot_result(self, path)

    def animate(self, path: str | Path, frames: int = 60) -> Path:
        """The nodes' disagreement over the graph as it shrinks, as .gif or .html."""
        from edgewise.plots import animate_result

        return animate_result(self, Path(path), frames)


def solve(
    problem: Problem,
    graph: Graph,
    method: Any = "saga-pd",
    rounds: int = 5000,
    seed: int = 0,
    eta: Any = None,
    rho: Any = None,
    record_every: int = 50,
    tol: float | None = None,
    checkpoint: str | Path | None = None,
    *,
    oracle_budget: float | None = None,
    X0: Any = None,
    duals: "Result | np.ndarray | None" = None,
    reference: "Reference | bool" = True,
    faults: Faults | None = None,
    devices: Any = None,
    dtype: Any = None,
    progress: bool | None = None,
    callback: Callable[[Mapping[str, float]], Any] | None = None,
) -> Result:
    """Fit the problem over the graph and say how it went.

    method         a name from `edgewise.methods()`, or an object such as
                   `PrimalDual(SAGA(batch=4), form="edge")`
    rounds         communication rounds, at most
    seed           the same seed gives the same run, on every engine
    eta, rho       "auto" (the default), "theory", one number, or one per node (eta), edge (rho)
    record_every   rounds between two rows of the trace
    tol            stop when the trace's `residual` falls to it
    oracle_budget  stop when the mean number of oracle calls per node reaches it
    checkpoint     a file to write the run's state to, and to go on from if it is there
    X0             (V, n) or (n,) starting models; default: the prox of zero, which is feasible
    duals          a former result (or its `.duals`) to start the duals from; default zero
    reference      measure against the centralised optimum, which costs a centralised solve; False
                   leaves the columns objective_gap and bregman empty
    faults         `edgewise.Faults(...)`: what goes wrong in the network; primal-dual methods then
                   run in edge form, which heals
    devices        how many devices, or which (`jax.devices()`), to spread the nodes over; default
                   one that holds them all: see docs/devices.md
    dtype          "float64" (default on a CPU) or "float32" (default elsewhere)
    progress       show a progress bar; default: where the output is a terminal
    callback       called with every new row of the trace, a mapping; the run ends if it says True

    >>> X, y = edgewise.data.dataset("wine")
    >>> shards = edgewise.split((X - X.mean(0)) / X.std(0), y == 1, nodes=6)
    >>> problem = edgewise.Problem(shards, edgewise.Logistic(ridge=0.1))
    >>> result = solve(problem, edgewise.Graph.ring(6), "svr-pd-es", rounds=2000, tol=1e-6)
    >>> result.converged, result.X.shape
    (True, (6, 13))
    """
    check(problem, graph, method, rounds, record_every, seed, tol, oracle_budget, reference)
    chosen = make(method, eta, rho)
    if faults is not None:
        chosen = weatherproof(chosen, faults, problem, graph)
    several = None if devices is None else choose_devices(devices, problem, faults)
    kind = precision(dtype)
    if checkpoint is not None:
        saved.require_writable(checkpoint)
    with (
        jax.enable_x64(True),
        Progress(rounds, str(method), progress) as bar,
        deferred_interrupt() as stop,
    ):
        run = Run(problem, graph, chosen, int(seed), kind, X0, duals, faults, several)
        run.aim(solve_reference(problem) if reference is True else reference or None)
        return run.to_end(rounds, record_every, tol, oracle_budget, checkpoint, bar, stop, callback)


solve_reference = reference


class Run:
    """The state of one run, and how to advance, measure and save it."""

    def __init__(
        self,
        problem: Problem,
        graph: Graph,
        method: Any,
        seed: int,
        dtype: Any,
        X0: Any,
        duals: Any,
        faults: Faults | None = None,
        devices: list[Any] | None = None,
    ) -> None:
        self.problem, self.graph, self.dtype, self.faults = problem, graph, dtype, faults
        self.simulator: Simulator
        if devices is not None:
            self.simulator = ShardedSimulator(problem, graph, method, seed, dtype, devices)
        elif faults is not None:
            self.simulator = FaultySimulator(problem, graph, method, seed, dtype, faults)
        else:
            self.simulator = simulator(problem, graph, method, seed, dtype)
        self.method = self.simulator.method
        X, D = self.starting_models(X0), starting_duals(duals, problem)
        self.carry = self.simulator.start(X, D)
        if devices is None:
            self.gauge = Gauge(problem, graph, self.simulator.block.rows)
        else:
            self.gauge = HostGauge(problem, graph)
        self.round, self.seconds = 0, self.simulator.starting_seconds
        self.rows: list[list[float]] = []
        self.apart: list[np.ndarray] = []

    def aim(self, star: Reference | None) -> None:
        """Measure against this optimum from now on; of those present, where nodes come and go."""
        self.gauge.aim(star)
        if self.faults is not None and len(self.faults.changes) > 1:
            self.gauge = ShiftingGauge(self.gauge, self.faults, star is not None)

    def starting_models(self, X0: Any) -> np.ndarray:
        if X0 is None:
            return self.simulator.origin()
        return starting_models(X0, self.problem, self.dtype)

    def to_end(
        self,
        rounds: int,
        record_every: int,
        tol: float | None,
        oracle_budget: float | None,
        checkpoint: str | Path | None,
        bar: Progress,
        stop: threading.Event,
        callback: Callable[[Mapping[str, float]], Any] | None = None,
    ) -> Result:
        self.simulator.foresee(self.carry, min(record_every, rounds))
        mark = saved.fingerprint(self) if checkpoint is not None else ""
        enough = False
        if checkpoint is not None and Path(checkpoint).exists():
            saved.load(checkpoint, self, mark)
        else:
            enough = self.record(callback)
        keeper = saved.Keeper(checkpoint, mark)
        reason = ""
        while not reason:
            last = self.rows[-1]
            residual, calls = last[COLUMNS.index("residual")], last[COLUMNS.index("oracle_calls")]
            bar.update(self.round, residual)
            if self.diverged():
                reason = "diverged"
            elif tol is not None and residual <= tol:
                reason = "tol"
            elif oracle_budget is not None and calls >= oracle_budget:
                reason = "budget"
            elif self.round >= rounds:
                reason = "rounds"
            elif stop.is_set():
                reason = "interrupted"
            elif enough:
                reason = "callback"
            else:
                self.advance(min(record_every, rounds - self.round))
                enough = self.record(callback)
                keeper.maybe_save(self)
        keeper.save(self)
        return self.result(reason, tol)

    def advance(self, rounds: int) -> None:
        """At least so many rounds: a step of several phases is taken whole."""
        phases = len(self.method.phases)
        rounds = -(-rounds // phases) * phases
        self.carry, spent = self.simulator.advance(self.carry, self.round, rounds)
        self.round, self.seconds = self.round + rounds, self.seconds + spent

    def record(self, callback: Callable[[Mapping[str, float]], Any] | None = None) -> bool:
        """One more row; whether the callback, told of it, has had enough."""
        X, duals = (a.astype(np.float64) for a in self.simulator.view(self.carry))
        report = self.gauge.read(X, duals, self.round)
        vectors = self.simulator.sent(self.carry, self.round) * len(self.method.hears)
        memory = self.carry[0].memory
        values = getattr(memory, "evaluations", 0 * memory.calls)
        row = {
            "rounds": self.round,
            "oracle_calls": float(self.simulator.per_node(memory.calls).mean()),
            "vectors_sent": vectors,
            "bytes_sent": vectors * self.simulator.message_bytes,
            "seconds": self.seconds,
            "function_values": float(self.simulator.per_node(values).mean()),
            **{k: float(a) for k, a in report.items()},
        }
        self.rows.append([row[c] for c in COLUMNS])
        here = self.simulator.present(self.round)
        models = np.asarray(X)
        distance = np.linalg.norm(models - models[here].mean(0), axis=1)
        self.apart.append(np.where(here, distance, np.nan))
        return callback is not None and callback({c: row[c] for c in COLUMNS}) is True

    def diverged(self) -> bool:
        residual = COLUMNS.index("residual")
        last = self.rows[-1][residual]
        if not np.isfinite(last):
            return True
        if last <= RUNAWAY * self.rows[0][residual]:
            return False
        plain = jnp.asarray(
            self.starting_models(None), np.float64
        )  # the run began near the optimum
        report = self.gauge.read(plain, jnp.zeros_like(plain), self.round)
        return last > RUNAWAY * float(report["residual"])

    def doubt(self, residual: float) -> str:
        """Where slopes are bounded, as of the logistic loss, too long a step does not diverge."""
        start = self.rows[0][COLUMNS.index("residual")]
        if residual < start or len(self.rows) < LOOKS:
            return ""
        shorter = float(np.min(self.simulator.eta)) / 4
        return f", no less than at the start: the step may be too long, try eta={shorter:.3g}"

    def result(self, reason: str, tol: float | None) -> Result:
        X, duals = (np.asarray(a, np.float64) for a in self.simulator.view(self.carry))
        trace = Trace(
            dict(zip(COLUMNS, np.array(self.rows).T, strict=True)),
            {"method": self.simulator.name, "nodes": self.problem.nodes, "size": self.problem.size},
        )
        residual = float(trace["residual"][-1])
        goal = CONVERGED if tol is None else tol
        how = {
            "tol": f"reached tol: residual {residual:.2e} after {self.round} rounds",
            "budget": f"oracle budget spent after {self.round} rounds, residual {residual:.2e}",
            "rounds": f"ran all {self.round} rounds, residual {residual:.2e}"
            + (f", {goal:.0e} wanted{self.doubt(residual)}" if residual > goal else ""),
            "interrupted": f"interrupted after {self.round} rounds, residual {residual:.2e}",
            "callback": f"stopped by the callback after {self.round} rounds, "
            f"residual {residual:.2e}",
            "diverged": f"diverged by round {self.round}: the step is too long, "
            f'try eta={float(np.min(self.simulator.eta)) / 4:.3g}, or "auto"',
        }[reason]
        if reason == "diverged":
            warnings.warn(how, DivergenceWarning, stacklevel=4)
        x = X[self.simulator.present(self.round)].mean(0)
        done, apart = bool(residual <= goal), np.array(self.apart)
        return Result(x, X, trace, done, how, duals, self.method, apart, self.graph)

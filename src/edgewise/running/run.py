"""The only loop: prepare, run a stretch of rounds, record, stop."""

import threading
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from edgewise.centralised.reference import Reference
from edgewise.engines.faults import Faults
from edgewise.engines.simulator import Simulator
from edgewise.errors import DivergenceWarning
from edgewise.graph.graph import Graph
from edgewise.problem.problem import Problem
from edgewise.running import checkpoint as saved
from edgewise.running.evaluator import ShiftingGauge
from edgewise.running.progress import Progress
from edgewise.running.result import Result
from edgewise.running.starting_point import starting_duals, starting_models
from edgewise.running.trace import COLUMNS, Trace

CONVERGED = 1e-6  # the residual that counts as converged where no tol was given
LOOKS = 10  # rows of a trace from which a residual that did not fall is worth a word
RUNAWAY = 1e8  # growth of the residual that counts as divergence


class Run:
    """The state of one run, and how to advance, measure and save it."""

    def __init__(
        self,
        problem: Problem,
        graph: Graph,
        simulator: Simulator,
        X0: Any,
        duals: Any,
        faults: Faults | None = None,
    ) -> None:
        self.problem, self.graph, self.simulator, self.faults = problem, graph, simulator, faults
        self.method, self.dtype = simulator.method, simulator.dtype
        X, D = self.starting_models(X0), starting_duals(duals, problem)
        self.carry = simulator.start(X, D)
        self.gauge = simulator.gauge()
        self.round, self.seconds = 0, simulator.starting_seconds
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
        return self.simulator.own(starting_models(X0, self.problem, self.dtype))

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
        if checkpoint is not None and self.simulator.agree(int(Path(checkpoint).exists())):
            saved.load(checkpoint, self, mark)
        else:
            enough = self.record(callback)
        keeper = saved.Checkpointer(checkpoint, mark)
        while True:
            bar.update(self.round, self.last("residual"))
            reason = self.why_stop(rounds, tol, oracle_budget, stop.is_set(), enough)
            if reason:
                keeper.save(self)
                return self.result(reason, tol)
            self.advance(min(record_every, rounds - self.round))
            enough = self.record(callback)
            keeper.maybe_save(self)

    def why_stop(
        self,
        rounds: int,
        tol: float | None,
        oracle_budget: float | None,
        interrupted: bool,
        enough: bool,
    ) -> str:
        """A reason that all ranks agree on, or nothing."""
        true = {
            "callback": enough,
            "interrupted": interrupted,
            "rounds": self.round >= rounds,
            "budget": oracle_budget is not None and self.last("oracle_calls") >= oracle_budget,
            "tol": tol is not None and self.last("residual") <= tol,
            "diverged": self.diverged(),
        }
        reasons = ["", *true]
        return reasons[self.simulator.agree(max(reasons.index(r) * true[r] for r in true))]

    def last(self, column: str) -> float:
        return self.rows[-1][COLUMNS.index(column)]

    def advance(self, rounds: int) -> None:
        """At least so many rounds: a step of several phases is taken whole."""
        phases = len(self.method.phases)
        rounds = -(-rounds // phases) * phases
        self.carry, spent = self.simulator.advance(self.carry, self.round, rounds)
        self.round, self.seconds = self.round + rounds, self.seconds + spent

    def record(self, callback: Callable[[Mapping[str, float]], Any] | None = None) -> bool:
        """One more row; whether the callback, told of it, has had enough."""
        simulator = self.simulator
        X, duals = (a.astype(np.float64) for a in simulator.view(self.carry))
        report = self.gauge.read(X, duals, self.round)
        vectors = simulator.sent(self.carry, self.round) * len(self.method.hears)
        memory = self.carry[0].memory
        values = getattr(memory, "evaluations", 0 * memory.calls)
        row = {
            "rounds": self.round,
            "oracle_calls": float(simulator.per_node(memory.calls).mean()),
            "vectors_sent": vectors,
            "bytes_sent": vectors * simulator.message_bytes,
            "seconds": simulator.slowest(self.seconds),
            "function_values": float(simulator.per_node(values).mean()),
            **{k: float(a) for k, a in report.items()},
        }
        self.rows.append([row[c] for c in COLUMNS])
        here = simulator.present(self.round)
        models = np.asarray(X)
        distance = np.linalg.norm(models - simulator.mean(models, here), axis=1)
        self.apart.append(np.where(here, simulator.of_all(distance), np.nan))
        if callback is None or not simulator.speaks:
            return False
        return callback({c: row[c] for c in COLUMNS}) is True

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
        x = self.simulator.mean(X, self.simulator.present(self.round))
        X, duals = map(self.simulator.gathered, (X, duals))
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
        if reason == "diverged" and self.simulator.speaks:
            warnings.warn(how, DivergenceWarning, stacklevel=4)
        done, apart = bool(residual <= goal), np.array(self.apart)
        return Result(x, X, trace, done, how, duals, self.method, apart, self.graph)

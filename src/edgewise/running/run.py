"""The only loop: prepare, run a stretch of rounds, record, stop."""

import threading
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from edgewise.engines.base import Engine, Executor
from edgewise.engines.early_rounds import is_numpy
from edgewise.engines.faults import Faults
from edgewise.engines.simulator import describe
from edgewise.errors import DivergenceWarning
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.problem.problem import Problem
from edgewise.running import checkpoint as saved
from edgewise.running.ending import Ending
from edgewise.running.evaluator import Evaluator, PresentEvaluator
from edgewise.running.explanation import explain
from edgewise.running.model_form import ModelForm
from edgewise.running.progress import Progress
from edgewise.running.result import Result
from edgewise.running.starting_point import starting_duals, starting_models
from edgewise.running.trace import COLUMNS, Trace
from edgewise.running.trajectory import Trajectory

CONVERGED = 1e-6  # the residual that counts as converged where no tol was given
RUNAWAY = 1e8  # growth of the residual that counts as divergence
HARDLY = 0.1  # of the first residual: a goal that asks for no more than that is loose


class Run(Trajectory[Executor]):
    """The state of one run, and how to advance, measure and save it."""

    private = False  # what is told is then made of messages alone

    def __init__(
        self,
        problem: Problem,
        graph: Graph,
        engine: Engine,
        X0: Any = None,
        duals: Any = None,
        faults: Faults | None = None,
        method_note: str = "",
        asked: Method | None = None,
    ) -> None:
        self.problem, self.graph, self.faults = problem, graph, faults
        self.method_note, self.cold = method_note, X0 is None and duals is None
        executor, self.communicator = engine
        super().__init__(executor)
        self.method, self.dtype = executor.method, executor.dtype
        self.asked = self.method if asked is None else asked  # with steps as they were given
        self.start(self.starting_models(X0), self.starting_duals(duals))
        curvatures = executor.knowledge.curvatures
        self.evaluator = Evaluator(
            problem, graph, executor.evaluation_block(), self.communicator, curvatures
        )
        self.rows: list[list[float]] = []
        self.apart: list[np.ndarray] = []

    def set_target(self, star: Any) -> None:
        """Measure against this optimum from now on; of those present, where nodes come and go."""
        self.evaluator.set_target(star)
        if self.faults is not None and len(self.faults.changes) > 1:
            self.evaluator = PresentEvaluator(self.evaluator, self.faults, star is not None)

    def starting_models(self, X0: Any) -> np.ndarray:
        """(v, n) of the nodes here."""
        if X0 is None:
            return self.executor.origin()
        own: np.ndarray = self.communicator.own(starting_models(X0, self.problem, self.dtype))
        return own

    def starting_duals(self, duals: Any) -> np.ndarray | None:
        """(V, n) of all nodes."""
        return starting_duals(duals, self.problem)

    def beside_the_data(self) -> list[np.ndarray]:
        """What decides how the run goes on, beside the data, the network and the method."""
        return []

    @property
    def is_root(self) -> bool:
        """Whether this process tells the user, and writes files."""
        return self.communicator.rank == 0

    def present(self) -> np.ndarray:
        """(V,) who took part in the last round."""
        if self.faults is None:
            return np.ones(self.graph.nodes, bool)
        return self.faults.present(self.graph.nodes, max(self.round - 1, 0))

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
    ) -> Any:
        self.executor.compile_ahead(self.carry, min(record_every, rounds))
        mark = saved.fingerprint(self) if checkpoint is not None else {}
        enough = False
        if checkpoint is not None and self.communicator.agree(int(Path(checkpoint).exists())):
            saved.load(checkpoint, self, mark)
        else:
            enough = self.record(callback)
        checkpointer = saved.Checkpointer(checkpoint, mark)
        while True:
            bar.update(self.round, self.last("residual"))
            reason = self.why_stop(rounds, tol, oracle_budget, stop.is_set(), enough)
            if reason:
                checkpointer.save(self)
                return self.result(reason, tol, oracle_budget)
            self.advance(min(record_every, rounds - self.round))
            enough = self.record(callback)
            checkpointer.maybe_save(self)

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
            "diverged": self.overflown() if self.private else self.diverged(),
        }
        reasons = ["", *true]
        return reasons[self.communicator.agree(max(reasons.index(r) * true[r] for r in true))]

    def last(self, column: str) -> float:
        return self.rows[-1][COLUMNS.index(column)]

    def record(self, callback: Callable[[Mapping[str, float]], Any] | None = None) -> bool:
        """One more row; whether the callback, told of it, has had enough."""
        report, apart = self.measured()
        row = self.spent() | {k: float(report[k]) for k in report.keys() & {*COLUMNS}}
        self.rows.append([row[c] for c in COLUMNS])
        self.apart.append(np.where(self.present(), self.communicator.gather(apart), np.nan))
        if callback is None or not self.is_root:
            return False
        return callback({c: row[c] for c in COLUMNS}) is True

    def spent(self) -> dict[str, float]:
        """The columns of a trace that say what the rounds so far took; at every rank the same."""
        communicator, counts = self.communicator, self.counts()
        vectors = sum(kind != "news" for kind in self.method.hears)
        bodies = int(communicator.gather(counts.bodies).sum())
        return {
            "rounds": self.round,
            "oracle_calls": float(communicator.gather(counts.oracle_calls).mean()),
            "vectors_sent": counts.messages * vectors + bodies,
            "bytes_sent": counts.bytes + bodies * self.executor.body_bytes,
            "seconds": communicator.slowest(self.seconds),
            "function_values": float(communicator.gather(counts.function_values).mean()),
        }

    def measured(self) -> tuple[dict[str, Any], np.ndarray]:
        """Columns of the trace, and (v,) how far each node here is from the mean."""
        X, duals = (a.astype(np.float64) for a in self.view())
        report = self.evaluator.evaluate(X, duals, self.round)
        models = np.asarray(X)
        away = models - self.communicator.mean(models, self.present())
        return report, np.sqrt(np.einsum("vn,vn->v", away, away))  # `norm` makes two copies more

    def overflown(self) -> bool:
        """By the models alone: residuals are measured on data that are to stay private."""
        return not np.isfinite(self.view()[0]).all()

    def diverged(self) -> bool:
        residual = COLUMNS.index("residual")
        last = self.rows[-1][residual]
        if not np.isfinite(last):
            return True
        if last <= RUNAWAY * self.rows[0][residual]:
            return False
        # the run began near the optimum
        plain = jnp.asarray(self.starting_models(None), np.float64)
        report = self.evaluator.evaluate(plain, jnp.zeros_like(plain), self.round)
        return last > RUNAWAY * float(report["residual"])

    def explained(
        self, x: np.ndarray, goal: float, diverged: bool = False, budget: float | None = None
    ) -> str:
        """Why it ended short of its goal, and what to try."""
        ending = Ending(
            problem=self.problem,
            graph=self.graph,
            method=self.method,
            trace=self.trace(),
            goal=goal,
            x=x,
            dtype=self.dtype.name,
            step=float(np.min(self.executor.eta)) if np.size(self.executor.eta) else np.nan,
            asked=self.asked,
            knowledge=self.executor.knowledge,
            diverged=diverged,
            faults=self.faults,
            budget=budget,
        )
        return explain(ending)

    def consensus(self, X: np.ndarray, duals: np.ndarray, converged: bool) -> np.ndarray:
        """(n,) the mean of the models, with the zeros of the penalty. What a stream is measured
        on is not what it is fitted to: there the mean stays as it is."""
        x = self.communicator.mean(X, self.present())
        if self.private:
            return x  # what settles it is a step over the data
        if self.problem.penalised and self.problem.stream is None and np.isfinite(x).all():
            there: list[Any] = [X, duals]
            if not is_numpy(self.carry):
                there = [jnp.asarray(a) for a in there]
            return self.evaluator.settled(x, there[0], there[1], self.round, converged)
        return x

    def trace(self) -> Trace:
        return Trace(
            dict(zip(COLUMNS, np.array(self.rows).T, strict=True)),
            {
                "method": describe(self.method),
                "method_note": self.method_note,
                "nodes": self.problem.nodes,
                "size": self.problem.size,
            },
        )

    def result(self, reason: str, tol: float | None, oracle_budget: float | None = None) -> Any:
        X, duals = (np.asarray(a, np.float64) for a in self.view())
        goal = CONVERGED if tol is None else tol
        x = self.consensus(X, duals, converged=self.last("residual") <= goal)
        X, duals = map(self.communicator.gather_at_root, (X, duals))
        trace = self.trace()
        residual = float(trace["residual"][-1])
        short = residual > goal or not np.isfinite(residual)
        hardly = not short and self.cold and residual > HARDLY * trace["residual"][0]
        why = ""
        if short and not self.private and reason in ("rounds", "budget", "diverged"):
            spent = oracle_budget if reason == "budget" else None
            why = self.explained(x, goal, reason == "diverged", spent)
        how = {
            "tol": f"reached tol: residual {residual:.2e} after {self.round} rounds",
            "budget": f"oracle budget spent after {self.round} rounds, residual {residual:.2e}",
            "rounds": f"ran all {self.round} rounds, residual {residual:.2e}"
            + (f", {goal:.0e} wanted" if short else ""),
            "interrupted": f"interrupted after {self.round} rounds, residual {residual:.2e}",
            "callback": f"stopped by the callback after {self.round} rounds, "
            f"residual {residual:.2e}",
            "diverged": f"diverged by round {self.round}",
        }[reason] + (f": {why}" if why else "")
        if hardly:
            smaller = 1e-6 * trace["residual"][0]
            how += f", hardly less than at the start: ask for a smaller tol, as {smaller:.0e}"
        if not short and not self.problem.convex:
            how += ": a stationary point, as the loss is not convex"
        if reason == "diverged" and self.is_root:
            warnings.warn(how, DivergenceWarning, stacklevel=4)
        done, apart = bool(residual <= goal), np.array(self.apart)
        form = ModelForm.of(self.problem, self.graph)
        known = self.method, apart, self.graph, self.method_note, why, form
        return Result(x, X, trace, done, how, duals, *known, self.problem)

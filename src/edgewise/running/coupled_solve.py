"""`solve` where neighbours are coupled: the same engines, other figures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.engines.faults import Faults, under_faults
from edgewise.engines.faulty_executor import FaultyExecutor
from edgewise.engines.simulator import Simulator
from edgewise.errors import GraphError, MethodError, ProblemError
from edgewise.graph.graph import Graph
from edgewise.methods.catalogue import AUTO, make
from edgewise.methods.contract import Method
from edgewise.problem.block import Block
from edgewise.problem.coupled import CoupledProblem
from edgewise.problem.couplings import Coupling
from edgewise.problem.problem import Problem
from edgewise.running.interrupt import deferred_interrupt
from edgewise.running.progress import Progress
from edgewise.running.trace import COLUMNS, Trace
from edgewise.running.trajectory import Trajectory

CONVERGED = 1e-6
CHOSEN = "pdmm"
RUNAWAY = 1e12  # times what a run begins with, and at least one: no run comes back from there
NAMED = 6  # edges in a message


@dataclass(frozen=True)
class CoupledResult:
    """What a run with couplings came to."""

    X: list[np.ndarray] = field(repr=False)  # (n_i,) each node's model
    multipliers: dict[tuple[int, int], np.ndarray] = field(repr=False)  # (m,) of an edge's rows:
    # at the optimum grad f_i + sub h_i + sum_j A_ij' multiplier_ij = 0 at every node
    objective: float  # prices between neighbours included
    violation: float  # how far couplings are from being met
    converged: bool
    message: str
    trace: Trace = field(repr=False)
    method: Method = field(repr=False)
    graph: Graph = field(repr=False)
    method_note: str = ""


def solve_coupled(
    problem: Problem,
    graph: Graph,
    between: Any,
    method: Any,
    rounds: int,
    seed: int,
    eta: Any,
    rho: Any,
    record_every: int | None,
    tol: float | None,
    faults: Faults | None,
    dtype: Any,
    progress: bool | None,
    callback: Callable[[Mapping[str, float]], Any] | None,
) -> CoupledResult:
    coupled, chosen, note = prepared(problem, graph, between, method, eta, rho)
    goal = CONVERGED if tol is None else tol
    if faults is not None:
        refuse_compression(faults)
        chosen = under_faults(chosen, faults, coupled, graph)
    with (
        jax.enable_x64(True),
        Progress(rounds, note or type(chosen).__name__, progress) as bar,
        deferred_interrupt() as stop,
    ):
        given = coupled, graph, chosen, int(seed), dtype
        executor = Simulator(*given) if faults is None else FaultyExecutor(*given, faults)
        run: Any = Trajectory(executor)
        run.start(executor.origin())
        block = executor.evaluation_block()
        rows, every = [], record_every or 10
        while True:
            row, report = look(run, coupled, block)
            rows.append([row[c] for c in COLUMNS])
            residual = row["residual"]
            bar.update(run.round, residual)
            enough = callback is not None and callback(row) is True
            first = rows[0][COLUMNS.index("violation")]
            lost = not np.isfinite(residual) or row["violation"] > RUNAWAY * max(first, 1)
            met = tol is not None and residual <= tol
            if run.round >= rounds or met or lost or stop.is_set() or enough:
                break
            run.advance(min(every, rounds - run.round))
        X = np.asarray(run.view()[0], np.float64)
        duals = np.asarray(report["duals"])
    trace = Trace(
        dict(zip(COLUMNS, np.array(rows).T, strict=True)),
        {"method": type(chosen).__name__, "method_note": note, "nodes": problem.nodes},
    )
    done = bool(residual <= goal)
    return CoupledResult(
        coupled.models(X),
        coupled.multipliers(duals),
        row["objective"],
        row["violation"],
        done,
        said(row, goal, lost, worst_edges(coupled, report)),
        trace,
        run.executor.method,
        graph,
        note,
    )


def prepared(
    problem: Problem, graph: Graph, between: Any, method: Any, eta: Any, rho: Any
) -> tuple[CoupledProblem, Method, str]:
    if not isinstance(problem, Problem):
        raise ProblemError(f"{problem!r} is no Problem: solve(problem, graph, ...) in this order")
    if not isinstance(graph, Graph):
        raise GraphError(f"{graph!r} is no Graph: use Graph.random(...) or Graph.from_edges(...)")
    if graph.nodes != problem.nodes:
        raise ProblemError(f"the graph has {graph.nodes} nodes, the problem {problem.nodes}")
    if problem.stream is not None or problem.intercept or problem.loss.outputs != 1:
        raise ProblemError(
            "couplings go with finite data, losses of one output and no intercept: add a column "
            "of ones instead"
        )
    coupled = CoupledProblem(problem, graph, Coupling() if between is None else between)
    note = ""
    if isinstance(method, str) and method == AUTO:
        note = f"{AUTO}: {CHOSEN}, because edges carry couplings"
        method = CHOSEN
    made = make(method, eta, rho)
    chosen = made.coupled(coupled.rows, coupled.has_data)
    if chosen is None:
        raise MethodError(
            f"{method if isinstance(method, str) else type(made).__name__} has no form for "
            "couplings: use pdmm, d-admm, pd, saga-pd, svr-pd-es or lsvr-pd"
        )
    return coupled, chosen, note


def refuse_compression(faults: Any) -> None:
    if isinstance(faults, Faults) and faults.compresses:
        raise MethodError("couplings do not take bits or keep: leave them out")


def look(run: Any, problem: CoupledProblem, block: Block) -> tuple[dict[str, float], Any]:
    """A row of the trace, and what the edges say."""
    executor = run.executor
    X = jnp.asarray(run.view()[0], jnp.float64)
    report = executor.edge_report(run.carry)
    present = executor.present_nodes()
    t = jnp.asarray(1 / executor.knowledge.curvatures.sample)[:, None]
    sums = measured(block, X, report, jnp.asarray(present), t)
    counts = run.counts()
    total = {k: float(v) for k, v in sums.items()}
    own = np.sqrt(total["own"]) / (1 + np.sqrt(total["pull"]))
    apart = np.sqrt(total["natural"]) / (1 + np.sqrt(total["size"]))
    row = dict.fromkeys(COLUMNS, float("nan")) | {
        "rounds": run.round,
        "oracle_calls": float(counts.oracle_calls.mean()),
        "vectors_sent": counts.messages,
        "bytes_sent": counts.messages * executor.message_bytes,
        "seconds": run.seconds,
        "residual": float(np.hypot(own, apart)),
        "objective": total["objective"] + total["price"],
        "violation": float(np.sqrt(total["violation"])),
        "function_values": 0.0,
    }
    return row, report


@jax.jit
def measured(p: Block, X: Any, report: Any, present: Any, t: Any) -> dict[str, Any]:
    G = p.full(X) + p.ridge(X)
    moved = p.penalty.prox(X - t * (G + report["pull"]), t)
    here = jnp.where(present, 1.0, 0.0)
    edges = {k: report[k].sum() for k in ("violation", "natural", "size", "price")}
    return edges | {
        "own": (here[:, None] * ((X - moved) / t) ** 2).sum(),
        "pull": (here[:, None] * report["pull"] ** 2).sum(),
        "objective": jnp.where(present, p.values(X) + p.penalty.value(X), 0).sum(),
    }


def worst_edges(problem: CoupledProblem, report: Any) -> str:
    missed = np.sqrt(np.asarray(report["missed"]))
    d = problem.graph.directed
    worst = [k for k in np.argsort(-missed) if missed[k] > 0 and d.owner[k] < d.other[k]]
    return ", ".join(f"({d.owner[k]}, {d.other[k]})" for k in worst[:NAMED])


def said(row: Mapping[str, float], goal: float, lost: bool, edges: str) -> str:
    rounds, residual = int(row["rounds"]), row["residual"]
    how = f"after {rounds} rounds, residual {residual:.2e}, violation {row['violation']:.2e}"
    if residual <= goal:
        return f"reached tol {how}"
    if lost:
        return f"diverged {how}: leave rho out, or give a shorter eta"
    if row["violation"] > np.sqrt(goal):
        return (
            f"not there {how}: the couplings at {edges} are not met; it may be that no point "
            "satisfies them together with the nodes' constraints, or that more rounds are needed"
        )
    return f"not there {how}, {goal:.0e} wanted: give more rounds"

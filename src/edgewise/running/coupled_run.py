"""A run where neighbours are coupled: the same loop and engines, other figures."""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.errors import DivergenceWarning
from edgewise.graph.graph import Graph
from edgewise.methods.contract import EdgeReport, Method
from edgewise.plotting.displays import result_html, shown
from edgewise.problem.block import Block
from edgewise.problem.coupled import CoupledProblem
from edgewise.problem.couplings import dense
from edgewise.problem.feasibility import conflict
from edgewise.running.ending import FEWEST, MANY_TIMES, rounded, slope
from edgewise.running.run import CONVERGED, Run
from edgewise.running.starting_point import coupled_duals, coupled_models
from edgewise.running.trace import COLUMNS, Trace

RUNAWAY = 1e12  # times what a run begins with, and at least one: no run comes back from there
BOTTOMLESS = 1e9  # times the first objective that one falls which does not end
MEASURED = ("rounds", "residual")
NAMED = 6  # edges in a message


@dataclass(frozen=True)
class CoupledResult:
    """What a run with couplings came to. Over MPI rank 0 has all models, the others their own."""

    X: list[np.ndarray] = field(repr=False)  # (n_i,) each node's model
    multipliers: dict[tuple[int, int], np.ndarray] = field(repr=False)  # (m,) of an edge's rows:
    # at the optimum grad f_i + sub h_i + sum_j A_ij' multiplier_ij = 0 at every node
    objective: float  # prices between neighbours included
    violation: float  # how far couplings are from being met
    converged: bool
    message: str
    trace: Trace = field(repr=False)
    method: Method = field(repr=False)
    apart: np.ndarray = field(repr=False)  # (T, V) a node's share of the violation, by row
    graph: Graph = field(repr=False)
    method_note: str = ""  # which method "auto" came to, and why; nothing where one was named

    @shown
    def _repr_html_(self) -> str:
        return result_html(self, "CoupledResult", "from its couplings being met")

    def plot(self, path: str | Path | None = None) -> Any:
        """The nodes on their graph, an edge the wider the larger its multipliers, and how the run
        went; saved where `path` says."""
        from edgewise.plotting.runs import plot_coupled

        return plot_coupled(self, path)


class CoupledRun(Run):
    """Measures couplings instead of agreement. `apart` is how far each node's are from being met,
    half of every edge's."""

    problem: CoupledProblem
    edges: EdgeReport  # as of the last row

    target: Any = None  # a CoupledReference

    def set_target(self, star: Any) -> None:
        self.target = star

    def starting_models(self, X0: Any) -> np.ndarray:
        if X0 is None:
            return self.executor.origin()
        own: np.ndarray = self.communicator.own(coupled_models(X0, self.problem, self.dtype))
        return own

    def starting_duals(self, duals: Any) -> np.ndarray | None:
        """(2E, m) of all directed edges."""
        self.first_duals = None if duals is None else coupled_duals(duals, self.problem)
        return self.first_duals

    def beside_the_data(self) -> list[np.ndarray]:
        rows = [r._replace(A=dense(r.A), B=dense(r.B)) for r in self.problem.edge_rows]
        leaves = [np.asarray(a) for a in jax.tree.leaves(rows)]
        return leaves if self.first_duals is None else [*leaves, self.first_duals]

    def measured(self) -> tuple[dict[str, Any], np.ndarray]:
        own = self.communicator.own
        X = jnp.asarray(self.view()[0], jnp.float64)
        self.edges = self.executor.edge_report(self.carry)
        t = jnp.asarray(1 / own(self.executor.knowledge.curvatures.sample))[:, None]
        here = jnp.asarray(own(self.present()))
        sums = self.communicator.total(
            node_sums(self.evaluator.block, X, self.edges.nodes, here, t)
        )
        total = {k: float(v) for k, v in sums.items()}
        objective = total["objective"] + total["price"]
        known = self.target is not None and bool(self.present().all())
        columns = {
            "residual": relative_residual(total),
            "objective": objective,
            "objective_gap": objective - self.target.objective if known else np.nan,
            "violation": np.sqrt(total["violation"]),
            "bregman": np.nan,
            "consensus": np.nan,
        }
        return columns, np.sqrt(np.asarray(self.edges.nodes["violation"]))

    def diverged(self) -> bool:
        first = self.rows[0][COLUMNS.index("violation")]
        far = self.last("violation") > RUNAWAY * max(first, 1)
        return bool(far or not np.isfinite(self.last("residual")))

    def every_edge(self, a: Any) -> np.ndarray:
        """(2E, ...) from numbers of the directed edges here."""
        own = np.asarray(a, np.float64)
        if not self.communicator.distributed:
            return own
        every = np.zeros((len(self.graph.directed.owner), *own.shape[1:]))
        every[self.executor.edges] = own
        return np.asarray(self.communicator.total({"edges": every})["edges"])

    def result(
        self, reason: str, tol: float | None, oracle_budget: float | None = None
    ) -> CoupledResult:
        goal = CONVERGED if tol is None else tol
        done = self.last("residual") <= goal
        X = np.asarray(self.view()[0], np.float64)
        X = self.communicator.gather_at_root(X)
        sizes = self.problem.sizes
        if len(X) < len(sizes):
            sizes = self.communicator.own(sizes)
        models = [x[:size] for x, size in zip(X, sizes, strict=True)]
        multipliers = self.problem.multipliers(self.every_edge(self.edges.duals))
        how = self.said(reason, goal, self.every_edge(self.edges.missed))
        if reason == "diverged" and self.is_root:
            warnings.warn(how, DivergenceWarning, stacklevel=4)
        return CoupledResult(
            X=models,
            multipliers=multipliers,
            objective=self.last("objective"),
            violation=self.last("violation"),
            converged=bool(done),
            message=how,
            trace=self.trace(),
            method=self.method,
            apart=np.array(self.apart),
            graph=self.graph,
            method_note=self.method_note,
        )

    def said(self, reason: str, goal: float, missed: np.ndarray) -> str:
        residual, violation = self.last("residual"), self.last("violation")
        how = f"after {self.round} rounds, residual {residual:.2e}, violation {violation:.2e}"
        if residual <= goal:
            return f"reached tol {how}"
        against = [] if violation <= goal else conflict(self.problem)
        if against:
            named = ", ".join(str(edge) for edge in against[:NAMED])
            more = f" and {len(against) - NAMED} more" if len(against) > NAMED else ""
            return (
                f"no answer {how}: no point satisfies the couplings at {named}{more} together with "
                "the nodes' bounds, as a linear programme shows: loosen one of them"
            )
        if self.falls_without_end():
            return (
                f"no answer {how}: the objective has fallen to {self.last('objective'):.1e} and "
                "nothing bounds it: add a penalty such as Box(...), or a Quadratic cost"
            )
        if reason == "diverged":
            return f"diverged {how}: leave rho out, or give a shorter eta"
        ended = {
            "budget": "oracle budget spent",
            "interrupted": "interrupted",
            "callback": "stopped by the callback",
        }.get(reason)
        if ended is not None:
            return f"{ended} {how}"
        if self.method.exactness == "no":
            return (
                f"not there {how}: its gradients are sampled and stay noisy, so that it ends near "
                "the optimum alone; use pdmm, or saga-pd"
            )
        if violation > np.sqrt(goal):
            return (
                f"not there {how}: the couplings at {self.worst(missed)} are not met; it may be "
                "that no point satisfies them together with the nodes' constraints, or that more "
                "rounds are needed"
            )
        return f"not there {how}, {goal:.0e} wanted: {self.more_rounds(goal)}"

    def more_rounds(self, goal: float) -> str:
        """As many again as the slope at the end asks for: most runs slow down."""
        rounds, residual = np.array(self.rows)[:, [COLUMNS.index(c) for c in MEASURED]].T
        falls = slope(rounds, residual)
        left = np.log(goal / residual[-1]) / falls if falls < 0 else np.inf
        if len(rounds) < FEWEST or not left <= MANY_TIMES * self.round:
            return "give more rounds"
        return (
            f"it still falls, tenfold in {rounded(-np.log(10) / falls)} rounds: about "
            f"{rounded(left)} more would do at that rate, twice as many are safe, "
            f"rounds={rounded(self.round + 2 * left)}"
        )

    def falls_without_end(self) -> bool:
        first, last = self.rows[0][COLUMNS.index("objective")], self.last("objective")
        return bool(last < first - BOTTOMLESS * (1 + abs(first)))

    def worst(self, missed: np.ndarray) -> str:
        d = self.graph.directed
        far = [k for k in np.argsort(-missed) if missed[k] > 0 and d.owner[k] < d.other[k]]
        return ", ".join(f"({d.owner[k]}, {d.other[k]})" for k in far[:NAMED])


def relative_residual(sums: dict[str, Any]) -> Any:
    """How far nodes are from where they would stay, and rows from duals and differences that fit
    together, each beside its own size; of nodes' sums."""
    return (sums["own"] + sums["natural"]) ** 0.5


@jax.jit
def node_sums(p: Block, X: Any, edges: Any, here: Any, t: Any) -> dict[str, Any]:
    """Over the nodes that are here and take part."""
    G = p.full(X) + p.ridge(X)
    slope = G + edges["pull"]
    moved = p.penalty.prox(X - t * slope, t)
    # a step too short for the digits of a large model would count as none: then it is the slope
    lost = jnp.abs(t * slope) <= jnp.finfo(X.dtype).eps * jnp.abs(X)
    own = jnp.where(lost, slope, (X - moved) / t)
    own = jnp.linalg.norm(own, axis=1) / (1 + jnp.linalg.norm(edges["pull"], axis=1))
    return {k: edges[k].sum() for k in ("violation", "natural", "price")} | {
        "own": jnp.where(here, own**2, 0).sum(),
        "objective": jnp.where(here, p.values(X) + p.penalty.value(X), 0).sum(),
    }

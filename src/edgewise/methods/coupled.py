"""The primal-dual methods where edges carry couplings or prices instead of equality."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from edgewise.backend.pytree import pytree
from edgewise.gradients.contract import Estimator
from edgewise.gradients.full import Full
from edgewise.gradients.memory import Calls
from edgewise.methods.contract import EdgeReport, Messages, MethodDefaults, Weights
from edgewise.methods.edge_matching import matched, open_window, watched
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.local_newton import constant_hessian, hessians, newton_argmin, takes_newton
from edgewise.methods.quadratic_prox import (
    no_quadratic_solver,
    quadratic_prox,
    quadratic_solver,
    takes_each,
)
from edgewise.methods.short_nodes import chosen, has_short, shortened, shortened_matrix
from edgewise.methods.steps import node_steps, positive
from edgewise.methods.subproblem import local_argmin, local_curvature
from edgewise.problem.block import Block, Links

AVERAGED = 0.8  # of a reflection, where weights are matched: whole ones did not settle
# Of first weights: matched ones stay within it where steps are of a linear model. An end that moves
# little a round because its step is short shows a stiffness that follows its weight, ever further.
STIFFNESS = 1e-2
COUNTED = 1 << 20  # a message's number is below this: exact in float32


class Edges(NamedTuple):
    """Of directed edges, as the node that owns them has them."""

    lam: Array  # (e, m) duals
    a: Array  # (e, m) A x - c/2
    rho: Array  # (e, m) weights that the last step was taken with; zero before the first
    seen: Array  # (e, 1) the number of the last message that was taken in
    k: Any = ()  # (e, m) how stiff this end is, row by row, where weights are matched
    window: Any = ()  # Window, where they are


class Local(NamedTuple):
    """What a node's own problem has of its edges, as long as their weights stay."""

    bend: Array  # (v, n) or (v, n, n) sum_j A_ij' rho_ij A_ij, or a diagonal above it
    top: Array  # (v, 1) its largest eigenvalue, or more
    least: Array  # (v, 1) its smallest, or less
    solver: Any  # QuadraticSolver, where steps are in its metric, else ()


class State(NamedTuple):
    X: Array  # (v, n)
    H: Array  # (v, n) the dual of the penalty, which the inner steps begin from
    taken: Array  # (v, 1) steps so far
    local: Local
    memory: Any
    edges: Edges
    hessian: Any = ()  # (v, n, n) of losses and costs, where it stays and steps are of it


@pytree("rows", "solves", "matches", "has_data", "most", "short")
class CoupledPrimalDual(MethodDefaults):
    """sum_i f_i(x_i) + h_i(x_i) + sum_ij phi_ij(A_ij x_i + A_ji x_j - c_ij), each x_i of its own.

    With a_i = A_ij x_i - c_ij/2 at the end i of an edge, lambda_i its dual and y_i = lambda_i +
    rho a_i, a round at node i is, edge by edge and then for x,

        l   = prox_{(rho/2) phi*}( (y_i + y_j) / 2 )         lambda_j, a_j as last heard
        z_i <- (1 - theta) z_i + theta (2 l - y_i)           where something new was heard
        x_i <- argmin_x  f_i + h_i + sum_j <z_i, A_ij x> + (rho/2) |A_ij x - c_ij/2|^2
        a_i <- A_ij x_i - c_ij/2,   lambda_i <- z_i + rho a_i            both are sent to j

    phi* is zero for a coupling "=" (l is the mean, and 2 l - y_i = y_j: PDMM), keeps duals of "<="
    from falling below zero (Heusdens, Zhang, arXiv 2309.12897: no slack variables), and within
    |l| <= w for a price w |d|. `solves`: the minimum itself, as PDMM and, with theta = 1/2, ADMM
    have it; else f_i's linear model with the step eta, as the paper has it. The edges' quadratic
    is kept: a matrix per node, factored once, or a diagonal where couplings are of coordinates.
    With A_ij = I = -A_ji, c = 0, theta = 1 it is the edge form of the consensus methods.

    A message carries its number, so that each is reflected once: what is lost leaves z as it was.
    Both lambda and a are sent, and not their sum, so that weights may change: rho "auto" matches
    them to the ends (`edge_matching`) and takes theta = 0.8; a number stays, and theta is 1.

    Not where models are simply equal and data plain: the consensus methods send half as much.
    """

    gradient: Estimator | None
    rows: int  # of the edge that has most
    solves: bool
    has_data: bool
    eta: Any = "auto"
    rho: Any = "auto"
    theta: Any = None
    matches: bool = True
    tol: Any = 0.1
    most: int = 200
    short: int = 0  # unknowns of nodes that have few, in a block with some of many (`short_nodes`)

    hears = ("each",)
    heals = True
    takes_penalty = True
    solves_subproblem = property(lambda self: self.solves)

    @property
    def tunes(self) -> tuple[str, ...]:
        return ("rho",) if self.solves else ("eta", "rho")

    def message_sizes(self, size: int, outputs: int) -> tuple[int, ...]:
        return (int(self.edge_numbers(self.rows)),)

    def edge_numbers(self, rows: Any) -> Any:
        """That a message along an edge with so many rows has."""
        return (3 if self.matches else 2) * rows + 1

    def prepare(self, k: Knowledge) -> tuple["CoupledPrimalDual", Weights]:
        gradient = Full() if self.gradient is None else self.gradient
        tuned = gradient.tuned(k.curvatures)
        eta = node_steps(self.eta, tuned, k)
        own = jax.tree.map(lambda a: a[k.own] if np.ndim(a) else a, tuned)
        matches = isinstance(self.rho, str) and self.rho == "auto"
        theta = (AVERAGED if matches else 1.0) if self.theta is None else self.theta
        ready = replace(
            self,
            gradient=None if self.gradient is None else own,
            eta=eta[k.own, None],
            rho=None,
            theta=float(theta),
            matches=matches,
            tol=float(positive("tol", self.tol, 1, "run")[0]),
        )
        return ready, {"rho": first_weights(self.rho, eta, self.solves, k)}

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        v, n = X.shape
        ends, owner = p.couplings, p.links.owner
        a = ends.apply(X, owner)
        none, zero = jnp.zeros_like(a), jnp.zeros((v, 1), X.dtype)
        lam = none if duals is None else duals
        edges = Edges(lam, a, none, jnp.zeros((len(a), 1), X.dtype))
        if self.matches:
            stiff = jnp.broadcast_to(p.links.rho[:, None], a.shape)
            edges = edges._replace(k=stiff, window=open_window(lam, a))
        matrix = self.in_matrix(p, n)
        bend = jnp.zeros((v, n, n) if matrix else (v, n), X.dtype)
        solver = no_quadratic_solver(X) if matrix else ()
        local = Local(bend, zero, zero, solver)
        memory = Full().init(p, X) if self.gradient is None else self.gradient.init(p, X)
        hessian: Any = ()
        if self.exact(p, n) and constant_hessian(p):
            hessian = hessians(p, X, jnp.ones(v, bool))
            memory = Calls(memory.calls + p.counts)
        state = State(X, jnp.zeros_like(X), zero, local, memory, edges, hessian)
        return state, (self.message(ends, owner, state),)

    def in_matrix(self, p: Block, size: int) -> bool:
        """Whether a step is in the metric of a matrix, and not of a diagonal."""
        of_costs = self.solves and not self.has_data
        return bool(p.couplings.kind == "dense" or of_costs or self.exact(p, size))

    def exact(self, p: Block, size: int) -> bool:
        """Whether a node with data finds its minimum by Newton's method."""
        return self.solves and self.has_data and takes_newton(p, size)

    def message(self, ends: Any, owner: Array, s: State) -> Array:
        """(e, 2m + 1) or (e, 3m + 1): duals, a with the sign of its end, so that a neighbour who
        is taken to be where the node is keeps the coupling; stiffness; the message's number."""
        e = s.edges
        number = jnp.mod(s.taken, COUNTED)[owner] + 1
        parts = [e.lam, ends.sign * e.a, *([e.k] if self.matches else []), number]
        return jnp.concatenate(parts, 1)

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        ends, links, e, m = p.couplings, p.links, s.edges, self.rows
        alive = links.rho[:, None] > 0
        heard = inbox[0]
        lam_j, a_j, number = heard[:, :m], -ends.sign * heard[:, m : 2 * m], heard[:, -1:]
        weights = links.rho[:, None] + jnp.zeros_like(e.a)
        if self.matches:
            # where there was no neighbour at the start, or there was no node, k is zero
            own, theirs = (jnp.where(k > 0, k, weights) for k in (e.k, heard[:, 2 * m : 3 * m]))
            weights = jnp.where(alive, jnp.sqrt(own * theirs), 0)
        y, y_j = e.lam + weights * e.a, lam_j + weights * a_j
        before = e.lam - weights * e.a
        dual = ends.nearest_dual(0.5 * (y + y_j), weights)
        new = before + self.theta * (2 * dual - y - before)
        z = jnp.where(alive, jnp.where(number != e.seen, new, before), 0)
        # a node without edges has no weights that change
        changed = (weights != e.rho).any() | (s.taken == 0).any()
        local = lax.cond(changed, lambda: self.local_problem(p, weights, s), lambda: s.local)
        U = ends.adjoint(weights * ends.half - z, links, s.X)
        X, H, memory = self.local_step(p, s, local, U, random_bits)
        a = ends.apply(X, links.owner)
        lam = z + weights * a
        edges = Edges(jnp.where(alive, lam, 0), a, weights, number)
        taken = s.taken + 1
        if self.matches:
            window = watched(e.window, edges.lam - e.lam, a - e.a)
            k, window = matched(
                window, edges.lam, a, weights, e.k, taken, links, ends.grouped, ends.real, alive
            )
            if not self.solves:
                first = links.rho[:, None]
                k = jnp.where(alive, jnp.clip(k, STIFFNESS * first, first / STIFFNESS), k)
            edges = edges._replace(k=k, window=window)
        state = State(X, H, taken, local, memory, edges, s.hessian)
        return state, (self.message(ends, links.owner, state),)

    # --- a node's own problem --------------------------------------------------------------------

    def local_problem(self, p: Block, weights: Array, s: State) -> Local:
        bend = p.couplings.bend(weights, p.links, s.X)
        if not self.in_matrix(p, s.X.shape[1]):
            top, least = (f(bend, axis=1, keepdims=True) for f in (jnp.max, jnp.min))
            return Local(bend, top, least, ())
        if bend.ndim == 2:
            bend = jax.vmap(jnp.diag)(bend)
        spread = jnp.linalg.eigvalsh(bend)
        solver = quadratic_solver(self.metric(p, bend, s), p.penalty, s.X)
        return Local(bend, spread[:, -1:], jnp.maximum(spread[:, :1], 0), solver)

    def metric(self, p: Block, bend: Array, s: State) -> Array:
        """(v, n, n) of a step: the edges', and that of the costs or 1/eta."""
        if self.solves and not self.has_data:
            own: Array = p.cost.Q
        elif len(s.hessian):
            own = s.hessian
        else:
            own = jnp.eye(bend.shape[1], dtype=bend.dtype) / self.eta[:, :, None]
        return bend + own

    def local_step(
        self, p: Block, s: State, local: Local, U: Array, random_bits: Array
    ) -> tuple[Array, Array, Any]:
        """(v, n) models, the penalty's dual, and the memory."""
        size = s.X.shape[1]
        if self.solves and self.has_data and not len(s.hessian):
            inner = self.eta, local.top, local.least, self.tol, self.most
            if self.exact(p, size):
                X, H, calls = newton_argmin(p, s.X, s.H, local.bend, U, *inner)
            else:
                X, H, calls = self.argmin_by_size(p, s, local.bend, U, inner)
            return X, H, Calls(s.memory.calls + calls)
        memory: Any
        if len(s.hessian):
            G, memory = p.full(s.X) + p.ridge(s.X), Calls(s.memory.calls + p.counts)
        elif self.gradient is None:
            G, memory = p.ridge(s.X), Calls(s.memory.calls + p.counts)
        else:
            G, memory = self.gradient(p, s.X, s.memory, random_bits)
        r = G + product(local.bend, s.X) - U
        if self.in_matrix(p, size):
            X, H = quadratic_prox(p.penalty, local.solver, s.X, r, s.H)
            return X, H, memory
        bound = local.bend if takes_each(p.penalty) else local.top
        gamma = 1 / (1 / self.eta + bound)
        return p.penalty.prox(s.X - gamma * r, gamma), s.H, memory

    def argmin_by_size(
        self, p: Block, s: State, bend: Array, U: Array, inner: tuple[Any, ...]
    ) -> tuple[Array, Array, Array]:
        """By gradient steps, but of nodes that have few unknowns by Newton's."""
        eta, top, least, tol, most = inner
        if not (self.short and has_short(p, self.short) and takes_newton(p, self.short)):
            X, calls = local_argmin(p, s.X, eta, bend, U, tol, most, top, least)
            return X, s.H, calls
        k = self.short
        part, short = shortened(p, k)
        few, Y, spent = newton_argmin(
            part,
            s.X[:, :k],
            s.H[:, :k],
            shortened_matrix(bend, k),
            U[:, :k],
            eta,
            top,
            least,
            tol,
            most,
            short,
        )
        X, calls = local_argmin(p, s.X, eta, bend, U, tol, most, top, least, ~short)
        return chosen(short, few, X), chosen(short, Y, s.H), calls + spent

    # --- what is said of a run -------------------------------------------------------------------

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        """Nothing that another run could begin from: see `edge_report`."""
        return jnp.zeros_like(s.X)

    def edge_report(self, p: Block, s: State, inbox: Messages) -> EdgeReport:
        ends, e, m, v = p.couplings, s.edges, self.rows, len(s.X)
        lam_j, a_j = inbox[0][:, :m], -ends.sign * inbox[0][:, m : 2 * m]
        alive = p.links.rho[:, None] > 0
        d = jnp.where(alive, e.a + a_j, 0)
        dual = jnp.where(alive, ends.nearest_dual(0.5 * (e.lam + lam_j), jnp.zeros_like(d)), 0)
        # One scale for all rows whose length counts, and not the method's: with weights of their
        # own they would pass where the dual does not point along the difference, and with large
        # ones any dual would. With this one it is, as both are beside their sizes, the way to the
        # nearest pair that fits together. Each is held against its own row: beside one in
        # thousands, one in thousandths that is not met would not show.
        size = 1 + ends.lengths(e.a) + ends.lengths(a_j)
        scale = (1 + ends.lengths(dual)) / size
        natural = (dual - ends.nearest_dual(dual + scale * d, 2 * scale)) / (scale * size)
        coupled = (ends.slack == 0) & (ends.high == jnp.inf)
        missed = jnp.where(coupled, jnp.where(ends.low < 0, d, jnp.maximum(d, 0)), 0)

        def at_nodes(each: Array) -> Array:
            return 0.5 * p.links.gather(each[:, None], v)[:, 0]

        price = jnp.where(alive[:, 0], ends.price(d), 0)
        nodes = {
            "pull": ends.adjoint(dual, p.links, s.X),
            "violation": at_nodes((missed**2).sum(1)),
            "natural": at_nodes((natural**2).sum(1)),
            "price": at_nodes(price),
        }
        return EdgeReport(nodes, dual, (missed**2).sum(1))


def product(bend: Array, X: Array) -> Array:
    if bend.ndim == 2:
        return bend * X
    made: Array = jnp.einsum("vij,vj->vi", bend, X, precision=lax.Precision.HIGHEST)
    return made


def first_weights(rho: Any, eta: np.ndarray, solves: bool, k: Knowledge) -> np.ndarray:
    """(m,) rho of the edges; "auto" is where matching begins: the geometric mean of what the two
    ends' curvatures suggest, over how far their matrices reach."""
    if not isinstance(rho, str):
        return positive("rho", rho, len(k.edges), "edge", k.network is not None)
    if rho == "theory":
        return np.ones(len(k.edges))
    stiff = local_curvature(k) if solves else 1 / eta
    i, j = k.edges.T
    reach = np.ones((len(k.edges), 2)) if k.reach is None else k.reach
    spread = np.sqrt(stiff / np.maximum(k.degrees, 1))
    return np.asarray(spread[i] * spread[j] / (reach[:, 0] * reach[:, 1]))

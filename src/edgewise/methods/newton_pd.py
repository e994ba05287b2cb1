"""A Newton step at every node and round, over edges whose weights are matrices."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError
from edgewise.gradients.full import Full
from edgewise.methods.contract import Messages, MethodDefaults, Weights
from edgewise.methods.curvature import (
    HEAD,
    Gap,
    body_size,
    first_gap,
    listen,
    next_gap,
    tell,
)
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.metric_prox import Solver, make_solver, newton_step, times
from edgewise.methods.steps import mixing_of, node_steps, positive
from edgewise.problem.block import Block, Links, match

LEVELS = 3  # times that Hessians are averaged with neighbours': as good as the network's mean
REFRESH = (5, 15, 40)  # rounds in which Hessians are taken anew, then 100, 200, 400, ...
REFRESH_FROM = 100
EDGE_FACTOR = (
    0.634  # over the root of the graph's gap: near the best of rings, grids, random graphs
)
INNER_TOL, INNER_MOST = 0.05, 200  # of a step with a penalty
ARMIJO, HALVINGS = 1e-4, 20  # of the damping
SHARED_JITTER = 1e-5  # part of a shared matrix's diagonal: it is rounded to float32
OWN_JITTER = 1e-9


class Memory(NamedTuple):
    calls: Array  # (v,) gradients, and Hessians, of samples
    evaluations: Array  # (v,) losses of samples
    bodies: Array  # (v,) matrices sent, over all edges


class State(NamedTuple):
    X: Array  # (v, n) models
    loss: Array  # (v,) mean losses there, ridge apart
    H: Array  # (v, n, n) Hessians as last taken, ridge included
    A: Array  # (v, n, n) averaged with those of neighbours, times the factor: what is told
    D: Array  # (v, n, n) sum_j P_ij as the solver has it
    solver: Solver  # of H + D
    Y: Array  # (v, n) a subgradient of the penalty
    gap: Gap
    rounds: Array  # (v,) steps so far
    level: Array  # (v,) how often A has been averaged
    version: Array  # (v,) of A
    renewed: Array  # (v,) whether H has been taken anew since the solver was made
    memory: Memory


@pytree()
class NewtonPD(MethodDefaults):
    """The paper's primal-dual round (`PrimalDual`) with matrices: node i's Hessian H_i in the place
    of 1/eta_i, and on each edge a matrix P_ij = P_ji in the place of rho_ij:

        x_i <- argmin_x <g_i, x> + |x - x_i|^2_{H_i} / 2 + h_i(x)
                        + sum_j ( |x - x_j|^2_{P_ij} / 2 + <lambda_ji, x> )
        lambda_ij <- -lambda_ji + P_ij (x_j - x_i)             (x_i new, x_j and lambda_ji old)

    g_i is a whole gradient. Nothing is to be tuned, and the units of the columns do not matter.

    The step is damped by halving it until the node's own problem, f_i in the place of its model,
    falls enough. P_ij = (A_i + A_j) / 2 / sqrt(d_i d_j): A_i begins as a factor times H_i and is
    averaged with the neighbours' three times, by Metropolis weights, which served as well as the
    network's mean. Hessians are taken anew in rounds 5, 15, 40, 100, 200, 400, ..., and by a node
    alone after a step that it had to damp. The factor is 0.634 / sqrt(gap), the gap of the graph
    being found on the way, by eight numbers that go with every message.

    x_i and lambda_ij are sent, and what was last heard of them is all that it holds of an edge, so
    that it heals. Where it rests, x_i = x_j even if the two ends of an edge have different P_ij:
    (P_ij + P_ji) (x_i - x_j) = 0. So matrices need no agreement, and a lost one costs time alone;
    a node that lacks one says so, and it is sent again.

    What is known: with fixed P_ij and exact minima this is PDMM, which converges; one Newton step
    instead of the minimum, and matrices that change, are measured and not proven.

    Not for many unknowns: a node keeps several n x n matrices, and one per neighbour. Counts a
    Hessian of a sample as one call.
    """

    factor: Any = "auto"
    eta: Any = "auto"  # of the prox that a run begins from, and nothing else

    hears = ("each", "each", "news")
    news_head = HEAD
    heals = True
    takes_penalty = True
    second_order = True
    tunes = ("factor",)
    gradient = None  # whole ones

    def message_sizes(self, size: int) -> tuple[int, ...]:
        return size, size, HEAD + body_size(size)

    def prepare(self, k: Knowledge) -> tuple["NewtonPD", Weights]:
        eta = node_steps(self.eta, Full(), k)[k.own]
        factor = 0.0  # by the graph's gap
        if not isinstance(self.factor, str):
            factor = float(positive("factor", self.factor, 1, "run")[0])
        elif self.factor != "auto":
            raise MethodError(f'NewtonPD(factor={self.factor!r}): give "auto" or a number')
        reach = np.sqrt(np.maximum(k.degrees, 1))
        i, j = k.edges.T if len(k.edges) else np.zeros((2, 0), int)
        weights = {
            "rho": k.edge_weights / (reach[i] * reach[j]),
            "mixing": mixing_of("NewtonPD", "metropolis", k),
        }
        return replace(self, eta=eta[:, None], factor=factor), weights

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        """duals: (e, n), one per directed edge."""
        if not p.loss.linear:
            raise MethodError(
                "newton-pd needs Hessians, and has those of losses of margins alone: use saga-pd, "
                "or a local training method, for a custom loss"
            )
        v, n = X.shape
        everyone, zeros = jnp.ones(v, bool), jnp.zeros((v, n, n), X.dtype)
        H = own_hessians(p, zeros, X, everyone)
        gap, count = first_gap(p.ids, X.dtype), jnp.zeros(v, jnp.int32)
        A = shared(self.factors(gap) * H)
        memory = Memory(0 * p.counts + p.counts, 0 * p.counts + p.counts, sent_to(p.links, v))
        loss = p.mean_losses(X, everyone)
        solver = Solver(zeros, jnp.zeros_like(X))
        version, lacking = count + 1, jnp.zeros(v, bool)
        s = State(
            *(X, loss, H, A, zeros, solver, jnp.zeros_like(X), gap),
            *(count, count, version, everyone & False, memory),
        )
        own = X[p.links.owner]
        news = tell(everyone, version, lacking, gap.probes, A)
        return s, (own, jnp.zeros_like(own) if duals is None else duals, news)

    def factors(self, gap: Gap) -> Array:
        """(v, 1, 1) of the matrices on edges."""
        auto = EDGE_FACTOR / jnp.sqrt(gap.estimate)
        return match(jnp.where(self.factor > 0, self.factor, auto), jnp.zeros((1, 1, 1)))

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        v, n = s.X.shape
        theirs, heard_duals, news = inbox
        heard = listen(news, n, s.X.dtype)
        owner = p.links.owner
        rho = jnp.where(heard.known, p.links.rho, 0)

        def over_edges(own: Array, u: Array) -> Array:
            """(e, n) P_ij u, from A_i u at the edge's owner."""
            return 0.5 * rho[:, None] * (own + times(heard.matrices, u))

        # the metric; only where something changed is there much to do
        total = p.links.gather(rho[:, None], v)[..., None]
        D = total * s.A + 0.5 * pulled(p.links, rho, s.A, heard.matrices)
        changed = jnp.any(D != s.D, (1, 2)) | (s.rounds == 0) | s.renewed
        solver = lax.cond(changed.any(), lambda: make_solver(s.H + D, p.penalty), lambda: s.solver)

        # the step
        between = theirs - s.X[owner]
        pull = over_edges(times(s.A[owner], between), between)
        linear = p.links.gather(heard_duals - pull, v)
        G = p.full(s.X)
        r = G + p.ridge(s.X) + linear
        target, Y = newton_step(p.penalty, solver, s.X, r, s.Y, INNER_TOL, INNER_MOST)
        alone = p.links.gather(jnp.ones_like(rho)[:, None], v)[:, 0] == 0
        waiting = ~alone & (total[:, 0, 0] == 0)
        target = jnp.where(waiting[:, None], s.X, target)
        length, loss, tried = damped(p, s, D, r, G, target)
        X = jnp.where(length[:, None] == 1, target, s.X + length[:, None] * (target - s.X))
        moved = X - s.X
        duals = pull - heard_duals - over_edges(times(s.A, moved)[owner], moved[owner])

        # what is told of curvature
        rounds = s.rounds + 1
        many = p.links.gather(heard.present[:, None].astype(X.dtype), v)[:, 0]
        gap = next_gap(s.gap, p.links.gather(heard.probes, v), many, rounds)
        due = due_in(rounds)
        renewed = due | (length < 1)
        H = own_hessians(p, s.H, X, renewed)
        mixing = jnp.where(heard.known, p.links.mixing, 0)
        averaged = s.A + pulled(p.links, mixing, s.A, heard.matrices)
        rising = ~due & (s.level < LEVELS)
        A = jnp.where(match(rising, s.A), shared(averaged), s.A)
        A = jnp.where(match(due, s.A), shared(self.factors(gap) * H), A)
        fresh = due | rising
        lacking = any_edge(p.links, heard.stale, v)
        again = any_edge(p.links, heard.missing, v) & ~fresh & (rounds % 2 == 0)
        version = s.version + fresh
        memory = Memory(
            s.memory.calls + p.counts + jnp.where(renewed, p.counts, 0),
            s.memory.evaluations + tried * p.counts,
            s.memory.bodies + jnp.where(fresh | again, sent_to(p.links, v), 0),
        )
        level = jnp.where(due, 0, jnp.minimum(s.level + 1, LEVELS))
        new = State(X, loss, H, A, D, solver, Y, gap, rounds, level, version, renewed, memory)
        return new, (X[owner], duals, tell(fresh | again, version, lacking, gap.probes, A))

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        """(v, n) sum_j (lambda_ij - lambda_ji) / 2, as in PrimalDual."""
        return 0.5 * links.gather(outbox[1] - inbox[1], len(s.X))


def own_hessians(p: Block, H: Array, X: Array, due: Array) -> Array:
    """(v, n, n) anew at the nodes that are due, ridge and a little more included."""
    made = p.hessians(H, X, due)
    ridge = p.ridge(jnp.ones_like(X))
    diagonal = jnp.diagonal(made, axis1=1, axis2=2) + ridge
    diagonal = jnp.where(diagonal > 0, OWN_JITTER * diagonal, 1)  # a column that says nothing
    more = (ridge + diagonal)[:, :, None] * jnp.eye(X.shape[1], dtype=X.dtype)
    return jnp.where(match(due, H), made + more, H)


def shared(A: Array) -> Array:
    """As neighbours will have it: float32, and still positive definite."""
    n = A.shape[1]
    more = SHARED_JITTER * jnp.diagonal(A, axis1=1, axis2=2)[:, :, None] * jnp.eye(n)
    return (A + more).astype(jnp.float32).astype(A.dtype)


def pulled(links: Links, weight: Array, own: Array, heard: Array) -> Array:
    """(v, n, n) sum_j w_ij (A_j - A_i)."""
    total = links.gather(weight[:, None], len(own))[..., None]
    made: Array = links.gather(weight[:, None, None] * heard, len(own)) - total * own
    return made


def sent_to(links: Links, nodes: int) -> Array:
    """(v,) how many neighbours there are."""
    return links.gather((links.rho > 0)[:, None].astype(jnp.int64), nodes)[:, 0]


def any_edge(links: Links, which: Array, nodes: int) -> Array:
    return links.gather((which & (links.rho > 0))[:, None].astype(jnp.int32), nodes)[:, 0] > 0


def due_in(rounds: Array) -> Array:
    """Whether Hessians are taken anew after so many rounds."""
    early = jnp.isin(rounds, jnp.array(REFRESH))
    times_over = rounds // REFRESH_FROM
    power = (times_over > 0) & (times_over & (times_over - 1) == 0)
    return early | (power & (rounds % REFRESH_FROM == 0))


def damped(
    p: Block, s: State, D: Array, r: Array, G: Array, target: Array
) -> tuple[Array, Array, Array]:
    """(v,) the part of the way to the target that each node goes, its mean loss there, and how many
    losses a sample were asked for. r: the gradient of the node's own problem

        f_i(x) + h_i(x) + sum_j ( |x - x_j|^2_{P_ij} / 2 + <lambda_ji, x> ),    f_i with its ridge,

    at X, G that of the losses alone. The penalty is bounded by convexity between the two points."""
    way = target - s.X
    climb = (r * way).sum(1)
    rise = p.penalty.value(target) - p.penalty.value(s.X)
    rise = jnp.where(jnp.isfinite(rise), rise, 0)
    straight = ((r - G) * way).sum(1) + rise
    curved = 0.5 * ((times(D, way) + p.ridge(way)) * way).sum(1)
    slack = 64 * jnp.finfo(s.X.dtype).eps * (1 + jnp.abs(s.loss))

    def busy(carry: Any) -> Array:
        _, _, left, _ = carry
        return left.any()

    def halve(carry: Any) -> Any:
        length, loss, left, tried = carry
        there = p.mean_losses(s.X + length[:, None] * way, left)
        change = there - s.loss + length * straight + length**2 * curved
        falls = change <= ARMIJO * length * (climb + rise) + slack
        end = tried + left > HALVINGS
        loss = jnp.where(left & falls, there, loss)
        length = jnp.where(left & ~falls, jnp.where(end, 0, length / 2), length)
        return length, loss, left & ~falls & ~end, tried + left

    v = len(s.X)
    start = (jnp.ones(v, s.X.dtype), s.loss, jnp.ones(v, bool), jnp.zeros(v, jnp.int64))
    length, loss, _, tried = lax.while_loop(busy, halve, start)
    return length, loss, tried

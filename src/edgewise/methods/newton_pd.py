"""A Newton step at every node and round, over edges whose weights are matrices."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.branch import only_if
from edgewise.backend.no_inline import no_inline
from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError
from edgewise.gradients.full import Full
from edgewise.methods.class_blocks import ClassBlocks, block_shape, times
from edgewise.methods.contract import Messages, MethodDefaults, Weights
from edgewise.methods.curvature import (
    HEAD,
    MOST_REFRESHES,
    REFRESH,
    Heard,
    average,
    body_size,
    carried,
    listen,
    pack,
    scheduled,
    shared,
    tell,
    unpack,
    with_ridge,
)
from edgewise.methods.damping import damped
from edgewise.methods.edge_factor import (
    Balance,
    Gap,
    balanced,
    first_balance,
    first_gap,
    next_gap,
    watched,
)
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.lazy_gradient import STALE, Anchor, first_anchor, gradients
from edgewise.methods.metric_prox import Solver, make_solver, newton_step, no_solver
from edgewise.methods.steps import mixing_of, node_steps, positive
from edgewise.problem.block import Block, Links, match

LEVELS = 3  # times that Hessians are averaged with neighbours': as good as the network's mean
EDGE_FACTOR = 1.8  # over the root of the graph's gap: near the best of rings, grids, random graphs
RELAXATION = 0.8  # part of the new in what is sent: 1 is PDMM, which may swap for ever
SECANTS = 0.05  # part of a secant's curvature that a sample has at least, where a loss is straight
INNER_TOL, INNER_MOST = 0.01, 1000  # of a step with a penalty


class Memory(NamedTuple):
    calls: Array  # (v,) gradients, and Hessians, of samples
    evaluations: Array  # (v,) losses of samples
    bodies: Array  # (v,) matrices sent, over all edges


class Edges(NamedTuple):
    """What a node holds of its edges."""

    duals: Array  # (e, n) lambda_ij as last sent
    matrices: Array  # (e, b, f, f) A_j, in blocks: see class_blocks
    versions: Array  # (e,) of these; 0: none yet
    said: Array  # (e,) a sum of what was last heard, to know something new by


class State(NamedTuple):
    X: Array  # (v, n) models
    sent: Array  # (v, n) as neighbours are told: averaged over rounds
    loss: Array  # (v,) mean losses there, ridge apart
    anchor: Anchor  # of its gradients
    H: Array  # (v, b, f, f) Hessians as last taken, ridge apart
    body: Array  # (v, .) what is told: H averaged with those of neighbours, times the factor
    level: Array  # (v,) how often that has been averaged
    A: Array  # (v, b, f, f) the same as the edges have it, once it has been averaged
    version: Array  # (v,) of that; 0: none yet
    D: Array  # (v, b, f, f) sum_j P_ij
    total: Array  # (v, 1) of the weights in that
    solver: Solver  # of H + D
    Y: Array  # (v, n) a subgradient of the penalty
    gap: Gap
    balance: Balance
    rounds: Array  # (v,) steps so far
    epoch: Array  # (v,) refreshes that it knows of
    renewed: Array  # (v,) whether H has been taken anew since the solver was made
    edges: Edges
    memory: Memory


@pytree()
class NewtonPD(MethodDefaults):
    """The paper's primal-dual round (`PrimalDual`) with matrices: node i's Hessian H_i in the place
    of 1/eta_i, and on each edge a matrix P_ij = P_ji in the place of rho_ij. With y_i what node i
    last said of its model,

        x_i <- argmin_x <g_i, x> + |x - x_i|^2_{H_i} / 2 + h_i(x)
                        + sum_j ( |x - y_j|^2_{P_ij} / 2 + <lambda_ji, x> )
        lambda_ij <- 0.2 lambda_ij + 0.8 ( -lambda_ji + P_ij (y_j - x_i) )
        y_i <- 0.2 y_i + 0.8 x_i                        (x_i new, what was heard of j old)

    g_i is the gradient, or what the last whole one and H_i say of it, for as long as that is good
    enough (`lazy_gradient`): a pass over the data every few rounds. Nothing is to be tuned, and the
    units of the columns do not matter.

    The step is damped by halving it until the node's own problem, f_i in the place of its model,
    falls enough. P_ij = (A_i + A_j) / 2 / sqrt(d_i d_j): A_i is a factor times H_i, with the ridge
    of the penalty if it has one, averaged with the neighbours' three times by Metropolis weights,
    which served as well as the network's mean.
    Hessians are taken anew in rounds 5, 12, 30, 65, 100, 150, 225, ... of whoever comes to one
    first, where they tell the gradients badly, and by a node alone where they do so very badly, or
    after a step that it had to damp. The factor is 1.8 / sqrt(gap): the gap of the graph is found
    on the way, by eight numbers that go with every message. At a refresh it grows or shrinks with
    the fourth root of how far neighbours are apart against how far they moved, and a coordinate
    that the penalty holds while they stay elsewhere has a larger one (`Balance`).

    y_i and lambda_ij are sent, and what was last heard of them is all that enters, so that it
    heals. Where it rests, x_i = x_j even if the two ends of an edge have different P_ij:
    (P_ij + P_ji) (x_i - x_j) = 0. So matrices need no agreement, and a lost one costs time alone;
    a node that lacks one says so, and it is sent again.

    What is known (docs/theory.md): where it rests is a solution. With fixed P_ij and exact minima
    this is PDMM, averaged, which converges; one Newton step instead of the minimum, and matrices
    that change, are measured and not proven.

    Not for many unknowns: a node keeps several n x n matrices, and one per neighbour. A Hessian of
    a sample counts as one call.
    """

    factor: Any = 1.0  # times what the rule gives
    eta: Any = "auto"  # of the prox that a run begins from: nobody's to choose

    hears = ("each", "each", "news")
    news_head = HEAD
    heals = True
    takes_penalty = True
    second_order = True
    tunes = ("factor",)
    gradient = None  # whole ones

    def message_sizes(self, size: int, outputs: int) -> tuple[int, ...]:
        return size, size, HEAD + body_size(size, outputs)

    def prepare(self, k: Knowledge) -> tuple["NewtonPD", Weights]:
        if not (isinstance(self.eta, str) and self.eta == "auto"):
            raise MethodError("NewtonPD has no step: leave eta out; factor scales its edges")
        eta = node_steps(self.eta, Full(), k)[k.own]
        factor = float(positive("factor", self.factor, 1, "run")[0])
        reach = np.sqrt(np.maximum(k.degrees, 1))
        i, j = k.edges.T if len(k.edges) else np.zeros((2, 0), int)
        weights = {
            "rho": k.edge_weights / (reach[i] * reach[j]),
            "mixing": mixing_of("NewtonPD", "metropolis", k),
        }
        return replace(self, eta=eta[:, None], factor=factor), weights

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        """duals: (e, n), one per directed edge."""
        v, e, blocks = len(X), len(p.links.owner), ClassBlocks.of(p)
        b, f = block_shape(X.shape[1], blocks.outputs)
        everyone, zeros = jnp.ones(v, bool), jnp.zeros((v, b, f, f), X.dtype)
        none, count = jnp.zeros(v, X.dtype), jnp.zeros(v, jnp.int32)
        H = p.hessians(zeros, X, everyone, SECANTS)
        gap, balance = first_gap(p.ids, X.dtype), first_balance(X)
        body = pack(count + 1, shared(self.told(p, H, X, gap, balance), blocks))
        own = X[p.links.owner]
        duals = jnp.zeros_like(own) if duals is None else duals
        nothing = jnp.zeros(e, jnp.float32), jnp.zeros(e, X.dtype)
        edges = Edges(duals, jnp.zeros((e, b, f, f), X.dtype), *nothing)
        asked = 0 * p.counts + p.counts  # an array of its own: carries are donated
        s = State(
            X=X, sent=X, loss=p.mean_losses(X, everyone), anchor=first_anchor(X),
            H=H, body=body, level=count,
            A=zeros, version=0 * body[:, 0], D=zeros, total=none[:, None],
            solver=no_solver(X, blocks), Y=jnp.zeros_like(X), gap=gap, balance=balance,
            rounds=count, epoch=count, renewed=everyone, edges=edges,
            memory=Memory(asked, asked, p.links.degrees(v)),
        )  # fmt: skip
        return s, (own, duals, tell(everyone, count, ~everyone, count, gap.probes, body))

    def told(self, p: Block, H: Array, X: Array, gap: Gap, balance: Balance) -> Array:
        """(v, b, f, f) what a node tells of its Hessian, before that is averaged."""
        factor = self.factor * balance.gain * EDGE_FACTOR / jnp.sqrt(gap.estimate)
        bend = p.penalty.ridge(X)  # a prox needs no model of it, but neighbours do
        blocks = ClassBlocks.of(p)
        A = match(factor, H) * blocks.with_diagonal(with_ridge(p, H, X), bend)
        return blocks.scaled(A, jnp.sqrt(balance.tilt))

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        v, owner, blocks = len(s.X), p.links.owner, ClassBlocks.of(p)
        theirs, heard_duals, news = inbox
        heard = listen(news, LEVELS, s.X.dtype)
        alike = ~heard.stale & (heard.version > 0) & (heard.epoch == s.epoch[owner])
        s, known = self.metric(p, s, heard)
        rho = jnp.where(s.edges.versions > 0, p.links.rho, 0)[:, None]

        def over_edges(own: Array, z: Array) -> Array:
            """(e, n) P_ij u, from A_i u at the edge's owner and z, u in blocks."""
            return 0.5 * rho * blocks.join(own + times(s.edges.matrices, z))

        between = theirs - s.X[owner]
        parts = blocks.split(between)
        pull = over_edges(p.links.times_own(s.A, parts), parts)
        anchor, G, taken, poor = gradients(p, s.anchor, s.X, s.H, s.D, s.solver, known)
        r = G + p.ridge(s.X) + p.links.gather(heard_duals - pull, v)
        target, Y, step = newton_step(
            p.penalty, s.solver, s.X, r, s.Y, INNER_TOL, INNER_MOST, blocks
        )
        target = jnp.where(known[:, None], target, s.X)
        length, loss, tried = damped(p, s.X, s.loss, s.D, r, G, target)
        damp = (length < 1) & (p.counts > 0)
        # with a step that was refused the next gradient is a whole one, wherever it points
        anchor = anchor._replace(
            step=jnp.where(known, length * step, 0), error=jnp.where(damp, 1, anchor.error)
        )
        part = length[:, None]
        X = jnp.where(part == 1, target, s.X + part * (target - s.X))
        X = jnp.where(part > 0, X, s.X)  # also where matrices of neighbours give no target at all
        Y = jnp.where(jnp.isfinite(Y).all(1, keepdims=True), Y, s.Y)
        moved = X - s.X
        parts = blocks.split(moved)
        duals = pull - heard_duals - over_edges(times(s.A, parts)[owner], parts[owner])
        duals = RELAXATION * duals + (1 - RELAXATION) * s.edges.duals
        sent = RELAXATION * X + (1 - RELAXATION) * s.sent
        duals = jnp.where(known[owner][:, None], duals, s.edges.duals)

        rounds = s.rounds + 1
        there = jnp.where(p.links.rho > 0, heard.epoch, 0)
        there = jnp.clip(there, 0, len(REFRESH) + MOST_REFRESHES).astype(jnp.int32)
        newest = jnp.zeros(v, jnp.int32).at[owner].max(there, mode="drop")
        epoch = jnp.maximum(jnp.maximum(s.epoch, newest), scheduled(rounds))
        due = epoch > s.epoch
        anew = (due & (anchor.error > STALE)) | damp | poor
        H = only_if(anew.any(), lambda H: p.hessians(H, X, anew, SECANTS), s.H)
        many = p.links.gather(heard.present[:, None].astype(X.dtype), v)[:, 0]
        gap = next_gap(s.gap, p.links.gather(heard.probes, v), many, rounds)
        said = (theirs + heard_duals).sum(1)
        new = (said != s.edges.said).astype(X.dtype)[:, None]
        apart = p.links.gather(new * (between * pull).sum(1)[:, None], v)[:, 0]
        heard_of = p.links.gather(new * rho, v) / jnp.where(s.total > 0, s.total, 1)
        way = heard_of[:, 0] * (moved * blocks.times(s.D, moved)).sum(1)
        far = p.links.gather(new * between**2, v)
        balance = balanced(watched(s.balance, apart, far, moved, way), far, due, epoch > 1)

        fit = p.links.gather(jnp.where(alike, p.links.mixing, 0)[:, None], v)
        most = (2 * fit >= p.links.gather(p.links.mixing[:, None], v))[:, 0]
        rising = ~due & (s.level < LEVELS) & (most | (rounds % 4 == 0))
        fresh = due | rising
        version = s.body[:, 0] + fresh

        def told_anew(_: Array) -> Array:
            begun = carried(self.told(p, H, X, gap, balance), s.A)
            own = jnp.where(match(due, H), begun, average(p, s.body, heard, alike, s.A))
            return jnp.where(fresh[:, None], pack(version, shared(own, blocks)), s.body)

        body = only_if(fresh.any(), told_anew, s.body)
        again = p.links.any_of(heard.missing, v) & ~fresh & (rounds % 2 == 0)
        memory = Memory(
            s.memory.calls + (taken.astype(int) + anew) * p.counts,
            s.memory.evaluations + tried * p.counts,
            s.memory.bodies + jnp.where(fresh | again, p.links.degrees(v), 0),
        )
        level = jnp.where(due, 0, s.level + rising)
        s = s._replace(
            X=X, sent=sent, loss=loss, anchor=anchor, H=H, body=body, level=level, Y=Y, gap=gap,
            balance=balance, rounds=rounds, epoch=epoch, renewed=anew, memory=memory,
            edges=s.edges._replace(duals=duals, said=said),
        )  # fmt: skip
        lacking = p.links.any_of(heard.stale, v)
        return s, (sent[owner], duals, tell(fresh | again, level, lacking, epoch, gap.probes, body))

    def metric(self, p: Block, s: State, heard: Heard) -> tuple[State, Array]:
        """The state with the matrices that have come, and (v,) whose edges have matrices, so that
        it can move. A matrix counts once it has been averaged: before, two nodes with few samples
        have next to none of some directions between them."""
        v, blocks = len(s.X), ClassBlocks.of(p)
        shape = block_shape(s.X.shape[1], blocks.outputs)
        adopt = heard.whole & (heard.version != s.edges.versions)
        versions = jnp.where(adopt, heard.version, s.edges.versions)
        settle = (s.level >= LEVELS) & (s.body[:, 0] != s.version)
        rho = jnp.where(versions > 0, p.links.rho, 0)
        total = p.links.gather(rho[:, None], v)  # it also tells that neighbours have come or gone
        changed = p.links.any_of(adopt, v) | settle | (total != s.total)[:, 0]

        def work(carry: Any) -> Any:
            A, _, matrices = carry
            own, came = unpack(s.body, shape, s.X.dtype), unpack(heard.news, shape, s.X.dtype)
            matrices = jnp.where(match(adopt, came), came, matrices)
            A = jnp.where(match(settle, own), own, A)
            D = 0.5 * (
                match(total[:, 0], A) * A + p.links.gather(match(rho, matrices) * matrices, v)
            )
            return A, D, matrices

        A, D, matrices = only_if(changed.any(), work, (s.A, s.D, s.edges.matrices))
        solver = only_if(
            (changed | s.renewed).any(),
            lambda _: make_solver(with_ridge(p, added(s.H, D), s.X), p.penalty, blocks, s.X),
            s.solver,
        )
        version = jnp.where(settle, s.body[:, 0], s.version)
        alone = p.links.degrees(v) == 0
        known = alone | ((total[:, 0] > 0) & (version > 0))
        edges = s.edges._replace(matrices=matrices, versions=versions)
        s = s._replace(A=A, version=version, D=D, total=total, solver=solver, edges=edges)
        return s, known

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        """(v, n) sum_j (lambda_ij - lambda_ji) / 2, as in PrimalDual."""
        return 0.5 * links.gather(outbox[1] - inbox[1], len(s.X))


@no_inline  # or a factorisation's layout goes up to them, and both are laid out anew every round
def added(H: Array, D: Array) -> Array:
    return H + D

"""What a block of v nodes knows, and what its gradient estimators may ask.

Every array leads with one of four axes, or is a scalar: nodes (v), samples (N, sorted by node),
directed edges (e, sorted by the node that owns them), or models. A block is an argument of jit,
never captured: data in a closure would become a compile-time constant.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from edgewise.problem.contract import Loss
from edgewise.problem.passes import SampleChunk, fold
from edgewise.problem.passes import match as match
from edgewise.problem.rows import Rows
from edgewise.problem.stacked_penalties import StackedPenalties


class Links(NamedTuple):
    """The directed edges that leave the block's nodes, in the order of their owners."""

    owner: Any  # (e,) row of the block that owns the edge
    rho: Any  # (e,) dual weight, the same at both ends, or None
    mixing: Any  # (e,) mixing weight, or None where no method needs one
    total: Any  # (v, 1) sum of rho over a node's edges, or None
    slots: Any  # (v, d) the node's edges, padded with e; None where degrees are too uneven for that
    rows: Any = None  # weights (v, d) by slots, by kind, where they have been made ready
    radius: Any = None  # (e,) how hard it may pull at most, or None where no method bounds that
    intercept: Any = None  # (e,) how many times rho an intercept gets; None: it is as the others

    def ready(self, kinds: tuple[str, ...]) -> "Links":
        """With rows of weights, for many rounds: a GPU would lay them out anew in each."""
        pulls = [k for k in kinds if k in ("rho", "mixing") and self.slots is not None]
        return self._replace(rows={k: self.row(k) for k in pulls})

    def row(self, kind: str) -> Array:
        """(v, d) weights of a node's edges, zero where it has fewer."""
        if self.rows is not None and kind in self.rows:
            return self.rows[kind]
        weight: Array = getattr(self, kind)
        return weight.at[self.slots].get(mode="fill", fill_value=0)

    def gather(self, messages: Array, nodes: int) -> Array:
        """(e, n) messages, one per edge -> (v, n) their sum at each node."""
        if self.slots is None:
            return jax.ops.segment_sum(messages, self.owner, nodes, indices_are_sorted=True)
        return sum_slots(self.slots, messages)

    def degrees(self, nodes: int) -> Array:
        """(v,) how many neighbours a node has."""
        return self.gather((self.rho > 0)[:, None].astype(jnp.int64), nodes)[:, 0]

    def any_of(self, which: Array, nodes: int) -> Array:
        """(v,) whether any edge of the node is one of these (e,)."""
        return self.gather((which & (self.rho > 0))[:, None].astype(jnp.int32), nodes)[:, 0] > 0

    def times_own(self, A: Array, u: Array) -> Array:
        """(e, b, f) A_i u_ij, from (v, b, f, f) symmetric blocks of the owners and (e, b, f)."""
        if self.slots is None:
            return jnp.einsum("ebij,ebi->ebj", A[self.owner], u, precision=lax.Precision.HIGHEST)
        (v, d), (b, f) = self.slots.shape, u.shape[1:]
        rows = u.at[self.slots].get(mode="fill", fill_value=0)  # a copy of A per edge is spared
        rows = rows.swapaxes(1, 2).reshape(v * b, d, f)  # one axis before the matrices, or a copy
        flat = A.reshape(v * b, f, f)
        made = jnp.einsum("vij,vdi->vdj", flat, rows, precision=lax.Precision.HIGHEST)
        place = jnp.arange(len(u)) - jnp.searchsorted(self.owner, self.owner)
        return made.reshape(v, b, d, f)[self.owner, :, place]

    def pull(self, kind: str, own: Array, heard: Array) -> Array:
        """sum_j w_ij (x_j - x_i) from the (e, n) vectors heard: zero at consensus, exactly."""
        weight = getattr(self, kind)[:, None]
        return self.gather(weight * (heard - own[self.owner]), own.shape[0])


def sum_slots(slots: Array, messages: Array) -> Array:
    total = messages.at[slots[:, 0]].get(mode="fill", fill_value=0)
    for s in range(1, slots.shape[1]):
        total = total + messages.at[slots[:, s]].get(mode="fill", fill_value=0)
    return total


class Pick(NamedTuple):
    """Samples drawn without replacement, b at each node."""

    at: Array  # (v, b) global sample; beyond a node's own size the first pick again
    share: Array  # (v, b) 1 / batch, zero beyond a node's own size
    batch: Array  # (v,) min(b, K_i); zero at nodes that are not active
    rows: Any  # their features


class Block(NamedTuple):
    ids: Any  # (v,) node ids, which the random bits depend on
    first: Any  # (v,) a node's first sample
    counts: Any  # (v,) K_i
    rows: Rows | Any
    labels: Any  # (N,)
    scale: Any  # (N,) weight of a sample's loss, or None: all one
    loss: Loss
    penalty: StackedPenalties
    mask: Any  # (n,) one where ridge applies, or None: everywhere
    links: Any  # Links, or None where nobody speaks
    active: Any = None  # (v,) nodes that ask for gradients, the others for nothing; None: all do
    cost: Any = None  # Costs that take no data, or None
    couplings: Any = None  # EdgeEnds: what holds between neighbours; None: their models are equal
    offset: Any = None  # (N,) what is added to a sample's margin, known ahead, or None: nothing

    # --- edges -----------------------------------------------------------------------------------

    def edge_weights(self) -> Array:
        """(e, 1) rho of the edges; (e, n) where an intercept has another."""
        rho: Array = self.links.rho[:, None]
        if self.links.intercept is None or self.mask is None:
            return rho
        return rho * jnp.where(self.mask > 0, 1, self.links.intercept[:, None])

    def edge_totals(self) -> Array:
        """(v, 1) or (v, n), the sum of a node's."""
        links = self.links
        total: Array = links.total
        if links.intercept is None or self.mask is None:
            return total
        stiff = links.gather((links.rho * links.intercept)[:, None], len(total))
        return jnp.where(self.mask > 0, total, stiff)

    # --- sampled gradients -----------------------------------------------------------------------

    def pick(self, random_bits: Array) -> Pick:
        """(v, b) random bits -> b samples at each node, or all of them where it has fewer."""
        local, size = choose(random_bits, self.counts)
        live = jnp.arange(random_bits.shape[1]) < size[:, None]
        share = (live / size[:, None]).astype(self.labels.dtype)
        if self.active is not None:
            share, size = jnp.where(self.active[:, None], share, 0), jnp.where(self.active, size, 0)
        at = self.first[:, None] + local.astype(self.first.dtype)
        return Pick(at, share, size, self.rows.take(at))

    def slopes(self, pick: Pick, X: Array) -> Array:
        """(v, b) slopes of the picked samples' losses at X; (v, b, C) for C outputs; for a custom
        loss (v, b, n), whole gradients."""
        y = self.labels.at[pick.at].get(mode="promise_in_bounds")
        if self.loss.linear:
            W, bias = self.weights(X)
            z = self.rows.dot(pick.rows, W)
            if self.offset is not None:
                z = z + self.offset.at[pick.at].get(mode="promise_in_bounds")
            s = self.loss.slope(z if bias is None else z + bias[:, None], y)
        else:
            d = self.rows.dense(pick.rows).astype(X.dtype)
            s = jax.vmap(jax.vmap(jax.grad(self.loss.fn), (None, 0, 0)))(X, d, y)
        if self.scale is None:
            return s
        return s * match(self.scale.at[pick.at].get(mode="promise_in_bounds"), s)

    def spread(self, pick: Pick, s: Array) -> Array:
        """(v, n): the sum of the gradients that belong to these slopes of picked samples."""
        if not self.loss.linear:
            return s.sum(1)
        return self.joined(self.rows.spread(pick.rows, s), s.sum(1))

    # --- passes over a node's data ---------------------------------------------------------------

    def refresh(self, table: Any, mean: Array, X: Any, due: Array) -> tuple[Any, Array]:
        """Mean gradients (and slopes, where there is a table of them) anew at X, at the nodes that
        are due: the others cost nothing. X is (v, n), or a function that makes models of some nodes
        from arrays of all, each passed through its argument: only those due are then worked out."""

        def visit(part: SampleChunk, carry: tuple[Any, Array]) -> tuple[Any, Array]:
            table, mean = carry
            s = part.slopes(self, X(part.of) if callable(X) else part.of(X))
            table = None if table is None else part.place.put(table, s)
            G = part.spread(self, s) / part.of(self.counts)[:, None]
            return table, part.place.add(mean, G.astype(mean.dtype))

        made: tuple[Any, Array] = fold(self, due, visit, (table, mean), mean.dtype)
        return made

    def table_means(self, table: Array, like: Array) -> Array:
        """(v, n) the mean gradients that a table of slopes stands for."""

        def visit(part: SampleChunk, mean: Array) -> Array:
            G = part.spread(self, part.place.get(table, part.y)) / part.of(self.counts)[:, None]
            return part.place.add(mean, G.astype(mean.dtype))

        everybody = jnp.ones(len(self.counts), bool)
        means: Array = fold(self, everybody, visit, jnp.zeros_like(like), like.dtype)
        return means

    def full(self, X: Array) -> Array:
        """(v, n) gradients of the nodes' mean losses, ridge apart."""
        due = jnp.ones(X.shape[0], bool) if self.active is None else self.active
        return self.refresh(None, jnp.zeros_like(X), X, due)[1]

    def hessians(self, H: Array, X: Array, due: Array, secants: float = 0.0) -> Array:
        """(v, b, f, f) Hessians of nodes' mean losses of margins, ridge apart, at X at the nodes
        that are due; the others keep theirs. In blocks, and with a part of the secants, if one is
        asked for: see `SampleChunk.hessian`."""

        def visit(part: SampleChunk, H: Array) -> Array:
            return part.place.add(
                H, part.hessian(self, part.of(X), secants) / match(part.of(self.counts), H)
            )

        made: Array = fold(self, due, visit, H, X.dtype)
        return made

    def node_means(
        self, X: Array, each: Callable[[SampleChunk, Array], Array], due: Array | None = None
    ) -> Array:
        """(v,) means over a node's samples of each(part, models) (c, T); zero where not due."""

        def visit(part: SampleChunk, total: Array) -> Array:
            return part.place.add(total, each(part, part.of(X)).sum(1))

        total = jnp.zeros(X.shape[0], X.dtype)
        due = jnp.ones(X.shape[0], bool) if due is None else due
        return fold(self, due, visit, total, X.dtype) / self.counts

    def mean_losses(self, X: Array, due: Array) -> Array:
        """(v,) ridge apart, of the nodes that are due; zero for the others."""
        return self.node_means(X, lambda part, models: part.values(self, models), due)

    def values(self, X: Array) -> Array:
        """(v,) mean losses, ridge included: what a function-value oracle tells."""
        means = self.node_means(X, lambda part, models: part.values(self, models))
        if self.cost is None:
            return means + 0.5 * (X * self.ridge(X)).sum(1)
        ridge = 0.5 * (X * (self.ridge(X) - self.cost.slope(X))).sum(1)
        return means + ridge + self.cost.value(X)

    # --- models ----------------------------------------------------------------------------------

    def ridge(self, X: Array) -> Array:
        """The gradient of (ridge / 2) |x|^2, which never touches an intercept, and of costs."""
        flat: Array = self.loss.ridge * (X if self.mask is None else X * self.mask)
        return flat if self.cost is None else flat * self.cost.lossy + self.cost.slope(X)

    def weights(self, X: Array) -> tuple[Array, Array | None]:
        """(v, n) models -> (v, p) or (v, C, p) weights, and (v,) or (v, C) intercepts."""
        c = self.loss.outputs
        p = X.shape[1] // c if self.mask is None else X.shape[1] // c - 1
        W = X if p * c == X.shape[1] else X[:, : p * c]
        bias = None if self.mask is None else X[:, p * c :]
        if c == 1:
            return W, None if bias is None else bias[:, 0]
        return W.reshape(-1, c, p), bias

    def joined(self, W: Array, bias: Array) -> Array:
        """The inverse of `weights`; intercepts are dropped where the model has none."""
        flat = W.reshape(W.shape[0], -1)
        if self.mask is None:
            return flat
        return jnp.concatenate([flat, bias.reshape(W.shape[0], -1)], 1)


def choose(random_bits: Array, counts: Array) -> tuple[Array, Array]:
    """(v, b) of 0..counts-1 without replacement (Floyd: every set is equally likely), and how many.

    In integers, so that runs in float32 and float64 draw the same. Beyond counts the first draw
    stands again.
    """
    v, b = random_bits.shape
    size = jnp.minimum(counts.astype(jnp.int64), b)
    last = counts.astype(jnp.int64)[:, None] - size[:, None] + jnp.arange(b)  # j-th: 0..last_j
    bound = jnp.maximum(last + 1, 1).astype(jnp.uint64)
    drawn = ((random_bits.astype(jnp.uint64) * bound) >> 32).astype(jnp.int64)
    if b == 1:
        return drawn, size

    def add(j: Array, chosen: Array) -> Array:
        repeated = (chosen == drawn[:, j, None]).any(1)
        new = jnp.where(repeated, last[:, j], drawn[:, j])
        return chosen.at[:, j].set(jnp.where(j < size, new, chosen[:, 0]))

    return lax.fori_loop(0, b, add, jnp.full((v, b), -1, jnp.int64)), size

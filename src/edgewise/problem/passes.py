"""Passes over all samples of the nodes that are due, many nodes at a time.

Where every node is due and all hold equally many samples, their rows are one (v, K, p) array as
they lie, read in place. Otherwise many small nodes are gathered a chunk at a time, in stretches of
as many samples as a node has on average, and few or large ones are taken one after another.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from edgewise.problem.rows import Dense, DenseSlab, Sparse, SparseSlab

if TYPE_CHECKING:
    from edgewise.problem.block import Block

SLICE_ENTRIES = 1 << 22  # numbers at a time where rows must be copied: bounds a pass's memory
CHUNK_ENTRIES = 1 << 15  # numbers gathered at a time: also what a single node that is due costs
MOST_CHUNK_NODES = 16
MANY_NODES = 256  # from here on small nodes go in chunks
MUCH_DATA = 1 << 17  # numbers; a pass over fewer is not worth another way of reading to compile

Visit = Callable[["SampleChunk", Any], Any]


class InPlace(NamedTuple):
    """Consecutive nodes with T samples each."""

    left: Array  # (v,) all true
    first: Any  # () the first node, or None: all of them

    def of(self, a: Array, like: Array) -> Array:
        """(v, ...) -> (c, ...)"""
        # `left` changes in the loop around this: what did not would be computed before it, always
        a = jnp.where(match(self.left, a), a, 0)
        return a if self.first is None else lax.dynamic_slice_in_dim(a, self.first, len(like))

    def put(self, table: Array, s: Array) -> Array:
        flat = s.reshape(-1, *s.shape[2:]).astype(table.dtype)
        if self.first is None:
            return flat
        return lax.dynamic_update_slice_in_dim(table, flat, self.first * s.shape[1], 0)

    def get(self, table: Array, like: Array) -> Array:
        """(N, ...) -> (c, T, ...), like being (c, T)"""
        if self.first is not None:
            begin = self.first * like.shape[1]
            table = lax.dynamic_slice_in_dim(table, begin, like.size)
        return table.reshape(*like.shape, *table.shape[1:])

    def add(self, total: Array, G: Array) -> Array:
        G = G.astype(total.dtype)
        return G if self.first is None else lax.dynamic_update_slice_in_dim(total, G, self.first, 0)


class Scattered(NamedTuple):
    """A stretch each of some nodes, and of a node with many samples perhaps several."""

    nodes: Array  # (c,) v where there is none
    at: Array  # (c, T) samples, N where there is none
    opens: Array  # (c,) whether it is its node's first stretch

    def of(self, a: Array, like: Array) -> Array:
        return a.at[self.nodes].get(mode="clip")

    def put(self, table: Array, s: Array) -> Array:
        return table.at[self.at].set(s, mode="drop")

    def get(self, table: Array, like: Array) -> Array:
        return table.at[self.at].get(mode="fill", fill_value=0)

    def add(self, total: Array, G: Array) -> Array:
        anew = jnp.where(self.opens, self.nodes, len(total))
        return total.at[anew].set(0, mode="drop").at[self.nodes].add(G, mode="drop")


class Single(NamedTuple):
    """A stretch of one node."""

    node: Array  # ()
    begin: Array  # () its first sample
    fresh: Array  # (T,) whether a sample is the node's and not of the stretch before
    opens: Array  # () whether it is the first stretch

    def of(self, a: Array, like: Array) -> Array:
        return a[self.node][None]

    def put(self, table: Array, s: Array) -> Array:
        old = lax.dynamic_slice_in_dim(table, self.begin, len(self.fresh))
        new = jnp.where(match(self.fresh, old), s[0], old)
        return lax.dynamic_update_slice_in_dim(table, new, self.begin, 0)

    def get(self, table: Array, like: Array) -> Array:
        part = lax.dynamic_slice_in_dim(table, self.begin, len(self.fresh))
        return jnp.where(match(self.fresh, part), part, 0)[None]

    def add(self, total: Array, G: Array) -> Array:
        return total.at[self.node].set(jnp.where(self.opens, 0, total[self.node]) + G[0])


class SampleChunk(NamedTuple):
    """T samples of each of c nodes, and where what is computed from them belongs."""

    place: InPlace | Scattered | Single
    rows: Any  # (c, T, p), or `Taken`, or a slab where c is one
    y: Array  # (c, T)
    scale: Any  # (c, T) or None
    live: Any  # (c, T) whether it is a sample to be counted, or None: all are
    offset: Any = None  # (c, T) of margins, or None

    def of(self, a: Array) -> Array:
        """(v, ...) one entry per node of the block -> (c, ...), of the part's nodes."""
        return self.place.of(a, self.y)

    def weighed(self, each: Array) -> Array:
        """By the samples' weights, and zero where there is no sample."""
        each = each if self.scale is None else each * match(self.scale, each)
        return each if self.live is None else jnp.where(match(self.live, each), each, 0)

    def margins(self, p: "Block", X: Array) -> Array:
        """(c, T) or (c, T, C) at models X (c, n)."""
        W, bias = p.weights(X)
        if isinstance(self.rows, DenseSlab | SparseSlab):
            z = self.rows.dot(W[0])[None]
        elif isinstance(p.rows, Sparse):
            z = p.rows.dot(self.rows, W)
        else:
            form = "ctp,cp->ct" if W.ndim == 2 else "ctp,ckp->ctk"
            z = product(form, self.rows.astype(W.dtype), W)
        z = z if self.offset is None else z + self.offset
        return z if bias is None else z + bias[:, None]

    def slopes(self, p: "Block", X: Array) -> Array:
        """(c, T), (c, T, C) or for a custom loss (c, T, n)."""
        if p.loss.linear:
            return self.weighed(p.loss.slope(self.margins(p, X), self.y))
        gradient = jax.vmap(jax.vmap(jax.grad(p.loss.fn), (None, 0, 0)))
        return self.weighed(gradient(X, self.dense(p).astype(X.dtype), self.y))

    def values(self, p: "Block", X: Array) -> Array:
        """(c, T) losses."""
        if p.loss.linear:
            return self.weighed(p.loss.value(self.margins(p, X), self.y))
        value = jax.vmap(jax.vmap(p.loss.fn, (None, 0, 0)))
        return self.weighed(value(X, self.dense(p).astype(X.dtype), self.y))

    def spread(self, p: "Block", s: Array) -> Array:
        """(c, n) the sum of the gradients that belong to these slopes."""
        if not p.loss.linear:
            return s.sum(1)
        if isinstance(self.rows, DenseSlab | SparseSlab):
            G = self.rows.spread(s[0])[None]
        elif isinstance(p.rows, Sparse):
            G = p.rows.spread(self.rows, s)
        else:
            form = "ct,ctp->cp" if s.ndim == 2 else "ctk,ctp->ckp"
            G = product(form, s, self.rows.astype(s.dtype))
        return p.joined(G, s.sum(1))

    def hessian(self, p: "Block", X: Array, secants: float = 0.0) -> Array:
        """(c, b, f, f) the sum of the Hessians of these samples' losses of margins, at X (c, n), in
        blocks: the whole for one output; else one per output, and the mean of all, over pairs too,
        times how many outputs there are. Where a loss has straight parts a sample there counts for
        so much of its `secant`, which tells how far it is from the bend."""
        loss, d = p.loss, self.dense(p).astype(X.dtype)
        if not loss.linear:
            bends = jax.vmap(jax.vmap(jax.hessian(loss.fn), (None, 0, 0)))(X, d, self.y)
            return self.weighed(bends).sum(1)[:, None]
        z = self.margins(p, X)
        if p.mask is not None:
            d = jnp.concatenate([d, jnp.ones_like(d[..., :1])], -1)

        def along(direction: Array) -> Array:
            """How slopes change where all samples' margins go this way."""
            way = jnp.broadcast_to(direction, z.shape)
            bend = jax.jvp(lambda z: loss.slope(z, self.y), (z,), (way,))[1]
            if secants and not loss.hessian_continuous and hasattr(loss, "secant"):
                bend = jnp.maximum(bend, secants * loss.secant(z, self.y) * way)
            return self.weighed(bend)

        def block(bend: Array) -> Array:
            return product("ctp,ctq->cpq", bend[..., None] * d, d)

        if z.ndim == 2:
            return block(along(jnp.ones((), z.dtype)))[:, None]
        outputs = z.shape[-1]
        own = lax.map(lambda e: block((along(e) * e).sum(-1)), jnp.eye(outputs, dtype=z.dtype))
        shared = block(along(jnp.ones(outputs, z.dtype)).sum(-1) / outputs)
        return jnp.concatenate([own, shared[None]]).swapaxes(0, 1)

    def dense(self, p: "Block") -> Array:
        if isinstance(self.rows, DenseSlab | SparseSlab):
            return self.rows.dense()[None]
        return p.rows.dense(self.rows)


def product(form: str, a: Array, b: Array) -> Array:
    if form == "ct,ctp->cp" and jax.default_backend() != "cpu":
        # of one row XLA makes a transposed copy of b, of four a matrix product: 1.6 times as fast
        rows = jnp.pad(a[:, None], ((0, 0), (0, 3), (0, 0)))
        return product("cmt,ctp->cmp", rows, b)[:, 0]
    return jnp.einsum(form, a, b, precision=lax.Precision.HIGHEST)  # a GPU would round to 10 bits


def fold(p: "Block", due: Array, visit: Visit, carry: Any, dtype: Any) -> Any:
    """Fold `visit` over the samples of the nodes that are due; the others cost nothing."""
    v, samples, numbers = len(p.counts), len(p.labels), row_numbers(p)
    # counts may be uneven all the same, so nodes look at them too
    even = p.rows.tile * v == samples and samples * numbers >= MUCH_DATA
    stretch = min(p.rows.tile, -(-samples // v))
    chunk = min(MOST_CHUNK_NODES, CHUNK_ENTRIES // (stretch * numbers))

    def all_due(left: Array) -> Array:
        return (left & (p.counts == p.rows.tile)).all()

    def once(when: Callable[[Array], Array], go: Callable[[Array, Any], Any], state: Any) -> Any:
        """A branch, as a loop: what it carries is then changed in place."""
        return lax.while_loop(lambda c: when(c[0]), lambda c: (jnp.zeros_like(c[0]), go(*c)), state)

    def go(left: Array, carry: Any) -> Any:
        if even:
            now = once(all_due, lambda left, c: in_slices(p, left, visit, c, dtype), (left, carry))
            left, carry = now
        if v >= MANY_NODES and chunk > 1:
            return in_chunks(p, left, visit, carry, stretch, chunk)
        return one_by_one(p, left, visit, carry)

    return once(jnp.any, go, (due, carry))[1]


def row_numbers(p: "Block") -> int:
    """Of a gathered row, or of its gradient where the loss is a custom one."""
    stored = p.rows.values.shape[1] * (p.rows.width if isinstance(p.rows, Sparse) else 1)
    if p.loss.linear or not isinstance(p.rows, Sparse):
        return int(stored)
    return p.rows.features


def in_slices(p: "Block", left: Array, visit: Visit, carry: Any, dtype: Any) -> Any:
    """All nodes, which hold K samples each: at once where their rows serve as they lie, else in
    slices, the last of which reaches back over the one before."""
    v, K = len(p.counts), p.rows.tile
    dense = isinstance(p.rows, Dense)
    size = v
    if not dense or not p.loss.linear or p.rows.values.dtype != dtype:
        size = max(1, min(v, SLICE_ENTRIES // (K * row_numbers(p))))

    def take(a: Array, first: Any) -> Array:
        own = a if first is None else lax.dynamic_slice_in_dim(a, first * K, size * K)
        return own.reshape(size, K, *a.shape[1:])

    def part(first: Any) -> SampleChunk:
        begin = 0 if first is None else first * K
        rows: Any
        if dense:
            rows = take(p.rows.values, first)
        else:
            rows = p.rows.take(begin + jnp.arange(size * K).reshape(size, K))
        scale = None if p.scale is None else take(p.scale, first)
        offset = None if p.offset is None else take(p.offset, first)
        return SampleChunk(InPlace(left, first), rows, take(p.labels, first), scale, None, offset)

    if size == v:
        return visit(part(None), carry)

    def body(k: Array, carry: Any) -> Any:
        return visit(part(jnp.minimum(k * size, v - size)), carry)

    return lax.fori_loop(0, -(-v // size), body, carry)


def in_chunks(p: "Block", left: Array, visit: Visit, carry: Any, stretch: int, chunk: int) -> Any:
    """Stretches of the nodes that are left, gathered `chunk` at a time."""
    v, samples = len(p.counts), len(p.labels)
    ends = jnp.cumsum(jnp.where(left, -(-p.counts // stretch), 0))  # of a node's stretches
    most = v + samples // stretch + chunk
    owner = jnp.cumsum(jnp.zeros(most, jnp.int32).at[ends].add(1, mode="drop"))

    def body(state: tuple[Array, Any]) -> tuple[Array, Any]:
        k, carry = state
        node = lax.dynamic_slice_in_dim(owner, k, chunk)
        some = jnp.minimum(node, v - 1)
        behind = -(-p.counts[some] // stretch) - (ends[some] - (k + jnp.arange(chunk)))
        local = (behind * stretch)[:, None] + jnp.arange(stretch)
        live = (local < p.counts[some][:, None]) & (node < v)[:, None]
        at = p.first[some][:, None] + local
        safe = jnp.where(live, at, p.first[some][:, None])
        place = Scattered(node, jnp.where(live, at, samples), behind == 0)
        y = p.labels.at[safe].get(mode="promise_in_bounds")
        scale, offset = (
            None if a is None else a.at[safe].get(mode="promise_in_bounds")
            for a in (p.scale, p.offset)
        )
        part = SampleChunk(place, p.rows.take(safe), y, scale, live, offset)
        return k + chunk, visit(part, carry)

    start = jnp.zeros((), ends.dtype)
    return lax.while_loop(lambda c: c[0] < ends[-1], body, (start, carry))[1]


def one_by_one(p: "Block", left: Array, visit: Visit, carry: Any) -> Any:
    """The nodes that are left, each in slabs of consecutive rows."""
    size, samples = p.rows.tile, len(p.labels)

    def node(state: tuple[Array, Any]) -> tuple[Array, Any]:
        left, carry = state
        i = jnp.argmax(left)
        end = p.first[i] + p.counts[i]

        def slab(state: tuple[Array, Any]) -> tuple[Array, Any]:
            start, carry = state
            begin = jnp.minimum(start, samples - size)
            at = begin + jnp.arange(size)
            y = lax.dynamic_slice_in_dim(p.labels, begin, size)
            scale, offset = (
                None if a is None else lax.dynamic_slice_in_dim(a, begin, size)[None]
                for a in (p.scale, p.offset)
            )
            fresh = (at >= start) & (at < end)
            place = Single(i, begin, fresh, start == p.first[i])
            part = SampleChunk(place, p.rows.slab(begin), y[None], scale, fresh[None], offset)
            return start + size, visit(part, carry)

        carry = lax.while_loop(lambda c: c[0] < end, slab, (p.first[i], carry))[1]
        return left.at[i].set(False), carry

    return lax.while_loop(lambda c: c[0].any(), node, (left, carry))[1]


def match(a: Array, like: Array) -> Array:
    """a with trailing axes of length one, so that it broadcasts against `like`."""
    return a.reshape(a.shape + (1,) * (like.ndim - a.ndim))

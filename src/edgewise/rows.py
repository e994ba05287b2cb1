"""The samples of a block of nodes, flat and sorted by node, dense or sparse.

Both kinds answer the same questions. `take` gathers sampled rows, one set per node, and `dot` and
`spread` go from models to margins and from slopes back to gradients over them. `slab` is a stretch
of `tile` consecutive rows with the same two products, for full passes. A model is a (p,) vector,
or (C, p) for a loss with C outputs; margins and slopes then carry a last axis C.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array, lax

from edgewise.pytree import pytree

TILE_ENTRIES = 1 << 24  # a slab's size, in numbers: bounds the memory that a full pass needs


def row_dot(a: Array, b: Array, stretches: int = 16) -> Array:
    """Sum of a * b over the last axis.

    XLA on a CPU adds up a row one number after the other; sixteen stretches side by side first
    make that a vector operation.
    """
    length = a.shape[-1]
    width = length // stretches
    if width < 8:
        return (a * b).sum(-1)
    parts = [
        a[..., i * width : (i + 1) * width] * b[..., i * width : (i + 1) * width]
        for i in range(stretches)
    ]
    total = sum(parts[1:], parts[0]).sum(-1)
    rest = stretches * width
    return total if rest == length else total + (a[..., rest:] * b[..., rest:]).sum(-1)


class DenseSlab(NamedTuple):
    values: Array  # (T, p)

    def dot(self, w: Array) -> Array:
        return self.values.astype(w.dtype) @ w.T

    def spread(self, s: Array) -> Array:
        return s.T @ self.values.astype(s.dtype)

    def dense(self) -> Array:
        return self.values


@pytree("tile")
class Dense:
    values: Any  # (N, p)
    tile: int

    def take(self, at: Array) -> Array:
        return self.values.at[at].get(mode="promise_in_bounds")

    def dot(self, taken: Array, W: Array) -> Array:
        if W.ndim == 2:
            return row_dot(taken, W[:, None])
        return jnp.einsum("vbp,vcp->vbc", taken.astype(W.dtype), W)

    def spread(self, taken: Array, s: Array) -> Array:
        if s.ndim == 2:
            return (s[..., None] * taken).sum(1)
        return jnp.einsum("vbc,vbp->vcp", s, taken.astype(s.dtype))

    def dense(self, taken: Array) -> Array:
        return taken

    def slab(self, start: Array) -> DenseSlab:
        return DenseSlab(lax.dynamic_slice_in_dim(self.values, start, self.tile))


class SparseSlab(NamedTuple):
    values: Array  # (W,) entries, zero where they belong to other rows
    columns: Array  # (W,)
    rows: Array  # (W,) row within the slab
    shape: tuple[int, int]

    def dot(self, w: Array) -> Array:
        products = self.values * w[..., self.columns]  # (W,) or (C, W)
        return jax.ops.segment_sum(products.T, self.rows, self.shape[0])

    def spread(self, s: Array) -> Array:
        out = jnp.zeros((self.shape[1], *s.shape[1:]), s.dtype)
        entries = self.values.astype(s.dtype)
        return out.at[self.columns].add((entries * s[self.rows].T).T).T

    def dense(self) -> Array:
        return jnp.zeros(self.shape, self.values.dtype).at[self.rows, self.columns].add(self.values)


class Taken(NamedTuple):
    values: Array  # (v, b, w) entries, zero beyond a row's own
    columns: Array  # (v, b, w)


@pytree("tile", "width", "tile_entries", "features")
class Sparse:
    values: Any  # (M,) entries, row after row
    columns: Any  # (M,)
    row_of: Any  # (M,) which row an entry belongs to
    starts: Any  # (N + 1,) where each row begins
    tile: int
    width: int  # the most entries of one row
    tile_entries: int  # the most entries of `tile` consecutive rows
    features: int

    def take(self, at: Array) -> Taken:
        begin, end = self.starts[at], self.starts[at + 1]
        where = begin[..., None] + jnp.arange(self.width)
        live = where < end[..., None]
        where = jnp.where(live, where, 0)
        values = jnp.where(live, self.values.at[where].get(mode="promise_in_bounds"), 0)
        return Taken(values, self.columns.at[where].get(mode="promise_in_bounds"))

    def dot(self, taken: Taken, W: Array) -> Array:
        def one(w: Array, columns: Array, values: Array) -> Array:
            return (w[..., columns] * values).sum(-1).T  # (b,) or (b, C)

        return jax.vmap(one)(W, taken.columns, taken.values)

    def spread(self, taken: Taken, s: Array) -> Array:
        node = jnp.arange(s.shape[0])[:, None, None]
        if s.ndim == 2:
            out = jnp.zeros((s.shape[0], self.features), s.dtype)
            return out.at[node, taken.columns].add(s[..., None] * taken.values)
        out = jnp.zeros((s.shape[0], self.features, s.shape[2]), s.dtype)
        entries = s[:, :, None, :] * taken.values[..., None]
        return out.at[node, taken.columns].add(entries).swapaxes(1, 2)

    def dense(self, taken: Taken) -> Array:
        v, b, _ = taken.values.shape
        node, sample = jnp.arange(v)[:, None, None], jnp.arange(b)[None, :, None]
        out = jnp.zeros((v, b, self.features), taken.values.dtype)
        return out.at[node, sample, taken.columns].add(taken.values)

    def slab(self, start: Array) -> SparseSlab:
        begin = jnp.minimum(self.starts[start], self.values.shape[0] - self.tile_entries)
        cut = [
            lax.dynamic_slice_in_dim(a, begin, self.tile_entries)
            for a in (self.values, self.columns, self.row_of)
        ]
        rows = cut[2] - start
        live = (rows >= 0) & (rows < self.tile)
        values = jnp.where(live, cut[0], 0)
        return SparseSlab(values, cut[1], jnp.where(live, rows, 0), (self.tile, self.features))


Rows = Dense | Sparse


def make_rows(X: Any, largest_count: int, dtype: Any, numbers_per_row: int) -> Rows:
    """Rows for jit from a NumPy array, without a copy where dtype and alignment allow it, or CSR.

    Data narrower than `dtype` stay narrow: products are formed in `dtype` all the same.
    """
    tile = max(1, min(largest_count, TILE_ENTRIES // max(numbers_per_row, 1)))
    kind = np.promote_types(X.dtype, np.float32)
    kind = np.dtype(dtype) if np.dtype(dtype).itemsize < kind.itemsize else kind
    if not isinstance(X, sp.csr_array):
        return Dense(jax.device_put(np.asarray(X, kind), may_alias=True), tile)
    lengths = np.diff(X.indptr)
    if X.nnz == 0:  # one stored zero keeps every shape below positive
        X = sp.csr_array(([0.0], ([0], [0])), shape=X.shape)
        lengths = np.diff(X.indptr)
    ends = X.indptr[tile:] - X.indptr[: X.shape[0] + 1 - tile]
    index = np.int32 if X.nnz < 2**31 else np.int64
    return Sparse(
        jnp.asarray(X.data, kind),
        jnp.asarray(X.indices, np.int32),
        jnp.asarray(np.repeat(np.arange(X.shape[0]), lengths), np.int32),
        jnp.asarray(X.indptr, index),
        tile,
        int(lengths.max()),
        int(ends.max()),
        X.shape[1],
    )

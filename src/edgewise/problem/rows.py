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

from edgewise.backend.placed import placed
from edgewise.backend.pytree import pytree

TILE_ENTRIES = 1 << 24  # a slab's size, in numbers: bounds the memory that a full pass needs


def row_dot(a: Array, b: Array, stretches: int = 16) -> Array:
    """Sum of a * b over the last axis.

    XLA on a CPU adds up a row one number after the other; sixteen stretches side by side first
    make that a vector operation.
    """
    length = a.shape[-1]
    width = length // stretches
    if width < 8 or jax.default_backend() != "cpu":
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
    values: Array  # (G, g) entries, zero where they belong to other rows
    columns: Array  # (G, g)
    rows: Array  # (G,) row within the slab
    shape: tuple[int, int]

    def dot(self, w: Array) -> Array:
        parts = (self.values * w[..., self.columns]).sum(-1)  # (G,) or (C, G)
        return jax.ops.segment_sum(parts.T, self.rows, self.shape[0])

    def spread(self, s: Array) -> Array:
        entries = self.values.astype(s.dtype)
        if s.ndim == 1:
            out = jnp.zeros(self.shape[1], s.dtype)
            return out.at[self.columns].add(entries * s[self.rows, None])
        out = jnp.zeros((self.shape[1], s.shape[1]), s.dtype)
        return out.at[self.columns].add(entries[..., None] * s[self.rows, None]).T

    def dense(self) -> Array:
        out = jnp.zeros(self.shape, self.values.dtype)
        return out.at[self.rows[:, None], self.columns].add(self.values)


class Taken(NamedTuple):
    values: Array  # (v, b, w) entries, zero beyond a row's own
    columns: Array  # (v, b, w)


@pytree("tile", "width", "tile_groups", "features")
class Sparse:
    """Entries lie row after row in groups of g: sums over a group are vector operations, and only
    one number per group, not per entry, is then added up by row."""

    values: Any  # (M, g) entries, zero beyond a row's own
    columns: Any  # (M, g)
    row_of: Any  # (M,) which row a group belongs to
    starts: Any  # (N + 1,) where each row's groups begin
    tile: int
    width: int  # the most entries of one row, its groups filled up
    tile_groups: int  # the most groups of `tile` consecutive rows
    features: int

    def take(self, at: Array) -> Taken:
        begin, end = self.starts[at], self.starts[at + 1]
        groups = self.width // self.values.shape[1]
        where = begin[..., None] + jnp.arange(groups, dtype=begin.dtype)
        live = where < end[..., None]
        where = jnp.where(live, where, 0)
        values = self.values.at[where].get(mode="promise_in_bounds")
        columns = self.columns.at[where].get(mode="promise_in_bounds")
        flat = (*at.shape, -1)
        return Taken(jnp.where(live[..., None], values, 0).reshape(flat), columns.reshape(flat))

    def dot(self, taken: Taken, W: Array) -> Array:
        def one(w: Array, columns: Array, values: Array) -> Array:
            return (w[..., columns] * values).sum(-1).T  # (b,) or (b, C)

        return jax.vmap(one)(W, taken.columns, taken.values)

    def spread(self, taken: Taken, s: Array) -> Array:
        def one(columns: Array, values: Array, s: Array) -> Array:
            out = jnp.zeros((self.features, *s.shape[1:]), s.dtype)
            values = values if s.ndim == 1 else values[..., None]
            return out.at[columns].add(values * s[:, None]).T  # (p,) or (C, p)

        return jax.vmap(one)(taken.columns, taken.values, s)

    def dense(self, taken: Taken) -> Array:
        v, b, _ = taken.values.shape
        node, sample = jnp.arange(v)[:, None, None], jnp.arange(b)[None, :, None]
        out = jnp.zeros((v, b, self.features), taken.values.dtype)
        return out.at[node, sample, taken.columns].add(taken.values)

    def slab(self, start: Array) -> SparseSlab:
        begin = jnp.minimum(self.starts[start], self.values.shape[0] - self.tile_groups)
        values, columns, row_of = (
            lax.dynamic_slice_in_dim(a, begin, self.tile_groups)
            for a in (self.values, self.columns, self.row_of)
        )
        rows = row_of - start
        live = (rows >= 0) & (rows < self.tile)
        values = jnp.where(live[:, None], values, 0)
        return SparseSlab(values, columns, jnp.where(live, rows, 0), (self.tile, self.features))


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
    return make_sparse(X, tile, kind)


def make_sparse(X: sp.csr_array, tile: int, kind: np.dtype[Any]) -> Sparse:
    if X.nnz == 0:  # one stored zero keeps every shape below positive
        X = sp.csr_array(([0.0], ([0], [0])), shape=X.shape)
    lengths = np.diff(X.indptr)
    g = group_size(lengths)
    groups = -(-lengths // g)
    starts = np.concatenate([[0], np.cumsum(groups, dtype=np.int64)])
    slot = np.arange(X.nnz) + np.repeat(starts[:-1] * g - X.indptr[:-1], lengths)
    values = np.zeros(starts[-1] * g, kind)
    values[slot] = X.data
    columns = np.repeat(X.indices[X.indptr[1:] - 1], groups * g)  # a row's last fills its groups up
    columns[slot] = X.indices
    return Sparse(
        placed(values.reshape(-1, g)),
        placed(columns.reshape(-1, g), np.int32),
        placed(np.repeat(np.arange(X.shape[0], dtype=np.int32), groups)),
        placed(starts, np.int32 if len(values) < 2**31 else np.int64),
        tile,
        int(groups.max()) * g,
        int((starts[tile:] - starts[: X.shape[0] + 1 - tile]).max()),
        X.shape[1],
    )


def group_size(lengths: np.ndarray) -> int:
    """Entries to a group: as many as a vector register or two hold, where rows are long enough
    that filling the last group of each up costs little memory."""
    return next((g for g in (8, 4, 2) if (-lengths % g).sum() <= lengths.sum() / 4), 1)

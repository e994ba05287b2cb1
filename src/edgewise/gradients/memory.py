"""What the variance-reduced estimators remember, and the control variate they share."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from edgewise.block import Block, Pick, match
from edgewise.errors import MethodError, whole_number


class Batched:
    """An estimator that draws `batch` samples, or coordinates, a step."""

    batch: int

    def __post_init__(self) -> None:
        batch = whole_number(f"{type(self).__name__}'s batch", self.batch, 1, MethodError)
        object.__setattr__(self, "batch", batch)

    @property
    def words(self) -> int:
        return self.batch


class Memory(NamedTuple):
    table: Any  # (N, ...) a slope per sample; None where they are computed anew at the snapshot
    mean: Array  # (v, n) the mean gradient of those slopes, ridge apart
    snapshot: Any  # (v, n) where they were taken; None where the table says it all
    calls: Array  # (v,) sample gradients asked for so far
    extra: Any = ()


def remember(p: Block, X: Array, keep_table: bool) -> Memory:
    """A full pass at X over all nodes, with a table of slopes or with a snapshot of X."""
    shape: tuple[int, ...] = p.labels.shape
    if not p.loss.linear:
        shape = (*shape, X.shape[1])
    elif p.loss.outputs > 1:
        shape = (*shape, p.loss.outputs)
    empty = Memory(
        jnp.zeros(shape, X.dtype) if keep_table else None,
        jnp.zeros_like(X),
        None if keep_table else X,
        jnp.zeros(X.shape[0], jnp.int64),
    )
    return retake(p, empty, X, jnp.ones(X.shape[0], bool))


def retake(p: Block, m: Memory, X: Array, due: Array) -> Memory:
    """Take the slopes anew at X at the nodes that are due: K_i calls each."""
    table, mean = p.refresh(m.table, m.mean, X, due)
    snapshot = None if m.snapshot is None else jnp.where(due[:, None], X, m.snapshot)
    calls = m.calls + jnp.where(due, p.counts, 0)
    return m._replace(table=table, mean=mean, snapshot=snapshot, calls=calls)


def change(p: Block, m: Memory, X: Array, pick: Pick) -> tuple[Array, Array]:
    """Slopes of the picked samples at X, and what has changed since they were remembered."""
    new = p.slopes(pick, X)
    if m.table is None:
        return new, new - p.slopes(pick, m.snapshot)
    return new, new - m.table.at[pick.at].get(mode="promise_in_bounds")


def weighted(pick: Pick, s: Array) -> Array:
    return s * match(pick.share, s)


def coin(words: Array, probability: Array) -> Array:
    """Heads with the given probability, the same in float32 and float64 runs."""
    return words.astype(jnp.float64) < probability.astype(jnp.float64) * 2.0**32

"""What the variance-reduced estimators remember, and the control variate they share."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from edgewise.backend.no_inline import no_inline
from edgewise.errors import MethodError, whole_number
from edgewise.gradients.contract import EstimatorDefaults
from edgewise.problem.block import Block, Pick, match


class Batched(EstimatorDefaults):
    """An estimator that draws `batch` samples, or coordinates, a step."""

    batch: int

    def __post_init__(self) -> None:
        batch = whole_number(f"{type(self).__name__}'s batch", self.batch, 1, MethodError)
        object.__setattr__(self, "batch", batch)

    @property
    def random_draws(self) -> int:
        return self.batch

    @property
    def samples(self) -> int | None:
        return self.batch


class Calls(NamedTuple):
    calls: Array  # (v,) sample gradients asked for so far


class Memory(NamedTuple):
    table: Any  # (N, ...) a slope per sample; None where they are computed anew at the snapshot
    mean: Array  # (v, n) the mean gradient of those slopes, ridge apart
    snapshot: Any  # (v, n) where they were taken; None where the table says it all
    calls: Array  # (v,) sample gradients asked for so far
    extra: Any = ()


class Draw(NamedTuple):
    """A gradient in parts: sum_q slopes_q d_q + base, ridge apart."""

    pick: Pick
    slopes: Array  # (v, b) what has changed since they were remembered, times the samples' shares
    base: Array  # (v, n) the mean gradient remembered, as in the memory that comes with this
    part: Any = None  # (v, 1) of the sum, to be added to the remembered mean; or None, and then no
    new: Any = None  # (v, b) slopes, to be remembered
    over: Any = None  # (v,) where a sum of iterates begins anew; None where none is kept


class Sampled(Batched):
    """An estimator whose gradient is a `Draw`: engines may put it together as suits them."""

    @property
    def looks_at_models(self) -> bool:
        """Whether `draw` does more with X than to hand it to the block."""
        return False

    def draw(self, p: Block, X: Array, m: Memory, random_bits: Array) -> tuple[Draw, Memory]:
        raise NotImplementedError

    def draw_unsummed(
        self, p: Block, X: Array, m: Memory, random_bits: Array
    ) -> tuple[Draw, Memory]:
        """As `draw`, but X is still to be added to `m.extra.total`, where that is kept: nodes whose
        sum is over then have zero there."""
        return self.draw(p, X, m, random_bits)

    def __call__(self, p: Block, X: Array, m: Memory, random_bits: Array) -> tuple[Array, Memory]:
        draw, m = self.draw(p, X, m, random_bits)
        moved = p.spread(draw.pick, draw.slopes)
        if draw.part is not None:
            table = m.table.at[draw.pick.at].set(draw.new, mode="promise_in_bounds")
            m = m._replace(table=table, mean=m.mean + draw.part * moved)
        return moved + draw.base + p.ridge(X), m


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


def retake(p: Block, m: Memory, X: Any, due: Array) -> Memory:
    """Take the slopes anew at X (as `Block.refresh` has it) at the nodes that are due: K_i calls
    each. Nodes that are not active never are."""
    due = due if p.active is None else due & p.active
    table, mean = p.refresh(m.table, m.mean, X, due)
    snapshot = m.snapshot
    if snapshot is not None:
        snapshot = jnp.where(due[:, None], X(lambda a: a) if callable(X) else X, snapshot)
    calls = m.calls + jnp.where(due, p.counts, 0)
    return m._replace(table=table, mean=mean, snapshot=snapshot, calls=calls)


def change(p: Block, m: Memory, X: Array, pick: Pick) -> tuple[Array, Array]:
    """Slopes of the picked samples at X, and what has changed since they were remembered: nothing
    at nodes that are not active."""
    new = p.slopes(pick, X)
    old = p.slopes(pick, m.snapshot) if m.table is None else entries(m.table, pick.at)
    if p.active is not None:
        new = jnp.where(match(p.active, new), new, old)
    return new, new - old


@no_inline
def entries(table: Array, at: Array) -> Array:
    """As one value: read again wherever it is used, it would keep the old table from being
    overwritten in place."""
    return table.at[at].get(mode="promise_in_bounds")


def weighted(pick: Pick, s: Array) -> Array:
    return s * match(pick.share, s)


def coin(random_bits: Array, probability: Array) -> Array:
    """Heads with the given probability, the same in float32 and float64 runs."""
    return random_bits.astype(jnp.float64) < probability.astype(jnp.float64) * 2.0**32

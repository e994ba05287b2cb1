"""JAX's gathers and scatters, as NumPy indexes."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from edgewise.backend.numpy_rules import dtype_of, rule, shape_of

MODE = jax.lax.GatherScatterMode


class Windows:
    """Where windows of an operand lie: an index into it for every number of all windows. `spread`
    are the dimensions of these numbers along windows, the others are of the indices."""

    def __init__(
        self,
        shape: Sequence[int],  # of the operand
        many: Sequence[int],  # of all windows' numbers
        sizes: Sequence[int],  # of a window, one per dimension of the operand
        spread: Sequence[int],
        kept: Sequence[int],  # dimensions of the operand that `spread` belongs to
        mapped: Sequence[int],
        batched: Sequence[int],
        batches: Sequence[int],
    ) -> None:
        self.sizes, self.mapped, self.many = sizes, mapped, tuple(many)
        self.most = [shape[d] - sizes[d] for d in mapped]
        rank = len(many)
        self.around = [d for d in range(rank) if d not in spread]
        self.batch_shape = tuple(many[d] if d in self.around else 1 for d in range(rank))
        self.fixed: list[Any] = [0] * len(shape)
        for d, at in zip(kept, spread, strict=True):
            wide = [-1 if k == at else 1 for k in range(rank)]
            self.fixed[d] = np.arange(sizes[d]).reshape(wide)
        for d, b in zip(batched, batches, strict=True):
            wide = [-1 if k == self.around[b] else 1 for k in range(rank)]
            self.fixed[d] = np.arange(shape[d]).reshape(wide)

    def starts(self, indices: Any, clip: bool) -> tuple[list[Any], Any]:
        """For each mapped dimension, and which windows lie inside; None: all of them."""
        each = [indices[..., k] for k in range(len(self.mapped))]
        inside = None
        if not clip:
            fine = [(a >= 0) & (a <= most) for a, most in zip(each, self.most, strict=True)]
            every = np.logical_and.reduce(fine) if fine else np.True_
            inside = None if every.all() else every.reshape(self.batch_shape)
        if clip or inside is not None:
            each = [np.clip(a, 0, most) for a, most in zip(each, self.most, strict=True)]
        return [a.reshape(self.batch_shape) for a in each], inside

    def at(self, starts: list[Any]) -> tuple[Any, ...]:
        index = list(self.fixed)
        for d, a in zip(self.mapped, starts, strict=True):
            index[d] = index[d] + a.astype(np.intp)
        return tuple(index)


@rule("gather")
def gather(eqn: Any) -> Any:
    p, n = eqn.params, eqn.params["dimension_numbers"]
    shape, sizes, out = eqn.invars[0].aval.shape, p["slice_sizes"], shape_of(eqn)
    dtype = dtype_of(eqn.invars[0])
    clip = p["mode"] in (MODE.CLIP, MODE.PROMISE_IN_BOUNDS)
    fill = p["fill_value"]
    if fill is None and not clip:
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        fill = True if limits is None else limits.min if dtype.kind == "i" else limits.max
        fill = np.nan if dtype.kind == "f" else fill
    batched = n.operand_batching_dims
    kept = [d for d in range(len(shape)) if d not in (*n.collapsed_slice_dims, *batched)]
    rest = len(shape) - 1
    whole = tuple(sizes) == (1, *shape[1:]) and not batched and shape[0] > 0
    first = tuple(n.start_index_map) == tuple(n.collapsed_slice_dims) == (0,)
    if whole and first and tuple(n.offset_dims) == tuple(range(len(out) - rest, len(out))):
        return rows(shape[0], rest, clip, None if clip else np.asarray(fill, dtype))
    windows = Windows(
        *(shape, out, sizes, n.offset_dims, kept, n.start_index_map),
        *(batched, n.start_indices_batching_dims),
    )

    def any_take(a: Any, indices: Any) -> Any:
        starts, inside = windows.starts(indices, clip)
        found = np.broadcast_to(a[windows.at(starts)], out)
        return found if inside is None else np.where(inside, found, np.asarray(fill, dtype))

    return any_take


def rows(most: int, rest: int, clip: bool, fill: Any) -> Any:
    """Whole rows of the first axis."""

    def take(a: Any, indices: Any) -> Any:
        at = indices[..., 0]
        found = np.take(a, at, 0, mode="clip")
        if clip:
            return found
        outside = (at < 0) | (at >= most)
        if not outside.any():
            return found
        return np.where(outside.reshape(outside.shape + (1,) * rest), fill, found)

    return take


COMBINED: dict[str, Any] = {
    "scatter": None,
    "scatter-add": np.add,
    "scatter_add": np.add,
    "scatter-mul": np.multiply,
    "scatter_mul": np.multiply,
    "scatter-min": np.minimum,
    "scatter_min": np.minimum,
    "scatter-max": np.maximum,
    "scatter_max": np.maximum,
}


@rule(*COMBINED)
def scatter(eqn: Any) -> Any:
    p, n, ufunc = eqn.params, eqn.params["dimension_numbers"], COMBINED[eqn.primitive.name]
    shape, many = eqn.invars[0].aval.shape, eqn.invars[2].aval.shape
    batched = n.operand_batching_dims
    kept = [d for d in range(len(shape)) if d not in (*n.inserted_window_dims, *batched)]
    sizes = [1] * len(shape)
    for d, at in zip(kept, n.update_window_dims, strict=True):
        sizes[d] = many[at]
    windows = Windows(
        *(shape, many, sizes, n.update_window_dims, kept, n.scatter_dims_to_operand_dims),
        *(batched, n.scatter_indices_batching_dims),
    )
    clip = p["mode"] == MODE.CLIP

    def put(a: Any, indices: Any, new: Any) -> Any:
        starts, inside = windows.starts(indices, clip)
        at, out = windows.at(starts), np.array(a)
        if inside is not None:
            those = np.broadcast_to(inside, many)
            at, new = tuple(np.broadcast_to(k, many)[those] for k in at), new[those]
        if ufunc is None:
            out[at] = new
        else:
            ufunc.at(out, at, new)
        return out

    return put

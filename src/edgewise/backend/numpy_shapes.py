"""How NumPy cuts, joins and rearranges what JAX's primitives do."""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from edgewise.backend.numpy_rules import Unknown, dtype_of, rule, shape_of

ALL = slice(None)
SMALL = 1 << 12  # numbers; so few are sooner copied than viewed


@rule("iota")
def iota(eqn: Any) -> Any:
    shape, along = shape_of(eqn), eqn.params["dimension"]
    line = np.arange(shape[along], dtype=eqn.params["dtype"])
    wide = [-1 if d == along else 1 for d in range(len(shape))]
    every = np.broadcast_to(line.reshape(wide), shape)
    return lambda: every


@rule("reshape", "squeeze", "expand_dims")
def reshape(eqn: Any) -> Any:
    if eqn.params.get("dimensions") is not None and eqn.primitive.name == "reshape":
        raise Unknown("reshape")
    shape = shape_of(eqn)
    return lambda a: a.reshape(shape)


@rule("broadcast_in_dim")
def broadcast(eqn: Any) -> Any:
    shape, at = shape_of(eqn), [int(d) for d in eqn.params["broadcast_dimensions"]]
    if len(eqn.invars) > 1:
        raise Unknown("broadcast_in_dim")
    old, dtype = tuple(eqn.invars[0].aval.shape), dtype_of(eqn.invars[0])
    wide = [1] * len(shape)
    for d, size in zip(at, old, strict=True):
        wide[d] = size
    if prod(wide) == prod(shape):
        return lambda a: a.reshape(shape)
    if prod(shape) > SMALL:
        return lambda a: np.broadcast_to(a.reshape(wide), shape)

    def filled(a: Any) -> Any:
        out = np.empty(shape, dtype)
        out[...] = a.reshape(wide)
        return out

    return filled


@rule("transpose")
def transpose(eqn: Any) -> Any:
    order = tuple(map(int, eqn.params["permutation"]))
    return lambda a: a.transpose(order)


@rule("rev")
def reverse(eqn: Any) -> Any:
    return partial(np.flip, axis=tuple(eqn.params["dimensions"]))


@rule("concatenate")
def concatenate(eqn: Any) -> Any:
    along = eqn.params["dimension"]
    return lambda *each: np.concatenate(each, along)


@rule("stack")
def stack(eqn: Any) -> Any:
    along = eqn.params["axis"]
    return lambda *each: np.stack(each, along)


@rule("split")
def split(eqn: Any) -> Any:
    ends, along = np.cumsum(eqn.params["sizes"])[:-1], eqn.params["axis"]
    return lambda a: np.split(a, ends, along)


@rule("slice")
def cut(eqn: Any) -> Any:
    p = eqn.params
    strides = p["strides"] or [1] * len(p["start_indices"])
    bounds = zip(p["start_indices"], p["limit_indices"], strides, strict=True)
    at = tuple(slice(int(a), int(b), int(c)) for a, b, c in bounds)
    return lambda a: a[at]


def corner(starts: Sequence[Any], sizes: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """Where a window is, moved inside."""
    at = []
    for start, size, most in zip(starts, sizes, shape, strict=True):
        if size == most:
            at.append(ALL)
            continue
        first = int(start)
        first = 0 if first < 0 else first if first <= most - size else most - size
        at.append(slice(first, first + size))
    return tuple(at)


@rule("dynamic_slice")
def dynamic_slice(eqn: Any) -> Any:
    sizes = tuple(map(int, eqn.params["slice_sizes"]))
    return lambda a, *starts: a[corner(starts, sizes, a.shape)]


@rule("dynamic_update_slice")
def dynamic_update_slice(eqn: Any) -> Any:
    def put(a: Any, new: Any, *starts: Any) -> Any:
        out = np.array(a)
        out[corner(starts, new.shape, a.shape)] = new
        return out

    return put


@rule("pad")
def pad(eqn: Any) -> Any:
    edges, shape = eqn.params["padding_config"], shape_of(eqn)
    if any(low < 0 or high < 0 for low, high, _ in edges):
        raise Unknown("pad")

    def padded(a: Any, value: Any) -> Any:
        out = np.full(shape, value, a.dtype)
        inside = zip(edges, a.shape, strict=True)
        at = [
            slice(low, low + max((n - 1) * (1 + gap) + 1, 0), 1 + gap)
            for (low, _, gap), n in inside
        ]
        out[tuple(at)] = a
        return out

    return padded

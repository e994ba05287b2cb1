"""What a round and a full pass do on a GPU, each a kernel: one launch, one pass over the state.

A program works at one node, and at a stretch of columns or samples of it. The formulas are those of
`methods.primal_dual` and `Block.refresh`, which the tests hold them to. Everything is a reference
to an array in the GPU's memory; what is loaded from one beyond its end is zero.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

DOT_COLUMNS = 2048
ROUND_COLUMNS = 128
SLOPE_ROWS, SLOPE_COLUMNS = 32, 256
SLOPE_PROGRAMS = 1056  # of all nodes together: more read faster, but cost more where nobody is due
MEAN_ROWS, MEAN_COLUMNS = 32, 128


def launch(
    kernel: Callable[..., None],
    grid: tuple[int, ...],
    results: list[Any],
    args: list[Any],
    in_place: dict[int, int] | None = None,
    warps: int = 4,  # of 32 threads each
) -> Any:
    """On a CPU, for tests, the kernel is interpreted."""
    return pl.pallas_call(
        kernel,
        [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in results],
        grid=grid,
        input_output_aliases=in_place or {},
        compiler_params=triton.CompilerParams(num_warps=warps),
        interpret=jax.default_backend() == "cpu",
    )(*args)


def stretch(size: int, most: int) -> int:
    """A power of two, as a kernel's shapes must be."""
    return min(pl.next_power_of_2(size), most)


def warps(width: int, most: int) -> int:
    """No more threads than columns: with many small nodes they would crowd others out."""
    return max(1, min(most, width // 32))


def pieces(count: Array, size: int) -> Array:
    return lax.div(count + np.int32(size - 1), np.int32(size))


def loop(times: Any, body: Callable[[Any, Any], Any], start: Any) -> Any:
    times = np.int32(times) if isinstance(times, int) else times
    return lax.fori_loop(np.int32(0), times, body, start)


def places(begin: Any, size: int) -> Array:
    return begin + jnp.arange(size, dtype=jnp.int32)


def get(ref: Any, i: Any, at: Array, live: Array, dtype: Any) -> Array:
    return triton.load(ref.at[i, at], mask=live, other=0.0).astype(dtype)


# --- sampled rounds ------------------------------------------------------------------------------


def margins(rows: Array, at: Array, X: Array) -> Array:
    """(v, b) <d, x> of the picked rows."""
    n, dtype = X.shape[1], X.dtype
    width = stretch(n, DOT_COLUMNS)
    made = jax.ShapeDtypeStruct((*at.shape, pl.cdiv(n, width)), dtype)

    def kernel(rows: Any, at: Any, X: Any, out: Any) -> None:
        i, q, piece = (pl.program_id(axis) for axis in range(3))
        c = places(piece * width, width)
        of = partial(get, at=c, live=c < n, dtype=dtype)
        out[i, q, piece] = (of(rows, at[i, q]) * of(X, i)).sum()

    return launch(kernel, made.shape, [made], [rows, at, X], warps=warps(width, 8))[0].sum(-1)


def sampled(rows: Any, at: Any, slopes: Any, i: Any, c: Array, live: Array, dtype: Any) -> Array:
    """sum_q slope_q d_q of a node's picks."""

    def add(q: Any, total: Array) -> Array:
        return total + slopes[i, q] * get(rows, at[i, q], c, live, dtype)

    return loop(at.shape[1], add, jnp.zeros(c.shape, dtype))


def remember(refs: Any, i: Any, at: Any, old: Array, moved: Array, c: Array, live: Array) -> None:
    """refs: part, new, table as it was; ...; mean, table"""
    part, new, _, *_, mean, table = refs
    triton.store(mean.at[i, c], old + part[i, 0] * moved, mask=live)

    def put(q: Any, _: None) -> None:
        table[at[i, q]] = new[i, q]

    # every program of a node writes the same: cheaper than to ask which one should
    loop(at.shape[1], put, None)


def prox(y: Array, threshold: Array, shrink: Array) -> Array:
    return (y - jnp.clip(y, -threshold, threshold)) * shrink


def node_round(
    draw: tuple[Array, Array, Array],
    X: Array,
    S: Array,
    R: Array,
    mean: Array,
    kept: tuple[Array, ...],
    gain: Array,
    of_node: Array,
    wires: tuple[Array, Array],
) -> Any:
    """X, S, R; and the mean and the table where something is `kept`: (part, new, table)."""
    (v, n), dtype = X.shape, X.dtype
    width = stretch(n, ROUND_COLUMNS)

    def kernel(*refs: Any) -> None:
        rows, at, slopes, X, S, R, mean, gain, of_node, far, rho, *rest = refs
        i, c = pl.program_id(0), places(pl.program_id(1) * width, width)
        live = c < n
        of = partial(get, at=c, live=live, dtype=dtype)
        gamma, degree, ridge, threshold, shrink = (of_node[i, k] for k in range(5))
        x, old = of(X, i), of(mean, i)
        pull = jnp.zeros(width, dtype)
        for s in range(far.shape[1]):
            pull += rho[i, s] * (of(X, far[i, s]) - x)
        moved = sampled(rows, at, slopes, i, c, live, dtype)
        s = of(S, i) + gain[i, 0] * pull
        u = s + of(R, i)
        new = prox(x + gamma * (u - moved - old - ridge * x), threshold, shrink)
        results = rest[len(kept) :]
        for ref, value in zip(results[:3], (new, s, degree * (new - x) - u), strict=True):
            triton.store(ref.at[i, c], value, mask=live)
        if kept:
            remember(rest, i, at, old, moved, c, live)

    args = [*draw, X, S, R, mean, gain, of_node, *wires, *kept]
    made, in_place = [X, X, X], {4: 1, 5: 2}  # not X: neighbours read it
    if kept:
        made, in_place = [*made, X, kept[2]], {**in_place, 6: 3, len(args) - 1: 4}
    return launch(kernel, (v, pl.cdiv(n, width)), made, args, in_place, warps(width, 4))


def edge_round(
    draw: tuple[Array, Array, Array],
    X: Array,
    mean: Array,
    kept: tuple[Array, ...],
    of_node: Array,
    wires: tuple[Array, Array, Array],
    sent: Array,
) -> Any:
    """X, the messages; and the mean and the table where something is `kept`."""
    (v, n), dtype, edges = X.shape, X.dtype, sent.shape[0]
    width = stretch(n, ROUND_COLUMNS)

    def kernel(*refs: Any) -> None:
        rows, at, slopes, X, mean, of_node, own, back, rho, sent, *rest = refs
        i, c = pl.program_id(0), places(pl.program_id(1) * width, width)
        live = c < n
        of = partial(get, at=c, live=live, dtype=dtype)
        gamma, rate, ridge, threshold, shrink = (of_node[i, k] for k in range(5))
        x, old = of(X, i), of(mean, i)
        slots = range(own.shape[1])
        there = [live & (own[i, s] < edges) for s in slots]
        heard = [get(sent, back[i, s], c, there[s], dtype) for s in slots]
        moved = sampled(rows, at, slopes, i, c, live, dtype)
        g = moved + old + ridge * x
        new = prox(gamma * (x * rate - g + sum(heard[1:], heard[0])), threshold, shrink)
        results = rest[len(kept) :]
        triton.store(results[0].at[i, c], new, mask=live)
        for s in slots:
            message = 2 * rho[i, s] * new - heard[s]
            triton.store(results[1].at[own[i, s], c], message, mask=there[s])
        if kept:
            remember(rest, i, at, old, moved, c, live)

    args = [*draw, X, mean, of_node, *wires, sent, *kept]
    made, in_place = [X, sent], {3: 0}  # not what was sent: neighbours read it
    if kept:
        made, in_place = [X, sent, X, kept[2]], {3: 0, 4: 2, len(args) - 1: 3}
    return launch(kernel, (v, pl.cdiv(n, width)), made, args, in_place, warps(width, 4))


# --- full passes ---------------------------------------------------------------------------------


class Due(NamedTuple):
    """Which samples a pass is over. A node that is not due costs a program that ends at once, and
    no host waits to hear which are: what a branch or a loop would cost in every round."""

    now: Any  # (v,) whether a node is due
    first: Any  # (v,) its first sample
    counts: Any  # (v,)

    def samples(self, i: Any) -> tuple[Array, Array]:
        """A node's first, and how many to go over."""
        count = self.counts[i].astype(jnp.int32)
        return self.first[i].astype(jnp.int32), jnp.where(self.now[i], count, 0)


def slopes_anew(
    loss: Any, rows: Array, y: Array, scale: Array | None, due: Due, tile: int, X: Array, old: Array
) -> Array:
    """The table with new slopes at X of the nodes that are due."""
    (v, n), dtype = X.shape, X.dtype
    width, height = stretch(n, SLOPE_COLUMNS), stretch(tile, SLOPE_ROWS)
    programs = max(1, min(pl.cdiv(tile, height), SLOPE_PROGRAMS // v))
    numbers, kind = jax.tree.flatten(loss)
    weights = [] if scale is None else [scale]

    def kernel(rows: Any, y: Any, now: Any, first: Any, counts: Any, X: Any, *rest: Any) -> None:
        i, which = pl.program_id(0), pl.program_id(1)
        numbers, *weight, _, table = rest
        loss = jax.tree.unflatten(kind, [numbers[k] for k in range(numbers.shape[0])])
        begin, count = Due(now, first, counts).samples(i)

        def work(k: Any, _: None) -> None:
            local = places((which + k * programs) * height, height)
            mine, at = local < count, begin + local

            def add(piece: Any, z: Array) -> Array:
                c = places(piece * width, width)
                d = get(rows, at[:, None], c[None], mine[:, None] & (c < n)[None], dtype)
                return z + d * get(X, i, c, c < n, dtype)[None]

            z = loop(pl.cdiv(n, width), add, jnp.zeros((height, width), dtype)).sum(1)
            s = loss.slope(z, triton.load(y.at[at], mask=mine, other=0.0))
            if weight:
                s *= triton.load(weight[0].at[at], mask=mine, other=0.0)
            triton.store(table.at[at], s, mask=mine)

        loop(pieces(jnp.maximum(pieces(count, height) - which, 0), programs), work, None)

    constants = jnp.stack([jnp.asarray(a, dtype) for a in numbers])
    args = [rows, y, *due, X, constants, *weights, old]
    return launch(kernel, (v, programs), [old], args, {len(args) - 1: 0})[0]


def means_anew(rows: Array, due: Due, table: Array, old: Array) -> Array:
    """The means with those of the nodes that are due anew, from the table."""
    (v, n), dtype = old.shape, old.dtype
    width = stretch(n, MEAN_COLUMNS)

    def kernel(rows: Any, now: Any, first: Any, counts: Any, table: Any, _: Any, mean: Any) -> None:
        i, c = pl.program_id(0), places(pl.program_id(1) * width, width)
        begin, count = Due(now, first, counts).samples(i)

        def add(k: Any, total: Array) -> Array:
            local = places(k * MEAN_ROWS, MEAN_ROWS)
            mine, at = local < count, begin + local
            d = get(rows, at[:, None], c[None], mine[:, None] & (c < n)[None], dtype)
            return total + triton.load(table.at[at], mask=mine, other=0.0)[:, None] * d

        @pl.when(count > 0)
        def write() -> None:
            zero = jnp.zeros((MEAN_ROWS, width), dtype)
            total = loop(pieces(count, MEAN_ROWS), add, zero).sum(0)
            triton.store(mean.at[i, c], total / count.astype(dtype), mask=c < n)

    args = [rows, *due, table, old]
    return launch(kernel, (v, pl.cdiv(n, width)), [old], args, {len(args) - 1: 0})[0]

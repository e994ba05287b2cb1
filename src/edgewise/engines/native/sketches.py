"""What compiled rounds of SEGA are given: tiles of samples, and its memory in others' shape."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.declared import declared
from edgewise.engines.native.panels import Numbers, aligned, read_only
from edgewise.engines.native.sketch_kernels import Sketches
from edgewise.engines.native.vectors import WIDTH
from edgewise.gradients.memory import Memory
from edgewise.problem.block import Block, choose

MOST_COPIED = 1 << 26  # bytes of tiles
MOST_PIECES = 64
LITTLE_WORK = 1 << 16  # numbers of the data, for which no other thread is asked


def coordinates(p: Block, random_bits: Array, n: int) -> tuple[Array, ...]:
    """(steps, v b) coordinates, in the shape of `rounds.picks`: no share, and no coins."""
    every = jnp.full(len(p.counts), n)
    at = jax.vmap(lambda now: choose(now, every)[0])(random_bits[:, 0])
    batch = jnp.minimum(every, random_bits.shape[-1])
    none = jnp.zeros(0, p.labels.dtype)
    return at.reshape(len(at), -1), none, batch, jnp.zeros((len(at), 0), random_bits.dtype)


class Tiles(NamedTuple):
    """The samples of a run, as `Sketches` has them."""

    parts: Numbers
    pieces: Numbers
    tiles: Numbers
    labels: Numbers
    weights: Numbers


def no_tiles(p: Block, dtype: Any) -> Tiles:
    parts, pieces = np.empty((0, 4), np.int64), np.zeros(1, np.int64)
    tiles = aligned((0, 1, WIDTH), np.asarray(p.rows.values[:0]).dtype)
    labels = weights = np.empty(0, dtype)
    return Tiles(*map(read_only, (parts, pieces, tiles, labels, weights)))


def tiles_of(p: Block, dtype: Any) -> Tiles:
    rows, counts, first = (np.asarray(a) for a in (p.rows.values, p.counts, p.first))
    each = -(-counts // WIDTH)  # tiles of a node
    begin, n = np.cumsum(each) - each, rows.shape[1]
    little = rows.size < LITTLE_WORK
    most = int(each.max() if little else -(-each.sum() // MOST_PIECES))
    parts = [
        (i, begin[i] + t, begin[i] + min(t + most, each[i]), first[i] + t * WIDTH)
        for i in range(len(counts))
        for t in range(0, each[i], most)
    ]
    many = 1 if little else min(len(parts), MOST_PIECES)
    pieces = np.linspace(0, len(parts), many + 1).astype(np.int64)
    sample = np.arange(len(rows))
    node = np.repeat(np.arange(len(counts)), counts)
    place = begin[node] * WIDTH + sample - first[node]
    labels, weights = aligned((2, int(each.sum()) * WIDTH), dtype)
    labels[place] = p.labels
    weights[place] = 1 if p.scale is None else p.scale
    copied = each.sum() * WIDTH * n * rows.itemsize <= MOST_COPIED
    tiles = aligned((int(each.sum()) if copied else 0, n, WIDTH), rows.dtype)
    if copied:
        tiles[place // WIDTH, :, place % WIDTH] = rows
    return Tiles(*map(read_only, (np.array(parts), pieces, tiles, labels, weights)))


def sketches_of(method: Any, p: Block, made: Tiles, at: Numbers, n: int, dtype: Any) -> Sketches:
    """at (rounds, v b)."""
    gradient, (_, picked) = method.gradient, at.shape
    step, batch = 0.0, picked // len(p.ids)
    if declared(getattr(gradient, "oracle", None)) == "finite-difference":
        step = gradient.oracle.step
        step = float(np.finfo(dtype).eps) ** 0.5 if step is None else step
    numbers = [np.array([a], np.float64) for a in (step, n / max(batch, 1), p.loss.ridge)]
    sums, ahead, seen = np.zeros((len(made.parts), 1 + batch)), np.zeros(picked), np.zeros(picked)
    each = aligned(made.labels.shape, dtype)
    return Sketches(read_only(at), *made, each, sums, ahead, seen, *numbers)


def like_others(state: Any) -> Any:
    """A state whose memory of gradients is called what other estimators call theirs."""
    H, calls = state.memory.H, state.memory.calls
    return state._replace(memory=Memory(np.zeros(0, H.dtype), H, None, calls))


def as_sketch(state: Any, old: Any, rounds: int, gradient: Any, batch: Numbers) -> Any:
    """The same after so many rounds, as SEGA has it."""
    m, spent = old.memory, rounds * gradient.oracle.evaluations(gradient.batch)
    calls = jnp.asarray(np.asarray(m.calls) + rounds * batch)
    kept = m._replace(
        H=state.memory.mean, calls=calls, evaluations=jnp.asarray(np.asarray(m.evaluations) + spent)
    )
    return state._replace(memory=kept)

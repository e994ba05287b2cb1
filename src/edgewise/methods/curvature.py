"""What the nodes of `NewtonPD` tell each other of curvature, and of the graph."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.methods.class_blocks import ClassBlocks, add_diagonal, block_shape, diagonals

PROBES = 8  # random numbers a node averages with its neighbours, to see how slowly that goes
HEAD = 5 + PROBES  # whether the body is new, its version, level and epoch, what is missing, probes
FIRST_GUESS = 0.4  # of the graph's spectral gap: a random graph's
SMALLEST_GAP = 1e-4
EARLY = 1.0  # over the rounds so far: by which the gap looks larger than it is
NOISE = 1e-5  # below this differences of probes are rounding
REFRESH = (5, 10, 20, 35, 60)  # rounds in which Hessians are taken anew, then 100, 150, 225, ...
REFRESH_FROM, MOST_REFRESHES = 100, 30
EVEN = 2.0  # how much further apart neighbours are than they move, where the factor is good
BALANCE, LEAST_CHANGE, MOST_CHANGE = 0.25, 0.5, 4.0  # of the factor, at a refresh
MOST_GAIN = 8.0  # in all: where messages come late, neighbours seem further apart than they are
CARRIED = 0.01  # part of a diagonal that the next one has at least
SHARED_JITTER = 1e-5  # part of a shared matrix's diagonal: it is rounded to float32
COARSE_JITTER = 1e-2  # the same where all else is float32 too, and gradients are rounded


class Heard(NamedTuple):
    """The news of a neighbour, edge by edge."""

    present: Array  # (e,) whether anything has come
    version: Array  # (e,) of the matrix that came
    whole: Array  # (e,) whether it is the one that the neighbour has by now, and has averaged
    stale: Array  # (e,) whether the neighbour has another by now
    missing: Array  # (e,) whether the neighbour lacks a matrix
    probes: Array  # (e, PROBES)
    epoch: Array  # (e,) refreshes that the neighbour knows of
    news: Array  # (e, HEAD + body) all of it: to cut the matrix out is to copy it


def body_size(size: int, outputs: int) -> int:
    """The version, and a triangle of each of the symmetric blocks."""
    blocks, f = block_shape(size, outputs)
    return 1 + blocks * (f * (f + 1) // 2)


def pack(version: Array, A: Array) -> Array:
    """(v, 1 + b f (f + 1) / 2) the body of news."""
    rows, columns = np.tril_indices(A.shape[-1])
    parts = (version[:, None], A[..., rows, columns].reshape(len(A), -1))
    return jnp.concatenate([part.astype(jnp.float32) for part in parts], 1)


def unpack(rows: Array, shape: tuple[int, int], dtype: jnp.dtype) -> Array:
    """(e, b, f, f) symmetric blocks, from bodies or whole rows of news, which end with them."""
    blocks, f = shape
    i, j = jnp.arange(f)[:, None], jnp.arange(f)[None, :]
    low, high = jnp.minimum(i, j), jnp.maximum(i, j)
    triangle = f * (f + 1) // 2
    first = rows.shape[1] - (blocks - jnp.arange(blocks)) * triangle
    at = first[:, None, None] + high * (high + 1) // 2 + low
    return rows.at[:, at].get(mode="promise_in_bounds").astype(dtype)


def tell(
    new: Array, level: Array, missing: Array, epoch: Array, probes: Array, body: Array
) -> Array:
    """(v, HEAD + body) news."""
    marks = jnp.stack([new.astype(jnp.float32), body[:, 0], level, missing, epoch], 1)
    return jnp.concatenate([marks.astype(jnp.float32), probes.astype(jnp.float32), body], 1)


def listen(news: Array, last_level: int, dtype: jnp.dtype) -> Heard:
    marks, probes, came = news[:, :5], news[:, 5:HEAD], news[:, HEAD]
    _, version, level, missing, epoch = marks.T
    stale = came != version
    whole = ~stale & (came > 0) & (level >= last_level)
    return Heard(version > 0, came, whole, stale, missing > 0, probes.astype(dtype), epoch, news)


class Gap(NamedTuple):
    """The spectral gap of the graph, as a node sees it: the second eigenvalue of the normalised
    Laplacian. A lazy random walk takes random numbers to a common one; how much less they change
    in a round than in the one before goes to 1 - gap / 2."""

    probes: Array  # (v, PROBES)
    change: Array  # (v,) how much the probes changed in the last round that was a power of two
    estimate: Array  # (v,)


def first_gap(ids: Array, dtype: jnp.dtype) -> Gap:
    def draw(id: Array) -> Array:
        return jax.random.normal(jax.random.fold_in(jax.random.key(0), id), (PROBES,))

    probes = jax.vmap(draw)(ids).astype(jnp.float32).astype(dtype)
    zero = jnp.zeros(len(ids), dtype)
    return Gap(probes, zero, zero + FIRST_GUESS)


def next_gap(gap: Gap, heard: Array, many: Array, rounds: Array) -> Gap:
    """heard: (v, PROBES) the sum over `many` (v,) neighbours; rounds: (v,) of the node so far."""
    mean = jnp.where(many[:, None] > 0, heard / jnp.maximum(many, 1)[:, None], gap.probes)
    probes = 0.5 * (gap.probes + mean)
    probes = probes.astype(jnp.float32).astype(mean.dtype)  # as neighbours see it
    change = jnp.sqrt(((probes - gap.probes) ** 2).mean(1))
    double = (rounds >= 2) & (rounds & (rounds - 1) == 0)
    # more change than before tells nothing: somebody has begun anew
    seen = double & (rounds >= 4) & (change > NOISE) & (gap.change > change)
    ratio = jnp.where(seen, change / jnp.where(seen, gap.change, 1), 0)
    slower = jnp.minimum(ratio ** (2 / jnp.maximum(rounds, 1)), 1)
    fast = double & (rounds == 4) & (change <= NOISE)  # all have met already
    least = jnp.maximum(gap.estimate / 4, SMALLEST_GAP)
    early = EARLY / jnp.maximum(rounds, 1)  # faster modes have not died out yet
    estimate = jnp.where(seen, jnp.maximum(2 * (1 - slower) - early, least), gap.estimate)
    estimate = jnp.where(fast, 1.0, estimate)
    return Gap(probes, jnp.where(double, change, gap.change), estimate)


class Balance(NamedTuple):
    """Whether a node should hold on to its neighbours more, or less: since the last refresh, the
    sums of |x_j - x_i|^2 and of how far it moved, in the metric of its edges. A round counts by
    the part of its neighbours that had something new to say: one that is silent stays away, while
    the node comes to rest."""

    gain: Array  # (v,) of its factor
    apart: Array  # (v,)
    moved: Array  # (v,)


def balanced(b: Balance, due: Array, begun: Array) -> Balance:
    """With the gain changed, and the sums begun anew, at the nodes that are due."""
    told = begun & (b.apart > 0) & (b.moved > 0)
    ratio = jnp.where(told, b.apart / jnp.where(told, b.moved, 1) / EVEN, 1) ** BALANCE
    gain = jnp.clip(b.gain * jnp.clip(ratio, LEAST_CHANGE, MOST_CHANGE), 1 / MOST_GAIN, MOST_GAIN)
    none = jnp.zeros_like(gain)
    return Balance(*(jnp.where(due, a, c) for a, c in zip((gain, none, none), b, strict=True)))


def shared(A: Array, blocks: ClassBlocks) -> Array:
    """As neighbours will have it: float32, and still positive definite."""
    jitter = SHARED_JITTER if A.dtype == jnp.float64 else COARSE_JITTER
    return add_diagonal(A, jitter * blocks.sizes(A))


def carried(A: Array, before: Array) -> Array:
    """A with at least a part of the diagonal of what was averaged before: so a column that only
    nodes far away know of gets to everybody, some hops with every refresh."""
    return add_diagonal(A, jnp.maximum(CARRIED * diagonals(before) - diagonals(A), 0))


def scheduled(rounds: Array) -> Array:
    """(v,) how many refreshes there are in so many rounds."""
    early = (rounds[:, None] >= jnp.array(REFRESH)).sum(1)
    later = jnp.array([REFRESH_FROM * 1.5**k for k in range(MOST_REFRESHES)])
    return (early + (rounds[:, None] >= later).sum(1)).astype(jnp.int32)

"""What the nodes of `NewtonPD` tell each other of curvature."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.methods.class_blocks import ClassBlocks, add_diagonal, block_shape, diagonals
from edgewise.methods.edge_factor import PROBES
from edgewise.problem.block import Block, match

HEAD = 5 + PROBES  # whether the body is new, its version, level and epoch, what is missing, probes
REFRESH = (5, 12, 30, 65)  # rounds in which Hessians are taken anew, then 100, 150, 225, ...
REFRESH_FROM, MOST_REFRESHES = 100, 30
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


def with_ridge(p: Block, H: Array, X: Array) -> Array:
    return ClassBlocks.of(p).with_diagonal(H, p.ridge(jnp.ones_like(X)))


def average(p: Block, body: Array, heard: Heard, alike: Array, like: Array) -> Array:
    """(v, b, f, f) what is told, averaged once more with that of neighbours who are as far.
    like: for its shape and type."""
    shape = like.shape[1], like.shape[2]
    own, came = unpack(body, shape, like.dtype), unpack(heard.news, shape, like.dtype)
    mixing = jnp.where(alike, p.links.mixing, 0)
    rest = 1 - p.links.gather(mixing[:, None], len(like))[:, 0]
    return match(rest, own) * own + p.links.gather(match(mixing, came) * came, len(like))

"""What the nodes of `NewtonPD` tell each other of curvature, and of the graph."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

PROBES = 8  # random numbers a node averages with its neighbours, to see how slowly that goes
HEAD = 3 + PROBES  # whether the body is new, its version, whether something is missing, probes
FIRST_GUESS = 0.4  # of the graph's spectral gap: a random graph's
SMALLEST_GAP = 1e-4
NOISE = 1e-5  # below this differences of probes are rounding


class Heard(NamedTuple):
    """The news of a neighbour, edge by edge."""

    known: Array  # (e,) whether a matrix has come
    stale: Array  # (e,) whether it is not the one that the neighbour has by now
    missing: Array  # (e,) whether the neighbour lacks a matrix
    probes: Array  # (e, PROBES)
    present: Array  # (e,) whether anything has come
    matrices: Array  # (e, n, n)


def body_size(n: int) -> int:
    """The version, and one triangle of a symmetric matrix."""
    return 1 + n * (n + 1) // 2


def tell(new: Array, version: Array, missing: Array, probes: Array, A: Array) -> Array:
    """(v, HEAD + body) news."""
    rows, columns = np.tril_indices(A.shape[1])
    marks = jnp.stack([new, version, missing], 1)
    parts = (marks, probes, version[:, None], A[:, rows, columns])
    return jnp.concatenate([part.astype(jnp.float32) for part in parts], 1)


def listen(news: Array, n: int, dtype: jnp.dtype) -> Heard:
    marks, probes, body = jnp.split(news, [3, HEAD], axis=1)
    version, missing = marks[:, 1], marks[:, 2]
    i, j = jnp.arange(n)[:, None], jnp.arange(n)[None, :]
    low, high = jnp.minimum(i, j), jnp.maximum(i, j)
    packed = body[:, 1:].astype(dtype)
    matrices = packed.at[:, high * (high + 1) // 2 + low].get(mode="promise_in_bounds")
    known, stale = body[:, 0] > 0, body[:, 0] != version
    return Heard(known, stale, missing > 0, probes.astype(dtype), version > 0, matrices)


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
    probes = (
        (0.5 * (gap.probes + mean)).astype(jnp.float32).astype(mean.dtype)
    )  # as neighbours see it
    change = jnp.sqrt(((probes - gap.probes) ** 2).mean(1))
    double = (rounds >= 2) & (rounds & (rounds - 1) == 0)
    seen = double & (rounds >= 4) & (change > NOISE) & (gap.change > NOISE)
    ratio = jnp.where(seen, change / jnp.where(seen, gap.change, 1), 0)
    slower = jnp.minimum(ratio ** (2 / jnp.maximum(rounds, 1)), 1)
    fast = double & (rounds == 4) & (change <= NOISE)  # all have met already
    estimate = jnp.where(seen, 2 * (1 - slower), jnp.where(fast, 1.0, gap.estimate))
    return Gap(probes, jnp.where(double, change, gap.change), jnp.maximum(estimate, SMALLEST_GAP))

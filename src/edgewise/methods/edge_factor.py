"""How strongly the nodes of `NewtonPD` hold on to their neighbours: by the graph, and by how a run
goes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

PROBES = 8  # random numbers a node averages with its neighbours, to see how slowly that goes
FIRST_GUESS = 0.4  # of the graph's spectral gap: a random graph's
SMALLEST_GAP = 1e-4
EARLY = 1.0  # over the rounds so far: by which the gap looks larger than it is
NOISE = 1e-5  # below this differences of probes are rounding
TILT_UP, TILT_DOWN, MOST_TILT = 8.0, 0.7, 256.0  # of a coordinate that is held, or no longer
HELD = 0.01  # part of how far neighbours were that they still are
EVEN = 2.0  # how much further apart neighbours are than they move, where the factor is good
BALANCE, LEAST_CHANGE, MOST_CHANGE = 0.25, 0.5, 4.0  # of the factor, at a refresh
MOST_GAIN = 8.0  # in all: where messages come late, neighbours seem further apart than they are


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
    the node comes to rest.

    A coordinate that a penalty holds, at a bound, say, while neighbours stay elsewhere, gets a
    tilt: until the duals have grown enough nothing moves, and they grow with P_ij."""

    gain: Array  # (v,) of its factor
    apart: Array  # (v,)
    moved: Array  # (v,)
    tilt: Array  # (v, n) of a coordinate, beyond the gain
    still: Array  # (v, n) whether it has not moved since the last refresh
    far: Array  # (v, n) the largest sum_j (x_j - x_i)^2 since then


def first_balance(X: Array) -> Balance:
    none, zero = jnp.zeros(len(X), X.dtype), jnp.zeros_like(X)
    return Balance(none + 1, none, none, zero + 1, zero == 0, zero)


def watched(b: Balance, apart: Array, far: Array, moved: Array, way: Array) -> Balance:
    """After a round. apart, way: (v,) |x_j - x_i|^2 added up and |moved|^2, in the metric of the
    edges; far: (v, n) sum_j (x_j - x_i)^2; all of neighbours with something new to say."""
    still = b.still & (moved == 0)
    return Balance(b.gain, b.apart + apart, b.moved + way, b.tilt, still, jnp.maximum(b.far, far))


def balanced(b: Balance, far: Array, due: Array, begun: Array) -> Balance:
    """With gain and tilt changed, and all else begun anew, at the nodes that are due."""
    told = begun & (b.apart > 0) & (b.moved > 0)
    ratio = jnp.where(told, b.apart / jnp.where(told, b.moved, 1) / EVEN, 1) ** BALANCE
    gain = jnp.clip(b.gain * jnp.clip(ratio, LEAST_CHANGE, MOST_CHANGE), 1 / MOST_GAIN, MOST_GAIN)
    held = b.still & (far > 0) & (far >= HELD * b.far)
    tilt = jnp.clip(b.tilt * jnp.where(held, TILT_UP, TILT_DOWN), 1, MOST_TILT)
    tilt = jnp.where((begun & (b.apart > 0))[:, None], tilt, b.tilt)
    none, zero = jnp.zeros_like(gain), jnp.zeros_like(tilt)
    new = Balance(gain, none, none, tilt, zero == 0, zero)
    rows = due[:, None]
    return Balance(
        *(jnp.where(due if a.ndim == 1 else rows, a, c) for a, c in zip(new, b, strict=True))
    )

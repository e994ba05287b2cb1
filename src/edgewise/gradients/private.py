"""Gradients of clipped samples, with noise: what a differentially private run releases."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.contract import EstimatorDefaults, Exactness
from edgewise.gradients.memory import Calls
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures
from edgewise.problem.passes import SampleChunk, fold, match
from edgewise.problem.rows import Dense, DenseSlab, SparseSlab, Taken

BITS_A_PAIR = 3  # 32-bit numbers that two normal ones are made of: 64 bits of a radius, an angle
HALF = 2.0**-32


@pytree("size")
class PrivateGradient(EstimatorDefaults):
    """The mean of all samples' gradients, each clipped, with Gaussian noise (Abadi et al. 2016):

        g_i = (a_i / K_i) (sum_k clip_C(grad f(x, k)) + z C xi) + ridge,   xi standard normal

    C: clip, a bound on a sample's whole gradient, intercept included; z: noise; a_i: how much the
    samples of node i count. What a sample adds to a node's sum is C long at most, wherever the
    model is, so that z alone says what a round costs (`differential_privacy`). A gradient that is
    no number counts as zero.

    Steps come from public numbers alone: 1/L by a bound on the rows, and no longer in all rounds
    together than noise of this size leaves of use (`private_method`).

    Not with random bits that come from a seed which others know: they would take the noise away.
    """

    size: int  # of a model
    clip: Any
    noise: Any
    reach: Any  # a node's step, times a_i/K_i, at most
    longest: Any  # a step at most
    share: Any = None  # a_i/K_i, where it is the same at all nodes; None: 1/K_i
    secret_draws: ClassVar[bool] = True

    @property
    def random_draws(self) -> int:
        return BITS_A_PAIR * -(-self.size // 2)

    @property
    def exactness(self) -> Exactness:
        return "no"

    def auto_step(self, s: Curvatures) -> np.ndarray:
        share = 1 / s.counts if self.share is None else np.full(len(s.counts), self.share)
        return np.minimum(np.minimum(1 / s.sample, self.reach / share), self.longest)

    def init(self, p: Block, X: Array) -> Calls:
        return Calls(jnp.zeros(X.shape[0], jnp.int64))

    def __call__(self, p: Block, X: Array, m: Calls, random_bits: Array) -> tuple[Array, Calls]:
        share = 1.0 if p.scale is None else p.scale.at[p.first].get(mode="promise_in_bounds")
        deviation = self.noise * self.clip * share / p.counts
        xi = normals(random_bits)[:, : self.size].astype(X.dtype)
        G = clipped_means(p, X, self.clip) + deviation[:, None].astype(X.dtype) * xi + p.ridge(X)
        return G, Calls(m.calls + p.counts)


def clipped_means(p: Block, X: Array, clip: Any) -> Array:
    """(v, n) means of the samples' gradients, each at most a_k times `clip` long."""

    def visit(part: SampleChunk, mean: Array) -> Array:
        s = part.slopes(p, part.of(X))
        most = clip if part.scale is None else clip * part.scale
        squares = jnp.square(s) if s.ndim == 2 else jnp.square(s).sum(-1)
        length = jnp.sqrt(squares * squared_lengths(p, part))
        factor = jnp.minimum(1, most / jnp.maximum(length, jnp.finfo(s.dtype).tiny))
        s = jnp.where(match(jnp.isfinite(length), s), s * match(factor, s), 0)
        return part.place.add(mean, part.spread(p, s) / part.of(p.counts)[:, None])

    due = jnp.ones(X.shape[0], bool) if p.active is None else p.active
    if isinstance(p.rows, Dense):  # a GPU's are read where they lie, and lengths need them here
        p = Block(*p)._replace(rows=Dense(p.rows.values, p.rows.tile))
    means: Array = fold(p, due, visit, jnp.zeros_like(X), X.dtype)
    return means


def squared_lengths(p: Block, part: SampleChunk) -> Any:
    """(c, T) of what a slope is multiplied by: the row, and 1 for an intercept."""
    if not p.loss.linear:
        return 1.0
    rows, ones = part.rows, 0.0 if p.mask is None else 1.0
    if isinstance(rows, SparseSlab):
        groups = jnp.square(rows.values).sum(-1)
        return jax.ops.segment_sum(groups, rows.rows, rows.shape[0])[None] + ones
    if isinstance(rows, DenseSlab):
        return jnp.square(rows.values).sum(-1)[None] + ones
    return jnp.square(rows.values if isinstance(rows, Taken) else rows).sum(-1) + ones


def normals(random_bits: Array) -> Array:
    """(v, 2m) standard normal numbers from (v, 3m) random bits (Box, Muller 1958). The radius is
    of 64 bits: it goes up to 9.4, beyond which lies less than 1e-20 of the normal's weight."""
    first, second, third = jnp.split(random_bits.astype(jnp.float64), BITS_A_PAIR, 1)
    radius = jnp.sqrt(-2 * jnp.log(HALF * (first + HALF * (second + 0.5))))
    angle = 2 * jnp.pi * HALF * (third + 0.5)
    return jnp.concatenate([radius * jnp.cos(angle), radius * jnp.sin(angle)], 1)

"""Random bits: a function of (seed, node, round) alone, so that every engine draws the same."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.random import threefry_2x32


def draw(seed: Array, ids: Array, rounds: Array, draws: int) -> Array:
    """(rounds, v, draws) 32-bit numbers."""
    i, r = jnp.broadcast_arrays(ids[None].astype(jnp.uint32), rounds[:, None].astype(jnp.uint32))

    def pair(j: Array) -> Array:
        key = jax.random.key_data(jax.random.fold_in(seed, j))
        return jnp.stack(threefry_2x32(key, jnp.stack([i, r])))

    pairs = jax.vmap(pair)(jnp.arange(-(-draws // 2)))
    both = 2 * len(pairs)  # said, not -1: one node alone has no edges to draw for
    return jnp.moveaxis(pairs.reshape(both, *i.shape)[:draws], 0, -1)


draw_bits = jax.jit(draw, static_argnums=3)

"""Random words: a function of (seed, node, round) alone, so that every engine draws the same."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.random import threefry_2x32


def draw(seed: Array, ids: Array, rounds: Array, words: int) -> Array:
    """(rounds, v, words) 32-bit words."""
    i, r = jnp.broadcast_arrays(ids[None].astype(jnp.uint32), rounds[:, None].astype(jnp.uint32))
    halves: list[Array] = []
    for j in range(-(-words // 2)):
        key = jax.random.key_data(jax.random.fold_in(seed, j))
        halves.extend(threefry_2x32(key, jnp.stack([i, r])))
    if not halves:
        return jnp.zeros((*i.shape, 0), jnp.uint32)
    return jnp.stack(halves[:words], -1)


draw_words = jax.jit(draw, static_argnums=3)

"""Random bits: a function of (seed, node, round) alone, so that every engine draws the same."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.random import threefry_2x32

from edgewise.backend.numpy_random import threefry


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


def seed_key(seed: int) -> Array:
    """`jax.random.key(seed)`, which would compile a program for it."""
    settings: Any = jax.config
    if settings.jax_default_prng_impl != "threefry2x32" or not 0 <= seed < 1 << 63:
        return jax.random.key(seed)
    both: Any = np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)
    return jax.random.wrap_key_data(both)


def draw_by_numpy(seed: Array, ids: Any, rounds: np.ndarray, draws: int) -> np.ndarray:
    """The same numbers as `draw`."""
    key = np.asarray(jax.random.key_data(seed))
    i, r = np.broadcast_arrays(np.asarray(ids, np.uint32)[None], rounds.astype(np.uint32)[:, None])
    made = np.empty((*i.shape, draws), np.uint32)
    for j in range(0, draws, 2):
        k0, k1 = threefry(key[0], key[1], np.uint32(0), np.uint32(j // 2))
        pair = threefry(k0, k1, i, r)
        made[..., j : j + 2] = np.stack(pair, -1)[..., : draws - j]
    return made

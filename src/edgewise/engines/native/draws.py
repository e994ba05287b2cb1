"""The samples that compiled rounds take: XLA draws them, so that there is one copy of that."""

import jax
import jax.numpy as jnp
from jax import Array

from edgewise.problem.block import Block


def picks(p: Block, random_bits: Array, coins: int) -> tuple[Array, ...]:
    """(steps, v b) samples, (v b,) their shares and (v,) how many they are, as every round has; and
    (steps, v coins) bits that estimators toss before they draw."""
    tossed, bits = random_bits[:, 0, :, :coins], random_bits[:, 0, :, coins:]
    at = jax.vmap(lambda now: p.pick(now).at)(bits)
    one = p.pick(bits[0])
    tossed = tossed.reshape(len(at), -1) if coins else jnp.zeros((len(at), 0), tossed.dtype)
    return at.reshape(len(at), -1), one.share.reshape(-1), one.batch, tossed

"""JAX's random numbers, drawn by NumPy: Threefry, bit for bit."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.backend.numpy_rules import Unknown, rule

ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
PARITY = np.uint32(0x1BD11BDA)


def threefry(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Twenty rounds of Threefry-2x32 on arrays of uint32 (Salmon et al. 2011)."""
    keys = k0, k1, k0 ^ k1 ^ PARITY
    with np.errstate(over="ignore"):
        x0, x1 = x0 + k0, x1 + k1
        for k in range(5):
            for by in ROTATIONS[k % 2]:
                x0 = x0 + x1
                x1 = ((x1 << np.uint32(by)) | (x1 >> np.uint32(32 - by))) ^ x0
            x0, x1 = x0 + keys[(k + 1) % 3], x1 + keys[(k + 2) % 3] + np.uint32(k + 1)
    return x0, x1


def counters(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The halves of 0, 1, 2, ... as numbers of 64 bits."""
    every = np.arange(int(np.prod(shape)), dtype=np.uint64).reshape(shape)
    return (every >> np.uint64(32)).astype(np.uint32), every.astype(np.uint32)


def require_known(eqn: Any) -> None:
    settings: Any = jax.config
    keys = [v.aval for v in (*eqn.invars, *eqn.outvars)]
    made = [a.dtype for a in keys if jnp.issubdtype(a.dtype, jax.dtypes.prng_key)]
    if not settings.jax_threefry_partitionable or any(str(d) != "key<fry>" for d in made):
        raise Unknown(eqn.primitive.name)


@rule("threefry2x32")
def draw(eqn: Any) -> Any:
    return threefry


@rule("random_wrap", "random_unwrap")
def same(eqn: Any) -> Any:
    require_known(eqn)
    return lambda key: key


def seeded(numbers: Any) -> Any:
    wide = numbers.astype(f"u{numbers.dtype.itemsize}").astype(np.uint64)
    halves = (wide >> np.uint64(32)).astype(np.uint32), wide.astype(np.uint32)
    return np.stack(halves, -1)


def halves(key: Any, more: int) -> tuple[Any, Any]:
    """Of keys, with so many more axes."""
    wide = key.reshape(*key.shape[:-1], *[1] * more, 2)
    return wide[..., 0], wide[..., 1]


@rule("random_seed")
def seed(eqn: Any) -> Any:
    require_known(eqn)
    return seeded


@rule("random_fold_in")
def fold_in(eqn: Any) -> Any:
    require_known(eqn)

    def fold(key: Any, number: Any) -> Any:
        new = seeded(number)
        both = threefry(key[..., 0], key[..., 1], new[..., 0], new[..., 1])
        return np.stack(np.broadcast_arrays(*both), -1)

    return fold


@rule("random_bits")
def random_bits(eqn: Any) -> Any:
    require_known(eqn)
    width, shape = eqn.params["bit_width"], tuple(eqn.params["shape"])
    if width not in (32, 64):
        raise Unknown("random_bits")
    high, low = counters(shape)

    def bits(key: Any) -> Any:
        a, b = threefry(*halves(key, len(shape)), high, low)
        if width == 32:
            return a ^ b
        return (a.astype(np.uint64) << np.uint64(32)) | b.astype(np.uint64)

    return bits


@rule("random_split")
def split(eqn: Any) -> Any:
    require_known(eqn)
    shape = tuple(eqn.params["shape"])
    high, low = counters(shape)

    def each(key: Any) -> Any:
        return np.stack(np.broadcast_arrays(*threefry(*halves(key, len(shape)), high, low)), -1)

    return each

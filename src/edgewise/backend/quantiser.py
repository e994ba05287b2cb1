"""Vectors as few bits: rounded changes of a message that the receiver holds already.

The simulator (`Faults(bits=...)`) and peers (`bits` of a fit) both use this, the one with JAX, the
others with NumPy, and come to the same bits: the unit that numbers are rounded to is a power of
two, so that products with it are exact, whether or not a compiler fuses them with a sum.

Rows are vectors, each by itself. `xp` is numpy or jax.numpy.
"""

from typing import Any, NamedTuple

import numpy as np

UNIT_BYTES = 2  # of an exponent
IDLE = 4  # messages on end that the older of two held vectors may go unused


class Held(NamedTuple):
    """What a receiver holds of two messages, as it made them of what came.

    Two, as messages of the edge form end up going to and fro between two values, and each is to be
    a small change of something. Which of the two values comes next is not known where messages are
    skipped or nodes sleep, so a change is of the nearer one.
    """

    recent: Any  # (v, n) the last message
    other: Any  # (v, n) an earlier one
    run: Any  # (v, 1) messages in a row that were changes of the last before them


def hold(vectors: Any, xp: Any = np, run: int = 0) -> Held:
    """After a message that came whole; run is -1 where that is still to be sent, as no change."""
    return Held(vectors, vectors, xp.full((len(vectors), 1), run, np.int32))


def nearer(held: Held, vectors: Any, xp: Any = np) -> tuple[Any, Any]:
    """(v, 1) whether the next change is of `other`; (v, n) what it is of."""
    recent, other = (xp.abs(vectors - h).max(1, keepdims=True) for h in held[:2])
    from_other = other < recent
    return from_other, xp.where(from_other, held.other, held.recent)


def take(held: Held, from_other: Any, vectors: Any, xp: Any = np) -> Held:
    """After a message: it takes the place of what it is a change of. Where that has been the last
    message for some time, it takes the place of the other: while all messages are nearer to each
    other than to that one, both values would be kept in one place, as changes that never vanish.
    """
    swap = from_other | (held.run >= IDLE)
    return Held(vectors, xp.where(swap, held.recent, held.other), xp.where(swap, 0, held.run + 1))


def quantise(vectors: Any, bits: int, xp: Any = np) -> tuple[Any, Any]:
    """(v, n) whole numbers of `bits` bits, sign included, and (v, 1) the exponent of their unit:
    the least power of two by which all numbers of a vector are in reach, each rounded to the
    nearest. A vector whose numbers are nearly all below the normal ones is taken for zero, as
    XLA may take those for zero too."""
    largest = xp.abs(vectors).max(1, keepdims=True)
    fraction, exponent = xp.frexp(largest)
    exponent = exponent - (bits - 1) + (fraction > 1 - 2.0 ** (1 - bits))
    none = (largest == 0) | (exponent < np.finfo(vectors.dtype).minexp + 2)
    exponent = xp.where(none, 0, exponent)
    return xp.where(none, 0, xp.rint(xp.ldexp(vectors, -exponent))), exponent


def restore(codes: Any, exponents: Any, xp: Any = np) -> Any:
    """(v, n) the vectors that these stand for."""
    return xp.ldexp(codes, exponents)


def packed_bytes(numbers: int, bits: int) -> int:
    """Of so many numbers, in whole bytes."""
    return -(-numbers * bits // 8)

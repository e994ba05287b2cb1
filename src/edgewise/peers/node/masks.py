"""Pairwise masks: what a peer tells of its own numbers is noise, and the noise of all adds up to
nothing.

Each pair of neighbours agrees on a key by X25519, over their mutual TLS, with key pairs that serve
one sum and are kept in memory only. HKDF and ChaCha20 make of it as many 128-bit numbers as are
summed: the lower of the two adds them to its own, the higher subtracts them, modulo 2^128. Numbers
are whole multiples of 2^-53, so that all of it is exact (Bonawitz and others 2017, without their
shares for peers that drop out: a sum with masks needs all peers).

What a peer tells is independent of its numbers to whoever does not have one of its masks: only all
its neighbours together can take them off. Peers that collude and cut the network in parts learn
each part's sum, as they would of any sum.
"""

from collections.abc import Mapping
from math import isfinite

import numpy as np

from edgewise.errors import DataError, InputError
from edgewise.peers.transport.reports import UNIT

try:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError as missing:
    raise InputError(
        f"masks need cryptography ({missing}): pip install 'edgewise[peers]'"
    ) from missing

BYTES = 16
MODULUS = 1 << 8 * BYTES
UNIT_BITS = 53  # numbers are multiples of 2^-53
LARGEST = 2.0**72  # of a sum, in absolute value: with its sign it is far from the modulus
NONCE = bytes(16)  # a key makes one stream


def fixed_point(numbers: np.ndarray, nodes: int) -> tuple[int, ...]:
    """The nearest multiples of 2^-53, as whole numbers, if sums of so many peers' have room."""
    most = LARGEST / nodes
    made = []
    for number in map(float, numbers):
        if not isfinite(number) or abs(number) > most:
            raise DataError(
                f"{number:g} cannot be added up with masks: give finite numbers of at most "
                f"{most:.1e}, in larger units if need be"
            )
        n, d = number.as_integer_ratio()
        made.append((2 * n * (1 << UNIT_BITS) + d) // (2 * d))
    return tuple(made)


def floating_point(sums: tuple[int, ...]) -> np.ndarray:
    """The nearest float64 of each, from modulo 2^128 back to a sign."""
    return np.array([centred(n) / (1 << UNIT_BITS) for n in sums], np.float64)


def centred(n: int) -> int:
    """From modulo 2^128 back to a sign."""
    return (n + MODULUS // 2) % MODULUS - MODULUS // 2


def public_in(other: int, sums: tuple[int, ...]) -> tuple[int, int]:
    """A neighbour's key, as a report carries it; ValueError where it is none."""
    halves = tuple(n // UNIT for n in sums)
    if len(halves) != 2 or not all(0 <= n < MODULUS for n in halves):
        raise ValueError(f"peer {other} says no usable key")
    return halves[0], halves[1]


class Masker:
    """One peer's keys for one sum."""

    def __init__(self, me: int, name: str) -> None:
        self.me, self.name = me, name
        self.key = X25519PrivateKey.generate()

    @property
    def public(self) -> tuple[int, int]:
        """Two numbers, as a report carries them."""
        raw = self.key.public_key().public_bytes_raw()
        return int.from_bytes(raw[:BYTES], "little"), int.from_bytes(raw[BYTES:], "little")

    def stream(self, other: int, public: tuple[int, int], count: int) -> list[int]:
        """The numbers that this peer and that neighbour share, and nobody else has."""
        raw = b"".join(half.to_bytes(BYTES, "little") for half in public)
        shared = self.key.exchange(X25519PublicKey.from_public_bytes(raw))
        mine = self.key.public_key().public_bytes_raw()
        ends = sorted([(self.me, mine), (other, raw)])
        about = "|".join(["edgewise masked sum", self.name, *(f"{i}:{k.hex()}" for i, k in ends)])
        key = HKDF(hashes.SHA256(), 32, salt=None, info=about.encode()).derive(shared)
        made = Cipher(ChaCha20(key, NONCE), mode=None).encryptor().update(bytes(BYTES * count))
        return [int.from_bytes(made[k : k + BYTES], "little") for k in range(0, len(made), BYTES)]

    def masked(
        self, own: tuple[int, ...], publics: Mapping[int, tuple[int, int]]
    ) -> tuple[int, ...]:
        """Own numbers under the masks with all neighbours."""
        sums = list(own)
        for other, public in publics.items():
            sign = 1 if self.me < other else -1
            mask = self.stream(other, public, len(own))
            sums = [n + sign * m for n, m in zip(sums, mask, strict=True)]
        return tuple(n % MODULUS for n in sums)

"""Messages as few bits: the change since one that the receiver has, rounded.

Both ends of a stream keep two messages as the receiver made them, so that what rounding left out of
one comes with a later one, and nothing of it stays. A new stream begins with a whole message.

Messages of the edge form end up going to and fro between two values, unless one was left out for a
newer one. So a change is of whichever of the two kept is nearer, and takes its place.
"""

import struct

import numpy as np

from edgewise.peers.transport.frames import Format, Garbage, require_usual

PLACE = struct.Struct("<B")  # of the message that it is a change of


class Changes:
    """One end of a stream, this way."""

    def __init__(self, format: Format) -> None:
        self.bits, self.shape = format.bits or 0, format.shape
        self.held: list[np.ndarray] = []

    def keep(self, vectors: np.ndarray, place: int = 0) -> np.ndarray:
        if len(self.held) < 2:
            self.held.append(vectors)
        else:
            self.held[place] = vectors
        return vectors

    def shrink(self, vectors: np.ndarray) -> bytes:
        place = int(np.argmin([np.abs(vectors - held).max() for held in self.held]))
        change = vectors - self.held[place]
        most = 2 ** (self.bits - 1) - 1
        unit = np.abs(change).max(1, keepdims=True) / most
        codes = np.rint(change / np.where(unit > 0, unit, 1)).astype(np.int64)
        self.keep(self.held[place] + unit * codes, place)
        packed = packed_bits((codes + most).astype(np.uint32), self.bits)
        return PLACE.pack(place) + unit.astype("<f8").tobytes() + packed

    def grow(self, body: bytes | memoryview) -> np.ndarray:
        """The message that a body of the right length stands for."""
        k, n = self.shape
        (place,) = PLACE.unpack_from(body)
        if place >= len(self.held):
            raise Garbage(f"a change of message {place}, where {len(self.held)} came")
        at = PLACE.size + 8 * k
        unit = np.frombuffer(body[PLACE.size : at], "<f8")[:, None]
        most = 2 ** (self.bits - 1) - 1
        codes = unpacked_bits(body[at:], self.bits, k * n).astype(np.int64) - most
        with np.errstate(all="ignore"):
            vectors = self.held[place] + unit * codes.reshape(k, n)
        require_usual(vectors)
        return self.keep(vectors, place)


def packed_bits(codes: np.ndarray, bits: int) -> bytes:
    """The lowest bits of each number, one after the other."""
    octets = codes.astype(">u4").reshape(-1, 1).view(np.uint8)
    return np.packbits(np.unpackbits(octets, axis=1)[:, 32 - bits :]).tobytes()


def unpacked_bits(data: bytes | memoryview, bits: int, count: int) -> np.ndarray:
    each = np.unpackbits(np.frombuffer(data, np.uint8), count=bits * count).reshape(count, bits)
    wide = np.zeros((count, 32), np.uint8)
    wide[:, 32 - bits :] = each
    return np.packbits(wide, axis=1).view(">u4").ravel()

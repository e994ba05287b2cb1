"""Messages as few bits: the change since one that the receiver has, rounded (`backend.quantiser`).

Both ends of a stream hold two messages as the receiver made them, so that what rounding left out of
one comes with a later one, and nothing of it stays. A new stream begins with a whole message. News
go with either as they are.
"""

import numpy as np

from edgewise.backend.quantiser import Held, hold, nearer, quantise, restore, take
from edgewise.peers.transport.frames import (
    DELTA,
    EXPONENT,
    VECTORS,
    Frame,
    MessageFormat,
    ProtocolError,
    require_finite,
)


class DeltaCodec:
    """One end of a stream, one way."""

    def __init__(self, format: MessageFormat) -> None:
        self.bits, self.shape = format.bits or 0, format.shape
        self.held: Held | None = None

    def whole(self, vectors: np.ndarray) -> None:
        """A message that goes or came with all of its digits."""
        self.held = hold(vectors)

    def encode(self, vectors: np.ndarray) -> bytes:
        """The body of a frame, once a whole message has gone."""
        assert self.held is not None
        from_other, base = nearer(self.held, vectors)
        codes, exponents = quantise(vectors - base, self.bits)
        self.held = take(self.held, from_other, base + restore(codes, exponents))
        offset = 2 ** (self.bits - 1) - 1
        packed = pack_bits((codes + offset).astype(np.uint32), self.bits)
        return from_other.astype(np.uint8).tobytes() + exponents.astype(EXPONENT).tobytes() + packed

    def decode(self, body: bytes | memoryview) -> np.ndarray:
        """The message that a body of the right length stands for."""
        k, n = self.shape
        of = np.frombuffer(body[:k], np.uint8)[:, None]
        if self.held is None or of.max(initial=0) > 1:
            raise ProtocolError("a change of a message that never came")
        at = k * (1 + EXPONENT.itemsize)
        exponents = np.frombuffer(body[k:at], EXPONENT)[:, None].astype(np.int32)
        offset = 2 ** (self.bits - 1) - 1
        codes = unpack_bits(body[at:], self.bits, k * n).astype(np.float64) - offset
        base = np.where(of == 1, self.held.other, self.held.recent)
        with np.errstate(all="ignore"):
            vectors: np.ndarray = base + restore(codes.reshape(k, n), exponents)
        require_finite(vectors)
        self.held = take(self.held, of == 1, vectors)
        return vectors


def decode_delta(frame: Frame, codec: DeltaCodec) -> Frame:
    """The frame as if it had come with all of its numbers."""
    if frame.kind == VECTORS:
        codec.whole(frame.payload.astype(np.float64))
    if frame.kind != DELTA:
        return frame
    return frame._replace(kind=VECTORS, payload=codec.decode(frame.payload))


def pack_bits(codes: np.ndarray, bits: int) -> bytes:
    """The lowest bits of each number, one after the other."""
    octets = codes.astype(">u4").reshape(-1, 1).view(np.uint8)
    return np.packbits(np.unpackbits(octets, axis=1)[:, 32 - bits :]).tobytes()


def unpack_bits(data: bytes | memoryview, bits: int, count: int) -> np.ndarray:
    each = np.unpackbits(np.frombuffer(data, np.uint8), count=bits * count).reshape(count, bits)
    wide = np.zeros((count, 32), np.uint8)
    wide[:, 32 - bits :] = each
    return np.packbits(wide, axis=1).view(">u4").ravel()

"""What goes over a wire between two peers: a fixed head, then numbers or a little text.

Nothing in a frame is trusted before it has been checked, and nothing is ever unpickled.
"""

import struct
from typing import Any, NamedTuple

import numpy as np

HEAD = struct.Struct("<2sBBBBHQQQIIIQ")
MAGIC, VERSION = b"EW", 1
HELLO, VECTORS, BYE, CHANGE = 1, 2, 3, 4
WIRES: dict[str, tuple[int, np.dtype[Any]]] = {
    "float32": (1, np.dtype("<f4")),
    "float64": (2, np.dtype("<f8")),
}
MOST_TEXT = 1 << 16  # bytes of a greeting
NEVER = (1 << 64) - 1
MOST = {4: 1e30, 8: 1e100}  # that a number may be, by its bytes


class Garbage(Exception):
    """A frame that cannot be what a peer sent; the reason is for our own log alone."""


class Frame(NamedTuple):
    kind: int
    round: int = 0  # that the vectors belong to
    saved: int = 0  # the round of the sender's last checkpoint: older messages may be forgotten
    stop: int = NEVER  # the round that the sender means to stop at
    calm: int = 0  # for how many hops around the sender all residuals are small
    sender: int = 0
    receiver: int = 0
    payload: Any = b""  # bytes, or (k, n) numbers


class Format(NamedTuple):
    """What two peers have agreed that vectors look like."""

    vectors: int
    size: int
    wire: str
    bits: int | None = None  # of the numbers in a change, where changes may come

    @property
    def shape(self) -> tuple[int, int]:
        return self.vectors, self.size

    @property
    def whole_bytes(self) -> int:
        return self.vectors * self.size * WIRES[self.wire][1].itemsize

    @property
    def change_bytes(self) -> int:
        """Which message it is a change of, a unit for each vector, and the numbers."""
        return 1 + 8 * self.vectors + -(-(self.bits or 0) * self.vectors * self.size // 8)


def encode(frame: Frame, wire: str = "float64", change: Format | None = None) -> bytes:
    """change: of the vectors that the payload, already made, is a change of."""
    code, k, count, body = 0, 0, len(frame.payload), frame.payload
    if change is not None:
        code, (k, count) = change.bits or 0, change.shape
    elif frame.kind == VECTORS:
        code, dtype = WIRES[wire]
        numbers = np.ascontiguousarray(frame.payload, dtype)
        (k, count), body = numbers.shape, numbers.data
    head = (frame.round, frame.saved, frame.stop, frame.calm, frame.sender, frame.receiver)
    return b"".join((HEAD.pack(MAGIC, VERSION, frame.kind, code, k, 0, *head, count), body))


def decode(data: bytes, sender: int, receiver: int, format: Format) -> Frame:
    """The frame, if it is one from this sender to this receiver, of the sizes and in the precision
    that were agreed on. A change is left packed."""
    if len(data) < HEAD.size:
        raise Garbage(f"{len(data)} bytes are no frame")
    magic, version, kind, code, k, zero, round, saved, stop, calm, who, whom, count = HEAD.unpack(
        data[: HEAD.size]
    )
    if magic != MAGIC or version != VERSION or not HELLO <= kind <= CHANGE or zero:
        raise Garbage("no frame of this protocol")
    if (who, whom) != (sender, receiver):
        raise Garbage(f"from {who} to {whom}, not from {sender} to {receiver}")
    body = memoryview(data)[HEAD.size :]
    head = (kind, round, saved, stop, calm, who, whom)
    if kind in (HELLO, BYE):
        if code or k or count != len(body) or count > MOST_TEXT:
            raise Garbage("a text of a wrong length")
        return Frame(*head, bytes(body))
    agreed, dtype = WIRES[format.wire]
    expected = agreed if kind == VECTORS else format.bits
    if (code, k, count) != (expected, *format.shape):
        raise Garbage(f"{k} vectors of {count} numbers in precision {code}")
    if len(body) != (format.whole_bytes if kind == VECTORS else format.change_bytes):
        raise Garbage(f"{len(body)} bytes for {k} x {count} numbers")
    if kind == CHANGE:
        return Frame(*head, bytes(body))
    numbers = np.frombuffer(body, dtype).reshape(k, count)
    require_usual(numbers)
    return Frame(*head, numbers)


def require_usual(numbers: np.ndarray) -> None:
    """Beyond this a few more steps would come to what is not finite, and stay there."""
    if not np.abs(numbers).max(initial=0) <= MOST[numbers.dtype.itemsize]:
        raise Garbage("numbers that are not finite, or nearly so")


def largest(format: Format) -> int:
    """Bytes of the largest frame that anybody may send."""
    return HEAD.size + max(MOST_TEXT, format.whole_bytes, format.change_bytes)

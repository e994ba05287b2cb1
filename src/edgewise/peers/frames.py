"""What goes over a wire between two peers: a fixed head, then numbers or a little text.

Nothing in a frame is trusted before it has been checked, and nothing is ever unpickled.
"""

import struct
from typing import Any, NamedTuple

import numpy as np

HEAD = struct.Struct("<2sBBBBHQQQIIIQ")
MAGIC, VERSION = b"EW", 1
HELLO, VECTORS, BYE = 1, 2, 3
WIRES: dict[str, tuple[int, np.dtype[Any]]] = {
    "float32": (1, np.dtype("<f4")),
    "float64": (2, np.dtype("<f8")),
}
MOST_TEXT = 1 << 16  # bytes of a greeting
NEVER = (1 << 64) - 1


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


def encode(frame: Frame, wire: str = "float64") -> bytes:
    code, k, count, body = 0, 0, len(frame.payload), frame.payload
    if frame.kind == VECTORS:
        code, dtype = WIRES[wire]
        numbers = np.ascontiguousarray(frame.payload, dtype)
        (k, count), body = numbers.shape, numbers.tobytes()
    head = (frame.round, frame.saved, frame.stop, frame.calm, frame.sender, frame.receiver)
    return HEAD.pack(MAGIC, VERSION, frame.kind, code, k, 0, *head, count) + body


def decode(data: bytes, sender: int, receiver: int, vectors: int, size: int, wire: str) -> Frame:
    """The frame, if it is one from this sender to this receiver, of the sizes and in the precision
    that were agreed on."""
    if len(data) < HEAD.size:
        raise Garbage(f"{len(data)} bytes are no frame")
    magic, version, kind, code, k, zero, round, saved, stop, calm, who, whom, count = HEAD.unpack(
        data[: HEAD.size]
    )
    if magic != MAGIC or version != VERSION or kind not in (HELLO, VECTORS, BYE) or zero:
        raise Garbage("no frame of this protocol")
    if (who, whom) != (sender, receiver):
        raise Garbage(f"from {who} to {whom}, not from {sender} to {receiver}")
    body = memoryview(data)[HEAD.size :]
    head = (kind, round, saved, stop, calm, who, whom)
    if kind != VECTORS:
        if code or k or count != len(body) or count > MOST_TEXT:
            raise Garbage("a text of a wrong length")
        return Frame(*head, bytes(body))
    agreed, dtype = WIRES[wire]
    if (code, k, count) != (agreed, vectors, size):
        raise Garbage(f"{k} vectors of {count} numbers in precision {code}")
    if len(body) != k * count * dtype.itemsize:
        raise Garbage(f"{len(body)} bytes for {k} x {count} numbers")
    numbers = np.frombuffer(body, dtype).reshape(k, count)
    if not np.isfinite(numbers).all():
        raise Garbage("numbers that are not finite")
    return Frame(*head, numbers)


def largest(vectors: int, size: int, wire: str) -> int:
    """Bytes of the largest frame that anybody may send."""
    return HEAD.size + max(MOST_TEXT, vectors * size * WIRES[wire][1].itemsize)

"""What goes over a wire between two peers: a fixed header, then numbers or a little text.

docs/protocol.md says it in words. Nothing in a frame is trusted before it has been checked, and
nothing is ever unpickled.
"""

import struct
from typing import Any, NamedTuple

import numpy as np

from edgewise.backend.quantiser import UNIT_BYTES, packed_bytes

HEADER = struct.Struct("<2sBBBBHQQQIIIIII")
MAGIC, VERSION = b"EW", 4
GREETING, VECTORS, FAREWELL, DELTA, HEARTBEAT, SUM, REFUSAL = 1, 2, 3, 4, 5, 6, 7
PRECISIONS: dict[str, tuple[int, np.dtype[Any]]] = {
    "float32": (1, np.dtype("<f4")),
    "float64": (2, np.dtype("<f8")),
}
NEWS = np.dtype("<f4")
FLAGS = tuple(np.array(flag, NEWS).tobytes() for flag in (0, 1))
EXPONENT = np.dtype(f"<i{UNIT_BYTES}")  # of the unit of a delta's numbers
MAX_TEXT = 1 << 16  # bytes of a greeting
MAX_SUM = 80  # bytes of a number in a report of sums
NEVER = (1 << 64) - 1
NO_LOSS = (1 << 16) - 1
LARGEST_NUMBER = {4: 1e30, 8: 1e100}  # by its bytes


class ProtocolError(Exception):
    """A frame that cannot be what a peer sent; the reason is for our own log alone."""


class OtherVersion(ProtocolError):
    """A frame of this protocol, as another release of Edgewise speaks it: where magic and version
    are in the header, all versions agree on."""

    def __init__(self, version: int) -> None:
        super().__init__(f"a frame of version {version} of the protocol, and this is {VERSION}")
        self.version = version


class Frame(NamedTuple):
    kind: int
    round: int = 0  # that the vectors belong to
    saved: int = 0  # the round of the sender's last checkpoint: older messages may be forgotten
    stop: int = NEVER  # the round that the sender means to stop at
    converged_hops: int = 0  # for how many hops around the sender all residuals are small
    sender: int = 0
    receiver: int = 0
    payload: Any = b""  # bytes, or (k, n) numbers
    news: Any = ()  # with vectors: numbers of a head, and of the body where its flag is 1
    lost_hops: int = NO_LOSS  # how far the nearest peer is that lost a neighbour
    turn: int = 0  # tolerant: the sender's, by which neighbours keep pace


class MessageFormat(NamedTuple):
    """What two peers have agreed that vectors look like."""

    vectors: int
    size: int
    wire: str
    bits: int | None = None  # of the numbers in a delta, where deltas may come
    head: int = 0  # numbers of news that go with every message, a flag first
    body: int = 0  # numbers of news that go where the flag is 1
    sums: int = 0  # numbers that a report of sums may have

    @property
    def shape(self) -> tuple[int, int]:
        return self.vectors, self.size

    @property
    def whole_bytes(self) -> int:
        return self.vectors * self.size * PRECISIONS[self.wire][1].itemsize

    @property
    def delta_bytes(self) -> int:
        """For each vector which message it is a change of and a unit, then the numbers."""
        numbers = packed_bytes(self.vectors * self.size, self.bits or 0)
        return self.vectors * (1 + EXPONENT.itemsize) + numbers

    @property
    def news_bytes(self) -> int:
        """Head and body."""
        return (self.head + self.body) * NEWS.itemsize

    @property
    def report_bytes(self) -> int:
        return MAX_TEXT + MAX_SUM * self.sums if self.sums else 0


def encode(frame: Frame, wire: str = "float64", delta: MessageFormat | None = None) -> bytes:
    """delta: of the vectors that the payload, already encoded, is a change of."""
    code, k, count, body = 0, 0, len(frame.payload), frame.payload
    if delta is not None:
        code, (k, count) = delta.bits or 0, delta.shape
    elif frame.kind == VECTORS:
        code, dtype = PRECISIONS[wire]
        numbers = np.ascontiguousarray(frame.payload, dtype)
        (k, count), body = numbers.shape, numbers.data
    news = np.ascontiguousarray(frame.news, NEWS).data
    progress = (frame.round, frame.saved, frame.stop, frame.converged_hops, frame.turn)
    ends = (frame.sender, frame.receiver)
    sizes = count, memoryview(body).nbytes + news.nbytes
    rest = (frame.lost_hops, *progress, *ends, *sizes)
    return b"".join((HEADER.pack(MAGIC, VERSION, frame.kind, code, k, *rest), body, news))


def frame_bytes(header: bytes | bytearray, max_frame_bytes: int) -> int:
    """Of the whole frame, before there is more of it than its header, or room for it."""
    magic, version, *_, length = HEADER.unpack(header)
    require_version(magic, version)
    if length > max_frame_bytes - HEADER.size:
        raise ProtocolError(f"a frame of {length} bytes, {max_frame_bytes} are the most")
    return HEADER.size + int(length)


def require_version(magic: bytes, version: int) -> None:
    if magic != MAGIC:
        raise ProtocolError("no frame of this protocol")
    if version != VERSION:
        raise OtherVersion(version)


def decode(data: bytes | bytearray, sender: int, receiver: int, format: MessageFormat) -> Frame:
    """The frame, if it is one from this sender to this receiver, of the sizes and in the precision
    that were agreed on. A delta is left packed."""
    if len(data) < HEADER.size:
        raise ProtocolError(f"{len(data)} bytes are no frame")
    magic, version, kind, code, k, *progress, who, whom, count, length = HEADER.unpack_from(data)
    lost, round, saved, stop, hops, turn = progress
    require_version(magic, version)
    if not GREETING <= kind <= REFUSAL:
        raise ProtocolError("no frame of this protocol")
    if (who, whom) != (sender, receiver):
        raise ProtocolError(f"from {who} to {whom}, not from {sender} to {receiver}")
    body = memoryview(data)[HEADER.size :]
    header = (kind, round, saved, stop, hops, who, whom)
    if kind in (GREETING, FAREWELL, HEARTBEAT, SUM, REFUSAL):
        most = {HEARTBEAT: 0, SUM: format.report_bytes}.get(kind, MAX_TEXT)
        if code or k or not count == length == len(body) or count > most:
            raise ProtocolError("a text of a wrong length")
        return Frame(*header, bytes(body), (), lost, turn)
    agreed, dtype = PRECISIONS[format.wire]
    expected = agreed if kind == VECTORS else format.bits
    if (code, k, count) != (expected, *format.shape):
        raise ProtocolError(f"{k} vectors of {count} numbers in precision {code}")
    size = format.whole_bytes if kind == VECTORS else format.delta_bytes
    if not length == len(body) == size + told_bytes(body[size:], format):
        raise ProtocolError(f"{len(body)} bytes for {k} x {count} numbers")
    news = np.frombuffer(body[size:], NEWS) if format.head else ()
    require_finite(np.asarray(news, NEWS))
    if kind == DELTA:
        return Frame(*header, bytes(body[:size]), news, lost, turn)
    numbers = np.frombuffer(body[:size], dtype).reshape(k, count)
    require_finite(numbers)
    return Frame(*header, numbers, news, lost, turn)


def told_bytes(news: memoryview, format: MessageFormat) -> int:
    """As many as there must be of news, by their flag."""
    if not format.head:
        return 0
    flag = bytes(news[: NEWS.itemsize])
    if flag not in FLAGS:
        raise ProtocolError("news with no flag of 0 or 1")
    return format.news_bytes if FLAGS.index(flag) else format.head * NEWS.itemsize


def vectors_in(data: bytes, format: MessageFormat) -> int:
    """Of an encoded frame of vectors, where a body of news counts as one, as in every trace."""
    size = format.whole_bytes if data[3] == VECTORS else format.delta_bytes
    told = len(data) - HEADER.size - size
    return format.vectors + (told > format.head * NEWS.itemsize)


def content_of(data: bytes, format: MessageFormat) -> str:
    """What an encoded frame tells, in a word."""
    kind = data[3]
    if kind not in (VECTORS, DELTA):
        return {SUM: "sums", GREETING: "greetings"}.get(kind, "signals")
    return "matrices" if vectors_in(data, format) > format.vectors else "vectors"


def require_finite(numbers: np.ndarray) -> None:
    """Beyond this a few more steps would come to what is not finite, and stay there."""
    if not np.abs(numbers).max(initial=0) <= LARGEST_NUMBER[numbers.dtype.itemsize]:
        raise ProtocolError("numbers that are not finite, or nearly so")


def max_frame_bytes(format: MessageFormat) -> int:
    """Bytes of the largest frame that anybody may send."""
    vectors = max(format.whole_bytes, format.delta_bytes)
    return HEADER.size + max(MAX_TEXT, vectors + format.news_bytes, format.report_bytes)

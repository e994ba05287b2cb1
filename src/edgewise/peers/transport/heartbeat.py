"""Whether the other end of a stream is alive: both ends say so where nothing else goes."""

import asyncio
import time
from typing import Any, Protocol

from edgewise.peers.transport.failure_reasons import ConnectionFailure
from edgewise.peers.transport.frames import HEARTBEAT, Frame, encode

LOOK = 1.0  # seconds between two looks
BEAT = 1.5  # seconds without a byte out after which this end says that it is there
DEAD = 6.0  # seconds without a byte in after which the other is not: frozen, or the line is cut


class Stream(Protocol):
    """What carries frames: `TlsStream`."""

    dialled: bool  # by this end
    heard_at: float  # when bytes came last, and when some went, by time.monotonic
    sent_at: float
    writing: int  # frames on their way out

    async def read(self) -> Any: ...

    async def write(self, frame: bytes) -> None: ...

    def serial(self) -> int | None: ...  # of the other side's certificate


async def keep_alive(stream: Stream, me: int, other: int) -> None:
    """Raises when the other end is silent. A frame that comes slowly is no silence; nor does it
    count while this process itself was stopped."""
    beat = encode(Frame(HEARTBEAT, sender=me, receiver=other))
    awake = time.monotonic()
    while True:
        looked_at = time.monotonic()
        await asyncio.sleep(LOOK)
        now = time.monotonic()
        awake = now if now - looked_at > 2 * LOOK else awake
        if now - max(stream.heard_at, awake) > DEAD:
            raise ConnectionFailure(f"nothing was heard of it for {DEAD:.0f} s")
        if now - stream.sent_at > BEAT and not stream.writing:
            await stream.write(beat)

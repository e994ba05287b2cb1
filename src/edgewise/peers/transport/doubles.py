"""One number on two hosts: which of the two a peer goes on talking to.

Every start of a peer has a token of its own, its incarnation. A stream from a neighbour with
another token, while there is one already, is of a neighbour that was started again, and nobody has
found out that its old stream is dead; or of a second one with the same key, on another host. It is
held until that is known: until the old stream ends, or is still being heard some seconds later.
"""

import asyncio
import logging
import time
from typing import Protocol

from edgewise.peers.transport.frames import HEARTBEAT, REFUSAL, Frame, encode
from edgewise.peers.transport.heartbeat import BEAT, Stream

log = logging.getLogger("edgewise.peers")

ALIVE = 2 * BEAT  # seconds after which what was on the way has come, and a heartbeat too
LOOK = 0.1  # seconds
MAX_SHOWN = 200  # letters


class Refused(Exception):
    """What a neighbour says why it does not take this peer."""


class Double(ConnectionError):
    """The neighbour runs a second time."""


class Held(Protocol):
    """What is asked of a link."""

    me: int
    other: int
    connected: bool
    stream: Stream | None  # that there is already


async def outlast(link: Held, stream: Stream) -> None:
    """Until the stream that there is has ended; raises Double, having told the caller, if it does
    not. The caller hears heartbeats meanwhile."""
    came, old = time.monotonic(), link.stream
    ends = {"sender": link.me, "receiver": link.other}
    while link.connected and old is not None and link.stream is old:
        if old.heard_at > came + ALIVE:
            addresses = getattr(old, "address", "?"), getattr(stream, "address", "?")
            text = (
                f"another peer {link.other} is connected, from {addresses[0]}: end one of the two"
            )
            await stream.write(encode(Frame(REFUSAL, **ends, payload=text.encode())))
            log.warning(
                "peer %d runs twice: it is connected from %s, and the one at %s, started apart "
                "with the same key, is refused. End one of the two",
                link.other,
                *addresses,
                extra={"neighbour": link.other},
            )
            raise Double(text)
        if time.monotonic() - stream.sent_at > BEAT:
            await stream.write(encode(Frame(HEARTBEAT, **ends)))
        await asyncio.sleep(LOOK)


def refusal_in(frame: Frame) -> Refused:
    """As it can be shown: somebody else chose the words."""
    text = bytes(frame.payload).decode(errors="replace")
    return Refused(
        text if text.isprintable() and len(text) <= MAX_SHOWN else repr(text[:MAX_SHOWN])
    )

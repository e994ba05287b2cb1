"""What a peer and a relay say to each other before the relay passes on bytes: an object of JSON
each way, with its length before it."""

import asyncio
import json
import struct
from typing import Any

from edgewise.peers.transport.failure_reasons import ForeignWords
from edgewise.peers.transport.tls_stream import TlsStream

VERSION = 1
LENGTH = struct.Struct("<H")
MOST_WORDS = 1000  # bytes
MAX_SHOWN = 200  # letters


class NoRelay(ForeignWords):
    """What was said is not what a relay, or a peer that wants one, says."""


async def say(stream: TlsStream, **words: Any) -> None:
    text = json.dumps({"relay": VERSION, **words}).encode()
    await stream.write(LENGTH.pack(len(text)) + text)


async def heard(stream: TlsStream, seconds: float) -> dict[str, Any]:
    """Nothing beyond the object is read: what follows is for somebody else."""
    length = bytearray(LENGTH.size)
    try:
        async with asyncio.timeout(seconds):
            await stream.fill(memoryview(length))
            (size,) = LENGTH.unpack(length)
            if size > MOST_WORDS:
                raise NoRelay(f"it says %d bytes where {MOST_WORDS} are the most: no relay", size)
            text = bytearray(size)
            await stream.fill(memoryview(text))
    except TimeoutError:
        raise NoRelay(f"it said nothing within {seconds:.0f} s") from None
    try:
        words = json.loads(text)
        version = words["relay"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NoRelay("it does not speak as a relay, or to one") from None
    if version != VERSION:
        raise NoRelay(
            f"it speaks version %.20s of what relays do, and this {VERSION}", repr(version)
        )
    return dict(words)


def shown(text: Any) -> str:
    """Words that somebody else chose."""
    text = str(text)
    plain = text.isprintable() and len(text) <= MAX_SHOWN
    return text if plain else repr(text[:MAX_SHOWN])

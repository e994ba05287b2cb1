"""What comes first over a stream."""

import asyncio
import json
from typing import Any, NamedTuple

from edgewise.peers.transport.failure_reasons import ConnectionFailure
from edgewise.peers.transport.frames import GREETING, VERSION, Frame, ProtocolError
from edgewise.peers.transport.heartbeat import Stream

GREETING_TIMEOUT = 20.0  # seconds in which a new stream must bring a greeting


def other_version(id: int, theirs: Any) -> str:
    """What is wrong with the version that a neighbour speaks, or nothing."""
    if theirs == VERSION:
        return ""
    return (
        f"peer {id} speaks version {theirs!s:.20} of the protocol of peers, and this peer "
        f"{VERSION}: install the same release of Edgewise at all of them"
    )


class Greeting(NamedTuple):
    said: dict[str, Any]
    resume_at: int
    incarnation: str


async def first_frame(stream: Stream) -> bytes:
    try:
        async with asyncio.timeout(GREETING_TIMEOUT):
            data: bytes | None = await stream.read()
    except TimeoutError:
        raise ConnectionFailure(f"it said nothing within {GREETING_TIMEOUT:.0f} s") from None
    if data is None:
        raise ConnectionFailure(
            "it hung up without a greeting, as one does that does not take it for a neighbour: "
            "is it in that one's TOML?"
        )
    return data


def greeting_in(first: Frame) -> Greeting:
    if first.kind != GREETING:
        raise ProtocolError("no greeting")
    try:
        said = json.loads(first.payload)
        greeting = Greeting(said, int(said["resume_at"]), str(said["incarnation"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as wrong:
        raise ProtocolError("a greeting that cannot be read") from wrong
    if greeting.resume_at < 0:
        raise ProtocolError(f"a greeting that asks for round {greeting.resume_at}")
    return greeting

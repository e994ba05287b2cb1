"""Edges as streams: one for each neighbour, whoever of the two dials."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, Protocol

import numpy as np

from edgewise.peers.node.stepper import Facts, Pair
from edgewise.peers.transport.delta_encoding import Changes
from edgewise.peers.transport.frames import (
    BYE,
    CHANGE,
    HELLO,
    NEVER,
    VECTORS,
    WIRES,
    Format,
    Frame,
    Garbage,
    decode,
    encode,
)
from edgewise.peers.transport.wakeup import News

log = logging.getLogger("edgewise.peers")

HURRY = 20.0  # seconds in which a new stream must bring a greeting
FAR_AHEAD = 1_000_000  # rounds; nobody loses so many messages in a row


class Mismatch(Exception):
    """A neighbour is set up differently."""


class Stream(NamedTuple):
    """Whoever of the two dialled."""

    read: Callable[[], Awaitable[Any]]
    write: Callable[[bytes], Awaitable[Any]]
    eof: Any


class Host(Protocol):
    """What a link asks its peer."""

    def greet(self, link: "Link") -> dict[str, Any]: ...

    def meet(self, link: "Link", said: dict[str, Any]) -> None: ...


class Link:
    """What has come from a neighbour, and what is to go to it.

    In strict mode messages stay in `sent` until the neighbour has them in a checkpoint, and go out
    again over a new stream if it asks. In tolerant mode only the latest counts, either way.
    """

    def __init__(
        self, me: int, other: int, strict: bool, format: Format, ahead: int, news: News
    ) -> None:
        """ahead: rounds that it may be ahead of this peer when that is back from a checkpoint."""
        self.me, self.other, self.strict, self.format = me, other, strict, format
        self.ahead = ahead
        self.news = news
        self.sent: dict[int, bytes] = {}
        self.latest: Frame | None = None
        self.unsent = False
        self.next_out, self.work = 0, asyncio.Event()
        self.mail: dict[int, Frame] = {}  # strict: by round; tolerant: the newest alone
        self.newest, self.fresh, self.stale = -1, False, 0
        self.need = 0  # the round that strict waits for
        self.told: Facts | None = None  # what this peer last said of itself
        self.pair: Pair | None = None  # once they have met
        self.dropped = False
        self.life, self.their_round = "", 0
        self.calm, self.stop, self.saved, self.gone = 0, NEVER, 0, False
        self.farewell: bytes | None = None
        self.said_farewell = False
        self.heard_at = time.monotonic()
        self.bytes_sent = self.bytes_heard = self.garbage = self.streams = 0
        self.connected = False
        self.prompt = False  # whether it speaks over this stream, and in time
        self.ending: asyncio.Event | None = None

    # --- to send ---------------------------------------------------------------------------------

    def post(self, frame: Frame) -> None:
        if self.strict:
            self.sent[frame.round] = encode(frame, self.format.wire)
        else:
            self.latest, self.unsent = frame, True
        self.work.set()

    def say_farewell(self, frame: bytes) -> None:
        self.farewell = frame
        self.work.set()

    async def speak(self, stream: Stream) -> None:
        changes = None if self.format.bits is None else Changes(self.format)
        while True:
            data = self.next_message(changes)
            if data is not None:
                await self.send(stream, data)
            elif self.farewell is not None and not self.said_farewell:
                await self.send(stream, self.farewell)
                self.said_farewell = True
                self.news.set()
            else:
                self.work.clear()
                await self.work.wait()

    async def send(self, stream: Stream, data: bytes) -> None:
        await stream.write(data)  # waits while the neighbour is slow to read
        self.bytes_sent += len(data)

    def next_message(self, changes: Changes | None) -> bytes | None:
        if self.strict:
            data = self.sent.get(self.next_out)
            self.next_out += data is not None
            return data
        frame, unsent = self.latest, self.unsent
        self.unsent = False
        if frame is None or not unsent:
            return None
        if changes is None:
            return encode(frame, self.format.wire)
        if changes.held:
            small = frame._replace(kind=CHANGE, payload=changes.shrink(frame.payload))
            return encode(small, change=self.format)
        changes.keep(frame.payload.astype(WIRES[self.format.wire][1]).astype(np.float64))
        return encode(frame, self.format.wire)

    # --- to hear ---------------------------------------------------------------------------------

    async def listen(self, stream: Stream) -> None:
        changes = None if self.format.bits is None else Changes(self.format)
        while True:
            data = await stream.read()
            if data is stream.eof:
                return
            frame = decode(data, self.other, self.me, self.format)
            self.bytes_heard += len(data)
            self.heard_at = time.monotonic()
            if frame.kind == HELLO:
                raise Garbage("a second greeting")
            if changes is not None:
                frame = whole(frame, changes)
            self.take(frame)
            self.news.frame()

    def take(self, frame: Frame) -> None:
        self.require_timely(frame)
        self.stop = min(self.stop, frame.stop)
        if frame.kind == BYE:
            self.gone = True
        if frame.saved > self.saved:
            self.saved = frame.saved
            self.sent = {r: f for r, f in self.sent.items() if r >= frame.saved}
        if frame.kind != VECTORS:
            return
        self.prompt = True
        if self.strict:
            if frame.round >= self.need:
                self.mail[frame.round] = frame
        elif frame.round > self.newest:
            self.mail = {0: frame}
            self.newest, self.fresh = frame.round, True

    def require_timely(self, frame: Frame) -> None:
        """Before anything is believed: what it has saved lets this peer forget messages."""
        if frame.saved > frame.round:
            raise Garbage(f"saved round {frame.saved} before it came to {frame.round}")
        if self.strict and frame.round > self.need + self.ahead:  # it cannot be there without us
            raise Garbage(f"round {frame.round}, {self.need} is awaited")
        known = max(self.newest, self.their_round)
        if not self.strict and frame.round > known + FAR_AHEAD:
            raise Garbage(f"round {frame.round} after {known}")
        if frame.stop < frame.round:
            raise Garbage(f"to stop at {frame.stop}, in round {frame.round}")

    def has(self, round: int) -> bool:
        return (round in self.mail) if self.strict else self.fresh

    def open(self, round: int) -> np.ndarray | None:
        """(k, n) the vectors for a round; in tolerant mode the last that came, if any did."""
        if self.strict:
            self.need, frame = round + 1, self.mail.pop(round)
            self.calm = frame.calm  # of this round, not of a later one that came early
        elif self.mail:
            frame = self.mail[0]
            self.stale = 0 if self.fresh else self.stale + 1
            self.calm = frame.calm if self.fresh else self.calm
            self.fresh = False
        else:
            return None
        vectors: np.ndarray = frame.payload
        return vectors

    # --- a stream --------------------------------------------------------------------------------

    async def talk(self, stream: Stream, host: Host) -> None:
        """Until the stream ends; a newer one to the same neighbour ends this one."""
        self.hang_up()
        ending = self.ending = asyncio.Event()
        try:
            await self.get_acquainted(stream, host, ending)
            await self.until(ending, self.listen(stream), self.speak(stream))
        finally:
            if self.ending is ending:
                self.ending = None
                if self.connected:
                    log.info("peer %d is away", self.other, extra={"neighbour": self.other})
                self.connected = self.prompt = False
            self.news.set()

    def hang_up(self) -> None:
        if self.ending is not None:
            self.ending.set()

    async def until(self, ending: asyncio.Event, *work: Coroutine[Any, Any, Any]) -> None:
        tasks = [asyncio.ensure_future(w) for w in (*work, ending.wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def get_acquainted(self, stream: Stream, host: Host, ending: asyncio.Event) -> None:
        hello = json.dumps(host.greet(self)).encode()
        greeting = Frame(HELLO, sender=self.me, receiver=self.other, payload=hello)
        await self.send(stream, encode(greeting))
        data = await asyncio.wait_for(stream.read(), HURRY)
        if data is stream.eof:
            raise ConnectionError("it hung up")
        if self.ending is not ending:
            raise ConnectionError("there is a newer stream")
        self.bytes_heard += len(data)
        first = decode(data, self.other, self.me, self.format)
        if first.kind != HELLO:
            raise Garbage("no greeting")
        try:
            said = json.loads(first.payload)
            wants, life = int(said["wants"]), str(said["life"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as wrong:
            raise Garbage("a greeting that cannot be read") from wrong
        if wants < 0:
            raise Garbage(f"a greeting that asks for round {wants}")
        host.meet(self, said)
        if self.life != life:
            self.newest = -1  # it has begun anew, and its rounds with it
        self.life, self.their_round = life, wants
        self.next_out, self.unsent = wants, True  # what was under way may be lost
        self.said_farewell = self.prompt = self.dropped = False
        self.streams += 1
        self.connected, self.heard_at = True, time.monotonic()
        self.news.set()
        log.info("peer %d is connected", self.other, extra={"neighbour": self.other})

    def complain(self, what: object) -> None:
        """Count garbage, and log it."""
        self.garbage += 1
        log.warning("peer %d cut off: %s", self.other, what, extra={"neighbour": self.other})


def whole(frame: Frame, changes: Changes) -> Frame:
    """The frame as if it had come with all of its numbers."""
    if frame.kind == VECTORS:
        changes.keep(frame.payload.astype(np.float64))
    if frame.kind != CHANGE:
        return frame
    return frame._replace(kind=VECTORS, payload=changes.grow(frame.payload))

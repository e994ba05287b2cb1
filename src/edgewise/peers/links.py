"""Edges as streams: one for each neighbour, whoever of the two dials."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import numpy as np

from edgewise.peers.frames import BYE, HELLO, NEVER, VECTORS, Frame, Garbage, decode, encode

log = logging.getLogger("edgewise.peers")

HURRY = 20.0  # seconds in which a new stream must bring a greeting
FAR_AHEAD = 1_000_000  # rounds; nobody loses so many messages in a row
QUIET = 10.0  # seconds between two log lines about one neighbour's garbage


class Mismatch(Exception):
    """A neighbour is set up differently."""


class Link:
    """What has come from a neighbour, and what is to go to it.

    Messages to send stay in `outgoing` until the neighbour has them in a checkpoint (strict), or
    until there is a newer one (tolerant), and are sent again over a new stream if it asks.
    """

    def __init__(
        self, me: int, other: int, strict: bool, wire: str, ahead: int, news: asyncio.Event
    ) -> None:
        """ahead: rounds that it may be ahead of this peer when that is back from a checkpoint."""
        self.ahead = ahead
        self.me, self.other, self.strict, self.wire = me, other, strict, wire
        self.vectors = self.size = 0  # known once the problem is
        self.news = news  # set whenever anything comes
        self.outgoing: dict[int, bytes] = {}
        self.next_out, self.work = 0, asyncio.Event()
        self.mail: dict[int, Frame] = {}  # strict: by round; tolerant: the newest alone
        self.newest, self.fresh = -1, False
        self.need = 0  # the round that strict waits for
        self.greeting: dict[str, Any] | None = None
        self.calm, self.stop, self.saved, self.gone = 0, NEVER, 0, False
        self.farewell: bytes | None = None
        self.said_farewell = False
        self.heard_at = time.monotonic()
        self.bytes_sent = self.bytes_heard = self.garbage = self.streams = 0
        self.connected = False
        self.complained = -QUIET
        self.ending: asyncio.Event | None = None

    # --- to send ---------------------------------------------------------------------------------

    def post(self, round: int, frame: bytes) -> None:
        if not self.strict:
            self.outgoing.clear()
        self.outgoing[round] = frame
        self.work.set()

    def say_farewell(self, frame: bytes) -> None:
        self.farewell = frame
        self.work.set()

    async def speak(self, write: Callable[[bytes], Awaitable[Any]]) -> None:
        while True:
            ready = [r for r in self.outgoing if r >= self.next_out]
            if ready:
                round = min(ready)
                frame = self.outgoing[round]
                self.next_out = round + 1
                await write(frame)  # waits while the neighbour is slow to read
                self.bytes_sent += len(frame)
            elif self.farewell is not None and not self.said_farewell:
                await write(self.farewell)
                self.said_farewell = True
                self.news.set()
            else:
                self.work.clear()
                await self.work.wait()

    # --- to hear ---------------------------------------------------------------------------------

    async def listen(self, read: Callable[[], Awaitable[Any]], eof: Any) -> None:
        while True:
            data = await read()
            if data is eof:
                return
            frame = decode(data, self.other, self.me, self.vectors, self.size, self.wire)
            self.bytes_heard += len(data)
            self.heard_at = time.monotonic()
            if frame.kind == HELLO:
                raise Garbage("a second greeting")
            self.take(frame)
            self.news.set()

    def take(self, frame: Frame) -> None:
        self.require_timely(frame)
        self.saved = frame.saved
        self.stop = min(self.stop, frame.stop)
        if frame.kind == BYE:
            self.gone = True
        if self.strict:
            self.outgoing = {r: f for r, f in self.outgoing.items() if r >= frame.saved}
        if frame.kind != VECTORS:
            return
        if self.strict:
            if frame.round >= self.need:
                self.mail[frame.round] = frame
        elif frame.round > self.newest:
            self.mail, self.calm = {0: frame}, frame.calm
            self.newest, self.fresh = frame.round, True

    def require_timely(self, frame: Frame) -> None:
        """Before anything is believed: what it has saved lets this peer forget messages."""
        if frame.saved > frame.round:
            raise Garbage(f"saved round {frame.saved} before it came to {frame.round}")
        if self.strict and frame.round > self.need + self.ahead:  # it cannot be there without us
            raise Garbage(f"round {frame.round}, {self.need} is awaited")
        if not self.strict and frame.round > self.newest + FAR_AHEAD:
            raise Garbage(f"round {frame.round} after {self.newest}")

    def has(self, round: int) -> bool:
        return (round in self.mail) if self.strict else self.fresh

    def open(self, round: int) -> np.ndarray:
        """(k, n) the vectors for a round; in tolerant mode the last that came."""
        if self.strict:
            self.need, frame = round + 1, self.mail.pop(round)
            self.calm = frame.calm  # of this round, not of a later one that came early
        else:
            self.fresh, frame = False, self.mail[0]
        vectors: np.ndarray = frame.payload
        return vectors

    # --- a stream --------------------------------------------------------------------------------

    async def talk(
        self,
        read: Callable[[], Awaitable[Any]],
        write: Callable[[bytes], Awaitable[Any]],
        eof: Any,
        greet: Callable[["Link"], dict[str, Any]],
        meet: Callable[["Link", dict[str, Any]], None],
    ) -> None:
        """Until the stream ends; a newer one to the same neighbour ends this one."""
        if self.ending is not None:
            self.ending.set()
        ending = self.ending = asyncio.Event()
        try:
            await self.get_acquainted(read, write, eof, greet, meet)
            await self.until(ending, self.listen(read, eof), self.speak(write))
        finally:
            if self.ending is ending:
                self.ending = None
                if self.connected:
                    log.info("peer %d is away", self.other)
                self.connected = False
            self.news.set()

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

    async def get_acquainted(
        self,
        read: Callable[[], Awaitable[Any]],
        write: Callable[[bytes], Awaitable[Any]],
        eof: Any,
        greet: Callable[["Link"], dict[str, Any]],
        meet: Callable[["Link", dict[str, Any]], None],
    ) -> None:
        hello = json.dumps(greet(self)).encode()
        await write(encode(Frame(HELLO, sender=self.me, receiver=self.other, payload=hello)))
        data = await asyncio.wait_for(read(), HURRY)
        if data is eof:
            raise ConnectionError("it hung up")
        first = decode(data, self.other, self.me, self.vectors, self.size, self.wire)
        if first.kind != HELLO:
            raise Garbage("no greeting")
        try:
            said = json.loads(first.payload)
            wants = int(said["wants"])
            life = str(said["life"])
        except (ValueError, KeyError, TypeError) as wrong:
            raise Garbage("a greeting that cannot be read") from wrong
        meet(self, said)
        if self.greeting is not None and self.greeting["life"] != life:
            self.newest = -1  # it has begun anew, and its rounds with it
        self.greeting = said
        self.next_out = min([wants, *self.outgoing]) if self.strict else 0
        self.said_farewell = False
        self.streams += 1
        self.connected, self.heard_at = True, time.monotonic()
        self.news.set()
        log.info("peer %d is connected", self.other)

    def complain(self, what: object) -> None:
        """Count garbage, and log it now and then."""
        self.garbage += 1
        if time.monotonic() - self.complained >= QUIET:
            self.complained = time.monotonic()
            log.warning("peer %d cut off: %s (%d times so far)", self.other, what, self.garbage)

"""Edges as streams: one for each neighbour, whoever of the two dials."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Protocol

import numpy as np

from edgewise.peers.transport.bounds import Bounds
from edgewise.peers.transport.delta_encoding import DeltaCodec, decode_delta
from edgewise.peers.transport.doubles import outlast, refusal_in
from edgewise.peers.transport.edge_facts import EdgeFacts, NodeFacts
from edgewise.peers.transport.failure_reasons import text_of
from edgewise.peers.transport.frames import (
    DELTA,
    FAREWELL,
    GREETING,
    HEARTBEAT,
    NEVER,
    NEWS,
    NO_LOSS,
    PRECISIONS,
    REFUSAL,
    SUM,
    VECTORS,
    Frame,
    MessageFormat,
    OtherVersion,
    ProtocolError,
    content_of,
    decode,
    encode,
    vectors_in,
)
from edgewise.peers.transport.greeting import first_frame, greeting_in
from edgewise.peers.transport.heartbeat import Stream, keep_alive
from edgewise.peers.transport.news import merged, told
from edgewise.peers.transport.reading_pace import FREE, ReadingPace
from edgewise.peers.transport.reports import Report, Reports, encoded
from edgewise.peers.transport.turns import ahead
from edgewise.peers.transport.wakeup import Wakeup

log = logging.getLogger("edgewise.peers")

MAX_SKIPPED = 1_000_000  # rounds; nobody loses so many messages in a row


class Mismatch(Exception):
    """A neighbour is set up differently."""


class Greeter(Protocol):
    """What a link asks its peer."""

    def greet(self, link: "Link") -> dict[str, Any]: ...

    def meet(self, link: "Link", greeting: dict[str, Any]) -> None: ...


class Link:
    """What has come from a neighbour, and what is to go to it.

    In strict mode messages stay in `sent` until the neighbour has them in a checkpoint, and go out
    again over a new stream if it asks. In tolerant mode only the latest counts, either way, but of
    news the last body too: a new stream begins with it.

    Tolerant peers keep pace by turns (turns.py): a step waits for a message of the same turn, as in
    strict mode for one of the same round.
    """

    def __init__(
        self,
        me: int,
        other: int,
        strict: bool,
        format: MessageFormat,
        max_ahead: int,
        wakeup: Wakeup,
    ) -> None:
        """max_ahead: rounds that it may be ahead of this peer when that is back from a
        checkpoint."""
        self.me, self.other, self.strict, self.format = me, other, strict, format
        self.max_ahead, self.wakeup = max_ahead, wakeup
        # to send
        self.sent: dict[int, bytes] = {}
        self.latest: Frame | None = None
        self.unsent, self.body_due = False, True
        self.next_round, self.work = 0, asyncio.Event()
        self.farewell: bytes | None = None
        self.farewell_sent = False
        self.reports = Reports(format.sums)  # both ways
        # what came
        self.inbox: dict[int, Frame] = {}  # strict: by round; tolerant: the newest alone
        self.newest_round, self.has_new, self.stale_rounds = -1, False, 0
        self.heard_turn: int | None = None  # tolerant: the other's, over this stream
        self.news = np.zeros(format.head + format.body, NEWS)  # as last taken; zeros: never
        self.awaited_round = 0  # that strict waits for
        self.taken = 0  # how often a message was asked for, once a round
        self.spoken = 0, 0  # that number, and how many messages came since
        self.converged_hops, self.stop, self.saved, self.gone = 0, NEVER, 0, False
        self.lost_hops: int | None = None  # as it last said, of the nearest peer that lost one
        self.missed_since = -np.inf  # when it fell silent, if that has been said
        self.heard_at = 0  # this peer's round when it last took a new message
        self.farewell_heard = False  # over this stream: nothing more comes
        # who it is
        self.facts_sent: NodeFacts | None = None  # what this peer last said of itself
        self.pair: EdgeFacts | None = None  # once they have met
        self.bounds: Bounds | None = None  # of the numbers that come
        self.told_sizes: np.ndarray | None = None  # of its own messages, by the neighbour
        self.incarnation, self.other_round = "", 0
        self.dropped = False
        self.provisional = False  # one of the two is yet to know how its data weigh
        # the stream
        self.last_heard = time.monotonic()
        self.bytes_sent = self.vectors_sent = self.bytes_heard = 0
        self.bytes_by_kind: Counter[str] = Counter()  # of those sent
        self.protocol_errors = self.streams = 0
        self.connected = False
        self.responsive = False  # whether messages come over this stream, and in time
        self.closing: asyncio.Event | None = None
        self.opening: asyncio.Event | None = None  # of the newest stream, which may still be held
        self.stream: Stream | None = None
        self.was_spoken_to = False  # by this neighbour, since this peer was started

    # --- to send ---------------------------------------------------------------------------------

    def post(self, frame: Frame) -> None:
        """With whole rows of news, where there are any."""
        changed = any(frame.news[:1])
        if self.strict:
            self.sent[frame.round] = encode(told(frame, self.format, changed), self.format.wire)
        else:
            self.latest, self.unsent = frame, True
            self.body_due |= changed
        self.work.set()

    def tell(self, report: Report) -> None:
        if self.reports.tell(report):
            self.work.set()

    def post_farewell(self, frame: bytes) -> None:
        self.farewell = frame
        self.work.set()

    async def send_messages(self, stream: Stream) -> None:
        codec = None if self.format.bits is None else DeltaCodec(self.format)
        self.body_due = True
        self.reports.tell_again()
        while True:
            while (report := self.reports.next()) is not None:
                await self.send(stream, encoded(report, self.me, self.other))
            data = self.next_message(codec)
            if data is not None:
                await self.send(stream, data)
                self.vectors_sent += vectors_in(data, self.format)
            elif self.farewell is not None and not self.farewell_sent:
                await self.send(stream, self.farewell)
                self.farewell_sent = True
                self.wakeup.set()
            else:
                self.work.clear()
                await self.work.wait()

    async def send(self, stream: Stream, data: bytes) -> None:
        await stream.write(data)  # waits while the neighbour is slow to read
        self.bytes_sent += len(data)
        self.bytes_by_kind[content_of(data, self.format)] += len(data)

    def next_message(self, codec: DeltaCodec | None) -> bytes | None:
        if self.strict:
            data = self.sent.get(self.next_round)
            self.next_round += data is not None
            return data
        frame, unsent = self.latest, self.unsent
        self.unsent = False
        if frame is None or not unsent:
            return None
        frame, self.body_due = told(frame, self.format, self.body_due), False
        if codec is None:
            return encode(frame, self.format.wire)
        if codec.held is not None:
            delta = frame._replace(kind=DELTA, payload=codec.encode(frame.payload))
            return encode(delta, delta=self.format)
        codec.whole(frame.payload.astype(PRECISIONS[self.format.wire][1]).astype(np.float64))
        return encode(frame, self.format.wire)

    # --- to receive ------------------------------------------------------------------------------

    async def receive_messages(self, stream: Stream) -> None:
        codec = None if self.format.bits is None else DeltaCodec(self.format)
        pace = ReadingPace()
        while True:
            data = await stream.read()
            if data is None:
                return
            begun = time.perf_counter()
            self.take_in(data, codec)
            await pace.spent(begun, self.taken)

    def take_in(self, data: bytes, codec: DeltaCodec | None) -> None:
        frame = decode(data, self.other, self.me, self.format)
        self.last_heard = time.monotonic()
        if frame.kind == HEARTBEAT:
            return
        self.bytes_heard += len(data)
        if frame.kind == SUM:
            self.reports.hear(frame.payload)
            self.wakeup.set()
            return
        if frame.kind == GREETING:
            raise ProtocolError("a second greeting")
        if frame.kind == REFUSAL:
            raise refusal_in(frame)
        if codec is not None:
            frame = decode_delta(frame, codec)
        self.receive(frame)
        self.wakeup.frame_came()

    def receive(self, frame: Frame) -> None:
        self.require_plausible(frame)
        self.stop = min(self.stop, frame.stop)
        if frame.kind == FAREWELL:
            self.gone = self.farewell_heard = True
        if frame.saved > self.saved:
            self.saved = frame.saved
            self.sent = {r: f for r, f in self.sent.items() if r >= frame.saved}
        if frame.kind != VECTORS:
            return
        self.was_spoken_to = True
        self.spoken = (self.taken, self.spoken[1] + 1 if self.spoken[0] == self.taken else 1)
        # one that talks and stays at its turn is not waited for again; nor, as long as it does so,
        # one that sends far more than peers do: what it means is behind all that
        self.responsive |= self.strict or frame.turn != self.heard_turn
        self.responsive &= self.strict or self.spoken[1] <= FREE
        self.heard_turn = frame.turn  # also of a message that is known, and was sent again
        if self.strict:
            if frame.round >= self.awaited_round:
                self.inbox[frame.round] = frame
        elif frame.round > self.newest_round:
            news = merged(self.inbox[0].news, frame.news) if self.has_new else frame.news
            self.inbox = {0: frame._replace(news=news)}
            self.newest_round, self.has_new = frame.round, True

    def require_plausible(self, frame: Frame) -> None:
        """Before anything is believed: what it has saved lets this peer forget messages."""
        if frame.saved > frame.round:
            raise ProtocolError(f"saved round {frame.saved} before it came to {frame.round}")
        # it cannot be there without us
        if self.strict and frame.round > self.awaited_round + self.max_ahead:
            raise ProtocolError(f"round {frame.round}, {self.awaited_round} is awaited")
        known = max(self.newest_round, self.other_round)
        if not self.strict and frame.round > known + MAX_SKIPPED:
            raise ProtocolError(f"round {frame.round} after {known}")
        if frame.stop < frame.round:
            raise ProtocolError(f"to stop at {frame.stop}, in round {frame.round}")
        if frame.kind == VECTORS and self.bounds is not None:
            self.bounds.require(frame, self.told_sizes, self.format.head)

    def has_message(self, turn: int) -> bool:
        """Strict: of this round; tolerant: of this turn, or a later one."""
        if self.strict:
            return turn in self.inbox
        return self.heard_turn is not None and ahead(self.heard_turn, turn) >= 0

    def take_message(self, round: int) -> np.ndarray | None:
        """(k, n) the vectors for a round; in tolerant mode the last that came, if any did. What
        came with them of news is then in `news`."""
        self.taken += 1
        if self.strict:
            self.awaited_round, frame = round + 1, self.inbox.pop(round)
            self.converged_hops = frame.converged_hops  # of this round, not of a later one
        elif self.inbox:
            frame = self.inbox[0]
            self.stale_rounds = 0 if self.has_new else self.stale_rounds + 1
            if self.has_new:
                self.converged_hops, self.heard_at = frame.converged_hops, round
                self.lost_hops = None if frame.lost_hops == NO_LOSS else frame.lost_hops
            self.has_new = False
        else:
            return None
        self.news[: len(frame.news)] = frame.news
        vectors: np.ndarray = frame.payload
        return vectors

    # --- a stream --------------------------------------------------------------------------------

    async def run(self, stream: Stream, peer: Greeter) -> None:
        """Until the stream ends; a newer one to the same neighbour ends this one, unless that turns
        out to be another neighbour of this number (`doubles`)."""
        closing = self.opening = asyncio.Event()
        why: str | None = None
        try:
            await self.exchange_greetings(stream, peer, closing)
            alive = keep_alive(stream, self.me, self.other)
            work = self.receive_messages(stream), self.send_messages(stream), alive
            await self.until(closing, *work)
            why = None if closing.is_set() else "it hung up"  # or else this side did
        except (OSError, EOFError) as lost:
            why = text_of(lost)
            raise
        finally:
            if self.closing is closing:
                self.closing = self.stream = None
                if self.connected:
                    self.say_away(why)
                self.connected = self.responsive = False
            self.wakeup.set()

    def say_away(self, why: str | None) -> None:
        what = "has finished, and hung up" if self.gone else f"is away: {why}"
        if self.provisional and why is not None:
            log.debug("peer %d greets again: %s", self.other, why)
        elif self.gone or why is not None:
            level = logging.INFO if self.gone else logging.WARNING
            log.log(level, "peer %d " + what, self.other, extra={"neighbour": self.other})

    def close(self) -> None:
        self.opening = None
        if self.closing is not None:
            self.closing.set()

    async def until(self, closing: asyncio.Event, *work: Coroutine[Any, Any, Any]) -> None:
        tasks = [asyncio.ensure_future(w) for w in (*work, closing.wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def exchange_greetings(
        self, stream: Stream, peer: Greeter, closing: asyncio.Event
    ) -> None:
        """Who has dialled speaks second: it then reads why it is refused, which its own words might
        make the system throw away."""
        text = json.dumps(peer.greet(self)).encode()
        own = encode(Frame(GREETING, sender=self.me, receiver=self.other, payload=text))
        if not stream.dialled:
            await self.send(stream, own)
        try:
            data = await first_frame(stream)
        except OtherVersion as theirs:
            if stream.dialled:  # it should learn of it too
                await self.send(stream, own)
            peer.meet(self, {"agreed": {"protocol": theirs.version}})
            raise
        if self.opening is closing and stream.dialled:
            await self.send(stream, own)
        self.require_newest(closing)
        self.bytes_heard += len(data)
        said, resume_at, incarnation = greeting_in(decode(data, self.other, self.me, self.format))
        if self.connected and incarnation != self.incarnation:
            await outlast(self, stream)
            self.require_newest(closing)
        if self.closing is not None:
            self.closing.set()  # of the stream whose place this one takes
        self.closing, self.stream = closing, stream
        peer.meet(self, said)
        if self.incarnation != incarnation:
            self.newest_round = -1  # it has begun anew, and its rounds with it
        self.incarnation, self.other_round, self.next_round = incarnation, resume_at, resume_at
        self.heard_turn, self.unsent = None, True  # what was under way may be lost
        self.farewell_sent = self.responsive = self.dropped = self.farewell_heard = False
        self.streams += 1
        self.connected, self.last_heard = True, time.monotonic()
        self.wakeup.set()
        log.info("peer %d is connected", self.other, extra={"neighbour": self.other})

    def require_newest(self, closing: asyncio.Event) -> None:
        if self.opening is not closing:
            raise ConnectionError("there is a newer stream")

    def count_error(self, what: object) -> None:
        self.protocol_errors += 1
        log.warning("peer %d cut off: %s", self.other, what, extra={"neighbour": self.other})

"""The relay itself: peers call it, say whom they want, and are joined where both want each other.

It knows who is joined to whom, when, and how many bytes go each way. What these are it cannot know:
the two have TLS with each other inside their TLS with the relay, and its certificate is no peer's.
"""

import asyncio
import logging
import time
from collections import Counter

from edgewise.errors import InputError
from edgewise.peers.config.certificates import id_of
from edgewise.peers.relay.identity import RelayIdentity
from edgewise.peers.relay.limits import Allowances, Limits
from edgewise.peers.transport import relay_words
from edgewise.peers.transport.callers import Callers
from edgewise.peers.transport.connections import serve, shake_hands
from edgewise.peers.transport.doubles import ALIVE
from edgewise.peers.transport.failure_reasons import (
    ConnectionFailure,
    reason_of,
    text_of,
    words_of,
)
from edgewise.peers.transport.heartbeat import DEAD
from edgewise.peers.transport.tls_contexts import TlsContexts
from edgewise.peers.transport.tls_stream import TlsStream

log = logging.getLogger("edgewise.peers")

CHUNK = 1 << 16  # bytes passed on at a time
WORDS_WITHIN = 10.0  # seconds in which a peer must say whom it wants
BURST = 5.0  # seconds' worth of calls or bytes that may come at once
LOOK = 0.5  # seconds


class Call:
    """A peer that wants another one."""

    def __init__(self, stream: TlsStream, id: int, wants: int) -> None:
        self.stream, self.id, self.wants = stream, id, wants
        self.came, self.passed = time.monotonic(), 0
        self.partner: asyncio.Future[Call] = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()

    @property
    def ends(self) -> tuple[int, int]:
        return self.id, self.wants

    @property
    def silent(self) -> float:
        """Seconds; while the relay lets it wait nothing can be heard of it."""
        return 0.0 if self.stream.resting else time.monotonic() - self.stream.heard_at

    @property
    def gone(self) -> bool:
        return self.stream.hung_up or self.stream.over.done()


class Relay:
    def __init__(self, identity: RelayIdentity, listen: str, limits: Limits | None = None) -> None:
        self.identity, self.address = identity, listen
        self.limits = limits or Limits()
        self.callers = Callers(self.accept)
        self.contexts = TlsContexts(lambda: identity)
        self.calls: set[Call] = set()
        self.waiting: dict[tuple[int, int], Call] = {}
        self.joined: dict[tuple[int, int], Call] = {}
        self.passed: Counter[tuple[int, int]] = Counter()  # bytes from one to the other
        self.refused = 0
        rates = self.limits.calls_per_second, self.limits.bytes_per_second
        self.by_address, self.by_peer = (Allowances(rate, BURST * rate) for rate in rates)

    async def open(self) -> None:
        await self.contexts.now()
        try:
            self.server = await serve(self.address, lambda: TlsStream(0, False, self.called))
        except OSError as problem:
            raise InputError(
                f"the relay cannot listen at {self.address} ({problem.strerror}): end what is "
                "there, or give another --listen"
            ) from None
        self.port: int = self.server.sockets[0].getsockname()[1]
        self.looking = asyncio.ensure_future(self.look_for_revoked())
        log.info("relay of %s listens at port %d", self.identity.mesh, self.port)

    async def close(self) -> None:
        self.server.close()
        self.looking.cancel()
        tasks = list(self.callers.calls)
        for task in tasks:
            task.cancel()
        await asyncio.gather(self.looking, *tasks, return_exceptions=True)
        for (one, other), count in sorted(self.passed.items()):
            log.info("passed on %d bytes from peer %d to peer %d", count, one, other)

    # --- who calls -------------------------------------------------------------------------------

    def called(self, stream: TlsStream) -> None:
        address = stream.address.rpartition(":")[0]
        if not self.by_address.admits(address):
            self.refused += 1
            log.warning("too many calls from %s", address)
            stream.drop(ConnectionFailure("too many calls"))
            return
        self.callers.called(stream)

    async def accept(self, stream: TlsStream) -> None:
        try:
            try:
                call = await self.identify(stream)
            except Exception as failed:
                self.refused += 1
                what = "a call from %s failed: " + text_of(failed)
                log.warning(what, stream.address, *words_of(failed))
                return
            finally:
                self.callers.known(stream)
            self.calls.add(call)
            try:
                await self.serve(call)
            except (OSError, EOFError) as lost:
                log.debug("peer %d: %r", call.id, lost)
            finally:
                self.calls.discard(call)
        finally:
            await stream.close()

    async def identify(self, stream: TlsStream) -> Call:
        """Raises where it is nobody's, or none that may be joined now; it is told why not."""
        contexts = await self.contexts.now()
        await shake_hands(stream.handshake(contexts.called))
        id = id_of(stream.names(), self.identity.mesh)
        if id is None:
            raise ConnectionFailure(f"{' '.join(stream.names())} is no peer of this network")
        words = await relay_words.heard(stream, WORDS_WITHIN)
        try:
            contexts.require_good(stream)
            return Call(stream, id, self.wanted(id, words.get("wants")))
        except ConnectionFailure as why:
            await relay_words.say(stream, refused=str(why))
            raise

    def wanted(self, id: int, other: object) -> int:
        if not isinstance(other, int) or isinstance(other, bool) or other < 0 or other == id:
            raise ConnectionFailure(f"peer {id} wants no peer")
        if len(self.calls) >= self.limits.connections:
            raise ConnectionFailure(f"it has {len(self.calls)} connections, and can take no more")
        if sum(call.id == id for call in self.calls) >= self.limits.of_a_peer:
            raise ConnectionFailure(f"peer {id} has {self.limits.of_a_peer} connections already")
        return other

    async def look_for_revoked(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self.drop_revoked()
            except Exception as problem:  # whatever it is: nobody would know that this has ended
                log.warning("who is revoked cannot be looked up: %r", problem)

    async def drop_revoked(self) -> None:
        revoked = (await self.contexts.now()).revoked
        for call in [c for c in self.calls if c.stream.serial() in revoked]:
            log.warning("the certificate of peer %d is revoked: it is hung up on", call.id)
            call.stream.drop(ConnectionFailure("its certificate is revoked"))

    # --- two that want each other ----------------------------------------------------------------

    async def serve(self, call: Call) -> None:
        older = self.waiting.pop(call.ends, None)
        if older is not None and not older.partner.done():
            older.partner.set_exception(ConnectionFailure(f"peer {call.id} has called anew"))
        partner = self.waiting.pop((call.wants, call.id), None)
        if partner is not None and not partner.gone:
            partner.partner.set_result(call)
            await self.join(partner, call)
            return
        self.waiting[call.ends] = call
        try:
            if await self.wait(call):
                await call.over.wait()
        finally:
            if self.waiting.get(call.ends) is call:
                del self.waiting[call.ends]

    async def wait(self, call: Call) -> bool:
        """For the other end; whether it came."""
        while not call.partner.done() and not call.gone:
            waited = time.monotonic() - call.came
            twin = self.joined.get(call.ends)
            if twin is not None and twin.silent > DEAD:
                twin.stream.drop(ConnectionFailure(f"nothing was heard of it for {DEAD:.0f} s"))
            elif twin is not None and twin.stream.heard_at > call.came + ALIVE:
                why = f"another peer {call.id} is joined to it, from {twin.stream.address}"
                log.warning("peer %d runs twice: %s", call.id, why)
                return await self.refuse(call, f"{why}: end one of the two", twice=True)
            if waited > self.limits.waits:
                why = f"peer {call.wants} has not called it for {waited:.0f} s: does it run?"
                return await self.refuse(call, why)
            await asyncio.wait([call.partner, call.stream.over], timeout=LOOK)
        if not call.partner.done():
            return False
        replaced = call.partner.exception()
        return replaced is None or await self.refuse(call, str(replaced))

    async def refuse(self, call: Call, why: str, **more: bool) -> bool:
        if self.waiting.get(call.ends) is call:
            del self.waiting[call.ends]  # before anything is awaited: nobody is joined to it now
        await relay_words.say(call.stream, refused=why, **more)
        return False

    async def join(self, one: Call, other: Call) -> None:
        between = f"{min(one.id, other.id)}-{max(one.id, other.id)}"
        told = {"edge": between, "neighbour": between}
        both = one, other
        for call in both:
            self.joined[call.ends] = call
        why = "one hung up"
        began = time.monotonic()
        try:
            for call in both:
                await relay_words.say(call.stream, joined=True)
            addresses = one.stream.address, other.stream.address
            log.info(
                "peer %d at %s and peer %d at %s are joined",
                one.id,
                addresses[0],
                other.id,
                addresses[1],
                extra=told,
            )
            why = await self.pass_on(one, other)
        finally:
            for call in both:
                if self.joined.get(call.ends) is call:
                    del self.joined[call.ends]
                self.passed[call.ends] += call.passed
                call.over.set()
            seconds = time.monotonic() - began
            log.info(
                "peers %d and %d are parted after %.0f s (%s): %d bytes from %d, %d from %d",
                one.id,
                other.id,
                seconds,
                why,
                one.passed,
                one.id,
                other.passed,
                other.id,
                extra={**told, "passed": {str(c.id): self.passed[c.ends] for c in both}},
            )
            await asyncio.gather(*(call.stream.close() for call in both))

    async def pass_on(self, one: Call, other: Call) -> str:
        """Until there is nothing more to pass on; and why."""
        work = self.pump(one, other), self.pump(other, one), self.silence(one, other)
        tasks = [asyncio.ensure_future(each) for each in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        failed = [reason_of(wrong) for task in done if (wrong := task.exception()) is not None]
        return failed[0] if failed else "idle" if tasks[2] in done else "one hung up"

    async def pump(self, one: Call, other: Call) -> None:
        while data := await one.stream.read_some(CHUNK):
            one.passed += len(data)
            pause = self.by_peer.taken(one.id, len(data))
            if pause:
                await asyncio.sleep(pause)
            await other.stream.write(data)

    async def silence(self, one: Call, other: Call) -> None:
        while True:
            await asyncio.sleep(min(LOOK, self.limits.idle))
            heard = max(one.stream.heard_at, other.stream.heard_at)
            if time.monotonic() - heard > self.limits.idle:
                return

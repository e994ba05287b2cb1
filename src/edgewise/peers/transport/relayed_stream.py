"""A stream to a neighbour by way of a relay: TLS with the neighbour inside TLS with the relay."""

import ssl
from contextlib import suppress

from edgewise.peers.config.certificates import relay_name
from edgewise.peers.transport import relay_words
from edgewise.peers.transport.failure_reasons import ConnectionFailure, ForeignWords
from edgewise.peers.transport.tls_contexts import Contexts
from edgewise.peers.transport.tls_stream import HELD, RECEIVED, TlsStream

ANSWERS_IN = 40.0  # seconds; a relay has an answer, if a bad one, long before


class RelayRefusal(ForeignWords):
    """The relay's word, which is no neighbour's: whatever it says, no run ends by it."""

    def __init__(self, why: str, twice: bool) -> None:
        """twice: it says that there is another peer of this number."""
        super().__init__("the relay says that %s", why)
        self.twice = twice


class RelayedStream(TlsStream):
    """What a `TlsStream` is, once `join` has come to its end: then `handshake` is the neighbour's,
    whose bytes the relay passes on."""

    outer: ssl.SSLObject | None = None  # TLS with the relay

    async def reach_relay(self, contexts: Contexts, mesh: str) -> None:
        await self.handshake(contexts.caller, relay_name(mesh))
        if self.names() != [relay_name(mesh)]:
            named = " ".join(self.names()) or "somebody without a name"
            raise ConnectionFailure(f"{named} is there: give the address of {relay_name(mesh)}")
        contexts.require_good(self)

    async def join(self, other: int, calls: bool) -> None:
        """calls: whether this end is the caller in the handshake with the neighbour; both ends call
        the relay."""
        try:
            await relay_words.say(self, wants=other)
            words = await relay_words.heard(self, ANSWERS_IN)
        except (EOFError, ssl.SSLEOFError, ssl.SSLZeroReturnError):  # an alert says why by itself
            raise ConnectionFailure("the relay hung up") from None
        if "refused" in words:
            refused = relay_words.shown(words["refused"])
            raise RelayRefusal(refused, twice=words.get("twice") is True)
        self.begin_inner(calls)

    def begin_inner(self, calls: bool) -> None:
        self.outer, self.outer_incoming, self.outer_outgoing = (
            self.tls,
            self.incoming,
            self.outgoing,
        )
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.dialled = calls
        self.unwrap_outer()  # what came with the relay's last words

    def buffer_updated(self, count: int) -> None:
        if self.outer is None:
            return super().buffer_updated(count)
        self.came()
        if not self.leaving:
            self.outer_incoming.write(self.buffer[:count])
            self.unwrap_outer()

    def unwrap_outer(self) -> None:
        assert self.outer is not None
        try:
            while data := self.outer.read(RECEIVED):
                self.incoming.write(data)
            self.ended()  # the relay has taken its leave
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self.ended()
        except ssl.SSLError as wrong:
            self.drop(wrong)
        self.taken_in(HELD)

    def ended(self) -> None:
        if not self.hung_up:
            self.hung_up = True
            self.incoming.write_eof()

    def eof_received(self) -> bool:
        if self.outer is None:
            return super().eof_received()
        self.ended()
        self.taken_in(HELD)
        return not self.leaving

    def flush(self) -> None:
        if self.outer is None:
            return super().flush()
        rest = memoryview(self.outgoing.read())
        while rest and not self.transport.is_closing():
            rest = rest[self.outer.write(rest) :]
        self.flush_outer()

    def flush_outer(self) -> None:
        if self.outer_outgoing.pending and not self.transport.is_closing():
            self.transport.write(self.outer_outgoing.read())

    def take_leave(self) -> None:
        super().take_leave()
        if self.outer is not None:
            self.flush()
            with suppress(ssl.SSLError):
                self.outer.unwrap()
            self.flush_outer()

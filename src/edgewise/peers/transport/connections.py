"""Who may talk to this peer, and how streams come about: mutual TLS, one dial per edge."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from edgewise.errors import InputError
from edgewise.peers.config.addresses import host_of, port_of
from edgewise.peers.config.certificates import id_of, name_of
from edgewise.peers.config.peer_config import Neighbour, PeerConfig
from edgewise.peers.transport.callers import Callers
from edgewise.peers.transport.doubles import Refused
from edgewise.peers.transport.failure_reasons import (
    ConnectionFailure,
    reason_of,
    text_of,
    words_of,
)
from edgewise.peers.transport.frames import ProtocolError
from edgewise.peers.transport.links import Greeter, Link, Mismatch
from edgewise.peers.transport.relayed_stream import RelayedStream, RelayRefusal
from edgewise.peers.transport.tls_contexts import Contexts, TlsContexts
from edgewise.peers.transport.tls_stream import TlsStream

log = logging.getLogger("edgewise.peers")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0  # seconds between two dials
REFUSED_PAUSE = 10.0  # seconds before who refuses this peer as a second one is dialled again
CONNECT_TIMEOUT = 5.0  # seconds for each address that a name leads to
HANDSHAKE_TIMEOUT = 10.0  # seconds; who connects and says nothing keeps a descriptor so long
WILDCARDS = ("0.0.0.0", "::")


class Connections:
    """Streams to the neighbours: `peer` gives greetings and meets them (see `Link.run`)."""

    def __init__(
        self, config: PeerConfig, links: dict[int, Link], max_frame_bytes: int, peer: Greeter
    ) -> None:
        self.config, self.links, self.peer = config, links, peer
        self.max_frame_bytes = max_frame_bytes
        self.refused = self.failed_handshakes = 0
        self.dials: dict[int, asyncio.Task[None]] = {}
        self.callers = Callers(self.accept)
        self.server: asyncio.Server | None = None  # where there is somebody to be reached by
        self.lookups = ThreadPoolExecutor(2)  # apart: names may take long, and steps must not wait
        self.failure: Mismatch | None = None

    async def open(self) -> None:
        self.contexts = TlsContexts(lambda: self.config)
        await self.contexts.now()
        if any(n.relay is None for n in self.config.neighbours) or not self.config.neighbours:
            await self.listen()
        for neighbour in self.config.neighbours:
            self.connect(neighbour)

    async def listen(self) -> None:
        try:
            self.server = await serve(
                self.config.listen,
                lambda: TlsStream(self.max_frame_bytes, False, self.callers.called),
            )
        except OSError:
            raise InputError(
                f"peer {self.config.id} cannot listen at {self.config.listen}: it runs already, or "
                f"something else is there; end that, or change listen in {self.config.path}"
            ) from None
        log.info("listens at port %d", self.port)

    @property
    def port(self) -> int | None:
        return None if self.server is None else int(self.server.sockets[0].getsockname()[1])

    # --- to call ---------------------------------------------------------------------------------

    def connect(self, neighbour: Neighbour) -> None:
        if neighbour.relay is None and self.server is None:
            log.warning(
                "peer %d is to be met without a relay: start this peer again, so that it listens",
                neighbour.id,
                extra={"neighbour": neighbour.id},
            )
        if neighbour.dial or neighbour.relay is not None:
            self.dials[neighbour.id] = asyncio.ensure_future(self.dial(neighbour))

    def stop_dialling(self, id: int) -> None:
        task = self.dials.pop(id, None)
        if task is not None:
            task.cancel()

    async def dial(self, neighbour: Neighbour) -> None:
        link, pause = self.links[neighbour.id], FIRST_PAUSE
        while True:
            streams, refused = link.streams, False
            try:
                stream = await self.reach(neighbour)
                refused = await self.run_stream(link, stream)
            except Exception as away:  # whatever it is, the edge must come back
                refused = isinstance(away, RelayRefusal) and away.twice
                if link.streams == streams:
                    say_unreachable(link, neighbour, away)
            pause = FIRST_PAUSE if link.streams > streams else min(2 * pause, LONGEST_PAUSE)
            await asyncio.sleep(REFUSED_PAUSE if refused else pause)

    async def reach(self, neighbour: Neighbour) -> TlsStream:
        """A stream to the neighbour itself, and to nobody else at its address."""
        contexts = await self.contexts.now()
        contexts.require_unexpired()
        relay, address = neighbour.relay, neighbour.relay or neighbour.address
        make = TlsStream if relay is None else RelayedStream
        stream = await connected(address, lambda: make(self.max_frame_bytes, True), self.lookups)
        try:
            if isinstance(stream, RelayedStream):
                await shake_hands(stream.reach_relay(contexts, self.config.mesh))
                await stream.join(neighbour.id, neighbour.dial)
            await shake_hands(self.handshake(stream, contexts, neighbour))
            require_name(stream, self.config.mesh, neighbour.id)
            contexts.require_good(stream)
        except (EOFError, ssl.SSLEOFError, ConnectionResetError, BrokenPipeError):
            await stream.close()
            raise ConnectionFailure(
                "it hung up in the TLS handshake: another service, or a proxy with nobody behind it"
            ) from None
        except BaseException:
            await stream.close()
            raise
        return stream

    async def handshake(self, stream: TlsStream, contexts: Contexts, with_: Neighbour) -> None:
        if stream.dialled:
            await stream.handshake(contexts.caller, name_of(self.config.mesh, with_.id))
            return
        try:  # by a relay, whom both ends call
            await stream.handshake(contexts.called)
        except Exception:
            self.failed_handshakes += 1
            raise

    # --- to be called ----------------------------------------------------------------------------

    async def accept(self, stream: TlsStream) -> None:
        """A stream that somebody opened. What goes wrong here is told to them by TLS at most."""
        try:
            link = await self.identify(stream)
            if link is None:
                await stream.close()
                return
        finally:
            self.callers.known(stream)
        try:
            await self.run_stream(link, stream)
        except Exception as error:
            log.debug("peer %d: %r", link.other, error)

    async def identify(self, stream: TlsStream) -> Link | None:
        """The edge that it is for, or None where it is for nobody here."""
        try:
            contexts = await self.contexts.now()
            await shake_hands(stream.handshake(contexts.called))
            contexts.require_good(stream)
            names = stream.names()
        except Exception as failed:
            self.failed_handshakes += 1
            log.warning("a TLS handshake with %s failed: " + text_of(failed), stream.address)
            return None
        caller = id_of(names, self.config.mesh)
        dialled = [n.id for n in self.config.neighbours if n.dial]
        link = self.links.get(-1 if caller is None else caller)
        if link is None or caller in dialled:
            self.refused += 1
            log.warning("refused: %s at %s", names, stream.address, extra={"neighbour": caller})
            return None
        return link

    async def look_for_revoked(self) -> None:
        """Hang up on those whose certificate was taken back since they were let in."""
        contexts = await self.contexts.now()
        for link in self.links.values():
            if link.stream is not None and link.stream.serial() in contexts.revoked:
                log.warning(
                    "the certificate of peer %d is revoked: it is hung up on",
                    link.other,
                    extra={"neighbour": link.other},
                )
                link.close()

    async def run_stream(self, link: Link, stream: TlsStream) -> bool:
        """Until it ends; whether the neighbour refuses this peer."""
        try:
            await link.run(stream, self.peer)
        except ProtocolError as what:
            link.count_error(what)
            await asyncio.sleep(FIRST_PAUSE)
        except Mismatch as what:
            self.failure = what
            link.wakeup.set()
        except Refused as why:
            self.refused_by(link, why)
            return True
        finally:
            await stream.close()
        return False

    def refused_by(self, link: Link, why: Refused) -> None:
        """A neighbour talks to another peer of this number. Whoever was spoken to by nobody is the
        second one; and strict peers cannot go on without a neighbour. Others can: one neighbour's
        word ends no run that is under way."""
        what = "peer %d refuses this peer: %s"
        log.warning(what, link.other, why, extra={"neighbour": link.other})
        if link.strict or not any(each.was_spoken_to for each in self.links.values()):
            self.failure = Mismatch(what % (link.other, why))
            link.wakeup.set()

    async def close(self) -> None:
        if self.server is not None:
            self.server.close()
        tasks = [*self.dials.values(), *self.callers.calls]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.lookups.shutdown(wait=False, cancel_futures=True)


async def serve(listen: str, make: Callable[[], TlsStream]) -> asyncio.Server:
    """At an address; at all of them in both families where that is a wildcard."""
    loop, host, port = asyncio.get_running_loop(), host_of(listen).strip("[]"), port_of(listen)
    if host in WILDCARDS and socket.has_dualstack_ipv6():
        both = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        return await loop.create_server(make, sock=both)
    return await loop.create_server(make, host, port)


async def connected(
    address: str, make: Callable[[], TlsStream], lookups: ThreadPoolExecutor
) -> TlsStream:
    """A connection to the first of the addresses that a name leads to, of those that answer."""
    loop, host, port = asyncio.get_running_loop(), host_of(address).strip("[]"), port_of(address)
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    failures: list[OSError] = []
    for family, kind, protocol, _, where in await loop.run_in_executor(lookups, look_up):
        end = socket.socket(family, kind, protocol)
        end.setblocking(False)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await loop.sock_connect(end, where)
            _, stream = await loop.create_connection(make, sock=end)
            return stream
        except OSError as away:
            end.close()
            failures.append(away)
        except BaseException:
            end.close()
            raise
    reasons = dict.fromkeys(map(reason_of, failures))
    raise failures[0] if len(reasons) == 1 else ConnectionFailure("; ".join(reasons))


def require_name(stream: TlsStream, mesh: str, id: int) -> None:
    names = stream.names()
    if id_of(names, mesh) != id:
        raise ConnectionFailure(
            f"{' '.join(names) or 'somebody without a name'} is there: give the address of "
            f"{name_of(mesh, id)}"
        )


async def shake_hands(handshake: Coroutine[Any, Any, None]) -> None:
    try:
        async with asyncio.timeout(HANDSHAKE_TIMEOUT):
            await handshake
    except TimeoutError:
        raise ConnectionFailure(
            f"no TLS handshake within {HANDSHAKE_TIMEOUT:.0f} s: it is stopped, or no peer"
        ) from None


def say_unreachable(link: Link, neighbour: Neighbour, away: BaseException) -> None:
    """A line for each reason. One that has finished need not be there."""
    level = logging.DEBUG if link.gone else logging.WARNING
    what = "peer %d at %s cannot be reached: " + text_of(away)
    at = neighbour.address if neighbour.relay is None else f"the relay {neighbour.relay}"
    log.log(level, what, link.other, at, *words_of(away), extra={"neighbour": link.other})

"""Who may talk to this peer, and how streams come about: mutual TLS, one dial per edge."""

import asyncio
import logging
import os
from typing import Any

# gRPC's Python has no least version of TLS. Our certificates have elliptic keys, so that these
# suites, for RSA keys, leave no way to agree on TLS 1.2; those of TLS 1.3 are not touched by it.
os.environ.setdefault("GRPC_SSL_CIPHER_SUITES", "ECDHE-RSA-AES128-GCM-SHA256")

import grpc

from edgewise.errors import InputError
from edgewise.peers.config.certificates import id_of, name_of
from edgewise.peers.config.peer_config import Neighbour, PeerConfig
from edgewise.peers.transport.frames import ProtocolError
from edgewise.peers.transport.links import ByteStream, Greeter, Link, Mismatch

log = logging.getLogger("edgewise.peers")

SERVICE, METHOD = "edgewise.Peer", "Talk"
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0  # seconds between two dials
HANDSHAKE_TIMEOUT = 10.0  # seconds; who connects and says nothing keeps a descriptor so long
KEEPALIVE = [
    ("grpc.keepalive_time_ms", 5000),
    ("grpc.keepalive_timeout_ms", 3000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 4000),
]


class Connections:
    """Streams to the neighbours: `peer` gives greetings and meets them (see `Link.run`)."""

    def __init__(
        self, config: PeerConfig, links: dict[int, Link], max_frame_bytes: int, peer: Greeter
    ) -> None:
        self.config, self.links, self.peer = config, links, peer
        self.options: list[tuple[str, Any]] = [
            *KEEPALIVE,
            ("grpc.so_reuseport", 0),
            ("grpc.server_handshake_timeout_ms", int(1000 * HANDSHAKE_TIMEOUT)),
            ("grpc.max_concurrent_streams", 8),  # one is enough, but an old one may be ending
            ("grpc.min_reconnect_backoff_ms", 3000),
            ("grpc.max_receive_message_length", max_frame_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.initial_reconnect_backoff_ms", int(1000 * FIRST_PAUSE)),
            ("grpc.max_reconnect_backoff_ms", int(1000 * LONGEST_PAUSE)),
        ]
        self.refused = 0
        self.served: tuple[bytes, ...] = ()  # credentials that callers are shown
        self.dials: dict[int, asyncio.Task[None]] = {}
        self.failure: Mismatch | None = None

    async def open(self) -> None:
        self.server = grpc.aio.server(options=self.options)
        talk = grpc.stream_stream_rpc_method_handler(self.accept)
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {METHOD: talk}),)
        )
        credentials = grpc.dynamic_ssl_server_credentials(
            self.certificates(), self.certificates, require_client_authentication=True
        )
        try:
            self.port = self.server.add_secure_port(self.config.listen, credentials)
        except RuntimeError:
            raise InputError(
                f"peer {self.config.id} cannot listen at {self.config.listen}: it runs already, or "
                f"something else is there; end that, or change listen in {self.config.path}"
            ) from None
        await self.server.start()
        for neighbour in self.config.neighbours:
            self.connect(neighbour)

    def certificates(self) -> Any:
        """Asked for at every connection, so that they may be renewed meanwhile; None if they are as
        before. gRPC does not lock what it replaces: with two connections at once it crashes."""
        found = self.config.credentials()
        if found == self.served:
            return None
        self.served = authority, key, certificate = found
        return grpc.ssl_server_certificate_configuration([(key, certificate)], authority)

    def connect(self, neighbour: Neighbour) -> None:
        if neighbour.dial:
            self.dials[neighbour.id] = asyncio.ensure_future(self.dial(neighbour))

    def stop_dialling(self, id: int) -> None:
        task = self.dials.pop(id, None)
        if task is not None:
            task.cancel()

    async def dial(self, neighbour: Neighbour) -> None:
        link, pause = self.links[neighbour.id], FIRST_PAUSE
        name = name_of(self.config.mesh, neighbour.id)
        while True:
            streams = link.streams
            try:
                authority, key, certificate = await asyncio.to_thread(self.config.credentials)
                credentials = grpc.ssl_channel_credentials(authority, key, certificate)
                options = [*self.options, ("grpc.ssl_target_name_override", name)]
                async with grpc.aio.secure_channel(
                    neighbour.address, credentials, options=options
                ) as channel:
                    call = channel.stream_stream(f"/{SERVICE}/{METHOD}")()
                    await self.run_stream(link, ByteStream(call.read, call.write, grpc.aio.EOF))
            except grpc.aio.AioRpcError as refused:
                if refused.code() == grpc.StatusCode.PERMISSION_DENIED:
                    log.warning(
                        "peer %d does not take it for a neighbour: is it in that one's TOML?",
                        link.other,
                        extra={"neighbour": link.other},
                    )
            except Exception as away:  # whatever it is, the edge must come back
                log.debug("peer %d cannot be reached: %r", link.other, away)
            pause = FIRST_PAUSE if link.streams > streams else min(2 * pause, LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def accept(self, _: Any, context: Any) -> None:
        """A stream that somebody opened. Nothing of what goes wrong here is told to them."""
        names = context.auth_context().get("x509_subject_alternative_name", [])
        caller = id_of([n.decode(errors="replace") for n in names], self.config.mesh)
        dialled = [n.id for n in self.config.neighbours if n.dial]
        link = self.links.get(-1 if caller is None else caller)
        if link is None or caller in dialled:
            self.refused += 1
            log.warning("refused: %s at %s", names, context.peer(), extra={"neighbour": caller})
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "")
            return
        try:
            await self.run_stream(link, ByteStream(context.read, context.write, grpc.aio.EOF))
        except Exception as error:
            log.debug("peer %d: %r", link.other, error)
        await context.abort(grpc.StatusCode.ABORTED, "")

    async def run_stream(self, link: Link, stream: ByteStream) -> None:
        try:
            await link.run(stream, self.peer)
        except ProtocolError as what:
            link.count_error(what)
            await asyncio.sleep(FIRST_PAUSE)
        except Mismatch as what:
            self.failure = what
            link.wakeup.set()

    async def close(self) -> None:
        for task in self.dials.values():
            task.cancel()
        await asyncio.gather(*self.dials.values(), return_exceptions=True)
        await self.server.stop(0.2)

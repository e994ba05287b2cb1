"""One TLS connection that carries frames.

TLS is `ssl.SSLObject` between an asyncio transport and the frames. asyncio's own TLS closes a
connection whose handshake fails before the alert has gone out, so that the other end would never
learn why, and hides failed handshakes of callers from who serves them.
"""

import asyncio
import ssl
import time
from contextlib import suppress
from typing import Any

from edgewise.peers.transport.frames import HEADER, frame_bytes

RECEIVED = 1 << 16  # bytes taken from the system at a time
HELD = 1 << 18  # bytes that wait to be read or sent before the other side is told to wait
PARTING = 1.0  # seconds for the last bytes to go out, and for the other side to hang up


class TlsStream(asyncio.BufferedProtocol):
    """Frames both ways, once `handshake` has come to its end."""

    def __init__(self, max_frame_bytes: int, dialled: bool, connected: Any = None) -> None:
        """connected: called with this stream, once there is a connection."""
        self.max_frame_bytes, self.dialled, self.connected = max_frame_bytes, dialled, connected
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.buffer = memoryview(bytearray(RECEIVED))
        self.loop = asyncio.get_running_loop()
        self.arrived: asyncio.Future[None] | None = None  # who reads waits for it
        self.room: asyncio.Future[None] | None = None  # who writes waits for it
        self.over = self.loop.create_future()
        self.why: Exception | None = None  # it is over
        self.resting = self.leaving = self.hung_up = False
        self.heard_at = self.sent_at = time.monotonic()
        self.writing = 0  # frames on their way out
        self.tls: ssl.SSLObject

    # --- what asyncio calls ----------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self.transport: asyncio.Transport = transport
        host, port = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if self.connected is not None:
            self.connected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, count: int) -> None:
        self.came()
        if self.leaving:
            return
        self.incoming.write(self.buffer[:count])
        self.taken_in(HELD)

    def came(self) -> None:
        self.heard_at = time.monotonic()

    def taken_in(self, most: int) -> None:
        """Whoever reads may go on; the other side waits where that is slow."""
        if self.incoming.pending > most and not self.resting:
            self.transport.pause_reading()
            self.resting = True
        wake(self.arrived)

    def eof_received(self) -> bool:
        self.hung_up = True
        self.incoming.write_eof()
        wake(self.arrived)
        return not self.leaving  # what is still to be sent may go out

    def connection_lost(self, error: Exception | None) -> None:
        self.why = self.why or error or EOFError()
        wake(self.over)
        for waiting in (self.arrived, self.room):
            wake(waiting)

    def pause_writing(self) -> None:
        self.room = self.loop.create_future()

    def resume_writing(self) -> None:
        wake(self.room)
        self.room = None

    # --- TLS -------------------------------------------------------------------------------------

    async def handshake(self, context: ssl.SSLContext, name: str | None = None) -> None:
        """name: whom a caller asks for; who it has reached is in `names`."""
        self.tls = context.wrap_bio(self.incoming, self.outgoing, not self.dialled, name)
        while True:
            try:
                self.tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                self.flush()
                await self.more()
            finally:
                self.flush()  # an alert too, which tells the other side why

    def names(self) -> list[str]:
        """In the verified certificate of the other side."""
        certificate: Any = self.tls.getpeercert() or {}
        return [name for kind, name in certificate.get("subjectAltName", ()) if kind == "DNS"]

    def serial(self) -> int | None:
        """Of the verified certificate of the other side; None where there is none."""
        certificate: Any = self.tls.getpeercert() or {}
        told = certificate.get("serialNumber")
        return None if told is None else int(told, 16)

    def flush(self) -> None:
        if self.outgoing.pending and not self.transport.is_closing():
            self.transport.write(self.outgoing.read())

    async def more(self) -> None:
        """Until bytes have come, or the other side has hung up."""
        if self.why is not None:
            raise self.why
        if self.hung_up:
            raise EOFError
        if self.resting:
            self.resting = False
            self.transport.resume_reading()
        self.arrived = self.loop.create_future()
        try:
            await self.arrived
        finally:
            self.arrived = None

    # --- frames ----------------------------------------------------------------------------------

    async def read(self) -> bytearray | None:
        """The next frame, or None once the other side has hung up."""
        header = bytearray(HEADER.size)
        try:
            await self.fill(memoryview(header))
            frame = bytearray(frame_bytes(header, self.max_frame_bytes))
            frame[: HEADER.size] = header
            await self.fill(memoryview(frame)[HEADER.size :])
        except (EOFError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return None
        return frame

    async def fill(self, view: memoryview) -> None:
        at = 0
        while at < len(view):
            at += await self.read_into(view[at:])

    async def read_into(self, view: memoryview) -> int:
        while True:
            if not (self.incoming.pending or self.tls.pending()):
                await self.more()
            try:
                count = int(self.tls.read(len(view), view))
            except ssl.SSLWantReadError:  # part of a record, or none of ours
                self.flush()
                await self.more()
            else:
                if not count:
                    raise EOFError
                return count

    async def read_some(self, most: int) -> bytes:
        """What there is, once there is any; nothing once the other side has hung up."""
        some = bytearray(most)
        try:
            return bytes(some[: await self.read_into(memoryview(some))])
        except (EOFError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    async def write(self, frame: Any) -> None:
        """Waits while the other side is slow to read."""
        rest = memoryview(frame)
        self.writing += 1
        try:
            while rest:
                if self.why is not None:
                    raise self.why
                rest = rest[self.tls.write(rest) :]
                if not rest or self.outgoing.pending >= HELD:
                    self.flush()
                    self.sent_at = time.monotonic()
                    if self.room is not None:
                        await self.room
        finally:
            self.writing -= 1

    # --- the end ---------------------------------------------------------------------------------

    def drop(self, why: Exception) -> None:
        """At once, whatever is under way."""
        self.why = self.why or why
        self.transport.abort()

    def take_leave(self) -> None:
        with suppress(ssl.SSLError, AttributeError):  # there may be no TLS yet
            self.tls.unwrap()

    async def close(self) -> None:
        """What was written goes out first; a neighbour that does not hang up is not waited for."""
        if self.over.done():
            return
        self.leaving = True
        try:
            self.take_leave()
            self.flush()
            if not self.transport.is_closing():
                with suppress(OSError):  # it is over already, and nobody has told us yet
                    # To close would make the system throw away what has not come through.
                    self.transport.write_eof()
                if self.resting:
                    self.transport.resume_reading()
                if self.hung_up:
                    self.transport.close()
                await asyncio.wait([self.over], timeout=PARTING)
        finally:
            self.transport.abort()


def wake(future: "asyncio.Future[None] | None") -> None:
    if future is not None and not future.done():
        future.set_result(None)

"""The certificates that a peer shows and accepts, as its files have them now."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from edgewise.errors import InputError
from edgewise.peers.config import certificates, revocation
from edgewise.peers.config.identity import Identity
from edgewise.peers.transport.failure_reasons import ConnectionFailure
from edgewise.peers.transport.tls_stream import TlsStream

log = logging.getLogger("edgewise.peers")

TRIES = 3  # files that are being replaced between two looks at them
Stamps = tuple[tuple[int, int, int] | None, ...]


class Contexts(NamedTuple):
    caller: ssl.SSLContext
    called: ssl.SSLContext
    expiry: datetime
    revoked: frozenset[int] = frozenset()  # serial numbers

    def require_good(self, stream: TlsStream) -> None:
        """Raises where the certificate of the other side was taken back."""
        if stream.serial() in self.revoked:
            raise ConnectionFailure(
                f"the certificate of {' '.join(stream.names())} is revoked: it needs a new one"
            )

    def require_unexpired(self) -> None:
        if self.expiry <= datetime.now(UTC):
            raise InputError(
                f"this peer's own certificate expired at {self.expiry:%Y-%m-%d %H:%M} UTC: "
                "`edgewise network renew` makes a new one"
            )


class TlsContexts:
    """Made anew when a file has changed. Files that cannot be used leave those from before."""

    def __init__(self, config: Callable[[], Identity]) -> None:
        self.config = config
        self.made: Contexts | None = None
        self.stamps: Stamps = ()
        self.lock = asyncio.Lock()

    async def now(self) -> Contexts:
        async with self.lock:
            stamps = stamps_of(self.config())
            if self.made is None or stamps != self.stamps:
                self.stamps = stamps
                try:
                    self.made = await asyncio.to_thread(contexts_of, self.config())
                except InputError as wrong:
                    if self.made is None:
                        raise
                    log.warning("%s; until then it goes on with the one from before", wrong)
            return self.made


def stamps_of(config: Identity) -> Stamps:
    found: list[tuple[int, int, int] | None] = []
    for path in (config.authority, config.key, config.certificate, list_of(config)):
        try:
            seen = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((seen.st_mtime_ns, seen.st_size, seen.st_ino))
    return tuple(found)


def contexts_of(config: Identity) -> Contexts:
    for tries_left in reversed(range(TRIES)):
        authority, _, certificate = config.credentials()
        try:
            made = [
                context_of(config, protocol, authority)
                for protocol in (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER)
            ]
            break
        except (OSError, ValueError) as wrong:  # ssl's errors are OSErrors
            if not tries_left:
                raise InputError(
                    f"{config.path}: peer.key, {config.key}, and peer.certificate, "
                    f"{config.certificate}, cannot be used ({wrong}): copy both again from where "
                    "`edgewise network` wrote them"
                ) from None
    revoked = frozenset(revocation.revoked_in(list_of(config)))
    if revoked:
        revocation.require_signed(list_of(config), authority)
    if certificates.certificate_in(certificate).serial_number in revoked:
        log.warning(
            "this peer's own certificate is revoked: neighbours that know will not talk to it; "
            "`edgewise network renew` or `sign` makes a new one"
        )
    return Contexts(made[0], made[1], certificates.expiry(certificate), revoked)


def list_of(config: Identity) -> Path:
    """Of revoked certificates, if there is one: beside the authority's."""
    return config.authority.with_name(revocation.LIST)


def context_of(config: Identity, protocol: ssl._SSLMethod, authority: bytes) -> ssl.SSLContext:
    """TLS 1.3, both ends verified. The name is compared by who has the connection."""
    context = ssl.SSLContext(protocol)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0  # nobody comes back but with a certificate
    context.load_verify_locations(cadata=authority.decode("ascii"))
    context.load_cert_chain(config.certificate, config.key, password=no_password)
    return context


def no_password() -> str:
    """Or it would be asked for at the terminal."""
    raise ValueError("the key is encrypted")

"""Who somebody is, by files: the authority's certificate, an own one, and its key."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from edgewise.errors import InputError
from edgewise.peers.config import certificates

PATIENCE_WITH_FILES = 1.0  # seconds that a key and its certificate may take to be replaced


class Identity:
    """What a peer's configuration and a relay's have alike."""

    path: Path  # of what names the files
    mesh: str
    authority: Path
    certificate: Path
    key: Path

    def credentials(self) -> tuple[bytes, bytes, bytes]:
        """Authority, key and certificate as they are now: they may be renewed while a peer runs.

        Two files cannot be replaced at one moment, so they get a second to fit together.
        """
        patience = time.monotonic() + PATIENCE_WITH_FILES
        while True:
            authority, key, certificate = (
                read_part(self, name) for name in ("authority", "key", "certificate")
            )
            wrong = misfit(self, authority, key, certificate)
            if wrong is None:
                return authority, key, certificate
            if time.monotonic() > patience:
                raise InputError(f"{self.path}: {wrong}")
            time.sleep(0.05)


def require_held(who: Identity, name: str) -> None:
    """Raises InputError unless the files say that this is who has the name, and nobody else can."""
    if os.name == "posix" and who.key.exists() and readable_by_others(who.key):
        raise InputError(
            f"{who.path}: peer.key, {who.key}, can be read by others: chmod 600 it, or renew "
            "it with `edgewise network renew` if somebody may have"
        )
    authority, _, certificate = who.credentials()
    at = f"{who.path}: peer.certificate, {who.certificate},"
    names = certificates.names_in(certificate)
    if names != [name]:
        raise InputError(f"{at} is of {', '.join(names) or 'nobody'}: give that of {name}")
    if not certificates.is_signed_by(certificate, authority):
        raise InputError(
            f"{at} is not signed by peer.authority, {who.authority}: copy both again from where "
            "`edgewise network` wrote them"
        )
    ends = certificates.expiry(certificate)
    if ends <= datetime.now(UTC):
        raise InputError(
            f"{at} expired at {ends:%Y-%m-%d %H:%M} UTC: `edgewise network renew` makes a new one"
        )


def readable_by_others(key: Path) -> bool:
    """A group may read a key that is root's, where the peer is not: so secrets are mounted."""
    found = key.stat()
    mounted = found.st_uid == 0 and os.geteuid() != 0
    return bool(found.st_mode & (0o037 if mounted else 0o077))


def read_part(who: Identity, name: str) -> bytes:
    path: Path = getattr(who, name)
    try:
        return path.read_bytes()
    except OSError as problem:
        raise InputError(
            f"{who.path}: peer.{name}, {path}, cannot be read ({problem.strerror}): copy it "
            "from where `edgewise network` wrote it"
        ) from None


def misfit(who: Identity, authority: bytes, key: bytes, certificate: bytes) -> str | None:
    for name, parse, pem in (
        ("authority", certificates.certificate_in, authority),
        ("key", certificates.private_key, key),
        ("certificate", certificates.certificate_in, certificate),
    ):
        try:
            parse(pem)
        except InputError as problem:
            return f"peer.{name}, {getattr(who, name)}: {problem}"
    if not certificates.is_pair(key, certificate):
        return (
            f"peer.key, {who.key}, is not the key of peer.certificate, {who.certificate}: "
            "copy both again from where `edgewise network` wrote them"
        )
    return None

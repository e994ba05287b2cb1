"""Who a relay is: a certificate of the network's authority, which no peer's can be taken for."""

import re
from dataclasses import dataclass
from pathlib import Path

from edgewise.errors import InputError
from edgewise.peers.config import certificates
from edgewise.peers.config.certificates import relay_name
from edgewise.peers.config.identity import Identity, require_held
from edgewise.peers.operations.authority import CERTIFICATE, authority_in, require_days

KEY, PEM = "relay.key", "relay.pem"
NAME = re.compile(r"relay\.([a-z0-9-]{1,40})\.edgewise")


@dataclass(frozen=True)
class RelayIdentity(Identity):
    path: Path  # the folder
    mesh: str
    authority: Path
    certificate: Path
    key: Path


def certify(folder: Path, mesh: str, days: int) -> None:
    """A new key and certificate, where the authority's key is."""
    require_days(days)
    signer = authority_in(folder)
    made = certificates.private_key(certificates.make_authority()[0])
    certificate = certificates.certify(*signer, made.public_key(), relay_name(mesh), days)
    certificates.replace_secret(folder / KEY, certificates.key_bytes(made))
    certificates.replace_public(folder / PEM, certificate)


def identity_in(folder: str | Path) -> RelayIdentity:
    """By the relay's files in a folder, which say what network it is of."""
    folder = Path(folder)
    try:
        names = certificates.names_in((folder / PEM).read_bytes())
    except OSError as problem:
        raise InputError(
            f"{folder / PEM} cannot be read ({problem.strerror}): `edgewise network relay MESH "
            f"--make` makes it and {KEY} where the authority's key is; copy both here, and "
            f"{CERTIFICATE}"
        ) from None
    found = NAME.fullmatch(names[0]) if len(names) == 1 else None
    if found is None:
        raise InputError(
            f"{folder / PEM} is of {', '.join(names) or 'nobody'}, and of no relay: make one with "
            "`edgewise network relay MESH --make`"
        )
    files = folder / CERTIFICATE, folder / PEM, folder / KEY
    identity = RelayIdentity(folder, found[1], *files)
    require_held(identity, relay_name(found[1]))
    return identity

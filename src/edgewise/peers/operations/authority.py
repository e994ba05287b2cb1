"""The authority of a mesh, whose key signs certificates."""

from pathlib import Path

from edgewise.errors import InputError
from edgewise.peers.config import certificates
from edgewise.peers.config.peer_config import PeerConfig
from edgewise.peers.config.revocation import note

KEY, CERTIFICATE = "authority.key", "authority.pem"


def require_days(days: int) -> None:
    if days < 1:
        raise InputError(f"days is {days}: give 1 or more")


def certify(config: PeerConfig, signer: certificates.KeyPair, days: int) -> None:
    """A new key and certificate, in the place of those that are there."""
    key, certificate = certificates.issue(*signer, config.mesh, config.id, days)
    note(config.path.parent, config.id, certificate)
    certificates.replace_secret(config.key, key)
    certificates.replace_public(config.certificate, certificate)


def authority_in(folder: Path) -> certificates.KeyPair:
    try:
        return (folder / KEY).read_bytes(), (folder / CERTIFICATE).read_bytes()
    except OSError as problem:
        raise InputError(
            f"{problem.filename} cannot be read ({problem.strerror}): certificates are made where "
            "the authority's key is kept"
        ) from None

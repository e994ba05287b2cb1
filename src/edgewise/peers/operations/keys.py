"""Keys that stay on their hosts, and certificates that are taken back."""

from pathlib import Path
from typing import NamedTuple

from edgewise.errors import InputError
from edgewise.peers.config import certificates
from edgewise.peers.config.certificates import id_of, name_of
from edgewise.peers.config.peer_config import PeerConfig, own_name, read
from edgewise.peers.config.requests import (
    key_and_name,
    key_fingerprint,
    new_key,
    own_fingerprint,
    request_for,
)
from edgewise.peers.config.revocation import LIST, issued, note, revoked_in, write_list
from edgewise.peers.operations.authority import authority_in, certify, require_days
from edgewise.peers.operations.mesh import read_mesh, require_member


def renew(folder: str | Path, id: int | None, days: int) -> list[PeerConfig]:
    """A new key and certificate for this peer, or for all."""
    require_days(days)
    mesh = read_mesh(folder)
    signer = authority_in(mesh.folder)
    if id is not None:
        require_member(mesh, id)
    renewed = [config for config in mesh.peers.values() if id in (None, config.id)]
    for config in renewed:
        if not config.key.exists():
            raise InputError(
                f"{config.key} is not here, but on its host: ask for a new certificate there with "
                f"`edgewise network request {config.path.name}`, and sign it here"
            )
    for config in renewed:
        certify(config, signer, days)
    return renewed


class Request(NamedTuple):
    config: PeerConfig
    path: Path
    fingerprint: str  # of the key
    made: bool  # the key too, and not the request alone


def request(toml: str | Path) -> Request:
    """On the peer's host: a key, if there is none, and a request for its certificate."""
    config = read(toml)
    made = not config.key.exists()
    if made:
        certificates.write_secret(config.key, new_key())
    key = config.key.read_bytes()
    path = config.key.with_suffix(".csr")
    certificates.replace_public(path, request_for(key, own_name(config)))
    return Request(config, path, own_fingerprint(key), made)


class Signed(NamedTuple):
    config: PeerConfig
    fingerprint: str


def sign(folder: str | Path, requests: list[str], days: int) -> list[Signed]:
    """Where the authority's key is: the certificates that were asked for. What is granted is the
    name of a peer of this network, and nothing else that a request may say."""
    require_days(days)
    mesh = read_mesh(folder)
    signer, name = authority_in(mesh.folder), next(iter(mesh.peers.values())).mesh
    asked = []
    for each in requests:
        try:
            key, wanted = key_and_name(Path(each).read_bytes())
        except OSError as problem:
            raise InputError(f"{each} cannot be read ({problem.strerror})") from None
        except InputError as problem:
            raise InputError(f"{each}: {problem}") from None
        id = id_of([wanted], name)
        if id is None:
            raise InputError(
                f"{each} asks for {wanted}: peers of this network are {name_of(name, 0)} and so on"
            )
        require_member(mesh, id)
        asked.append((mesh.peers[id], key, wanted))
    signed = []
    for config, key, wanted in asked:
        certificate = certificates.certify(*signer, key, wanted, days)
        note(mesh.folder, config.id, certificate)
        certificates.replace_public(config.certificate, certificate)
        signed.append(Signed(config, key_fingerprint(key)))
    return signed


def revoke(folder: str | Path, id: int) -> int:
    """How many certificates of this peer are on the list now that were not: all that it ever had
    and that have not ended. One that is renewed afterwards is good."""
    mesh = read_mesh(folder)
    if id not in mesh.left:
        require_member(mesh, id)
    signer = authority_in(mesh.folder)
    known = {each.serial for each in issued(mesh.folder) if each.id == id}
    config = mesh.left[id] if id in mesh.left else mesh.peers[id]
    if config.certificate.exists():
        known.add(certificates.certificate_in(config.certificate.read_bytes()).serial_number)
    if not known:
        raise InputError(f"peer {id} has no certificate yet: there is nothing to revoke")
    before = revoked_in(mesh.folder / LIST)
    write_list(mesh.folder, signer, before | known)
    return len(known - before)

"""A mesh in the folder of who set it up: the authority, and every peer's files.

authority.key        signs certificates; stays here, best offline
authority.pem        goes to every host
peerI.toml .pem .key go to peer I's host
"""

import re
import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from edgewise.errors import GraphError, InputError
from edgewise.graph.graph import Graph
from edgewise.peers.config import certificates
from edgewise.peers.config.addresses import address_of, listening, port_of
from edgewise.peers.config.peer_config import (
    Fit,
    Neighbour,
    PeerConfig,
    read,
    require_sound,
    save,
)
from edgewise.peers.config.tables import ALL
from edgewise.peers.operations.authority import (
    CERTIFICATE,
    KEY,
    authority_in,
    certify,
    require_days,
)
from edgewise.peers.operations.newcomer import (
    carried_by_all,
    host_for,
    keys_are_here,
    metrics_for,
    only_penalty,
    relay_for,
)

PEER_FILE = re.compile(r"peer(\d+)\.(toml|key|pem)", re.ASCII)


class Mesh(NamedTuple):
    """The configurations in a folder, by number. Those that have left stay there, but their
    neighbours do not name them any more."""

    folder: Path
    peers: dict[int, PeerConfig]
    left: dict[int, PeerConfig]

    @property
    def complete(self) -> bool:
        """Whether all of its peers are here, and not just those of one host."""
        return all(config.nodes == len(self.peers) for config in self.peers.values())

    @property
    def next_id(self) -> int:
        """One that nobody ever had: certificates outlive their peers."""
        files = map(PEER_FILE.fullmatch, (path.name for path in self.folder.iterdir()))
        return 1 + max([int(found[1]) for found in files if found], default=-1)


def create(
    folder: str | Path,
    graph: Graph,
    fit: Fit,
    penalties: Sequence[tuple[str, ...]],
    host: Callable[[int], str],
    port: int,
    days: int,
    own: Callable[[int], Mapping[str, Any]] = lambda id: {},
    keys: bool = True,
) -> Mesh:
    """A folder with an authority, and a key, a certificate and a configuration per peer. own: what
    else is in a peer's configuration, where edges carry couplings (`coupled_mesh`). keys: False
    where each host makes its own (`keys.request`)."""
    graph.require_connected()
    require_days(days)
    folder = Path(folder)
    addresses = {i: address_of(host(i), port + i) for i in range(graph.nodes)}
    if folder.is_file():
        raise InputError(f"{folder} is a file: give a folder's name")
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name in (KEY, CERTIFICATE) or PEER_FILE.fullmatch(path.name):
            raise InputError(f"{folder} holds a network already ({path.name}): give another folder")
    signer = certificates.make_authority()
    certificates.write_secret(folder / KEY, signer[0])
    certificates.replace_public(folder / CERTIFICATE, signer[1])
    mesh, peers = f"mesh-{secrets.token_hex(4)}", {}
    for i in range(graph.nodes):
        config = outlined(folder, mesh, i, graph.nodes, listening(addresses[i]))
        config = replace(config, fit=fit, penalty=penalties[i], **own(i))
        around = [
            Neighbour(j, addresses[j], dial=i < j, relay=config.relay)
            for j in graph.neighbours(i).tolist()
        ]
        peers[i] = replace(config, neighbours=tuple(around))
        require_sound(peers[i])
        if keys:
            certify(peers[i], signer, days)
        save(peers[i])
    made = Mesh(folder, peers, {})
    warn_of_leaves(made)
    return made


def add(
    folder: str | Path,
    neighbours: Sequence[int],
    host: str | None,
    penalty: tuple[str, ...] | None,
    days: int,
    between: Any = None,
) -> tuple[Mesh, int]:
    """A further peer, joined to these; between: what its edges carry, by default what all others
    do."""
    require_days(days)
    mesh = read_mesh(folder)
    if not mesh.complete:
        nodes = max(config.nodes for config in mesh.peers.values())
        raise InputError(
            f"{folder} has {len(mesh.peers)} of {nodes} peers: do this in the folder that "
            "`edgewise network init` wrote"
        )
    for id in neighbours:
        require_member(mesh, id)
    if len(set(neighbours)) != len(neighbours) or not neighbours:
        raise InputError(f"neighbours are {list(neighbours)}: give one or more, each once")
    signer, id, some = authority_in(mesh.folder), mesh.next_id, next(iter(mesh.peers.values()))
    address = address_of(host_for(id, host, some), port_of(some.listen) - some.id + id)
    penalty = only_penalty(mesh.peers) if penalty is None else penalty
    nodes = len(mesh.peers) + 1
    config = outlined(mesh.folder, some.mesh, id, nodes, listening(address))
    around = [
        Neighbour(j, found_at(mesh, j), dial=id < j, relay=mesh.peers[j].relay)
        for j in sorted(neighbours)
    ]
    carried = carried_by_all(mesh.peers) if between is None else between
    given: dict[str, Any] = {"fit": some.fit, "schema": some.schema, "penalty": penalty}
    config = replace(config, neighbours=tuple(around), **given)
    given = {"metrics": metrics_for(id, mesh.peers), "relay": relay_for(mesh.peers)}
    config = replace(config, between={ALL: carried} if carried else {}, **given)
    if keys_are_here(mesh.peers):
        certify(config, signer, days)
    save(config)
    joined = {id: config}
    for other in mesh.peers.values():
        listed = other.neighbours
        if other.id in neighbours:
            listed = (*listed, Neighbour(id, address, dial=other.id < id, relay=other.relay))
        told = dict(other.between)
        if other.id in neighbours and carried and told.get(ALL) != carried:
            told[str(id)] = carried
        joined[other.id] = replace(other, neighbours=listed, nodes=nodes, between=told)
        save(joined[other.id])
    grown = mesh._replace(peers=dict(sorted(joined.items())))
    warn_of_leaves(grown, [id])
    return grown, id


def leave(folder: str | Path, id: int) -> Mesh:
    """Without this peer. On a host that has its own peer's configuration alone, only that one is
    changed, and whether the others stay connected is not known."""
    mesh = read_mesh(folder)
    listing = [c.id for c in mesh.peers.values() if id in [n.id for n in c.neighbours]]
    if not listing:
        require_member(mesh, id)
    rest = {i: config for i, config in mesh.peers.items() if i != id}
    if not rest:
        raise InputError(f"{folder} has no peer but {id}: delete the folder instead")
    for i, config in rest.items():
        kept = tuple(n for n in config.neighbours if n.id != id)
        told = {key: value for key, value in config.between.items() if key != str(id)}
        rest[i] = replace(config, neighbours=kept, nodes=config.nodes - 1, between=told)
    smaller = Mesh(mesh.folder, rest, {i: c for i, c in mesh.peers.items() if i == id} | mesh.left)
    if mesh.complete:
        require_connected(smaller, id)
    for i, config in rest.items():
        if config.nodes > 1 and not config.neighbours:
            raise GraphError(f"peer {i} has no neighbour but {id}: add another first")
    for config in rest.values():
        save(config)
    warn_of_leaves(smaller, listing)
    return smaller


# --- reading a folder -----------------------------------------------------------------------------


def read_mesh(folder: str | Path) -> Mesh:
    folder = Path(folder)
    paths = sorted(folder.glob("peer*.toml")) if folder.is_dir() else []
    if not paths:
        raise InputError(f"{folder} has no peers: give a folder that `edgewise network init` wrote")
    found: dict[int, PeerConfig] = {}
    for config in map(read, paths):
        if config.id in found:
            raise InputError(f"{config.path} is of peer {config.id}, as {found[config.id].path} is")
        found[config.id] = config
    gone = {i for i, config in found.items() if has_left(config, found)}
    for i in sorted(found.keys() - gone):
        for n in found[i].neighbours:
            if n.id in gone or not knows(found.get(n.id), i):
                raise InputError(
                    f"{found[i].path} names {n.id}, whose configuration does not name {i}: put it "
                    "in there, or take it out here"
                )
            require_one_way(found[i], n, found.get(n.id))
    here = {i: found[i] for i in sorted(found) if i not in gone}
    if not here:
        raise InputError(f"{folder} has no peer that another one names: none is in the network")
    require_agreement(list(here.values()))
    return Mesh(folder, here, {i: found[i] for i in sorted(gone)})


def require_agreement(configs: Sequence[PeerConfig]) -> None:
    first = configs[0]
    for other in configs[1:]:
        tables = [None if one.schema is None else one.schema.table() for one in (first, other)]
        if tables[0] != tables[1]:
            raise InputError(
                f"{first.path} and {other.path} differ in [schema]: give both the same"
            )
        for name, value in first.agreed().items():
            if other.agreed()[name] != value:
                raise InputError(
                    f"{first.path} and {other.path} differ in {name}: {value!r} and "
                    f"{other.agreed()[name]!r}; make them the same"
                )


def knows(config: PeerConfig | None, id: int) -> bool:
    """Whether it names the other; one that is not here is believed to."""
    return config is None or id in [n.id for n in config.neighbours]


def require_one_way(config: PeerConfig, n: Neighbour, other: PeerConfig | None) -> None:
    """Both ends by the same relay, or both by none: else they never meet."""
    back = next((k.relay for k in other.neighbours if k.id == config.id), None) if other else None
    if other is not None and n.relay != back:
        raise InputError(
            f"{config.path} reaches {n.id} by relay = {n.relay or False!r}, and {other.path} "
            f"reaches {config.id} by {back or False!r}: make them the same"
        )


def has_left(config: PeerConfig, found: Mapping[int, PeerConfig]) -> bool:
    around = [n.id for n in config.neighbours]
    return bool(around) and not any(knows(found.get(j), config.id) for j in around)


def require_member(mesh: Mesh, id: int) -> None:
    if id not in mesh.peers:
        known = ", ".join(map(str, mesh.peers))
        raise InputError(f"{mesh.folder} has no peer {id}: there are {known}")


def require_connected(mesh: Mesh, without: int) -> None:
    row = {id: k for k, id in enumerate(mesh.peers)}
    pairs = [(row[i], row[n.id]) for i, c in mesh.peers.items() for n in c.neighbours]
    if not Graph.from_edges(pairs, len(row)).connected:
        raise GraphError(
            f"without peer {without} the others would be in several parts: join them first"
        )


def found_at(mesh: Mesh, id: int) -> str:
    """The address by which others reach this peer."""
    named = [n.address for c in mesh.peers.values() for n in c.neighbours if n.id == id]
    return (named or [mesh.peers[id].listen])[0]


# --- parts of one ---------------------------------------------------------------------------------


def outlined(folder: Path, mesh: str, id: int, nodes: int, listen: str) -> PeerConfig:
    at = folder / f"peer{id}"
    toml, certificate, key = (at.with_suffix(s) for s in (".toml", ".pem", ".key"))
    return PeerConfig(
        toml, mesh, id, nodes, listen, (), folder / CERTIFICATE, certificate, key, out=at
    )


def warn_of_leaves(mesh: Mesh, among: Sequence[int] | None = None) -> None:
    for i, config in mesh.peers.items():
        if len(config.neighbours) == 1 and (among is None or i in among):
            warnings.warn(
                f"peer {i} has one neighbour, {config.neighbours[0].id}, which learns each of its "
                "gradients where its penalty is smooth: give it a second one",
                stacklevel=3,
            )

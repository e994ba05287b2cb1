"""What a new peer has as the others do, where nothing else is said."""

from collections.abc import Mapping
from typing import Any

from edgewise.errors import InputError
from edgewise.peers.config.addresses import address_of, host_of, is_loopback, port_of
from edgewise.peers.config.peer_config import PeerConfig
from edgewise.peers.config.tables import ALL

Peers = Mapping[int, PeerConfig]


def host_for(id: int, wanted: str | None, some: PeerConfig) -> str:
    """A new peer's host: the one wanted, or this machine if it is the others' too."""
    inside = is_loopback(host_of(some.listen))
    if wanted is None and inside:
        return host_of(some.listen)
    if wanted is None or is_loopback(wanted) != inside:
        where = "on this machine alone" if inside else "on hosts of their own"
        raise InputError(f"the peers are {where}: give a --host there for the new one")
    return wanted.replace("{id}", str(id))


def only_penalty(peers: Peers) -> tuple[str, ...]:
    penalties = {config.penalty for config in peers.values()}
    if len(penalties) > 1:
        raise InputError("the peers have different penalties: give --penalty, the new one's")
    return penalties.pop()


def carried_by_all(peers: Peers) -> Any:
    """What a new edge carries too; nothing where models are equal."""
    found = [config.between for config in peers.values()]
    if not any(found):
        return None
    if any(set(between) != {ALL} or between != found[0] for between in found):
        raise InputError(
            "edges carry different things: give --between, or write [between] into the TOML files "
            "at both ends of a new edge by hand"
        )
    return found[0][ALL]


def metrics_for(id: int, peers: Peers) -> str | None:
    """Where the others have one port, as on hosts of their own, that; else counted on from it."""
    some = next(iter(peers.values()))
    if some.metrics is None or port_of(some.metrics) == 0:
        return some.metrics
    alike = len(peers) > 1 and len({config.metrics for config in peers.values()}) == 1
    port = port_of(some.metrics) + (0 if alike else id - some.id)
    return address_of(host_of(some.metrics), port)


def relay_for(peers: Peers) -> str | None:
    """That by which all others reach each other."""
    relays = {config.relay for config in peers.values()}
    return relays.pop() if len(relays) == 1 else None


def keys_are_here(peers: Peers) -> bool:
    """Else each host makes its own, and so does a new one's."""
    return any(config.key.exists() for config in peers.values())

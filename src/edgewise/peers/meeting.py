"""What peers tell each other first, and what must fit."""

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.peers.config import shared_hash
from edgewise.peers.local import Facts

if TYPE_CHECKING:
    from edgewise.peers.peer import Peer


def agreed(peer: "Peer") -> dict[str, Any]:
    """What must be the same at all peers."""
    said = peer.config.agreed() | {"unknowns": peer.problem.size}
    if peer.problem.classes is not None:
        said["classes"] = np.asarray(peer.problem.classes).tolist()
    return said


def greeting(peer: "Peer") -> dict[str, Any]:
    mine = agreed(peer)
    return {
        "agreed": mine,
        "hash": shared_hash(mine),
        "facts": list(peer.own),
        "life": peer.life,
        "wants": peer.round,
    }


def misfit(peer: "Peer", other: int, said: dict[str, Any]) -> str:
    """What does not fit in a neighbour's greeting, or nothing; what it says of itself is kept."""
    mine, theirs = agreed(peer), said.get("agreed")
    theirs = theirs if isinstance(theirs, dict) else {}
    for name in mine:
        if theirs.get(name) != mine[name]:
            return (
                f"peer {other} has {name} = {theirs.get(name)!r}, this peer {mine[name]!r}: "
                "make them the same"
            )
    try:
        degree, samples, *smooth = said["facts"]
        facts = Facts(int(degree), int(samples), *map(float, smooth))
        usable = np.isfinite(facts).all() and min(facts) > 0
    except (KeyError, TypeError, ValueError):
        usable = False
    if not usable:
        return f"peer {other} says nothing usable of its data"
    if peer.facts.setdefault(other, facts) != facts:
        return (
            f"peer {other} came back with other data or neighbours, and edges would be weighed "
            "differently at their ends: delete all checkpoints and start all peers anew"
        )
    return ""

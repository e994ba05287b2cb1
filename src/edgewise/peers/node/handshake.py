"""What peers tell each other first, and what must fit."""

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.peers.node.stepper import Facts, Pair
from edgewise.peers.transport.links import Link

if TYPE_CHECKING:
    from edgewise.peers.node.peer import Peer

USUAL = (1e-30, 1e30)  # what facts are between; beyond it a weight might not be finite

MOST_SHOWN = 200  # letters


def agreed(peer: "Peer") -> dict[str, Any]:
    """What must be the same at all peers."""
    said = peer.config.agreed() | {"unknowns": peer.problem.size}
    if peer.problem.classes is not None:
        said["classes"] = np.asarray(peer.problem.classes).tolist()
    return said


def greeting(peer: "Peer", link: Link) -> dict[str, Any]:
    link.told = peer.own
    return {
        "agreed": agreed(peer),
        "facts": peer.own,
        "edge": link.pair,  # as it is weighed, if they have met before
        "life": peer.life,
        "wants": peer.round,
        "kept": link.saved,  # the oldest round that can still be sent
    }


def misfit(peer: "Peer", link: Link, said: dict[str, Any]) -> str:
    """What does not fit in a neighbour's greeting, or nothing; then the edge is weighed."""
    other, mine, theirs = link.other, agreed(peer), said.get("agreed")
    theirs = theirs if isinstance(theirs, dict) else {}
    for name in (*mine, *theirs):
        if theirs.get(name) != mine.get(name):
            named = name if name in mine else shown(name)
            return (
                f"peer {other} has {named} = {shown(theirs.get(name))}, this peer "
                f"{shown(mine.get(name))}: make them the same"
            )
    try:
        facts = facts_in(said["facts"])
        edge = said["edge"]
        seen = None if edge is None else Pair(facts_in(edge[1]), facts_in(edge[0]))
        kept, wants = int(said["kept"]), int(said["wants"])
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        return f"peer {other} says nothing usable of its data"
    pair = weighed(peer, link, facts, seen)
    if peer.strict and (pair != Pair(peer.own, facts) or seen not in (None, pair)):
        return (
            f"peer {other} came back with other data or neighbours, and in strict mode nothing may "
            "change: delete all checkpoints and start all peers anew"
        )
    if peer.strict and (wants < link.saved or peer.round < kept):
        who, has = (other, wants) if wants < link.saved else (peer.config.id, peer.round)
        return (
            f"peer {who} is at round {has} and needs messages that peer "
            f"{peer.config.id if who == other else other} has no more: its checkpoint was lost. "
            "Put it back, or delete all checkpoints and start all peers anew"
        )
    link.pair = pair
    return ""


def shown(said: Any) -> str:
    """What somebody else chose, for a line of the log."""
    text = repr(said)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."


def weighed(peer: "Peer", link: Link, facts: Facts, seen: Pair | None) -> Pair:
    """Both ends have both greetings, and come to the same: what one still knew of the edge, what
    the lower number knew if both did, and if nobody did, what they said of themselves just now."""
    if link.pair is None:
        return seen or Pair(link.told or peer.own, facts)
    return seen if seen is not None and link.other < peer.config.id else link.pair


def facts_in(said: Any) -> Facts:
    """Raises ValueError unless they can be used."""
    degree, samples, *smooth = said
    facts = Facts(int(degree), int(samples), *map(float, smooth))
    if not all(USUAL[0] < number < USUAL[1] for number in facts):
        raise ValueError("no usual numbers")
    return facts

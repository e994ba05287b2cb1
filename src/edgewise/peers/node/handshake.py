"""What peers tell each other first, and what must fit."""

from typing import Any

import numpy as np

from edgewise.peers.node import table_form
from edgewise.peers.node.fit_identity import shown
from edgewise.peers.node.own_edges import difference
from edgewise.peers.node.state import PeerState
from edgewise.peers.transport.bounds import sizes_in
from edgewise.peers.transport.edge_facts import EdgeFacts, NodeFacts, facts_in, unlikely
from edgewise.peers.transport.frames import VERSION
from edgewise.peers.transport.greeting import other_version
from edgewise.peers.transport.links import Link


def agreed(peer: PeerState) -> dict[str, Any]:
    """What must be the same at all peers."""
    chosen = {"method": peer.settled_fit.method, "set": list(peer.settled_fit.set)}
    fit = {"protocol": VERSION, **peer.config.agreed(), **chosen}
    if not peer.edges:  # else models may be of different sizes
        fit["unknowns"] = peer.problem.size
    if peer.problem.classes is not None:
        fit["classes"] = np.asarray(peer.problem.classes).tolist()
    return fit


def greeting_of(peer: PeerState, link: Link) -> dict[str, Any]:
    facts = None if peer.agreeing else peer.facts_towards(link.other)
    link.facts_sent = facts or link.facts_sent
    return {
        "agreed": agreed(peer),
        "carries": carried(peer, link.other),
        "table": told_of(peer),
        "facts": facts,  # none before it knows how its data weigh
        "edge": link.pair,  # as it is weighed, if they have met before
        "incarnation": peer.incarnation,
        "resume_at": peer.round,
        "oldest_kept": link.saved,  # the oldest round that can still be sent
        "size": None if peer.own_size is None else peer.own_size.vectors.tolist(),
    }


def told_of(peer: PeerState) -> dict[str, Any]:
    return table_form.told(peer.config.schema, peer.problem.columns)


def carried(peer: PeerState, other: int) -> dict[str, Any] | None:
    return peer.edges[other].told if other in peer.edges else None


def settle_edge(peer: PeerState, link: Link, greeting: dict[str, Any]) -> str:
    """What does not fit in a neighbour's greeting, or nothing; then the edge is settled."""
    other, mine, theirs = link.other, agreed(peer), greeting.get("agreed")
    theirs = theirs if isinstance(theirs, dict) else {}
    wrong = other_version(other, theirs.get("protocol"))
    wrong = wrong or difference(other, carried(peer, other), greeting.get("carries"))
    wrong = wrong or table_form.difference(other, told_of(peer), greeting.get("table"))
    if wrong:
        return wrong
    for name in (*mine, *theirs):
        if theirs.get(name) != mine.get(name):
            named = name if name in mine else shown(name)
            return (
                f"peer {other} has {named} = {shown(theirs.get(name))}, this peer "
                f"{shown(mine.get(name))}: make them the same"
            )
    link.provisional = peer.agreeing or greeting.get("facts", ...) is None
    if link.provisional:
        return ""  # they greet again when both know
    try:
        facts = facts_in(greeting["facts"])
        edge = greeting["edge"]
        seen = None if edge is None else EdgeFacts(facts_in(edge[1]), facts_in(edge[0]))
        oldest, resume_at = int(greeting["oldest_kept"]), int(greeting["resume_at"])
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        return f"peer {other} says nothing usable of its data"
    for each in () if peer.edges else (facts, *(seen or ())):
        wrong = unlikely(each, peer.facts, peer.config.nodes)
        if wrong:
            return (
                f"peer {other} speaks of {wrong}: nobody's in one network differ so much. One of "
                "the two has a row or a column that is to be scaled, or lies"
            )
    pair = ends_of_edge(peer, link, facts, seen)
    own = peer.facts_towards(other)
    if peer.strict and (pair != EdgeFacts(own, facts) or seen not in (None, pair)):
        return (
            f"peer {other} came back with other data or neighbours, and in strict mode nothing may "
            "change: delete all checkpoints and start all peers anew"
        )
    if peer.strict and (resume_at < link.saved or peer.round < oldest):
        who, has = (other, resume_at) if resume_at < link.saved else (peer.config.id, peer.round)
        return (
            f"peer {who} is at round {has} and needs messages that peer "
            f"{peer.config.id if who == other else other} has no more: its checkpoint was lost. "
            "Put it back, or delete all checkpoints and start all peers anew; or, if there is a "
            f"second peer {who} on another host, end one of the two"
        )
    told = sizes_in(greeting.get("size"))
    apart = peer.bounds.too_far_apart(told)
    if apart:
        return (
            f"peer {other}'s data come to messages {apart:.0e} times as large as this peer's, or "
            "as much smaller: scale columns and labels to the same units"
        )
    link.pair, link.told_sizes = pair, told
    return ""


def ends_of_edge(
    peer: PeerState, link: Link, facts: NodeFacts, seen: EdgeFacts | None
) -> EdgeFacts:
    """Both ends have both greetings, and come to the same: what one still knew of the edge, what
    the lower number knew if both did, and if nobody did, what they said of themselves just now."""
    if link.pair is None:
        return seen or EdgeFacts(link.facts_sent or peer.facts_towards(link.other), facts)
    return seen if seen is not None and link.other < peer.config.id else link.pair

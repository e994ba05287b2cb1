"""Who is away: neighbours of this peer, and peers that others have lost."""

import time

from edgewise.peers.node.ending import Absence, Ending
from edgewise.peers.node.state import PeerState
from edgewise.peers.transport.links import Link

LEAST_SILENCE, PATIENCES = 5.0, 3.0  # seconds, and patiences, that are no slowness any more


def absences(peer: PeerState) -> dict[int, Absence]:
    """Neighbours that neither speak nor have finished. Strict peers wait for theirs."""
    if peer.strict:
        return {}
    links = peer.links.items()
    return {j: Absence(k.heard_at, k.dropped) for j, k in links if is_away(peer, k)}


def is_away(peer: PeerState, link: Link) -> bool:
    """One that has finished, or knows that all have converged, is not missed. One that is slow is
    not away before it has been silent for some seconds."""
    if link.gone or link.converged_hops >= peer.config.nodes:
        return False
    return link.dropped or not link.connected or is_silent(peer, link)


def is_silent(peer: PeerState, link: Link) -> bool:
    silence = time.monotonic() - link.last_heard
    return silence > max(LEAST_SILENCE, PATIENCES * peer.config.fit.patience)


def count_lost_hops(peer: PeerState) -> None:
    """0 where a neighbour is away, else one more than the least around; None from V up, where
    nobody has lost one. After somebody has come back it counts up to V, hop by hop."""
    if any(k.dropped or (is_away(peer, k) and is_silent(peer, k)) for k in peer.links.values()):
        peer.lost_hops = 0
        return
    around = [link.lost_hops for link in peer.links.values() if link.lost_hops is not None]
    far = min(around, default=peer.config.nodes) + 1
    peer.lost_hops = far if far < peer.config.nodes else None


def ending_of(peer: PeerState, reason: str, deserter: int | None = None) -> Ending:
    """reason: "stopped", "deserted", or why else, which `peer.stop_reason` says in strict mode."""
    tol, V = peer.config.fit.tol, peer.config.nodes
    agreed = reason == "converged" or peer.converged_hops >= V
    absent = absences(peer)
    lost = peer.lost_hops if peer.lost_hops and not absent else None
    met = tol is not None and agreed and bool(peer.residual <= tol)
    numbers = peer.round, float(peer.residual), tol, V
    alarms = tuple(peer.alarms.values())
    convex = peer.problem.convex
    return Ending(reason, *numbers, met, absent, lost, deserter, alarms, convex=convex)

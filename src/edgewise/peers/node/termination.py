"""When a peer has finished, with nobody to tell it."""

import asyncio
import logging
import time

import numpy as np

from edgewise.peers.node import checkpoint
from edgewise.peers.node.membership import regroup
from edgewise.peers.node.state import PeerState
from edgewise.peers.transport.frames import FAREWELL, encode
from edgewise.peers.transport.links import Link

log = logging.getLogger("edgewise.peers")

PARTING = 0.5  # seconds for a farewell to get out before streams are closed
A_WHILE = 60.0  # seconds for one that does not know yet that all is over
LINGER = 10.0  # seconds without a word after which a neighbour that has all it needs is let go


def count_converged_hops(peer: PeerState) -> None:
    """c is 0 while the own residual is above tol, else one more than the least around: at c = V
    all peers have been below it. To be counted when the residual is new, and of the very messages
    that the neighbours' counts came with: after a dead line both ends may be at rest, each with
    what it last heard, and find out only by looking again."""
    fit, V = peer.config.fit, peer.config.nodes
    if fit.tol is not None and peer.converged_hops < V:
        around = [link.converged_hops for link in peer.links.values() if not link.dropped]
        small = peer.residual <= fit.tol / np.sqrt(V)
        peer.converged_hops = min([peer.converged_hops, V - 1, *around]) + 1 if small else 0


def agree_to_stop(peer: PeerState) -> None:
    """In strict mode a round to stop at goes around, so that all stop at the same; else a peer
    that knows all to have converged goes on until its neighbours know too."""
    if peer.strict:
        heard = min([peer.stop_at, *(link.stop for link in peer.links.values())])
        over = peer.converged_hops >= peer.config.nodes or late(peer)
        peer.stop_at = min(heard, peer.round + peer.config.nodes) if over else heard


def late(peer: PeerState) -> bool:
    seconds = peer.config.fit.seconds
    return seconds is not None and peer.seconds() >= seconds


def finished(peer: PeerState) -> bool:
    if peer.strict:
        return peer.round >= peer.stop_at
    if peer.round >= peer.config.fit.rounds or late(peer):
        return True
    V = peer.config.nodes
    around = (link.converged_hops >= V or link.gone or link.dropped for link in peer.links.values())
    return peer.converged_hops >= V and all(around)


async def linger(peer: PeerState, stop: asyncio.Event) -> None:
    """A neighbour may still need what this peer sent: say farewell, and wait for theirs. Who has
    taken its leave is saved, so that a peer that is killed here does not wait for it again."""

    def needy() -> list[int]:
        return [other for other, link in peer.links.items() if not done_with(peer, link)]

    def gone() -> set[int]:
        return {other for other, link in peer.links.items() if link.gone}

    known, logged_at = gone(), time.monotonic()

    def stirred() -> bool:
        return gone() != known or not needy()

    while needy() and not stop.is_set():
        await regroup(peer)  # a new neighbour gets the model, and then a farewell as all do
        for other, link in peer.links.items():
            if link.farewell is None:
                link.post_farewell(encode(peer.frame(FAREWELL, other)))
        await peer.wait(stirred, stop, 1.0)
        if gone() != known:
            known = gone()
            await peer.save(*checkpoint.contents(peer))
        if needy() and time.monotonic() - logged_at > 6 * LINGER:
            logged_at = time.monotonic()
            log.info("has finished, and stays until peers %s have what it sent", needy())
    if gone() != known:  # one went while this was being saved of another
        await peer.save(*checkpoint.contents(peer))
    await asyncio.sleep(PARTING)


def done_with(peer: PeerState, link: Link) -> bool:
    """One that is away may come back, and in tolerant mode it then needs to hear that all is over,
    unless it knows: it is waited for longer. Its farewell may also have been lost, above all to a
    peer that was killed as it came: in strict mode one that is started again when it has finished,
    and meets nobody, is not to stay for ever."""
    away = time.monotonic() - link.last_heard if not link.connected else 0.0
    if peer.strict:
        has_all = link.gone or link.saved >= peer.round
        enough = LINGER if has_all else np.inf if link.streams else A_WHILE
        return (link.gone and link.farewell_sent) or away > enough
    knows = link.gone or link.dropped or link.converged_hops >= peer.config.nodes
    enough = LINGER if knows else min(A_WHILE, peer.config.drop_after)
    return (link.gone and link.farewell_sent) or away > enough

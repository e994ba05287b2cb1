"""When a peer has finished, with nobody to tell it."""

import asyncio
import logging
import time

import numpy as np

from edgewise.peers.node import checkpoint
from edgewise.peers.node.membership import regroup
from edgewise.peers.node.state import PeerState
from edgewise.peers.transport.frames import FAREWELL, NEVER, encode
from edgewise.peers.transport.links import Link

log = logging.getLogger("edgewise.peers")

PARTING = 0.5  # seconds for a farewell to get out before streams are closed
A_WHILE = 60.0  # seconds for one that does not know yet that all is over
LOOKS_TO_SETTLE = 30  # at the residual, once all have agreed that it was small
LINGER = 10.0  # seconds without a word after which a neighbour that has all it needs is let go


def count_converged_hops(peer: PeerState) -> None:
    """c is 0 while the own residual is above tol, else one more than the least around: at c = V
    all peers have been below it. To be counted when the residual is new, and of the very messages
    that the neighbours' counts came with: after a dead line both ends may be at rest, each with
    what it last heard, and find out only by looking again."""
    fit, V = peer.config.fit, peer.config.nodes
    if fit.tol is not None and peer.converged_hops < V:
        around = [link.converged_hops for link in peer.links.values() if not link.dropped]
        small = not peer.cut and peer.residual <= fit.tol / np.sqrt(V)
        peer.below_tol_at = peer.round if small else peer.below_tol_at
        peer.converged_hops = min([peer.converged_hops, V - 1, *around]) + 1 if small else 0


def agree_to_stop(peer: PeerState) -> None:
    """In strict mode a round to stop at goes around, so that all stop at the same; else a peer
    that knows all to have converged goes on until its neighbours know too."""
    if not peer.strict:
        return
    for link in peer.links.values():
        if link.stop < peer.stop_at:
            over = link.stop < peer.round  # to stop there is not to be told in time
            reason = None if over else evidence(peer)
            if reason is not None:
                peer.stop_at, peer.stop_reason = link.stop, reason
            elif peer.round >= link.stop:  # frames of rounds to come may tell of it too early
                disbelieve(peer, link)
    V = peer.config.nodes
    own = "converged" if peer.converged_hops >= V else "seconds" if late(peer) else None
    if own is not None and peer.round + V < peer.stop_at:
        peer.stop_at, peer.stop_reason = peer.round + V, own


def evidence(peer: PeerState) -> str | None:
    """What this peer itself knows that speaks for an earlier end, before a neighbour's word counts:
    all have converged only if this one has, so its own residual was small while the news were under
    way. Whoever has a time limit may be told that another's is up."""
    if peer.below_tol_at >= 0:
        looks = 2 + peer.config.nodes  # the counts of all go up by one a look
        on_the_way = looks * peer.config.record_every + peer.config.nodes
        if peer.round - peer.below_tol_at <= on_the_way:
            return "converged"
    return "seconds" if peer.config.fit.seconds is not None else None


def disbelieve(peer: PeerState, link: Link) -> None:
    over = link.stop < peer.round and evidence(peer) is not None
    residual = f"this peer's residual, {peer.residual:.1e}, was not near tol"
    why = f"this peer is at round {peer.round}" if over else residual
    link.count_error(f"it says that all stop at round {link.stop}, and {why}")
    link.stop = NEVER


def deserter(peer: PeerState) -> int | None:
    """In strict mode, a neighbour that has said farewell, whose messages are still needed."""
    if peer.strict:
        for other, link in peer.links.items():
            if link.farewell_heard and not link.has_message(peer.round):
                return other
    return None


def late(peer: PeerState) -> bool:
    seconds = peer.config.fit.seconds
    return seconds is not None and peer.seconds() >= seconds


def why_finished(peer: PeerState) -> str | None:
    """None while it has not."""
    if peer.strict:
        return peer.stop_reason if peer.round >= peer.stop_at else None
    V = peer.config.nodes
    around = (link.converged_hops >= V or link.gone or link.dropped for link in peer.links.values())
    if peer.converged_hops >= V and settled(peer) and all(around):
        return "converged"
    spent = peer.privacy is not None and peer.ledger.spent
    if spent or peer.round >= peer.config.fit.rounds:
        return "rounds"
    return "seconds" if late(peer) else None


def settled(peer: PeerState) -> bool:
    """By the very residual that is told. Since all agreed one that was away may have brought news
    that lift it for a while; but who takes part no more does not answer them, so not for ever."""
    fit = peer.config.fit
    small = fit.tol is None or peer.residual <= fit.tol
    long_ago = peer.round - peer.below_tol_at > LOOKS_TO_SETTLE * peer.config.record_every
    looked = peer.looked_at in (-1, peer.round)  # -1: the residual is the checkpoint's
    return looked and (small or long_ago)


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
            await save(peer)
        if needy() and time.monotonic() - logged_at > 6 * LINGER:
            logged_at = time.monotonic()
            log.info("has finished, and stays until peers %s have what it sent", needy())
    if gone() != known:  # one went while this was being saved of another
        await save(peer)
    await asyncio.sleep(PARTING)


async def save(peer: PeerState) -> None:
    """Without it, one that is killed here waits for others a while longer: no reason to fail."""
    try:
        await peer.save(*checkpoint.contents(peer))
    except OSError as problem:
        log.warning("no checkpoint: %s", problem)


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
    enough = LINGER if knows else min(A_WHILE, peer.config.drop_after or A_WHILE)
    return (link.gone and link.farewell_sent) or away > enough

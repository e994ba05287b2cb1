"""When a peer has finished, with nobody to tell it."""

import asyncio
import logging
import time
from typing import TYPE_CHECKING

import numpy as np

from edgewise.peers import journal
from edgewise.peers.frames import BYE, encode
from edgewise.peers.gathering import regroup
from edgewise.peers.links import Link

if TYPE_CHECKING:
    from edgewise.peers.peer import Peer

log = logging.getLogger("edgewise.peers")

LINGER = 10.0  # seconds without a word after which a neighbour that has all it needs is let go


def count_calm(peer: "Peer") -> None:
    """c is 0 while the own residual is above tol, else one more than the least around: at c = V
    all peers have been below it. In strict mode a round to stop at goes around then, so that
    all stop at the same; else a calm peer goes on until its neighbours are calm too."""
    fit, V = peer.config.fit, peer.config.nodes
    around = [link for link in peer.links.values() if not link.dropped]
    if fit.tol is not None and peer.calm < V:
        small = peer.residual <= fit.tol / np.sqrt(V)
        least = min([peer.calm, *(link.calm for link in around)])
        peer.calm = min(least + 1, V) if small else 0
    if peer.strict:
        heard = min([peer.stop_at, *(link.stop for link in around)])
        over = peer.calm >= V or late(peer)
        peer.stop_at = min(heard, peer.round + V) if over else heard


def late(peer: "Peer") -> bool:
    seconds = peer.config.fit.seconds
    return seconds is not None and peer.seconds() >= seconds


def finished(peer: "Peer") -> bool:
    if peer.strict:
        return peer.round >= peer.stop_at
    if peer.round >= peer.config.fit.rounds or late(peer):
        return True
    V = peer.config.nodes
    around = (link.calm >= V or link.gone or link.dropped for link in peer.links.values())
    return peer.calm >= V and all(around)


async def linger(peer: "Peer", stop: asyncio.Event) -> None:
    """A neighbour may still need what this peer sent: say farewell, and wait for theirs. Who has
    taken its leave is saved, so that a peer that is killed here does not wait for it again."""

    def needy() -> list[int]:
        return [other for other, link in peer.links.items() if not done_with(peer, link)]

    def gone() -> set[int]:
        return {other for other, link in peer.links.items() if link.gone}

    known, told = gone(), time.monotonic()

    def stirred() -> bool:
        return gone() != known or not needy()

    while needy() and not stop.is_set():
        await regroup(peer)  # a new neighbour gets the model, and then a farewell as all do
        for other, link in peer.links.items():
            if link.farewell is None:
                link.say_farewell(encode(peer.frame(BYE, other)))
        await peer.wait(stirred, stop, 1.0)
        if gone() != known:
            known = gone()
            await peer.save(*journal.collect(peer))
        if needy() and time.monotonic() - told > 6 * LINGER:
            told = time.monotonic()
            log.info("has finished, and stays until peers %s have what it sent", needy())


def done_with(peer: "Peer", link: Link) -> bool:
    """One that is away may come back, and in tolerant mode it then needs to hear that all is over:
    it is waited for as long as it would be before it is dropped."""
    away = time.monotonic() - link.heard_at if not link.connected else 0.0
    if peer.strict:
        has_all = link.gone or link.saved >= peer.round
        return (link.gone and link.said_farewell) or (has_all and away > LINGER)
    enough = LINGER if link.gone or link.dropped else peer.config.drop_after
    return (link.gone and link.said_farewell) or away > enough

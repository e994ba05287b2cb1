"""Whose messages a peer's steps are taken with: at the start, and when neighbours come and go."""

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from edgewise.peers.node import checkpoint as journal
from edgewise.peers.node.stepper import Local, Pair

if TYPE_CHECKING:
    from edgewise.peers.node.peer import Peer

log = logging.getLogger("edgewise.peers")


async def begin(peer: "Peer", stop: asyncio.Event, found: dict[str, np.ndarray] | None) -> None:
    """Until all neighbours are known; then the state, new or as it was saved."""
    if found is None:
        await all_met(peer, stop)
        peer.pairs = pairs_of(peer)
        peer.members = list(peer.pairs)
    peer.begun = not stop.is_set()
    fit, dtype = peer.config.fit, np.dtype(peer.config.fit.dtype)
    local = Local(peer.problem, peer.config.id, peer.method, fit.seed, dtype, peer.own)
    peer.local = local.among([peer.pairs[id] for id in peer.members])
    peer.carry = peer.local.start(fit.veil)
    if found is not None:
        peer.carry = journal.restored(peer.carry, found)
        log.info("goes on from round %d", peer.round)
    elif fit.veil and peer.begun:
        await peer.save(*journal.collect(peer))  # once sent, it cannot be another
    peer.post(peer.carry[1])
    if found is None:  # nobody uses up rounds while others are still to come
        await peer.wait(lambda: all_heard(peer) or under_way(peer), stop, None)
        peer.began = time.monotonic()
    peer.state = "running"


async def all_met(peer: "Peer", stop: asyncio.Event) -> None:
    """Who comes to a run that is under way waits for nobody: the absent may join later."""

    def missing() -> list[int]:
        return [other for other, link in peer.links.items() if link.pair is None]

    while missing() and not stop.is_set():
        log.info("waiting for peers %s", missing())
        await peer.wait(lambda: not missing() or under_way(peer), stop, 10.0)
        if under_way(peer):
            await peer.wait(lambda: not missing(), stop, peer.config.fit.patience)
            return


def all_heard(peer: "Peer") -> bool:
    return all(link.mail for link in peer.links.values())


def under_way(peer: "Peer") -> bool:
    return not peer.strict and any(link.their_round for link in peer.links.values())


def pairs_of(peer: "Peer") -> dict[int, Pair]:
    """Those that take part, and how their edges are weighed."""
    around = peer.links.items()
    return {id: k.pair for id, k in around if k.pair is not None and not k.dropped}


async def regroup(peer: "Peer") -> bool:
    """Whether those who take part are others than before."""
    if peer.strict:
        return False
    pairs = pairs_of(peer)
    if list(pairs) == peer.members and pairs == peer.pairs:
        return False
    places = [peer.members.index(id) if id in peer.members else None for id in pairs]
    peer.carry = await asyncio.to_thread(joined, peer, list(pairs.values()), places)
    peer.members, peer.pairs = list(pairs), pairs
    new = [id for id, place in zip(pairs, places, strict=True) if place is None]
    peer.post(peer.carry[1], new)
    return True


def joined(peer: "Peer", pairs: list[Pair], places: list[int | None]) -> Any:
    with jax.enable_x64(True):  # each thread has a setting of its own
        peer.local = peer.local.among(pairs)
        return peer.local.regrouped(peer.carry, places, peer.config.fit.veil)

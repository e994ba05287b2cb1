"""Whose messages a peer's steps are taken with: at the start, and when neighbours come and go."""

import asyncio
import logging
import secrets
import time
from typing import Any

import jax
import numpy as np

from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node import checkpoint
from edgewise.peers.node.coupled_stepper import CoupledStepper
from edgewise.peers.node.own_edges import OwnEdge
from edgewise.peers.node.own_problem import as_one_of_equals
from edgewise.peers.node.own_size import own_size
from edgewise.peers.node.state import PeerState
from edgewise.peers.node.stepper import Stepper, facts_of
from edgewise.peers.transport.edge_facts import EdgeFacts, NodeFacts
from edgewise.problem.problem import Problem

log = logging.getLogger("edgewise.peers")


async def begin(peer: PeerState, stop: asyncio.Event, found: dict[str, np.ndarray] | None) -> None:
    """Until all neighbours are known; then the state, new or as it was saved."""
    if found is None:
        await all_met(peer, stop)
        peer.pairs = pairs_of(peer)
        peer.members = list(peer.pairs)
        peer.coupled = edges_of(peer, peer.members)
    peer.begun = not stop.is_set()
    fit = peer.config.fit
    peer.stepper, peer.carry = await asyncio.to_thread(started, peer)
    if found is not None:
        peer.carry, damaged = await asyncio.to_thread(restored, peer, found)
        if damaged:
            log.warning("sums in its checkpoint were not those of their terms: they are taken anew")
        log.info("goes on from round %d", peer.round)
    elif fit.dual_noise and peer.begun:
        await peer.save(*checkpoint.contents(peer))  # once sent, it cannot be another
    peer.post(peer.carry[1])
    if found is None:  # nobody uses up rounds while others are still to come
        await peer.wait(lambda: all_heard(peer) or under_way(peer), stop, None)
        peer.started_at = time.monotonic()
    peer.state = "running"


def alone_of(peer: PeerState, problem: Problem, facts: NodeFacts) -> Stepper:
    """Its steps on this problem, without any neighbour yet."""
    with jax.enable_x64(True):  # each thread has a setting of its own
        kind = CoupledStepper if peer.config.couples else Stepper
        fit = peer.config.fit
        dtype = np.dtype(fit.dtype)
        return kind(problem, peer.config.id, peer.method, draws_by(fit), dtype, facts)


def draws_by(fit: Fit) -> int:
    """The seed of the samples that a peer draws. All know that of the fit, and who knows which
    samples are in a batch takes it apart (docs/privacy.md): only strict peers, who go by the
    simulator, draw by it."""
    return fit.seed if fit.mode == "strict" else secrets.randbits(62)


def size_up(peer: PeerState) -> None:
    """Before anybody is met: what may be told of its size, and what may be taken of others'."""
    peer.alone = alone_of(peer, peer.problem, peer.facts)
    if peer.config.couples or peer.privacy is not None:  # its size tells of its data
        return
    degree = len(peer.links)
    with jax.enable_x64(True):
        usual = as_one_of_equals(peer.config, peer.problem)
        alone = alone_of(peer, usual, facts_of(usual, degree))
        peer.own_size = own_size(alone, degree, peer.config.fit.dual_noise)
    peer.bounds.known(peer.own_size.vectors, peer.own_size.body)


def started(peer: PeerState) -> tuple[Stepper, Any]:
    pairs = [peer.pairs[id] for id in peer.members]
    same = peer.alone is not None and peer.alone.own == peer.facts
    alone: Any = peer.alone if same else alone_of(peer, peer.problem, peer.facts)
    with jax.enable_x64(True):
        stepper = alone.among(pairs, [edge.end for edge in peer.coupled.values()])
        return stepper, stepper.start(peer.config.fit.dual_noise)


def restored(peer: PeerState, found: dict[str, np.ndarray]) -> tuple[Any, bool]:
    """The carry as it was saved, and whether it had to be mended."""
    with jax.enable_x64(True):
        return peer.stepper.mended(checkpoint.restore_carry(peer.carry, found))


async def all_met(peer: PeerState, stop: asyncio.Event) -> None:
    """Who comes to a run that is under way waits for nobody: the absent may join later."""

    def missing() -> list[int]:
        return [other for other, link in peer.links.items() if link.pair is None]

    while missing() and not stop.is_set():
        log.info("waiting for peers %s", missing())
        await peer.wait(lambda: not missing() or under_way(peer), stop, 10.0)
        if under_way(peer):
            await peer.wait(lambda: not missing(), stop, peer.config.fit.patience)
            return


def all_heard(peer: PeerState) -> bool:
    return all(link.inbox for link in peer.links.values())


def under_way(peer: PeerState) -> bool:
    return not peer.strict and any(link.other_round for link in peer.links.values())


def pairs_of(peer: PeerState) -> dict[int, EdgeFacts]:
    """Those that take part, and how their edges are weighed."""
    around = peer.links.items()
    return {id: k.pair for id, k in around if k.pair is not None and not k.dropped}


async def regroup(peer: PeerState) -> bool:
    """Whether those who take part are others than before."""
    if peer.strict:
        return False
    pairs = pairs_of(peer)
    same = set(filter(peer.carries_as_grouped, peer.members))
    if list(pairs) == peer.members and pairs == peer.pairs and same == set(peer.members):
        return False
    places = [peer.members.index(id) if id in same else None for id in pairs]
    edges = edges_of(peer, list(pairs))
    peer.carry = await asyncio.to_thread(joined, peer, list(pairs.values()), edges, places)
    peer.members, peer.pairs, peer.coupled = list(pairs), pairs, edges
    new = [id for id, place in zip(pairs, places, strict=True) if place is None]
    peer.post(peer.carry[1], new)
    return True


def edges_of(peer: PeerState, ids: list[int]) -> dict[int, OwnEdge]:
    """As they are now; none where all models are equal."""
    return {id: peer.edges[id] for id in ids if id in peer.edges}


def joined(
    peer: PeerState,
    pairs: list[EdgeFacts],
    edges: dict[int, OwnEdge],
    places: list[int | None],
) -> Any:
    with jax.enable_x64(True):
        peer.stepper = peer.stepper.among(pairs, [edge.end for edge in edges.values()])
        return peer.stepper.regrouped(peer.carry, places, peer.config.fit.dual_noise)

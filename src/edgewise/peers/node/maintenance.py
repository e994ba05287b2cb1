"""What a running peer does twice a second: it tells how it is, reads its configuration again when
that has changed, and gives up neighbours that have been silent for too long."""

import asyncio
import logging
import time
from dataclasses import fields, replace

from edgewise.errors import EdgewiseError
from edgewise.peers.config.peer_config import PeerConfig, read
from edgewise.peers.node.own_edges import digest, own_edges
from edgewise.peers.node.state import PeerState
from edgewise.peers.node.status import write_status
from edgewise.peers.operations.expiry import Reminder
from edgewise.peers.transport.links import Link

log = logging.getLogger("edgewise.peers")

EVERY = 0.5  # seconds
LEAST_WAIT, LONGEST_WAIT = 30.0, 3600.0  # seconds for a neighbour that is away
# the rest counts from the start
TAKEN_UP = ("path", "neighbours", "nodes", "between", "drop_after")


async def maintain(peer: PeerState) -> None:
    stamp, reminder = stamp_of(peer), Reminder()
    while True:
        await asyncio.sleep(EVERY)
        peer.beat = time.monotonic()
        try:
            reminder.look(peer.config)
            drop_silent_neighbours(peer)
            await peer.connections.look_for_revoked()
            peer.trail.look()
            write_status(peer)
            peer.trace.flush()
            now = stamp_of(peer)
            if now not in (stamp, None):
                stamp = now
                reload_config(peer)
        except Exception as problem:  # whatever it is: nobody would know that this has ended
            known = isinstance(problem, OSError | EdgewiseError)
            log.warning("%s; the run goes on as before", problem if known else repr(problem))


def stamp_of(peer: PeerState) -> tuple[int, int, int] | None:
    """Of the configuration file, where there is one."""
    try:
        found = peer.config.path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def reload_config(peer: PeerState) -> None:
    new, old = read(peer.config.path), peer.config
    names = [f.name for f in fields(PeerConfig) if f.name not in TAKEN_UP]
    changed = [name for name in names if getattr(new, name) != getattr(old, name)]
    if changed:
        log.warning("changes of %s count when it is started again", ", ".join(changed))
    peer.config = peer.connections.config = old = replace(old, drop_after=new.drop_after)
    if all(getattr(new, name) == getattr(old, name) for name in ("neighbours", "nodes", "between")):
        return
    if peer.strict:
        log.warning("strict mode keeps its neighbours: to change them, start all peers anew")
        return
    if new.couples != old.couples:
        log.warning("whether edges carry couplings counts when all peers are started anew")
        return
    taken_up = {name: getattr(new, name) for name in ("neighbours", "nodes", "between")}
    change_neighbours(peer, replace(old, **taken_up))


def change_neighbours(peer: PeerState, new: PeerConfig) -> None:
    """The neighbours of a changed configuration: gone ones are hung up on, new ones reached. One
    whose edge carries something else goes, and comes."""
    edges = own_edges(new, peer.problem.size)  # raises before anything is changed
    before = {n.id: (n, digest(peer.edges, n.id)) for n in peer.config.neighbours}
    now = {n.id: (n, digest(edges, n.id)) for n in new.neighbours}
    peer.config = peer.connections.config = new
    peer.edges = edges
    for id in [id for id, known in before.items() if now.get(id) != known]:
        peer.connections.stop_dialling(id)
        peer.links[id].close()
        if id not in now:
            peer.drop_link(id)
            log.info("peer %d is no neighbour any more", id, extra={"neighbour": id})
    for id, (n, carries) in now.items():
        if id not in before:
            peer.links[id] = peer.new_link(id)
            log.info("peer %d is a neighbour now", id, extra={"neighbour": id})
        elif before[id][1] != carries:
            peer.drop_link(id)
            peer.links[id] = peer.new_link(id)
            log.info("the edge to peer %d carries something else now", id, extra={"neighbour": id})
        if before.get(id) != (n, carries):
            peer.connections.connect(n)
    peer.count_neighbours()
    peer.wakeup.set()


def drop_silent_neighbours(peer: PeerState) -> None:
    """Those that left without a word. One that finished is not dropped: what it last sent stands
    for its data. They are neighbours again as soon as they come back."""
    if peer.strict or peer.state in ("agreeing", "waiting"):
        return
    for id, link in peer.links.items():
        silent = time.monotonic() - link.last_heard
        if link.connected or link.gone or link.dropped:
            continue
        waited = waits_for(peer, link)
        if silent > waited:
            link.dropped = True
            peer.wakeup.set()
            log.warning(
                "peer %d is dropped after %.0f s of silence: the model goes on without its data",
                id,
                silent,
                extra={"neighbour": id},
            )
        elif silent > 1 and link.missed_since != link.last_heard:  # once for each absence
            link.missed_since = link.last_heard
            log.warning(
                "peer %d stays away: its last message, of round %d, stands for its data, for "
                "%.0f s at most (drop_after)",
                id,
                link.heard_at,
                waited,
                extra={"neighbour": id},
            )


def waits_for(peer: PeerState, link: Link) -> float:
    """Seconds of silence after which a neighbour is given up. A run of minutes does not wait for
    an hour: unless told otherwise it waits as long as it had taken until the neighbour fell
    silent."""
    if peer.config.drop_after is not None:
        return peer.config.drop_after
    taken = peer.seconds() - (time.monotonic() - link.last_heard)
    return min(max(taken, LEAST_WAIT), LONGEST_WAIT)

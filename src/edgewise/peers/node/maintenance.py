"""What a running peer does twice a second: it tells how it is, reads its configuration again when
that has changed, and gives up neighbours that have been silent for too long."""

import asyncio
import logging
import time
from dataclasses import fields, replace

from edgewise.errors import EdgewiseError
from edgewise.peers.config.peer_config import PeerConfig, read
from edgewise.peers.node.state import PeerState
from edgewise.peers.node.status import write_status

log = logging.getLogger("edgewise.peers")

EVERY = 0.5  # seconds
TAKEN_UP = ("path", "neighbours", "nodes", "drop_after")  # the rest counts from the start


async def maintain(peer: PeerState) -> None:
    stamp = stamp_of(peer)
    while True:
        await asyncio.sleep(EVERY)
        drop_silent_neighbours(peer)
        try:
            peer.trace.flush()
            write_status(peer)
            now = stamp_of(peer)
            if now not in (stamp, None):
                stamp = now
                reload_config(peer)
        except (OSError, EdgewiseError) as problem:
            log.warning("%s; the run goes on as before", problem)


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
    if new.neighbours == old.neighbours and new.nodes == old.nodes:
        return
    if peer.strict:
        log.warning("strict mode keeps its neighbours: to change them, start all peers anew")
        return
    change_neighbours(peer, replace(old, neighbours=new.neighbours, nodes=new.nodes))


def change_neighbours(peer: PeerState, new: PeerConfig) -> None:
    """The neighbours of a changed configuration: gone ones are hung up on, new ones reached."""
    before = {n.id: n for n in peer.config.neighbours}
    now = {n.id: n for n in new.neighbours}
    peer.config = peer.connections.config = new
    for id in [id for id, n in before.items() if now.get(id) != n]:
        peer.connections.stop_dialling(id)
        peer.links[id].close()
        if id not in now:
            del peer.links[id]
            log.info("peer %d is no neighbour any more", id, extra={"neighbour": id})
    for id, n in now.items():
        if id not in before:
            peer.links[id] = peer.new_link(id)
            log.info("peer %d is a neighbour now", id, extra={"neighbour": id})
        if before.get(id) != n:
            peer.connections.connect(n)
    peer.count_neighbours()
    peer.wakeup.set()


def drop_silent_neighbours(peer: PeerState) -> None:
    """Those that left without a word. One that finished is not dropped: what it last sent stands
    for its data. They are neighbours again as soon as they come back."""
    if peer.strict or peer.state == "waiting":
        return
    for id, link in peer.links.items():
        silent = time.monotonic() - link.last_heard
        if silent > peer.config.drop_after and not (link.connected or link.gone or link.dropped):
            link.dropped = True
            peer.wakeup.set()
            log.warning(
                "peer %d is dropped after %.0f s of silence", id, silent, extra={"neighbour": id}
            )

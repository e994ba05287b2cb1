"""What a running peer does twice a second: it tells how it is, reads its configuration again when
that has changed, and gives up neighbours that have been silent for too long."""

import asyncio
import logging
import time
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from edgewise.errors import EdgewiseError
from edgewise.peers.config.peer_config import PeerConfig, read
from edgewise.peers.operations.status import write_status

if TYPE_CHECKING:
    from edgewise.peers.node.peer import Peer

log = logging.getLogger("edgewise.peers")

EVERY = 0.5  # seconds
TAKEN_UP = ("path", "neighbours", "nodes", "drop_after")  # the rest counts from the start


async def keep_house(peer: "Peer") -> None:
    stamp = stamp_of(peer)
    while True:
        await asyncio.sleep(EVERY)
        drop_the_silent(peer)
        try:
            peer.story.flush()
            write_status(peer)
            now = stamp_of(peer)
            if now not in (stamp, None):
                stamp = now
                look_again(peer)
        except (OSError, EdgewiseError) as problem:
            log.warning("%s; the run goes on as before", problem)


def stamp_of(peer: "Peer") -> tuple[int, int, int] | None:
    """Of the configuration file, where there is one."""
    try:
        found = peer.config.path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def look_again(peer: "Peer") -> None:
    new, old = read(peer.config.path), peer.config
    names = [f.name for f in fields(PeerConfig) if f.name not in TAKEN_UP]
    changed = [name for name in names if getattr(new, name) != getattr(old, name)]
    if changed:
        log.warning("changes of %s count when it is started again", ", ".join(changed))
    peer.config = peer.board.config = old = replace(old, drop_after=new.drop_after)
    if new.neighbours == old.neighbours and new.nodes == old.nodes:
        return
    if peer.strict:
        log.warning("strict mode keeps its neighbours: to change them, start all peers anew")
        return
    take_over(peer, replace(old, neighbours=new.neighbours, nodes=new.nodes))


def take_over(peer: "Peer", new: PeerConfig) -> None:
    """The neighbours of a changed configuration: gone ones are hung up on, new ones reached."""
    before = {n.id: n for n in peer.config.neighbours}
    now = {n.id: n for n in new.neighbours}
    peer.config = peer.board.config = new
    for id in [id for id, n in before.items() if now.get(id) != n]:
        peer.board.leave(id)
        peer.links[id].hang_up()
        if id not in now:
            del peer.links[id]
            log.info("peer %d is no neighbour any more", id, extra={"neighbour": id})
    for id, n in now.items():
        if id not in before:
            peer.links[id] = peer.new_link(id)
            log.info("peer %d is a neighbour now", id, extra={"neighbour": id})
        if before.get(id) != n:
            peer.board.reach(n)
    peer.count_neighbours()
    peer.news.set()


def drop_the_silent(peer: "Peer") -> None:
    """Those that left without a word. One that finished is not dropped: what it last sent stands
    for its data. They are neighbours again as soon as they come back."""
    if peer.strict or peer.state == "waiting":
        return
    for id, link in peer.links.items():
        silent = time.monotonic() - link.heard_at
        if silent > peer.config.drop_after and not (link.connected or link.gone or link.dropped):
            link.dropped = True
            peer.news.set()
            log.warning(
                "peer %d is dropped after %.0f s of silence", id, silent, extra={"neighbour": id}
            )

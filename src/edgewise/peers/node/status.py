"""status.json: what `edgewise node --status` and `--watch` show."""

import json
import os
import time

from edgewise.fileio import replacing
from edgewise.peers.node.absence import absences
from edgewise.peers.node.scores import in_words
from edgewise.peers.node.state import PeerState


def write_status(peer: PeerState) -> None:
    moved = peer.edge_watch.moved
    status = {
        "peer": peer.config.id,
        "state": peer.state,
        "method": peer.settled_fit.method,
        "method_note": peer.method_note,
        "pid": os.getpid(),
        "time": time.time(),
        "refused": peer.connections.refused,
        "away": {str(j): a.since for j, a in absences(peer).items()} if peer.begun else {},
        "lost_hops": peer.lost_hops if peer.begun else None,
        "held_out": peer.scores,
        "held_out_words": None if peer.scores is None else in_words(peer.scores),
        "agreed_on": peer.agreed_on,
        "ending": None if peer.ending is None else peer.ending.table(),
        "audit_head": None if peer.trail is None else peer.trail.audit.head,
        "alarms": list(peer.alarms.values()),
        "loss": peer.loss,
        "loss_of_zeros": None if peer.own_size is None else peer.own_size.of_zeros,
        "loss_of_own_fit": None if peer.own_size is None else peer.own_size.of_own_fit,
        "handshakes": peer.connections.failed_handshakes,
        **peer.trace.last(),
        "rounds": peer.round,
        "seconds": peer.seconds(),
        "neighbours": {
            str(other): {
                "connected": link.connected,
                "part": other in peer.members,
                "pull": peer.pulls.get(other),
                "pull_moved": moved.get(other),
                "behind": link.stale_rounds,
                "silent_seconds": time.monotonic() - link.last_heard,
                "streams": link.streams,
                "protocol_errors": link.protocol_errors,
                "bytes_sent": link.bytes_sent,
                "bytes_heard": link.bytes_heard,
            }
            for other, link in peer.links.items()
        },
    }
    with replacing(peer.config.out / "status.json", durable=False) as file:
        file.write(json.dumps(status).encode())

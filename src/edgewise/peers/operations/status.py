"""status.json: what `edgewise node --status` and `--watch` show."""

import json
import os
import time
from typing import TYPE_CHECKING

from edgewise.fileio import replacing

if TYPE_CHECKING:
    from edgewise.peers.node.peer import Peer


def write_status(peer: "Peer") -> None:
    rows = peer.story.rows
    status = {
        "peer": peer.config.id,
        "state": peer.state,
        "pid": os.getpid(),
        "time": time.time(),
        "refused": peer.board.refused,
        "handshakes": peer.handshakes(),
        **(rows[-1] if rows else {}),
        "rounds": peer.round,
        "seconds": peer.seconds(),
        "neighbours": {
            str(other): {
                "connected": link.connected,
                "part": other in peer.members,
                "behind": link.stale,
                "silent_seconds": time.monotonic() - link.heard_at,
                "streams": link.streams,
                "garbage": link.garbage,
                "bytes_sent": link.bytes_sent,
                "bytes_heard": link.bytes_heard,
            }
            for other, link in peer.links.items()
        },
    }
    with replacing(peer.config.out / "status.json", durable=False) as file:
        file.write(json.dumps(status).encode())

"""What of a run goes into `audit.jsonl`: its start and end, who was let in, what left the host."""

import hashlib
import logging
import time
from collections import Counter
from typing import Any

from edgewise.peers.node.ending import Ending
from edgewise.peers.node.handshake import agreed
from edgewise.peers.node.saving import source_of, text_digest
from edgewise.peers.node.state import PeerState
from edgewise.peers.operations.audit import Audit, who
from edgewise.running.result import own_version

log = logging.getLogger("edgewise.peers")

EVERY = 600.0  # seconds between two lines of what has left meanwhile


class AuditTrail:
    def __init__(self, peer: PeerState) -> None:
        self.peer, self.audit = peer, Audit(peer.config.out)
        self.streams: dict[int, int] = {}  # by neighbour, that have been told of
        self.left: Counter[str] = Counter()
        self.told_at = time.monotonic()

    def begin(self) -> None:
        peer, config = self.peer, self.peer.config
        self.audit.note(
            "start",
            peer=config.id,
            mesh=config.mesh,
            user=who(),
            edgewise=own_version(),
            round=peer.round,
            fit=text_digest(agreed(peer)),
            config=digest_of_file(config.path),
            certificate=digest_of_file(config.certificate),
            data=source_of(peer)["data"],
            samples=len(peer.problem.labels),
        )

    def look(self) -> None:
        """Now and then: new streams, and every ten minutes what has left."""
        for other, link in list(self.peer.links.items()):
            if link.streams > self.streams.get(other, 0) and link.stream is not None:
                self.streams[other] = link.streams
                serial = link.stream.serial()
                self.audit.note(
                    "neighbour",
                    neighbour=other,
                    certificate=None if serial is None else f"{serial:x}",
                    at=getattr(link.stream, "address", None),
                )
        if time.monotonic() - self.told_at > EVERY:
            self.tell_what_left()

    def tell_what_left(self) -> None:
        now: Counter[str] = Counter(self.peer.kinds_before)
        for link in self.peer.links.values():
            now += link.bytes_by_kind
        since = now - self.left
        self.left, self.told_at = now, time.monotonic()
        if since:
            self.audit.note("sent", round=self.peer.round, left=dict(since))

    def end(self, ending: Ending | None) -> None:
        told: dict[str, Any] = {"reason": "failed" if ending is None else ending.reason}
        if ending is not None:
            told |= {"met": ending.met, "model": digest_of_file(self.peer.config.out / "model.npz")}
        try:
            self.tell_what_left()
            self.audit.note("end", round=self.peer.round, **told)
        except OSError as problem:
            log.warning("the end is not in the audit trail: %s", problem)


def digest_of_file(path: Any) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None

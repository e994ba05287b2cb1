"""What a running peer holds, and the few things that all of its parts ask of it."""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.data.shards import Shards
from edgewise.differential_privacy.spent import PrivacySpent
from edgewise.inference import sums as inference_sums
from edgewise.methods.contract import Method
from edgewise.peers.config.peer_config import Fit, PeerConfig, load
from edgewise.peers.node.edge_watch import EdgeWatch
from edgewise.peers.node.ending import Ending
from edgewise.peers.node.generations import write_next
from edgewise.peers.node.own_edges import OwnEdge, digest, own_edges
from edgewise.peers.node.own_size import OwnSize
from edgewise.peers.node.stepper import Stepper, facts_of
from edgewise.peers.node.supported_methods import TWO_PEERS, method_of, settled
from edgewise.peers.node.trace_writer import TraceWriter
from edgewise.peers.transport.bounds import Bounds
from edgewise.peers.transport.connections import Connections
from edgewise.peers.transport.edge_facts import EdgeFacts, NodeFacts
from edgewise.peers.transport.frames import (
    NEVER,
    NO_LOSS,
    VECTORS,
    Frame,
    MessageFormat,
    max_frame_bytes,
)
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.reports import Report
from edgewise.peers.transport.wakeup import Wakeup
from edgewise.problem.problem import Problem

log = logging.getLogger("edgewise.peers")

ROOM = 1 << 20  # bytes
PRIVATE = 0o700  # mode of a peer's folder: models and messages tell of data
MOST_COUNTS = 20  # numbers in a report of sums, besides two a column


class PeerState:
    """One peer's configuration, problem, links and progress. `Peer` runs it."""

    alone: Stepper | None = None  # without neighbours, of the problem that is to be fitted
    stepper: Stepper
    carry: Any  # state and outbox
    identity: dict[str, Any]  # of what a checkpoint is for
    agreed_for: dict[str, Any]  # the same with the data as they came, where peers agree on sums
    facts: NodeFacts  # of this peer
    privacy: PrivacySpent | None = None  # what a private fit tells of any one sample
    ledger: Any  # of a private fit: what it has released
    connections: Connections

    def __init__(self, config: str | Path | PeerConfig) -> None:
        self.config = config if isinstance(config, PeerConfig) else load(config)
        self.strict = self.config.fit.mode == "strict"
        self.held: Shards | None = None  # samples that the model is tried on
        self.data_digest = ""  # of its samples as they came, where they are scaled later

    def prepare(self, problem: Any) -> None:
        """Everything but the streams, as at the start of a fit."""
        config = self.config
        fit, self.method_note = settled(config.fit, problem, config.couples)
        self.settled_fit, self.problem = fit, problem  # its method has a name, auto or not
        if self.method_note:
            log.info(self.method_note)
        self.method = method_of(fit, config.penalised, config.couples)
        self.edges: dict[int, OwnEdge] = own_edges(config, problem.size)  # by neighbour
        self.wakeup, self.bounds = Wakeup(), Bounds(fit.dtype)
        self.own_size: OwnSize | None = None  # none where edges carry couplings
        self.cut: set[int] = set()  # neighbours whose messages were cut since the last look
        self.loss: float | None = None  # of its data by the joint model, at the last look
        self.pulls: dict[int, float] = {}  # of the neighbours, at the last look
        self.edge_watch = EdgeWatch()
        self.alarms: dict[str, str] = {}
        self.alarm_looks: dict[str, int] = {}  # in a row, at which there was reason
        self.agreeing = config.sums_first  # until it is known how its data weigh
        self.totals: dict[str, Report] = {}  # over all peers, by stage
        self.masks: dict[str, Any] = {}  # `StageMasks` of each, where they are masked
        self.agreed_on: dict[str, Any] = {}  # what they say
        self.scores: dict[str, Any] | None = None  # of the model, on what all peers hold out
        ids = sorted(n.id for n in config.neighbours)
        self.links: dict[int, Link] = {id: self.new_link(id) for id in ids}
        self.members: list[int] = []  # whose messages the steps are taken with, in this order
        self.pairs: dict[int, EdgeFacts] = {}
        self.coupled: dict[int, OwnEdge] = {}  # the members' edges
        self.incarnation = secrets.token_hex(8)
        self.turn = 0  # tolerant: by which neighbours keep pace
        self.round, self.converged_hops = 0, 0
        self.newest_saved = self.saved = 0  # rounds of the newest checkpoint and the one before
        self.stop_at, self.residual = fit.rounds if self.strict else NEVER, np.inf
        self.looked_at = -1  # the round that the residual is of, since this start
        self.stop_reason = "rounds"  # strict: why stop_at is what it is
        self.below_tol_at = -1  # the round of the last look at which the residual was small
        self.lost_hops: int | None = None  # how far the nearest peer is that lost a neighbour
        self.ending: Ending | None = None
        self.trail: Any = None  # an `AuditTrail`, from the start of a run
        self.sent_before = {"vectors_sent": 0, "bytes_sent": 0}  # over links that are no more
        self.kinds_before: Counter[str] = Counter()  # the same of this start, by kind
        self.started_at, self.seconds_before = time.monotonic(), 0.0
        self.state, self.begun = "waiting", False
        self.beat = time.monotonic()  # when its event loop turned last
        self.count_neighbours()
        self.warn_of_hessians()
        config.out.mkdir(PRIVATE, parents=True, exist_ok=True)
        chosen = {"method": fit.method, "method_note": self.method_note}
        about = {**chosen, "peer": config.id, "size": problem.size}
        self.trace = TraceWriter(config.out / "trace.csv", about)

    def new_link(self, other: int) -> Link:
        # the last checkpoint may be under way still, and the one before it damaged
        ahead = 3 * self.config.checkpoint_every + 1
        format = self.format(other)
        made = Link(self.config.id, other, self.strict, format, ahead, self.wakeup)
        made.bounds = self.bounds
        for total in self.totals.values():
            made.tell(total)
        return made

    def format(self, other: int) -> MessageFormat:
        """Of messages to and from this neighbour."""
        if other not in self.edges:
            format = message_format(self.method.healing(), self.problem, self.settled_fit)
            features = self.problem.shards.features if self.config.sums_first else None
            sums = 0 if features is None else MOST_COUNTS + 2 * features
            if self.config.fit.summary is not None:
                sums = max(sums, inference_sums.length(self.problem.size))
            return format._replace(sums=sums)
        prepared: Any = self.method.prepare(TWO_PEERS)[0]
        numbers = prepared.edge_numbers(self.edges[other].rows)
        return MessageFormat(1, numbers, self.settled_fit.wire)

    @property
    def max_frame_bytes(self) -> int:
        """Of all frames that may come; with some room where others may join with more rows."""
        sizes = [max_frame_bytes(link.format) for link in self.links.values()]
        return max([max_frame_bytes(self.format(-1)), *sizes, ROOM if self.edges else 0])

    def carries_as_grouped(self, other: int) -> bool:
        """Whether the edge to a member still carries what the steps are taken with."""
        return digest(self.edges, other) == digest(self.coupled, other)

    def facts_towards(self, other: int) -> NodeFacts:
        """What the neighbour must know of this peer, and of this end of their edge."""
        if other not in self.edges:
            return self.facts
        return self.facts._replace(reach=self.edges[other].reach)

    def count_neighbours(self) -> None:
        if not self.agreeing:
            self.facts = facts_of(self.problem, len(self.links))
        if len(self.links) == 1:
            log.warning(
                "its only neighbour, peer %d, learns each of its gradients where its penalty is "
                "smooth: give it a second one",
                *self.links,
            )

    def warn_of_hessians(self) -> None:
        samples = int(self.problem.counts[0])
        if self.method.second_order and samples <= self.problem.size:
            log.warning(
                "its neighbours learn its Hessian, of %d samples for %d unknowns: few enough to "
                "tell the samples themselves; with method lt-saga-pd or saga-pd they learn none",
                samples,
                self.problem.size,
            )

    def sent_so_far(self) -> dict[str, int]:
        """To all neighbours, since the fit began."""
        known = self.sent_before.items()
        return {k: n + sum(getattr(link, k) for link in self.links.values()) for k, n in known}

    def drop_link(self, other: int) -> None:
        """What was sent over it counts on."""
        link = self.links.pop(other)
        self.kinds_before += link.bytes_by_kind
        self.sent_before = {k: n + getattr(link, k) for k, n in self.sent_before.items()}

    def seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.started_at

    # --- messages --------------------------------------------------------------------------------

    def post(self, sent: Any, to: list[int] | None = None) -> None:
        """Send the vectors and the news of this round to all neighbours, or to these."""
        news = self.stepper.outgoing_news(sent)
        for place, other in enumerate(self.members):
            wanted = to is None or other in to
            if other in self.links and wanted and self.carries_as_grouped(other):
                link, vectors = self.links[other], self.stepper.outgoing(sent, place)
                bounded = self.bounds.clipped(vectors, link.told_sizes)
                if bounded is not vectors:
                    self.cut.add(other)
                link.post(self.frame(VECTORS, other, bounded, news))

    def frame(self, kind: int, other: int, payload: Any = b"", news: Any = ()) -> Frame:
        lost = NO_LOSS if self.lost_hops is None else self.lost_hops
        progress = (self.round, self.saved, self.stop_at, self.converged_hops)
        return Frame(kind, *progress, self.config.id, other, payload, news, lost, self.turn)

    @property
    def awaited(self) -> int:
        """The round, or the turn, of the messages that the next step waits for."""
        return self.round if self.strict else self.turn

    async def wait(
        self, ready: Callable[[], bool], stop: asyncio.Event, patience: float | None
    ) -> None:
        """Until it is so, or patience is at an end."""
        until = np.inf if patience is None else time.monotonic() + patience
        timer = None
        if patience is not None:
            timer = asyncio.get_running_loop().call_later(patience, self.wakeup.set)
        self.wakeup.awaited = ready
        try:
            while not (ready() or stop.is_set()) and time.monotonic() < until:
                if self.connections.failure is not None:
                    raise self.connections.failure
                self.wakeup.clear()
                await self.wakeup.wait()
        finally:
            self.wakeup.awaited = None
            if timer is not None:
                timer.cancel()

    async def save(self, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Rounds may go on meanwhile."""
        await asyncio.to_thread(write_next, self.config.out, head, arrays)
        self.saved, self.newest_saved = head["saved"], head["round"]


def message_format(method: Method, problem: Problem, fit: Fit) -> MessageFormat:
    """Of what it sends, for models of this problem."""
    size = problem.size
    sizes = zip(method.hears, method.message_sizes(size, problem.loss.outputs), strict=True)
    news = [width for kind, width in sizes if kind == "news"]
    vectors = len(method.hears) - len(news)
    if not news:
        return MessageFormat(vectors, size, fit.wire, fit.bits)
    head = method.news_head
    return MessageFormat(vectors, size, fit.wire, fit.bits, head, news[0] - head)

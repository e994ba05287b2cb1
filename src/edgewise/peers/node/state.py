"""What a running peer holds, and the few things that all of its parts ask of it."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.methods.contract import Method
from edgewise.peers.config.peer_config import Fit, PeerConfig, load
from edgewise.peers.node.stepper import Stepper, facts_of
from edgewise.peers.node.supported_methods import method_of, settled
from edgewise.peers.node.trace_writer import TraceWriter
from edgewise.peers.transport.connections import Connections
from edgewise.peers.transport.edge_facts import EdgeFacts, NodeFacts
from edgewise.peers.transport.frames import NEVER, VECTORS, Frame, MessageFormat
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.wakeup import Wakeup
from edgewise.problem.problem import Problem
from edgewise.running.checkpoint_file import write

log = logging.getLogger("edgewise.peers")

CHECKPOINT = "checkpoint.bin"


class PeerState:
    """One peer's configuration, problem, links and progress. `Peer` runs it."""

    stepper: Stepper
    carry: Any  # state and outbox
    fingerprint: str  # of what a checkpoint is for
    facts: NodeFacts  # of this peer
    connections: Connections

    def __init__(self, config: str | Path | PeerConfig) -> None:
        self.config = config if isinstance(config, PeerConfig) else load(config)
        self.strict = self.config.fit.mode == "strict"
        self.tls_failures: Callable[[], int] = lambda: 0  # where somebody can count them

    def prepare(self, problem: Any) -> None:
        """Everything but the streams, as at the start of a fit."""
        config = self.config
        fit, self.method_note = settled(config.fit, problem)
        self.settled_fit, self.problem = fit, problem  # its method has a name, auto or not
        if self.method_note:
            log.info(self.method_note)
        self.method = method_of(fit, bool(config.penalty))
        self.format = message_format(self.method.healing(), problem, fit)
        self.wakeup = Wakeup()
        ids = sorted(n.id for n in config.neighbours)
        self.links: dict[int, Link] = {id: self.new_link(id) for id in ids}
        self.members: list[int] = []  # whose messages the steps are taken with, in this order
        self.pairs: dict[int, EdgeFacts] = {}
        self.incarnation = secrets.token_hex(8)
        self.round, self.saved, self.converged_hops = 0, 0, 0
        self.stop_at, self.residual = fit.rounds if self.strict else NEVER, np.inf
        self.started_at, self.seconds_before = time.monotonic(), 0.0
        self.state, self.begun = "waiting", False
        self.count_neighbours()
        self.warn_of_hessians()
        config.out.mkdir(parents=True, exist_ok=True)
        chosen = {"method": fit.method, "method_note": self.method_note}
        about = {**chosen, "peer": config.id, "size": problem.size}
        self.trace = TraceWriter(config.out / "trace.csv", about)

    def new_link(self, other: int) -> Link:
        ahead = 2 * self.config.checkpoint_every + 1  # the last checkpoint may still be under way
        return Link(self.config.id, other, self.strict, self.format, ahead, self.wakeup)

    def count_neighbours(self) -> None:
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

    def seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.started_at

    # --- messages --------------------------------------------------------------------------------

    def post(self, sent: Any, to: list[int] | None = None) -> None:
        """Send the vectors and the news of this round to all neighbours, or to these."""
        news = self.stepper.outgoing_news(sent)
        for place, other in enumerate(self.members):
            if other in self.links and (to is None or other in to):
                vectors = self.stepper.outgoing(sent, place)
                self.links[other].post(self.frame(VECTORS, other, vectors, news))

    def frame(self, kind: int, other: int, payload: Any = b"", news: Any = ()) -> Frame:
        progress = (self.round, self.saved, self.stop_at, self.converged_hops)
        return Frame(kind, *progress, self.config.id, other, payload, news)

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
        await asyncio.to_thread(write, self.config.out / CHECKPOINT, head, arrays)
        self.saved = head["round"]


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

"""A peer: it holds its data, talks to its neighbours, and fits a model with them."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from edgewise.fileio import replacing
from edgewise.peers.config.peer_config import PeerConfig, load
from edgewise.peers.node import checkpoint as journal
from edgewise.peers.node.checkpoint_file import write
from edgewise.peers.node.handshake import greeting, misfit
from edgewise.peers.node.maintenance import keep_house
from edgewise.peers.node.membership import begin, regroup
from edgewise.peers.node.own_problem import one_node
from edgewise.peers.node.result import PeerError, PeerResult
from edgewise.peers.node.stepper import Local, Pair, facts_of
from edgewise.peers.node.supported_methods import method_of
from edgewise.peers.node.termination import agree_to_stop, count_calm, finished, linger
from edgewise.peers.node.trace_writer import Story
from edgewise.peers.operations.logs import sparingly
from edgewise.peers.operations.signals import run_anywhere, stop_on_signals
from edgewise.peers.operations.status import write_status
from edgewise.peers.transport.connections import Switchboard
from edgewise.peers.transport.frames import NEVER, VECTORS, Format, Frame, Garbage, largest
from edgewise.peers.transport.links import Link, Mismatch
from edgewise.peers.transport.wakeup import News

log = logging.getLogger("edgewise.peers")

QUICK = 5e-3  # seconds; longer steps are taken beside the network's work, not in between


class Peer:
    """One of the peers of a mesh: `Peer("mesh/peer3.toml").fit("my-data.npz")`.

    config  the TOML that `edgewise network init` wrote for it, or a `PeerConfig`
    """

    local: Local
    carry: Any  # state and outbox
    mark: str  # of what a checkpoint is for

    def __init__(self, config: str | Path | PeerConfig) -> None:
        self.config = config if isinstance(config, PeerConfig) else load(config)
        self.strict = self.config.fit.mode == "strict"
        self.handshakes: Callable[[], int] = lambda: 0  # that failed, where somebody can count them
        self.halt: Callable[[], object] = lambda: None  # a run, from another thread

    def fit(
        self, shard: Any, callback: Callable[[dict[str, float]], Any] | None = None
    ) -> PeerResult:
        """Fit with the neighbours; shard is a file as `edgewise.data.load` reads it, or (X, y)."""
        with jax.enable_x64(True):
            problem = one_node(self.config, shard)
        with sparingly():
            return run_anywhere(self.run(problem, callback), lambda: self.halt())

    async def run(self, problem: Any, callback: Any = None) -> PeerResult:
        with jax.enable_x64(True):
            self.problem, self.callback = problem, callback
            self.prepare()
            found = journal.remember(self)  # before anybody is greeted: they are told the round
            self.story.begin(self.round)
            await self.board.open()
            log.info("listens at port %d", self.board.port)
            stop, self.halt = stop_on_signals(self.news)
            house = asyncio.ensure_future(keep_house(self))
            try:
                await begin(self, stop, found)
                return await self.rounds(stop)
            except Mismatch as what:
                await asyncio.sleep(1.0)  # the other side should learn of it too
                raise PeerError(str(what)) from None
            finally:
                house.cancel()
                await self.board.close()

    def prepare(self) -> None:
        config, fit = self.config, self.config.fit
        self.method = method_of(fit, bool(config.penalty))
        hears = len(self.method.healing().hears)
        self.format = Format(hears, self.problem.size, fit.wire, fit.bits)
        self.news = News()
        ids = sorted(n.id for n in config.neighbours)
        self.links: dict[int, Link] = {id: self.new_link(id) for id in ids}
        self.members: list[int] = []  # whose messages the steps are taken with, in this order
        self.pairs: dict[int, Pair] = {}
        self.board = Switchboard(config, self.links, largest(self.format), self)
        self.life, self.round, self.saved, self.calm = secrets.token_hex(8), 0, 0, 0
        self.stop_at, self.residual = fit.rounds if self.strict else NEVER, np.inf
        self.began, self.before = time.monotonic(), 0.0
        self.state, self.begun = "waiting", False
        self.saving: asyncio.Future[None] | None = None
        self.count_neighbours()
        config.out.mkdir(parents=True, exist_ok=True)
        self.story = Story(config.out / "trace.csv")

    def new_link(self, other: int) -> Link:
        ahead = 2 * self.config.checkpoint_every + 1  # the last checkpoint may still be under way
        return Link(self.config.id, other, self.strict, self.format, ahead, self.news)

    def count_neighbours(self) -> None:
        self.own = facts_of(self.problem, len(self.links))
        if len(self.links) == 1:
            log.warning(
                "its only neighbour, peer %d, learns each of its gradients where its penalty is "
                "smooth: give it a second one",
                *self.links,
            )

    # --- meeting the neighbours ------------------------------------------------------------------

    def greet(self, link: Link) -> dict[str, Any]:
        return greeting(self, link)

    def meet(self, link: Link, said: dict[str, Any]) -> None:
        """A neighbour that does not fit stops the peer before it has begun, or in strict mode. One
        that comes back changed must not stop the others: it is cut off, and stops by itself."""
        wrong = misfit(self, link, said)
        if wrong and self.begun and not self.strict:
            raise Garbage(wrong)
        if wrong:
            raise Mismatch(wrong)

    # --- rounds ----------------------------------------------------------------------------------

    def post(self, sent: Any, to: list[int] | None = None) -> None:
        """Send the vectors of this round to all neighbours, or to these."""
        for place, other in enumerate(self.members):
            if other in self.links and (to is None or other in to):
                vectors = self.local.outgoing(sent, place)
                self.links[other].post(self.frame(VECTORS, other, vectors))

    def frame(self, kind: int, other: int, payload: Any = b"") -> Frame:
        return Frame(
            kind, self.round, self.saved, self.stop_at, self.calm, self.config.id, other, payload
        )

    async def rounds(self, stop: asyncio.Event) -> PeerResult:
        fit, config = self.config.fit, self.config
        patience = None if self.strict else fit.patience
        heard: Any = None
        slow = False
        while not finished(self):
            if await regroup(self):
                slow, heard = True, None
            await self.wait(self.ready, stop, patience)
            if stop.is_set():
                break
            self.lose_patience()
            heard = self.heard()
            begun = time.perf_counter()
            if slow:
                self.carry, sent = await asyncio.to_thread(self.take_step, heard)
            else:
                self.carry, sent = self.local.step(self.carry, self.round, heard)
            slow = time.perf_counter() - begun > QUICK
            self.round += 1
            if self.round % config.record_every == 0:
                self.record(await asyncio.to_thread(self.look, heard) if slow else self.look(heard))
                count_calm(self)
            agree_to_stop(self)
            self.post(sent)
            if self.round % config.checkpoint_every == 0:
                await self.saved_last()
                self.saving = asyncio.ensure_future(self.save(*journal.collect(self)))
        await self.saved_last()
        if self.begun:
            await self.save(*journal.collect(self))
        how = "stopped" if stop.is_set() else "finished"
        result = self.result(heard, how)
        if not stop.is_set():
            self.state = "lingering"
            await linger(self, stop)
        self.state = how
        write_status(self)
        return result

    def take_step(self, heard: Any) -> Any:
        with jax.enable_x64(True):
            return self.local.step(self.carry, self.round, heard)

    def look(self, heard: Any) -> dict[str, np.ndarray]:
        with jax.enable_x64(True):
            return self.local.look(self.carry, heard)

    def ready(self) -> bool:
        """In tolerant mode those who are away, or were late, are waited for only if all are."""
        links = [self.links[id] for id in self.members if id in self.links]
        if not self.strict:
            there = [k for k in links if not k.gone]
            links = [k for k in there if k.prompt] or there
        return all(link.has(self.round) for link in links)

    def lose_patience(self) -> None:
        """With those that were waited for in vain: once, and again when they have spoken."""
        for id in self.members:
            if id in self.links and not self.links[id].has(self.round):
                self.links[id].prompt = False

    def heard(self) -> tuple[np.ndarray, ...]:
        """One that has said nothing yet is taken to be where this peer is."""
        got = []
        for place, id in enumerate(self.members):
            vectors = self.links[id].open(self.round) if id in self.links else None
            got.append(self.local.outgoing(self.carry[1], place) if vectors is None else vectors)
        return self.local.gathered(got)

    async def wait(
        self, ready: Callable[[], bool], stop: asyncio.Event, patience: float | None
    ) -> None:
        """Until it is so, or patience is at an end."""
        until = np.inf if patience is None else time.monotonic() + patience
        timer = None
        if patience is not None:
            timer = asyncio.get_running_loop().call_later(patience, self.news.set)
        self.news.awaited = ready
        try:
            while not (ready() or stop.is_set()) and time.monotonic() < until:
                if self.board.failure is not None:
                    raise self.board.failure
                self.news.clear()
                await self.news.wait()
        finally:
            self.news.awaited = None
            if timer is not None:
                timer.cancel()

    def seconds(self) -> float:
        return self.before + time.monotonic() - self.began

    # --- what is kept and told -------------------------------------------------------------------

    def record(self, seen: dict[str, np.ndarray]) -> None:
        self.residual = float(seen["residual"])
        row = {
            "rounds": self.round,
            "oracle_calls": float(seen["calls"]),
            "seconds": self.seconds(),
            "residual": self.residual,
            "objective": float(seen["objective"]),
            "bytes_sent": float(sum(link.bytes_sent for link in self.links.values())),
        }
        self.story.add(row)
        if self.callback is not None:
            self.callback(row)

    async def save(self, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Rounds may go on meanwhile."""
        await asyncio.to_thread(write, self.config.out / journal.FILE, head, arrays)
        self.saved = head["round"]

    async def saved_last(self) -> None:
        """Wait for the checkpoint that is being written. One that fails is no reason to stop: the
        one before is still there, and neighbours keep what was sent since."""
        if self.saving is not None:
            try:
                await self.saving
            except OSError as problem:
                log.warning("no checkpoint: %s; the run goes on", problem)
            self.saving = None

    def result(self, heard: Any, how: str) -> PeerResult:
        with jax.enable_x64(True):
            x = np.asarray(self.local.method.answer(self.carry[0]))[0].astype(np.float64)
            if heard is not None:
                self.record(self.look(heard))
        self.story.flush()
        if self.begun:
            with replacing(self.config.out / "model.npz") as file:
                np.savez(file, x=x, round=self.round)
        message = f"{how} after {self.round} rounds, residual {self.residual:.2e}"
        return PeerResult(x, self.round, self.residual, message, self.story.rows)

"""A peer: it holds its data, talks to its neighbours, and fits a model with them."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import numpy as np

from edgewise.checkpoint import write
from edgewise.peers import journal
from edgewise.peers.config import PeerConfig, load
from edgewise.peers.frames import BYE, NEVER, VECTORS, Frame, Garbage, encode, largest
from edgewise.peers.links import Link, Mismatch
from edgewise.peers.local import Facts, Local, at_a_peer, facts_of
from edgewise.peers.meeting import greeting, misfit
from edgewise.peers.result import PeerError, PeerResult
from edgewise.peers.shard import method_of, one_node
from edgewise.peers.signals import stop_on_signals
from edgewise.peers.status import write_status
from edgewise.peers.switchboard import Switchboard

log = logging.getLogger("edgewise.peers")

LINGER = 10.0  # seconds without a word after which a neighbour that has all it needs is let go
QUICK = 5e-3  # seconds; longer steps are taken beside the network's work, not in between


class Peer:
    """One of the peers of a mesh: `Peer("mesh/peer3.toml").fit("my-data.npz")`.

    config  the TOML that `edgewise network init` wrote for it, or a `PeerConfig`
    """

    def __init__(self, config: str | Path | PeerConfig) -> None:
        self.config = config if isinstance(config, PeerConfig) else load(config)
        self.strict = self.config.fit.mode == "strict"

    def fit(
        self, shard: Any, callback: Callable[[dict[str, float]], Any] | None = None
    ) -> PeerResult:
        """Fit with the neighbours; shard is a file as `edgewise.data.load` reads it, or (X, y)."""
        with jax.enable_x64(True):
            problem = one_node(self.config, shard)
        return asyncio.run(self.run(problem, callback))

    async def run(self, problem: Any, callback: Any = None) -> PeerResult:
        with jax.enable_x64(True):
            self.problem, self.callback = problem, callback
            self.prepare()
            found = journal.remember(
                self
            )  # before anybody is greeted: they are told what it waits for
            await self.board.open()
            log.info("peer %d listens at port %d", self.config.id, self.board.port)
            stop = stop_on_signals(self.news)
            try:
                await self.begin(stop, found)
                return await self.rounds(stop)
            except Mismatch as what:
                await asyncio.sleep(1.0)  # the other side should learn of it too
                raise PeerError(str(what)) from None
            finally:
                await self.board.close()

    def prepare(self) -> None:
        config, fit = self.config, self.config.fit
        self.method = method_of(fit)
        hears = len(at_a_peer(self.method).hears)
        self.news = asyncio.Event()
        self.links = {
            n.id: Link(
                config.id, n.id, self.strict, fit.wire, config.checkpoint_every + 1, self.news
            )
            for n in sorted(config.neighbours, key=lambda n: n.id)
        }
        for link in self.links.values():
            link.vectors, link.size = hears, self.problem.size
        frame = largest(hears, self.problem.size, fit.wire)
        self.board = Switchboard(config, self.links, frame, self)
        self.own = facts_of(self.problem, len(self.links))
        self.life, self.round, self.saved, self.calm = secrets.token_hex(8), 0, 0, 0
        self.stop_at, self.residual = fit.rounds if self.strict else NEVER, np.inf
        self.began, self.before = time.monotonic(), 0.0
        self.trace: list[dict[str, float]] = []
        self.facts: dict[int, Facts] = {}
        self.begun = False
        config.out.mkdir(parents=True, exist_ok=True)

    # --- meeting the neighbours ------------------------------------------------------------------

    def greet(self, link: Link) -> dict[str, Any]:
        return greeting(self)

    def meet(self, link: Link, said: dict[str, Any]) -> None:
        """A neighbour that does not fit stops the peer before it has begun, or in strict mode. One
        that comes back changed must not stop the others: it is cut off, and stops by itself."""
        wrong = misfit(self, link.other, said)
        if wrong and self.begun and not self.strict:
            raise Garbage(wrong)
        if wrong:
            raise Mismatch(wrong)

    async def begin(self, stop: asyncio.Event, found: dict[str, np.ndarray] | None) -> None:
        """Until all neighbours are known; then the state, new or as it was saved."""
        while len(self.facts) < len(self.links):
            missing = sorted(set(self.links) - set(self.facts))
            log.info("waiting for peers %s", missing)
            await self.wait(lambda: len(self.facts) == len(self.links), stop, 10.0)
            if stop.is_set():
                break
        facts = [self.own, *(self.facts.get(j, self.own) for j in self.links)]
        dtype = np.dtype(self.config.fit.dtype)
        config = self.config
        self.begun = True
        self.local = Local(self.problem, config.id, self.method, config.fit.seed, dtype, facts)
        self.carry = self.local.start()
        if found is not None:
            self.carry = journal.restore(self.carry, found, self.links)
            log.info("goes on from round %d", self.round)
        self.post(self.carry[1])

    # --- rounds ----------------------------------------------------------------------------------

    def post(self, sent: Any) -> None:
        """Send the vectors of this round to all neighbours."""
        for place, (other, link) in enumerate(self.links.items()):
            vectors = self.local.outgoing(sent, place)
            frame = self.frame(VECTORS, other, vectors)
            link.post(self.round, encode(frame, self.config.fit.wire))

    def frame(self, kind: int, other: int, payload: Any = b"") -> Frame:
        return Frame(
            kind, self.round, self.saved, self.stop_at, self.calm, self.config.id, other, payload
        )

    async def rounds(self, stop: asyncio.Event) -> PeerResult:
        fit, config = self.config.fit, self.config
        heard: Any = None
        step_seconds = 0.0
        while not stop.is_set() and not self.finished():
            patience = None if self.strict else fit.patience
            await self.wait(self.ready, stop, patience, first=heard is None)
            if stop.is_set():
                break
            heard = self.heard()
            begun = time.perf_counter()
            if step_seconds < QUICK:
                self.carry, sent = self.local.step(self.carry, self.round, heard)
            else:
                self.carry, sent = await asyncio.to_thread(self.take_step, heard)
            step_seconds = time.perf_counter() - begun
            self.round += 1
            if self.round % config.record_every == 0:
                self.record(heard)
            self.count_calm()
            self.post(sent)
            if self.round % config.checkpoint_every == 0:
                await self.save()
        await self.save()
        if not stop.is_set():
            await self.linger(stop)
        return self.result(heard, stop.is_set())

    def take_step(self, heard: Any) -> Any:
        with jax.enable_x64(True):  # each thread has a setting of its own
            return self.local.step(self.carry, self.round, heard)

    def ready(self) -> bool:
        """In tolerant mode those who are away are waited for only if all are."""
        links = list(self.links.values())
        here = links if self.strict else [k for k in links if k.connected and not k.gone]
        return all(link.has(self.round) for link in here or links)

    def heard(self) -> tuple[np.ndarray, ...]:
        got = [link.open(self.round) for link in self.links.values()]
        return tuple(
            np.stack([vectors[k] for vectors in got]).astype(self.local.dtype)
            for k in range(len(self.local.method.hears))
        )

    async def wait(
        self,
        ready: Callable[[], bool],
        stop: asyncio.Event,
        patience: float | None,
        first: bool = False,
    ) -> None:
        """Until it is so, or patience is at an end; at first also until everybody was heard."""
        until = None if patience is None else time.monotonic() + patience
        while not (ready() or stop.is_set()):
            if self.board.failure is not None:
                raise self.board.failure
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                if not first or all(link.mail for link in self.links.values()):
                    return
                left = 0.2
            self.news.clear()
            if ready():
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), min(left or 1.0, 1.0))

    # --- when to stop ----------------------------------------------------------------------------

    def count_calm(self) -> None:
        """c is 0 while the own residual is above tol, else one more than the least around: at c = V
        all peers have been below it. In strict mode a round to stop at goes around then, so that
        all stop at the same; else a calm peer goes on until its neighbours are calm too."""
        fit, V = self.config.fit, self.config.nodes
        if fit.tol is not None and self.calm < V:
            small = self.residual <= fit.tol / np.sqrt(V)
            around = min([self.calm, *(link.calm for link in self.links.values())])
            self.calm = min(around + 1, V) if small else 0
        late = fit.seconds is not None and self.seconds() >= fit.seconds
        if self.strict:
            heard = min([self.stop_at, *(link.stop for link in self.links.values())])
            over = self.calm >= V or late
            self.stop_at = min(heard, self.round + V) if over else heard

    def finished(self) -> bool:
        fit = self.config.fit
        if self.strict:
            return self.round >= self.stop_at
        if self.round >= fit.rounds or (fit.seconds is not None and self.seconds() >= fit.seconds):
            return True
        around = (link.calm >= self.config.nodes or link.gone for link in self.links.values())
        return self.calm >= self.config.nodes and all(around)

    async def linger(self, stop: asyncio.Event) -> None:
        """A neighbour may still need what this peer sent: say farewell, and wait for theirs."""
        for other, link in self.links.items():
            link.say_farewell(encode(self.frame(BYE, other)))

        def over() -> bool:
            return all(
                (link.gone and link.said_farewell) or self.let_go(link)
                for link in self.links.values()
            )

        while not stop.is_set() and not over():
            await self.wait(over, stop, 1.0)

    def let_go(self, link: Link) -> bool:
        away = not link.connected and time.monotonic() - link.heard_at > LINGER
        has_all = link.saved >= self.round if self.strict else True
        return away and (has_all or link.gone)

    def seconds(self) -> float:
        return self.before + time.monotonic() - self.began

    # --- what is kept and told -------------------------------------------------------------------

    def record(self, heard: Any) -> None:
        seen = self.local.look(self.carry, heard)
        self.residual = float(seen["residual"])
        row = {
            "rounds": self.round,
            "oracle_calls": float(seen["calls"]),
            "seconds": self.seconds(),
            "residual": self.residual,
            "objective": float(seen["objective"]),
            "bytes_sent": float(sum(link.bytes_sent for link in self.links.values())),
        }
        self.trace.append(row)
        write_status(self, "running")
        if self.callback is not None:
            self.callback(row)

    async def save(self) -> None:
        head, arrays = journal.collect(self)  # links change while a file is written
        await asyncio.to_thread(write, self.config.out / journal.FILE, head, arrays)
        self.saved = self.round

    def result(self, heard: Any, stopped: bool) -> PeerResult:
        with jax.enable_x64(True):
            x = np.asarray(self.local.method.answer(self.carry[0]))[0].astype(np.float64)
            if heard is not None:
                self.record(heard)
        how = "stopped" if stopped else "finished"
        write_status(self, how)
        np.savez(self.config.out / "model.npz", x=x, round=self.round)
        message = f"{how} after {self.round} rounds, residual {self.residual:.2e}"
        return PeerResult(x, self.round, self.residual, message, self.trace)

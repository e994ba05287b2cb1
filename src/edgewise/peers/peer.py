"""A peer: it holds its data, talks to its neighbours, and fits a model with them."""

import asyncio
import hashlib
import json
import logging
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from edgewise.errors import EdgewiseError
from edgewise.methods import make
from edgewise.peers import journal
from edgewise.peers.config import PeerConfig, load, shared_hash
from edgewise.peers.frames import BYE, NEVER, VECTORS, Frame, encode, largest
from edgewise.peers.links import Link, Mismatch
from edgewise.peers.local import Facts, Local, at_a_peer, facts_of
from edgewise.peers.shard import one_node
from edgewise.peers.switchboard import Switchboard

log = logging.getLogger("edgewise.peers")

LINGER = 10.0  # seconds without a word after which a neighbour that has all it needs is let go
QUICK = 5e-3  # seconds; longer steps are taken beside the network's work, not in between


class PeerError(EdgewiseError):
    """Neighbours that do not fit together."""


@dataclass(frozen=True)
class PeerResult:
    """What a peer came to."""

    x: np.ndarray
    rounds: int
    residual: float
    message: str
    trace: list[dict[str, float]] = field(repr=False)


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
            found = self.remember()  # before anybody is greeted: they are told what it waits for
            await self.board.open()
            log.info("peer %d listens at port %d", self.config.id, self.board.port)
            stop = self.on_signals()
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
        self.method = make(fit.method, fit.eta, fit.rho) if not fit.set else self.set_method()
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
        config.out.mkdir(parents=True, exist_ok=True)

    def set_method(self) -> Any:
        from edgewise.cli import parts

        chosen = parts.method(self.config.fit.method, list(self.config.fit.set))
        return make(chosen, self.config.fit.eta, self.config.fit.rho)

    # --- meeting the neighbours ------------------------------------------------------------------

    def agreed(self) -> dict[str, Any]:
        said = self.config.agreed() | {"unknowns": self.problem.size}
        if self.problem.classes is not None:
            said["classes"] = np.asarray(self.problem.classes).tolist()
        return said

    def greet(self, link: Link) -> dict[str, Any]:
        return {
            "agreed": self.agreed(),
            "hash": shared_hash(self.agreed()),
            "facts": list(self.own),
            "life": self.life,
            "wants": self.round,
        }

    def meet(self, link: Link, said: dict[str, Any]) -> None:
        mine, theirs = self.agreed(), said.get("agreed")
        theirs = theirs if isinstance(theirs, dict) else {}
        for name in mine:
            if theirs.get(name) != mine[name]:
                raise Mismatch(
                    f"peer {link.other} has {name} = {theirs.get(name)!r}, this peer "
                    f"{mine[name]!r}: make them the same"
                )
        try:
            degree, samples, *smooth = said["facts"]
            facts = Facts(int(degree), int(samples), *map(float, smooth))
            usable = np.isfinite(facts).all() and min(facts) > 0
        except (KeyError, TypeError, ValueError):
            usable = False
        if not usable:
            raise Mismatch(f"peer {link.other} says nothing usable of its data")
        known = self.facts.setdefault(link.other, facts)
        if self.strict and known != facts:
            raise Mismatch(
                f"peer {link.other} came back with other data or neighbours: in strict mode start "
                "all peers anew"
            )

    def remember(self) -> dict[str, np.ndarray] | None:
        """Where the last checkpoint left off; its arrays, if there is one."""
        mark = hashlib.sha256(json.dumps([self.agreed(), list(self.own)]).encode()).hexdigest()
        self.mark = f"{mark} {sorted(self.links)}"
        found = journal.load(self.config.out, self.mark)
        if found is None:
            return None
        head, arrays = found
        self.facts = {int(k): Facts(*v) for k, v in head["facts"].items()}
        self.round = self.saved = head["round"]
        self.before, self.trace = head["seconds"], head["trace"]
        self.calm, self.stop_at = head["calm"], head["stop_at"]
        for link in self.links.values():
            link.need = self.round
        return arrays

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
            await self.wait(lambda: self.ready(), stop, patience, first=heard is None)
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
        if heard is None and all(link.mail or not self.strict for link in self.links.values()):
            heard = self.heard() if all(link.mail for link in self.links.values()) else None
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
        self.tell("running")
        if self.callback is not None:
            self.callback(row)

    def tell(self, how: str) -> None:
        """status.json: what `edgewise node --status` shows."""
        status = {
            "peer": self.config.id,
            "state": how,
            "pid": os.getpid(),
            "time": time.time(),
            "refused": self.board.refused,
            **(self.trace[-1] if self.trace else {}),
            "neighbours": {
                str(other): {
                    "connected": link.connected,
                    "silent_seconds": time.monotonic() - link.heard_at,
                    "streams": link.streams,
                    "garbage": link.garbage,
                    "bytes_sent": link.bytes_sent,
                    "bytes_heard": link.bytes_heard,
                }
                for other, link in self.links.items()
            },
        }
        part = self.config.out / "status.json.part"
        part.write_text(json.dumps(status))
        part.replace(self.config.out / "status.json")

    async def save(self) -> None:
        head = {
            "mark": self.mark,
            "round": self.round,
            "seconds": self.seconds(),
            "calm": self.calm,
            "stop_at": self.stop_at,
            "facts": {str(k): list(f) for k, f in self.facts.items()},
            "trace": self.trace,
        }
        arrays = journal.collect(
            self.carry, self.links
        )  # here: links change while a file is written
        await asyncio.to_thread(journal.save, self.config.out, head, arrays)
        self.saved = self.round

    def result(self, heard: Any, stopped: bool) -> PeerResult:
        with jax.enable_x64(True):
            x = np.asarray(self.local.method.answer(self.carry[0]))[0].astype(np.float64)
            if heard is not None:
                self.record(heard)
        how = "stopped" if stopped else "finished"
        self.tell(how)
        np.savez(self.config.out / "model.npz", x=x, round=self.round)
        message = f"{how} after {self.round} rounds, residual {self.residual:.2e}"
        return PeerResult(x, self.round, self.residual, message, self.trace)

    def on_signals(self) -> asyncio.Event:
        """SIGTERM and Ctrl-C end the run in order, with a checkpoint."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def ask() -> None:
            stop.set()
            self.news.set()

        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, ask)
        return stop

"""A sum over all peers, without a fit: up a tree of neighbours and down again (`tree_sum`), under
masks where nobody is to see what another peer has (`masks`)."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from edgewise.errors import DataError, InputError
from edgewise.peers.config.peer_config import PeerConfig
from edgewise.peers.node.masks import Masker, fixed_point, floating_point, public_in
from edgewise.peers.node.result import PeerError
from edgewise.peers.node.signals import stop_on_signals
from edgewise.peers.node.tree_sum import missing, place_of, report_of, told_to
from edgewise.peers.operations.audit import Audit, who
from edgewise.peers.transport.connections import Connections
from edgewise.peers.transport.frames import VERSION, MessageFormat, ProtocolError, max_frame_bytes
from edgewise.peers.transport.greeting import other_version
from edgewise.peers.transport.links import Link, Mismatch
from edgewise.peers.transport.reports import UNIT, Report, exact, rounded
from edgewise.peers.transport.wakeup import Wakeup

log = logging.getLogger("edgewise.peers")

KEYS, SUM, GIVEN_UP = "keys", "sum", "given up"  # stages
LOOK_EVERY = 1.0  # seconds
LINGER = 3.0  # seconds for a neighbour that is away when all is known
LAST_WORDS = 0.5  # seconds
MOST_NUMBERS = 100_000


class PeerSum:
    """One peer's part of one sum."""

    def __init__(
        self, config: PeerConfig, values: Any, name: str, masked: bool, patience: float
    ) -> None:
        self.config, self.name, self.patience = config, name, patience
        given = np.asarray(values, np.float64)
        self.shape, flat = given.shape, given.ravel()
        if not 0 < flat.size <= MOST_NUMBERS:
            raise DataError(f"{flat.size} numbers: give 1 to {MOST_NUMBERS}")
        if not np.isfinite(flat).all():
            raise DataError("there are numbers that are not finite: give others")
        if masked and len(config.neighbours) < 2 and config.nodes > 1:
            raise InputError(
                f"{config.path}: peer {config.id} has one neighbour, whom no mask hides its "
                "numbers from: give it a second one, or sum without masks"
            )
        self.masker = Masker(config.id, f"{config.mesh}/{name}") if masked else None
        self.plain = fixed_point(flat, config.nodes) if masked else exact(flat)
        self.own: tuple[int, ...] | None = None if masked else self.plain
        self.used: dict[int, tuple[int, ...]] = {}  # neighbours' keys that its masks are made of
        self.total: Report | None = None
        self.wakeup, self.incarnation = Wakeup(), secrets.token_hex(8)
        format = MessageFormat(1, 1, "float64", sums=max(2, flat.size))
        self.links = {
            n.id: Link(config.id, n.id, True, format, 1, self.wakeup) for n in config.neighbours
        }
        self.most_bytes = max_frame_bytes(format)
        self.halt: Callable[[], object] = lambda: None  # a run, from another thread

    # --- meeting the neighbours ------------------------------------------------------------------

    def greet(self, link: Link) -> dict[str, Any]:
        about = {"agreed": self.agreed(), "sum": self.name}
        return {**about, "incarnation": self.incarnation, "resume_at": 0}

    def agreed(self) -> dict[str, Any]:
        config = self.config
        known = {"protocol": VERSION, "mesh": config.mesh, "nodes": config.nodes}
        return {**known, "shape": list(self.shape), "masked": self.masker is not None}

    def meet(self, link: Link, greeting: dict[str, Any]) -> None:
        theirs = greeting.get("agreed")
        if isinstance(theirs, dict) and (
            wrong := other_version(link.other, theirs.get("protocol"))
        ):
            raise Mismatch(wrong)
        if "sum" not in greeting:
            raise Mismatch(f"peer {link.other} fits a model, and this peer sums: first one, then")
        if greeting["sum"] != self.name:  # it is about to come here, or to go
            raise ProtocolError(f"it is at the sum {str(greeting['sum'])[:40]!r}")
        for key, mine in self.agreed().items():
            has = theirs.get(key) if isinstance(theirs, dict) else None
            if has != mine:
                raise Mismatch(
                    f"peer {link.other} has {key} = {has!r} of the sum {self.name!r}, this peer "
                    f"{mine!r}: make them the same"
                )

    # --- the sum ---------------------------------------------------------------------------------

    async def run(self) -> np.ndarray:
        stop, self.halt = stop_on_signals(self.wakeup)
        self.connections = Connections(self.config, self.links, self.most_bytes, self)
        await self.connections.open()
        self.config.out.mkdir(0o700, parents=True, exist_ok=True)
        told = {"name": self.name, "numbers": len(self.plain), "masked": self.masker is not None}
        Audit(self.config.out).note("sum", peer=self.config.id, user=who(), **told)
        began = time.monotonic()
        try:
            while not self.known():
                if stop.is_set():
                    raise PeerError("it was stopped before the sum was known")
                if time.monotonic() - began > self.patience:
                    raise PeerError(self.overdue())
                await self.wait(self.known)
            assert self.total is not None
            await self.linger(stop)
        except (PeerError, Mismatch) as why:
            self.tell(Report(GIVEN_UP, self.config.id, 0, None))
            await asyncio.sleep(LAST_WORDS)
            raise PeerError(str(why)) from None
        finally:
            await self.connections.close()
        sums = self.total.sums
        made = (
            rounded(sums) if self.masker is None else floating_point(tuple(n // UNIT for n in sums))
        )
        return made.reshape(self.shape)

    def heard(self, stage: str) -> dict[int, Report | None]:
        return {j: link.reports.heard.get(stage) for j, link in self.links.items()}

    def tell(self, report: Report) -> None:
        for j, link in self.links.items():
            link.tell(told_to(j, report) if report.stage == SUM else report)

    def known(self) -> bool:
        """Tell what there is to tell; whether the total is here."""
        for j, report in self.heard(GIVEN_UP).items():
            if report is not None:
                raise PeerError(f"peer {j} has given the sum up, so that nobody has it: start anew")
        if self.masker is not None and not self.masks_are_made():
            return False
        assert self.own is not None
        me, V = self.config.id, self.config.nodes
        report = report_of(SUM, me, V, self.own, self.heard(SUM))
        self.tell(report)
        if report.total and len(report.sums) == len(self.own):
            self.total = report
        return self.total is not None

    def masks_are_made(self) -> bool:
        """Of the neighbours' keys, once. One that comes with another key has lost the first, and
        the masks of it would stay in the sum."""
        assert self.masker is not None
        keys = tuple(n * UNIT for n in self.masker.public)
        self.tell(Report(KEYS, self.config.id, 0, None, (self.config.id,), keys))
        there = {j: r.sums for j, r in self.heard(KEYS).items() if r is not None}
        for j, key in there.items():
            if self.used and self.used[j] != key:
                raise PeerError(
                    f"peer {j} was started anew in the midst of a sum with masks, which cannot go "
                    "on without those it had: start the sum anew at all peers"
                )
        if not self.used and len(there) == len(self.links):
            try:
                publics = {j: public_in(j, key) for j, key in there.items()}
                masked = self.masker.masked(self.plain, publics)
            except ValueError:  # a point that makes no secret
                raise PeerError("a neighbour says no usable key: no sum is made with it") from None
            self.own, self.used = tuple(n * UNIT for n in masked), there
        return self.own is not None

    def overdue(self) -> str:
        waits_for = [j for j, report in self.heard(KEYS).items() if report is None]
        if self.masker is None or self.used:
            around = self.heard(SUM)
            place = place_of(self.config.id, self.config.nodes, around)
            waits_for = missing(self.config.id, place, around)
        late = ", ".join(map(str, waits_for)) or "farther away"
        more = "; with masks nobody can be left out" if self.masker is not None else ""
        return (
            f"no sum after {self.patience:g} s: peers {late} have yet to tell theirs{more}. Start "
            "it anew when all are there, or wait longer (patience)"
        )

    async def wait(self, ready: Callable[[], bool]) -> None:
        """Until something has come, or a second has gone."""
        timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self.wakeup.set)
        try:
            if self.connections.failure is not None:
                raise self.connections.failure
            self.wakeup.clear()
            if not ready():
                await self.wakeup.wait()
        finally:
            timer.cancel()

    async def linger(self, stop: asyncio.Event) -> None:
        """Until all neighbours have said that they know the total, or have been away."""
        until = time.monotonic() + LINGER

        def done() -> bool:
            waiting = [j for j, r in self.heard(SUM).items() if r is None or not r.total]
            late = time.monotonic() > until
            return not any(self.links[j].connected or not late for j in waiting)

        while not done() and not stop.is_set() and self.connections.failure is None:
            await self.wait(done)

"""A peer: it holds its data, talks to its neighbours, and fits a model with them."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from edgewise.peers.config.peer_config import PeerConfig
from edgewise.peers.node import agreement, checkpoint, estimates, scores
from edgewise.peers.node.absence import count_lost_hops, ending_of
from edgewise.peers.node.alarms import watch
from edgewise.peers.node.audit_trail import AuditTrail
from edgewise.peers.node.ending import MET
from edgewise.peers.node.handshake import greeting_of, settle_edge
from edgewise.peers.node.maintenance import maintain
from edgewise.peers.node.membership import begin, regroup, size_up
from edgewise.peers.node.own_data import own_data
from edgewise.peers.node.own_problem import problem_of
from edgewise.peers.node.own_size import sizes
from edgewise.peers.node.peer_sum import PeerSum
from edgewise.peers.node.private_fit import make_private, refuse_sums
from edgewise.peers.node.result import PeerError, PeerResult
from edgewise.peers.node.saving import flush_trace, no_room, save_at_last, save_model
from edgewise.peers.node.signals import run_anywhere, stop_on_signals
from edgewise.peers.node.state import PeerState
from edgewise.peers.node.status import write_status
from edgewise.peers.node.stepper import facts_of
from edgewise.peers.node.sums import Sums
from edgewise.peers.node.termination import (
    agree_to_stop,
    count_converged_hops,
    deserter,
    linger,
    why_finished,
)
from edgewise.peers.operations.logs import rate_limited
from edgewise.peers.transport.connections import Connections
from edgewise.peers.transport.frames import ProtocolError
from edgewise.peers.transport.links import Link, Mismatch
from edgewise.peers.transport.turns import next_turn
from edgewise.statistics.counts import as_counts, require_own

log = logging.getLogger("edgewise.peers")

QUICK = 5e-3  # seconds; longer steps are taken beside the network's work, not in between


class Peer(PeerState):
    """One of the peers of a mesh: `Peer("mesh/peer3.toml").fit("my-data.npz")`.

    config  the TOML that `edgewise network init` wrote for it, or a `PeerConfig`
    """

    def __init__(self, config: str | Path | PeerConfig) -> None:
        super().__init__(config)
        self.saving: asyncio.Future[None] | None = None
        self.halt: Callable[[], object] = lambda: None  # a run, from another thread
        self.when_compiled: Callable[[], None] | None = None  # what a process of its own may forget

    def fit(
        self,
        shard: Any = None,
        callback: Callable[[dict[str, float]], Any] | None = None,
        *,
        test: Any = None,
        label: str | None = None,
    ) -> PeerResult:
        """Fit with the neighbours.

        shard  a file as `edgewise.data.load` reads it, or (X, y); a table with its labels where
               there is a [schema]; nothing where the peer has a cost alone
        test   samples that the model is tried on, in the same form
        label  the column of labels in a table, if it is not the schema's, nor the last
        """
        data = own_data(self.config, shard, test, label)
        self.held = data.held
        with jax.enable_x64(True):
            problem = problem_of(self.config, data.shards)
            estimates.require_estimates(self.config, problem)
            if data.held is not None:
                problem.encode(data.held.y)  # which refuses a class that nobody knows
        with rate_limited():
            return run_anywhere(self.run(problem, callback), lambda: self.halt())

    def sum_over(
        self, values: Any, name: str = "sum", *, masked: bool = False, patience: float = 600.0
    ) -> np.ndarray:
        """Add up what all peers have, each of them calling this with an array of the same shape:
        the exact sum, rounded once.

        name      the same at all peers; another for each sum that follows
        masked    hide what this peer has under pairwise masks: then only all its neighbours
                  together can tell it from the sum, and every peer needs two. Numbers are rounded
                  to multiples of 2^-53. A peer that is lost or started anew ends the sum for all
        patience  seconds until it is given up, by all
        """
        refuse_sums(self.config)
        made = PeerSum(self.config, values, name, masked, patience)
        with rate_limited():
            return run_anywhere(made.run(), lambda: made.halt())

    def sums(self, name: str = "sums", *, masked: bool = False, patience: float = 600.0) -> Sums:
        """What stands for a graph in `edgewise.sum_over`, `sum_counts`, `kaplan_meier`, `log_rank`
        and `metrics`, for sums one after the other:

            edgewise.kaplan_meier(peer.sums("study", masked=True), [labels], grid)
        """

        def add(values: np.ndarray, name: str) -> np.ndarray:
            return self.sum_over(values, name, masked=masked, patience=patience)

        return Sums(add, self.config.least_count, name)

    def sum_counts(self, table: Any, name: str = "counts", **options: Any) -> np.ndarray:
        """The same for counts of people, which are not told where a cell has somebody and fewer
        than `peer.least_count` of the configuration, 5 by default."""
        counts = as_counts(table, self.config.id)
        require_own(counts, self.config.least_count, self.config.id)
        return np.round(self.sum_over(counts, name, **options))

    async def run(self, problem: Any, callback: Any = None) -> PeerResult:
        with jax.enable_x64(True):
            self.callback = callback
            self.prepare(problem)
            if not self.agreeing:
                make_private(self)
                self.facts = facts_of(self.problem, len(self.links))
            stop, self.halt = stop_on_signals(self.wakeup)
            self.connections = Connections(self.config, self.links, self.max_frame_bytes, self)
            stop, self.halt = stop_on_signals(self.wakeup)  # before it says that it waits
            found = None
            if self.agreeing:
                agreement.recall(self)
            if not self.agreeing:
                await asyncio.to_thread(size_up, self)
                found = self.resumed()  # before they are greeted: they are told the round
            self.begin_files()
            self.begin_trail()
            await self.connections.open()
            maintenance = asyncio.ensure_future(maintain(self))
            try:
                if self.agreeing:
                    found = await self.agree(stop)
                await begin(self, stop, found)
                return await self.rounds(stop)
            except Mismatch as what:
                await asyncio.sleep(1.0)  # the other side should learn of it too
                raise PeerError(str(what)) from None
            finally:
                maintenance.cancel()
                await self.connections.close()
                self.trail.end(self.ending)

    def begin_trail(self) -> None:
        try:
            self.trail = AuditTrail(self)
            self.trail.begin()
        except OSError as problem:
            raise no_room(problem) from None

    def begin_files(self) -> None:
        try:
            if not self.agreeing:
                self.trace.begin(self.round)
        except OSError as problem:
            raise no_room(problem) from None

    async def agree(self, stop: asyncio.Event) -> dict[str, np.ndarray] | None:
        """On what the fit takes from all peers. Only then it is known how data weigh, and so what
        greetings say of them: neighbours that it met before are greeted again."""
        self.state = "agreeing"
        found = None
        if await agreement.agree(self, stop):
            await asyncio.to_thread(size_up, self)
            found = self.resumed()
            self.begin_files()
            for link in self.links.values():
                if link.facts_sent is None:
                    link.close()
        else:
            self.facts = facts_of(self.problem, len(self.links))  # nobody is told
        self.state = "waiting"
        return found

    def resumed(self) -> dict[str, np.ndarray] | None:
        found = checkpoint.resume(self)
        if self.privacy is not None:
            self.ledger.at_least(self.round)
        return found

    # --- meeting the neighbours ------------------------------------------------------------------

    def greet(self, link: Link) -> dict[str, Any]:
        return greeting_of(self, link)

    def meet(self, link: Link, greeting: dict[str, Any]) -> None:
        """A neighbour that does not fit stops the peer before it has begun, or in strict mode. One
        that comes back changed must not stop the others: it is cut off, and stops by itself."""
        wrong = settle_edge(self, link, greeting)
        if wrong and self.begun and not self.strict:
            raise ProtocolError(wrong)
        if wrong:
            raise Mismatch(wrong)

    # --- rounds ----------------------------------------------------------------------------------

    async def rounds(self, stop: asyncio.Event) -> PeerResult:
        fit, config = self.config.fit, self.config
        patience = None if self.strict else fit.patience
        heard: Any = None
        slow, looked = True, False  # what is still to be compiled must not keep heartbeats back
        while (reason := why_finished(self)) is None:
            if await regroup(self):
                slow, looked, heard = True, False, None
            await self.wait(self.ready_or_deserted, stop, patience)
            if stop.is_set() or deserter(self) is not None:
                break
            self.lose_patience()
            heard = self.heard()
            self.take_turn()
            if self.privacy is not None:
                self.ledger.release()  # before it is made
            begun = time.perf_counter()
            if slow:
                self.carry, sent = await asyncio.to_thread(self.take_step, heard)
            else:
                self.carry, sent = self.stepper.step(self.carry, self.round, heard)
            slow = time.perf_counter() - begun > QUICK
            self.round += 1
            if self.round % config.record_every == 0:
                beside = slow or not looked
                measured = await asyncio.to_thread(self.look, heard) if beside else self.look(heard)
                if not looked and self.when_compiled is not None:
                    await asyncio.to_thread(self.when_compiled)
                looked = True
                self.record(measured)
                self.watch(measured)
                count_converged_hops(self)
                count_lost_hops(self)
                self.cut.clear()
            agree_to_stop(self)
            self.post(sent)
            if self.round % config.checkpoint_every == 0:
                await self.saved_last()
                self.saving = asyncio.ensure_future(self.save(*checkpoint.contents(self)))
        await self.saved_last()
        unsaved = [await save_at_last(self)] if self.begun else []
        left = None if reason or stop.is_set() else deserter(self)
        why = reason or ("stopped" if left is None else "deserted")
        result = self.result(heard, why, left, unsaved)
        if reason is not None:
            result = await self.scored(result, stop)
            result = await self.summarised(result, stop)
            self.state = "lingering"
            await linger(self, stop)
        self.state = "finished" if reason is not None else "stopped"
        with suppress(OSError):  # the end has been told where it could be
            write_status(self)
        return result

    async def scored(self, result: PeerResult, stop: asyncio.Event) -> PeerResult:
        """With how the model does on what all peers hold out, if they do."""
        if not scores.wanted(self) or result.ending is None:
            return result
        self.state = "scoring"
        self.scores = await scores.score(self, result.x, stop)
        if self.scores is None:
            return result
        words = scores.in_words(self.scores)
        log.info(words, extra={"held_out": self.scores})
        unsaved = save_model(self, result.x, result.ending, result.multipliers)
        if unsaved:
            log.warning(unsaved)
        if not self.scores["missing"]:
            agreement.keep(self)  # for a restart that meets nobody any more
        told = f"{result.message}; {words}"
        return replace(result, message=told, scores=self.scores)

    async def summarised(self, result: PeerResult, stop: asyncio.Event) -> PeerResult:
        """With standard errors, where they are asked for."""
        if self.config.fit.summary is None or not np.isfinite(result.x).all():
            return result
        self.state = "summing up"
        return replace(result, summary=await estimates.estimate(self, result.x, stop))

    def take_step(self, heard: Any) -> Any:
        with jax.enable_x64(True):
            return self.stepper.step(self.carry, self.round, heard)

    def look(self, heard: Any) -> dict[str, np.ndarray]:
        with jax.enable_x64(True):
            return self.stepper.look(self.carry, heard)

    def ready(self) -> bool:
        """In tolerant mode those who are away, or were late, are waited for only if all are."""
        links = [self.links[id] for id in self.members if id in self.links]
        if not self.strict:
            there = [k for k in links if not k.gone]
            links = [k for k in there if k.responsive] or there
        return all(link.has_message(self.awaited) for link in links)

    def ready_or_deserted(self) -> bool:
        return self.ready() or deserter(self) is not None

    def lose_patience(self) -> None:
        """With those that were waited for in vain: once, and again when they have spoken."""
        for id in self.members:
            if id in self.links and not self.links[id].has_message(self.awaited):
                self.links[id].responsive = False

    def take_turn(self) -> None:
        if not self.strict:
            links = (self.links[id] for id in self.members if id in self.links)
            self.turn = next_turn(self.turn, (link.heard_turn for link in links))

    def heard(self) -> tuple[np.ndarray, ...]:
        """One that has said nothing yet is taken to be where this peer is, and to have no news."""
        got, news = [], []
        for place, id in enumerate(self.members):
            link = self.links.get(id) if self.carries_as_grouped(id) else None
            vectors = None if link is None else link.take_message(self.round)
            if vectors is None:
                vectors = self.stepper.outgoing(self.carry[1], place)
            got.append(vectors)
            news.append(0.0 if link is None else link.news)
        return self.stepper.gathered(got, news)

    # --- what is kept and told -------------------------------------------------------------------

    def record(self, measured: dict[str, np.ndarray]) -> None:
        self.residual, self.looked_at = float(measured["residual"]), self.round
        row = self.trace.add(
            rounds=self.round,
            oracle_calls=float(measured["calls"]),
            **self.sent_so_far(),
            seconds=self.seconds(),
            residual=self.residual,
            objective=float(measured["objective"]),
            violation=float(measured.get("violation", np.nan)),
        )
        if self.callback is not None:
            self.callback(row)

    def watch(self, measured: dict[str, np.ndarray]) -> None:
        """Alarms; and where all is sound, this peer's messages may grow, and others' with them."""
        if watch(self, measured) and self.members:
            self.bounds.grown(sizes(self.stepper, self.carry)[0])

    async def saved_last(self) -> None:
        """Wait for the checkpoint that is being written. One that fails is no reason to stop: the
        one before is still there, and neighbours keep what was sent since."""
        if self.saving is not None:
            try:
                await self.saving
            except OSError as problem:
                log.warning("no checkpoint: %s; the run goes on", problem)
            self.saving = None

    def with_zeros(self, x: np.ndarray, measured: dict[str, np.ndarray]) -> np.ndarray:
        """The own model at the end of a fit that has converged, with its exact zeros: where a step
        takes it there, or where its penalty would and tol cannot tell it from zero. The latter
        since duals may hold a coordinate at the brink at one peer, and well inside at others."""
        tol = self.config.fit.tol
        if not self.problem.penalised or tol is None or not self.residual <= tol:
            return x
        reach = tol * float(self.stepper.step_length[0, 0])
        near = (measured["shrunk"] == 0) & (np.abs(x) <= reach)
        return np.where((measured["settled"] == 0) | near, 0, x)

    def result(self, heard: Any, reason: str, left: int | None, unsaved: list[str]) -> PeerResult:
        multipliers: dict[int, np.ndarray] = {}
        violation = np.nan
        with jax.enable_x64(True):
            x = np.asarray(self.stepper.method.answer(self.carry[0]))[0].astype(np.float64)
            if heard is None and reason != "stopped" and not self.strict:
                heard = self.heard()  # it had finished before it was started again
            if heard is not None:
                measured = self.look(heard)
                self.record(measured)
                x = self.with_zeros(x, measured)
                if self.coupled:
                    each = self.stepper.trimmed(measured["multipliers"])
                    multipliers = dict(zip(self.members, each, strict=True))
                    violation = float(measured["violation"])
        unsaved = [*unsaved, flush_trace(self)]
        ending = ending_of(self, reason, left)
        if self.begun:
            unsaved.append(save_model(self, x, ending, multipliers))
        ending = self.ending = replace(ending, unsaved="; ".join(filter(None, unsaved)))
        fine = ending.complete and ending.exit_code == MET and not ending.alarms
        level = logging.INFO if fine else logging.WARNING
        log.log(level, ending.message, extra={"ending": ending.table()})
        message = ending.message
        if multipliers:
            message += f"; violation {violation:.2e}"
        known = x, self.round, self.residual, message, self.trace.table()
        spent = self.privacy
        if spent is not None:  # all that was reserved may have gone out
            spent = self.privacy = replace(spent, rounds=max(self.ledger.used, 1))
        told = self.method_note, multipliers, violation, ending
        return PeerResult(*known, *told, privacy=spent)

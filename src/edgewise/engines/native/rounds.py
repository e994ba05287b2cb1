"""The compiled rounds, in place of the simulator's own: NumPy's arrays, and threads of our own.

XLA draws the samples and is not called again until all rounds of a stretch are over.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.declared import declared
from edgewise.backend.programs import compiled
from edgewise.engines.native import panels, program, sketches
from edgewise.engines.native.draws import picks
from edgewise.engines.native.estimators import SEGA
from edgewise.engines.native.fallback import plain_rounds_run
from edgewise.engines.native.kernels import COLUMNS, PanelState
from edgewise.engines.native.panels import Numbers
from edgewise.engines.native.work_sharing import STOP, WORDS
from edgewise.engines.simulator import Simulator


class Cores:
    """Lent to helpers: with many runs at once there are no more threads than these and the runs."""

    def __init__(self, many: int) -> None:
        self.free = many
        self.lock = threading.Lock()

    @contextlib.contextmanager
    def borrowed(self, wanted: int) -> Iterator[int]:
        with self.lock:
            got = max(0, min(self.free, wanted))
            self.free -= got
        try:
            yield got
        finally:
            with self.lock:
                self.free += got


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


SPARE_CORES = Cores(usable_cores() - 1)  # besides the one that leads


def run_threads(
    rule: Any,
    samples: Any,
    state: PanelState,
    edges: Any,
    numbers: Numbers,
    memory: Any,
    full: Any,
    looks: Any,
    picked: Numbers,
    coins: Numbers,
) -> None:
    """`program.work`, by as many threads as there are cores and panels for, or pieces of
    sketches."""
    many, v, _ = state.X.shape
    slopes, margins = np.zeros(picked.shape[1]), np.zeros((many, picked.shape[1]))
    wanted = max(many, len(looks.pieces) - 1) - 1

    def args(threads: int, shared: Numbers) -> tuple[Any, ...]:
        scratch = panels.aligned((threads, v * COLUMNS), state.X.dtype)
        drawn = picked, coins, slopes, margins
        return rule, samples, state, edges, numbers, memory, full, looks, *drawn, scratch, shared

    share_out(program.work, wanted if len(picked) else 0, args)


def share_out(work: Any, wanted: int, args_of: Callable[[int, Numbers], tuple[Any, ...]]) -> None:
    """`work` on this thread, and on as many more as are wanted and there are cores for. args_of:
    what it takes besides its thread's number, of so many threads and the words that they share."""
    shared = panels.aligned((WORDS,), np.int64)
    with SPARE_CORES.borrowed(wanted) as helpers:
        args = args_of(1 + helpers, shared)
        threads = [
            threading.Thread(target=work, args=(k, *args), daemon=True)
            for k in range(1, 1 + helpers)
        ]
        try:
            with contextlib.suppress(RuntimeError):  # no more threads to be had: then without
                for thread in threads:
                    thread.start()
            work(0, *args)
        finally:
            shared[STOP] = 1
            for thread in threads:
                if thread.ident is not None:
                    thread.join()


class NativeSimulator(Simulator):
    """Where Numba cannot compile the rounds it says so, once, and runs the plain ones."""

    works: bool | None = None  # not tried yet

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.trial = threading.Lock()  # one, whichever thread comes first

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        if early := self.early_steps(carry, first, rounds):
            carry, before = self.advance_early(carry, first, early)
            carry, spent = self.advance(carry, first + early, rounds - early)
            return carry, before + spent
        if rounds and not self.can_compile(carry):
            return super().advance(jax.tree.map(jnp.asarray, carry), first, rounds)
        spent, done, size = 0.0, 0, self.steps_at_once(rounds)
        while done < rounds:
            now = min(size, rounds - done)
            random_bits = jax.block_until_ready(self.random_bits(first + done, now))
            draw = self.drawing(random_bits)
            start = time.perf_counter()
            carry = self.run_rounds(carry, *map(np.asarray, draw(self.block, random_bits)))
            spent += time.perf_counter() - start
            done += now
        return carry, spent

    def compile_ahead(self, carry: Any, rounds: int) -> None:
        """Compile what `advance` will run, beside whatever comes first."""

        def compile_it() -> None:
            with jax.enable_x64(True), contextlib.suppress(Exception):  # raised again by `advance`
                self.can_compile(carry)
                random_bits = self.random_bits(0, self.steps_at_once(rounds))
                self.drawing(random_bits)

        if rounds > self.early_steps(carry, 0, rounds):
            threading.Thread(target=compile_it).start()

    def drawing(self, random_bits: Array) -> Any:
        gradient = self.method.gradient
        if declared(gradient) == "sega":
            known = self.block, random_bits
            return compiled(sketches.coordinates, known, {}, n=self.problem.size)
        coins = gradient.random_draws - gradient.batch
        return compiled(picks, (self.block, random_bits), {}, coins=coins)

    def can_compile(self, carry: Any) -> bool:
        """Tried by a run of no rounds."""
        with self.trial:
            if self.works is None:
                b, v = self.method.gradient.batch, self.problem.nodes
                none, coins = np.empty((0, v * b), np.int64), np.empty((0, v), np.uint32)
                share, batch = np.zeros(v * b, self.dtype), np.ones(v, np.int64)
                try:
                    self.run_rounds(carry, none, share, batch, coins)
                    self.works = True
                except Exception as error:
                    plain_rounds_run(error)
                    self.works = False
        return self.works

    def run_rounds(
        self, carry: Any, picked: Numbers, share: Numbers, batch: Numbers, coins: Numbers
    ) -> Any:
        """The carry after as many rounds as there are picks."""
        (old, (sent,)), method, p = carry, self.method, self.block
        rule, n, rounds = panels.rule_of(method, p.loss), self.problem.size, len(picked)
        looks, given = self.sketches(picked), old
        if rule.estimator == SEGA:
            old, picked = sketches.like_others(old), picked[:, :0]
        edge_form = method.form == "edge"
        state = panels.panels_of(old, sent, rule)
        memory = panels.memory_of(method.gradient, p, old.memory, len(state.X))
        numbers = panels.numbers_now(self.numbers, p, old, batch, rule.estimator)
        run_threads(
            *(rule, panels.samples_of(p, share, batch), state),
            *(self.flat_edges, numbers, memory),
            *(panels.pass_of(rule, len(state.X), self.dtype), looks),
            *map(panels.read_only, (picked, coins)),
        )

        def rows(a: Numbers) -> Array:
            return panels.from_panels(a, n)

        made, sent = panels.carry_of(old, state, memory, numbers, rows, edge_form)
        if rule.estimator == SEGA:
            made = sketches.as_sketch(made, given, rounds, method.gradient, batch)
        return made, sent

    @cached_property
    def numbers(self) -> Numbers:
        estimator = panels.rule_of(self.method, self.block.loss).estimator
        return panels.numbers_of(self.method, self.block, estimator)

    @cached_property
    def flat_edges(self) -> Any:
        return panels.edges_of(self.block, self.network)

    def sketches(self, at: Numbers) -> Any:
        """What sketched gradients need; nothing for others."""
        n, dtype = self.problem.size, self.dtype
        at = at if declared(self.method.gradient) == "sega" else at[:, :0]
        return sketches.sketches_of(self.method, self.block, self.tiles, at, n, dtype)

    @cached_property
    def tiles(self) -> Any:
        """Made once: it may be a copy of the data."""
        make = sketches.no_tiles
        if declared(self.method.gradient) == "sega":
            make = sketches.tiles_of
        return make(self.block, self.dtype)

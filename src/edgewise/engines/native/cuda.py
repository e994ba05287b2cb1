"""Rounds on an NVIDIA GPU by kernels of our own, in CUDA C++, compiled at run time through CuPy.

A stretch of rounds is one launch: blocks of threads are resident for all of it, and each waits for
its neighbours' words as a node does, so that a round costs neither launches nor a meeting of all.
The formulas are those of `methods.primal_dual` and `methods.local_training`, which the tests hold
these kernels to, compiled for a CPU too.
"""

import contextlib
import threading
import time
from typing import Any

import jax
import numpy as np

from edgewise.backend.declared import declared
from edgewise.backend.placed import copied
from edgewise.backend.programs import compiled
from edgewise.engines.native.cuda_device import Device, room_for, this_gpu
from edgewise.engines.native.cuda_state import (
    Run,
    carry_of,
    fill,
    prepared,
    shape_for,
    shares_of,
    words_of,
)
from edgewise.engines.native.draws import picks
from edgewise.engines.native.fallback import plain_rounds_run
from edgewise.engines.simulator import Simulator

KNOWN = "estimator", "loss", "edge_form", "stops", "batch"  # of a run, when it is compiled
C_NAMES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


class CudaRounds:
    """The stretches of one run."""

    def __init__(self, device: Device, simulator: Any) -> None:
        self.device, method, p = device, simulator.method, simulator.block
        self.method, self.local = method, declared(method) == "local-training"
        dtype = np.dtype(simulator.dtype)
        self.batch = shares_of(p, method.gradient.batch, dtype)[1].astype(np.int64)
        self.run: Run = prepared(device, method, p, simulator.network, dtype)
        V, n = self.run.nodes, self.run.columns
        shape = shape_for(device, method, V, n)
        self.program, resident = device.compiled(
            "local_training" if self.local else "primal_dual",
            REAL=C_NAMES[dtype],
            ROW=C_NAMES[np.dtype(p.rows.values.dtype)],
            EACH=shape.each,
            THREADS=shape.threads,
            CROWD=shape.crowd,
            DEGREE=room_for(int(np.bincount(np.asarray(p.links.owner)).max(initial=0))),
            **{name.upper(): getattr(self.run, name) for name in KNOWN},
        )
        self.threads = shape.threads
        self.grid = shape.blocks * min(V, resident // shape.blocks)
        if self.grid == 0:
            raise RuntimeError(
                f"a node of {n} columns takes {shape.blocks} blocks of threads, this GPU has room "
                f"for {resident} at once"
            )

    def __call__(self, carry: Any, rounds: int, picked: Any, coins: Any, bits: Any) -> Any:
        """The carry after so many rounds, with what XLA drew for them."""
        device = self.device
        given = [None if a is None else device.borrow(a) for a in (picked, coins, bits)]
        run = self.run._replace(picked=given[0], coins=given[1], bits=given[2], rounds=rounds)
        fill(device, run, self.method, carry)
        device.launch(self.program, self.grid, self.threads, words_of(device, run))
        if device.take(run.status)[0]:
            raise RuntimeError("a block of the kernel waited in vain for a neighbour's word")
        carry = carry_of(device, run, carry, self.batch)
        device.settle()
        return carry


class CudaSimulator(Simulator):
    """Where the kernels cannot be had it says so, once, and runs the plain rounds."""

    works: bool | None = None  # not tried yet
    device: Any = staticmethod(this_gpu)
    rounds: CudaRounds
    lock = threading.Lock()

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        if rounds and not self.can_compile():
            return super().advance(copied(carry), first, rounds)
        spent, done, size = 0.0, 0, self.steps_at_once(rounds)
        while done < rounds:
            now = min(size, rounds - done)
            drawn = jax.block_until_ready(self.drawn(first + done, now))
            start = time.perf_counter()
            try:
                carry = self.rounds(carry, now, *drawn)
            except Exception as error:
                plain_rounds_run(error)
                self.works = False
                carry, more = super().advance(copied(carry), first + done, rounds - done)
                return carry, spent + more
            spent += time.perf_counter() - start
            done += now
        return carry, spent

    def drawn(self, first: int, rounds: int) -> tuple[Any, Any, Any]:
        """Samples and coins of the rounds; or bits, of which local training takes each step's."""
        random_bits = self.random_bits(first, rounds)
        if declared(self.method) == "local-training":
            return None, None, random_bits
        gradient = self.method.gradient
        coins = gradient.random_draws - gradient.batch
        draw = compiled(picks, (self.block, random_bits), {}, coins=coins)
        at, _, _, tossed = draw(self.block, random_bits)
        return at, tossed if coins else None, None

    def compile_ahead(self, carry: Any, rounds: int) -> None:
        """Beside whatever comes first."""

        def compile_it() -> None:
            with jax.enable_x64(True), contextlib.suppress(Exception):  # raised again by `advance`
                self.can_compile()
                self.drawn(0, self.steps_at_once(rounds))

        if rounds:
            threading.Thread(target=compile_it).start()

    def can_compile(self) -> bool:
        with self.lock:
            if self.works is None:
                try:
                    self.rounds = CudaRounds(self.device(), self)
                    self.works = True
                except Exception as error:
                    plain_rounds_run(error)
                    self.works = False
        return self.works

    def early_program(self, carry: Any) -> None:
        """These rounds need no compiling by XLA: none is left to NumPy."""

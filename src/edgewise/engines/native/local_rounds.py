"""Compiled local training, in place of the simulator's own rounds: a pass in cache per node and
round, and a few threads that share the nodes."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.engines.native import local_kernels, panels
from edgewise.engines.native.estimators import Samples
from edgewise.engines.native.fallback import plain_rounds_run
from edgewise.engines.native.lazy_coordinates import make_lazy
from edgewise.engines.native.local_kernels import Local, Node
from edgewise.engines.native.panels import Numbers, read_only
from edgewise.engines.native.rounds import SPARE_CORES
from edgewise.engines.native.soft_threshold import bounds, threshold_and_shrink
from edgewise.engines.simulator import Simulator
from edgewise.methods.local_training import LOOKS

PARTS = 4  # of a thread's nodes: some take longer than others


class SparseRows(NamedTuple):
    values: Any
    columns: Any
    begin: Any  # (N + 1,) a row's first entry
    bias: Any  # () the intercept's coordinate, or -1


class LocalSimulator(Simulator):
    """Where Numba cannot compile the rounds it says so, once, and runs the plain ones."""

    works: bool | None = None  # not tried yet

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
            random_bits = np.asarray(self.random_bits(first + done, now))[:, 0]
            start = time.perf_counter()
            carry = self.run_rounds(carry, random_bits)
            spent += time.perf_counter() - start
            done += now
        return carry, spent

    def compile_ahead(self, carry: Any, rounds: int) -> None:
        def compile_it() -> None:
            with jax.enable_x64(True), contextlib.suppress(Exception):  # raised again by `advance`
                self.can_compile(carry)

        if rounds > self.early_steps(carry, 0, rounds):
            threading.Thread(target=compile_it).start()

    def can_compile(self, carry: Any) -> bool:
        """Tried by a run of no rounds."""
        if self.works is None:
            try:
                self.train(self.prepared(carry), carry, np.zeros((1, 1, 1), np.uint32), 0)
                self.works = True
            except Exception as error:
                plain_rounds_run(error)
                self.works = False
        return self.works

    def run_rounds(self, carry: Any, random_bits: Numbers) -> Any:
        given = self.prepared(carry)
        sent = self.train(given, carry, random_bits, self.problem.nodes)
        old, s = carry[0], given[-1]
        memory, extra = old.memory, old.memory.extra
        if hasattr(extra, "total"):
            trip = extra.journey
            if trip is not None:
                path = jnp.asarray(s.path, trip.path.dtype)
                trip = trip._replace(
                    start=jnp.asarray(s.start), last=jnp.asarray(s.last), path=path
                )
            done, length = jnp.asarray(s.done), jnp.asarray(s.length)
            extra = extra._replace(
                total=jnp.asarray(s.total), done=done, length=length, journey=trip
            )
        mean, calls = jnp.asarray(s.mean), jnp.asarray(s.calls)
        memory = memory._replace(table=s.table, mean=mean, calls=calls, extra=extra)
        return old._replace(X=jnp.asarray(s.X), memory=memory), (jnp.asarray(sent),)

    def train(self, given: Any, carry: Any, random_bits: Numbers, nodes: int) -> Numbers:
        """What is sent after so many rounds of the first so many nodes."""
        rule, ridge, samples, edges, node, s = given
        sent = np.array(carry[1][0])
        into, n, dtype = np.empty_like(sent), self.problem.size, self.dtype
        sparse = isinstance(samples.rows, SparseRows)
        v = self.problem.nodes
        with SPARE_CORES.borrowed(min(v, 64) - 1 if nodes else 0) as helpers:
            workers = 1 + helpers
            cuts = np.linspace(0, nodes, min(max(nodes, 1), PARTS * workers) + 1).astype(np.int64)
            spare = [panels.aligned((3, n), dtype) for _ in cuts[1:]]
            lazy = [make_lazy(int(node.steps.max()), n) for _ in spare]

            def part(k: int, sent: Numbers, into: Numbers, bits: Numbers) -> None:
                known = (rule, ridge, samples, edges, node, LOOKS, s, sent, into, bits)
                own = (cuts[k], cuts[k + 1], spare[k])
                if sparse:
                    local_kernels.sparse(*known, *own, lazy[k])
                else:
                    local_kernels.dense(*known, *own)

            with ThreadPoolExecutor(workers) as pool:
                for bits in random_bits:
                    bits = read_only(bits)
                    if workers == 1:
                        for k in range(len(spare)):
                            part(k, sent, into, bits)
                    else:
                        jobs = [pool.submit(part, k, sent, into, bits) for k in range(len(spare))]
                        for job in jobs:
                            job.result()
                    sent, into = into, sent
        return sent

    def prepared(self, carry: Any) -> tuple[Any, ...]:
        """What kernels are given but for messages and random bits; the node's own state last."""
        return *self.fixed, self.local(carry[0])

    @cached_property
    def fixed(self) -> tuple[Any, ...]:
        """What stays as it is in a run."""
        method, p = self.method, self.block
        rule = panels.rule_of(method, p.loss)
        total, stiff = p.links.total, np.asarray(p.links.rho, np.float64)
        if p.links.intercept is not None:
            stiff = stiff * np.asarray(p.links.intercept)
        there = np.bincount(np.asarray(p.links.owner), stiff, len(total))[:, None]
        gamma, free = 1 / (1 / method.eta + total), 1 / (1 / method.eta + there)
        softly = threshold_and_shrink(p.penalty.members[0], gamma)
        box = bounds(p.penalty.members[0])
        numbers = (gamma, 1 / method.eta, total, *softly, free, *box)
        each = [np.broadcast_to(np.asarray(a, np.float64), gamma.shape)[:, 0] for a in numbers]
        steps = np.asarray(method.steps).astype(np.int64)
        enough = np.asarray(method.enough, np.float64)
        each = [*map(np.ascontiguousarray, each), stiff]
        node = Node(*map(read_only, (steps, enough, *each)))
        scale = np.empty(0, p.labels.dtype) if p.scale is None else p.scale
        none = np.empty(0, p.labels.dtype)
        flat = map(read_only, (p.labels, scale, p.first, p.counts, none, none))
        samples = Samples(self.rows(), *flat)
        edges = panels.edges_of(p, self.network)
        return rule, float(p.loss.ridge), samples, edges, node

    def rows(self) -> Any:
        X = self.problem.shards.X
        if isinstance(X, np.ndarray):
            return read_only(self.block.rows.values)
        bias = self.problem.size - 1 if self.problem.intercept else -1
        values = X.data.astype(self.dtype)
        return SparseRows(read_only(values), read_only(X.indices), read_only(X.indptr), bias)

    def local(self, old: Any) -> Local:
        n = old.X.shape[1]
        m, epoch = old.memory, old.memory.extra
        flat = panels.memory_of(self.method.gradient, self.block, m, 0)
        trip = getattr(epoch, "journey", None)
        nothing = np.empty((0, n), old.X.dtype)
        total = np.array(epoch.total) if hasattr(epoch, "total") else nothing
        start, last = (nothing,) * 2 if trip is None else map(np.array, (trip.start, trip.last))
        return Local(
            *(np.array(old.X), np.array(m.mean), flat.table, flat.calls, total, start, last),
            *(flat.path, flat.done, flat.length, flat.shortest, flat.longest),
        )

"""Compiled local training, in place of the simulator's own rounds: a pass in cache per node and
round, and a few threads that share the nodes."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.engines.native import local_kernels, panels, sparse_kernels
from edgewise.engines.native.edge_kernels import WINDOW
from edgewise.engines.native.estimators import Samples
from edgewise.engines.native.fallback import plain_rounds_run
from edgewise.engines.native.lazy_coordinates import each_coordinate, make_lazy
from edgewise.engines.native.local_kernels import Local, Node
from edgewise.engines.native.panels import Numbers, read_only
from edgewise.engines.native.rounds import SPARE_CORES
from edgewise.engines.native.soft_threshold import (
    alike,
    bounds,
    by_coordinate,
    threshold_and_shrink,
)
from edgewise.engines.native.sparse_kernels import SparseRows, Sums
from edgewise.engines.simulator import Simulator
from edgewise.methods.local_training import LOOKS

PARTS = 4  # of a thread's nodes: some take longer than others

Share = Callable[..., None]


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
        # taken over as they are: copies would take as long as some rounds
        X, mean, out = map(jnp.from_dlpack, (s.X, s.mean, sent))
        calls = jnp.asarray(s.calls)
        memory = memory._replace(table=s.table, mean=mean, calls=calls, extra=extra)
        return old._replace(X=X, memory=memory), (out,)

    def train(self, given: Any, carry: Any, random_bits: Numbers, nodes: int) -> Numbers:
        """What is sent after so many rounds of the first so many nodes."""
        samples = given[2]
        v = self.problem.nodes
        with SPARE_CORES.borrowed(min(v, 64) - 1 if nodes else 0) as helpers:
            workers = 1 + helpers
            cuts = np.linspace(0, nodes, min(max(nodes, 1), PARTS * workers) + 1).astype(np.int64)
            parts = list(itertools.pairwise(cuts))
            sparse = isinstance(samples.rows, SparseRows)
            with ThreadPoolExecutor(workers) as pool:

                def share(work: Any, *arguments: Any) -> None:
                    """work(k, first, last, ...) of every part, by all workers."""
                    if workers == 1:
                        for k, (first, last) in enumerate(parts):
                            work(k, first, last, *arguments)
                        return
                    jobs = [pool.submit(work, k, *ends, *arguments) for k, ends in enumerate(parts)]
                    for job in jobs:
                        job.result()

                training = self.train_sparse if sparse else self.train_dense
                return training(given, carry[1][0], random_bits, len(parts), share)

    def train_dense(
        self, given: Any, sent: Any, random_bits: Numbers, parts: int, share: Share
    ) -> Numbers:
        *known, s = given
        sent, into = own(sent), own(sent)
        spare = [panels.aligned((3, self.problem.size), self.dtype) for _ in range(parts)]

        def part(k: int, first: int, last: int, *messages: Numbers) -> None:
            local_kernels.dense(*known, LOOKS, s, *messages, first, last, spare[k])

        for bits in random_bits:
            share(part, sent, into, read_only(bits))
            sent, into = into, sent
        return sent

    def train_sparse(
        self, given: Any, sent: Any, random_bits: Numbers, parts: int, share: Share
    ) -> Numbers:
        rule, ridge, samples, edges, node, s = given
        n, bias, most = self.problem.size, samples.rows.bias, int(node.steps.max())
        lazy = [make_lazy(most, n, self.dtype, self.each_number) for _ in range(parts)]
        spare = [panels.aligned((n,), self.dtype) for _ in range(parts)]
        sums = self.sums

        def begin(k: int, first: int, last: int, sent: Numbers) -> None:
            sparse_kernels.beginning(edges, sent, sums, first, last)

        def part(k: int, first: int, last: int, bits: Numbers, now: int) -> None:
            known = (rule, ridge, samples, edges, node, LOOKS, s, sums, bits, now)
            sparse_kernels.rounds(*known, first, last, spare[k], lazy[k])

        def settle(k: int, first: int, last: int, done: int, *messages: Numbers) -> None:
            into, sent = messages
            known = (edges, node.stiff, sent, sums, bias, done, first, last)
            sparse_kernels.settling(*known, into)

        for start in range(0, len(random_bits), WINDOW):
            stretch = random_bits[start : start + WINDOW]
            sent = read_only(sent)
            into = panels.aligned(sent.shape, self.dtype)
            share(begin, sent)
            for now, bits in enumerate(stretch):
                share(part, read_only(bits), now)
            share(settle, len(stretch), into, sent)
            sent = into
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
        softly: Any = (0.0, 1.0)
        box: Any = (-np.inf, np.inf)
        if alike(self.problem):
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

    @cached_property
    def sums(self) -> Sums:
        """Of a stretch of rounds, one after another."""
        shape = self.problem.nodes, self.problem.size
        return Sums(*(panels.aligned(shape, self.dtype) for _ in range(4)))

    @cached_property
    def each_number(self) -> Numbers | None:
        """(v, n, NUMBERS) where coordinates, or nodes, have penalties of their own kinds."""
        if alike(self.problem):
            return None
        p, shape = self.block, (self.problem.nodes, self.problem.size)
        terms = np.zeros((4, *shape))  # an intercept keeps these
        terms[2], terms[3] = -np.inf, np.inf
        for h, mask in zip(p.penalty.members, p.penalty.masks, strict=True):
            own = np.flatnonzero(mask)
            for term, numbers in zip(terms, by_coordinate(h), strict=True):
                some = np.broadcast_to(numbers, (shape[0], shape[1] - p.penalty.free))
                term[own, : some.shape[1]] = some[own]
        ridge = np.full(shape[1], float(p.loss.ridge)) * (1 if p.mask is None else p.mask)
        total = np.asarray(p.edge_totals(), np.float64)
        return each_coordinate(np.asarray(self.method.eta, np.float64), total, ridge, terms)

    def rows(self) -> Any:
        X = self.problem.shards.X
        if isinstance(X, np.ndarray):
            return read_only(self.block.rows.values)
        bias = self.problem.size - 1 if self.problem.intercept else -1
        if not X.has_canonical_format:  # an entry given twice would be stepped twice
            X = X.copy()
            X.sum_duplicates()
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
            *(own(old.X), own(m.mean), flat.table, flat.calls, total, start, last),
            *(flat.path, flat.done, flat.length, flat.shortest, flat.longest),
        )


def own(a: Any) -> Numbers:
    """A copy to be changed, which JAX can take over as it is."""
    made = panels.aligned(a.shape, a.dtype)
    made[:] = a
    return made

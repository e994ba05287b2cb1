"""All nodes in one process: many rounds are one compiled scan."""

import contextlib
import threading
import time
from typing import Any

import jax
import numpy as np
from jax import Array, lax

from edgewise.backend.cache import keep_programs
from edgewise.backend.placed import copied, placed
from edgewise.backend.programs import compiled
from edgewise.backend.random_bits import seed_key
from edgewise.engines.base import Counts, Wires
from edgewise.engines.early_rounds import EarlyRounds, is_numpy
from edgewise.engines.layout import Layout, OneDevice
from edgewise.engines.stream_samples import StreamSamples
from edgewise.engines.wires import bodies_gone, edge_duals, traffic
from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.methods.contract import EdgeReport, Method, require_prepared
from edgewise.methods.knowledge import whole_network
from edgewise.problem.block import Block, Links
from edgewise.problem.contract import Curvatures


def run_rounds(
    method: Method, wires: Wires, p: Block, carry: Any, random_bits: Array, fresh: Any, unroll: int
) -> Any:
    """random_bits (steps, phases, v, draws): a round per phase, many steps in one program. `fresh`
    holds (rows, labels) per step where samples come from a stream, else nothing."""

    p = p._replace(links=p.links.ready(method.hears))
    again = method.sends_state  # not carried twice: it would be copied every round

    def body(carry: Any, now: tuple[Array, Any]) -> tuple[Any, None]:
        random_bits, samples = now
        here = p if samples is None else p._replace(rows=samples[0], labels=samples[1])
        state, outbox = one_step(
            method, wires, here, (carry[0], outbox_of(method, *carry)), random_bits
        )
        return (state, () if again else outbox), None

    state, outbox = carry
    start = (state, () if again else outbox)
    state, outbox = lax.scan(body, start, (random_bits, fresh), unroll=unroll)[0]
    return state, outbox_of(method, state, outbox)


def one_step(method: Method, wires: Wires, p: Block, carry: Any, random_bits: Array) -> Any:
    """All phases of a step, each after a round of messages; random_bits (phases, v, draws)."""
    state, outbox = carry
    for k, phase in enumerate(method.phases):
        inbox = wires.deliver(method.hears, p.links, outbox)
        state, outbox = getattr(method, phase)(p, state, inbox, random_bits[k])
    return state, outbox


def outbox_of(method: Method, state: Any, outbox: Any) -> Any:
    """The outbox; where it is a part of the state it is not carried twice."""
    return tuple(getattr(state, name) for name in method.sends_state) or outbox


def begin(method: Method, p: Block, X: Array, duals: Array | None) -> Any:
    return method.init(p, X, duals)


def origin(p: Block, X: Array, eta: Array) -> Array:
    X0: Array = p.penalty.prox(X, eta)
    return X0


@jax.jit
def view_models(method: Method, wires: Wires, links: Links, carry: Any) -> tuple[Array, Array]:
    state, outbox = carry
    inbox = wires.deliver(method.hears, links, outbox)
    return method.answer(state), method.duals(links, state, inbox, outbox)


@jax.jit
def view_edges(method: Any, wires: Wires, p: Block, carry: Any) -> EdgeReport:
    """What a coupled method says of its edges, as if all that was said had been heard."""
    state, outbox = carry[:2]
    inbox = wires.deliver(method.hears, p.links, outbox)
    made: EdgeReport = method.edge_report(p, state, inbox)
    return made


# Carries would otherwise be copied every round (measured: 793 to 654 us at V=50, n=2000).
CPU_OPTIONS = {
    "xla_cpu_copy_insertion_use_region_analysis": True,
    "xla_cpu_experimental_ynn_fusion_type": "",
}
MOST_RANDOM_NUMBERS = 1 << 22  # in memory at a time


class Simulator(EarlyRounds):
    """The executor of a method on a graph of simulated nodes, wherever the layout has put them."""

    program: Any = staticmethod(run_rounds)
    early: Any = staticmethod(run_rounds)
    begin: Any = staticmethod(begin)
    starting_seconds = 0.0

    def __init__(
        self,
        problem: Any,
        graph: Graph,
        method: Method,
        seed: int,
        dtype: Any,
        layout: Layout | None = None,
        curvatures: Curvatures | None = None,
    ) -> None:
        if problem.stream is not None and not method.streams:
            raise MethodError(
                f"{describe(method)} needs a finite set of samples, this problem has a stream: "
                "use spd, or PrimalDual(SGD(batch=...))"
            )
        keep_programs()
        self.knowledge = whole_network(problem, graph, curvatures)
        prepared, weights = require_prepared(method, self.knowledge)
        self.eta = np.asarray(prepared.eta)
        self.method = jax.tree.map(lambda a: placed(a, dtype), prepared)
        self.problem, self.graph, self.dtype, self.weights = problem, graph, dtype, weights
        self.layout: Layout = OneDevice(problem, graph, dtype) if layout is None else layout
        self.network: Any
        self.block: Block
        self.own_method, self.network, self.block = self.layout.lay_out(self.method, weights)
        self.seed = seed_key(seed)
        self.message_bytes, self.body_bytes = traffic(
            self.method,
            problem.size,
            problem.loss.outputs,
            lambda numbers: numbers * np.dtype(dtype).itemsize,
        )
        self.edge_bytes: np.ndarray | None = None  # (2E,) of messages, where they differ
        if problem.couples:
            numbers = prepared.edge_numbers(problem.row_counts)  # type: ignore[attr-defined]
            self.edge_bytes = numbers * np.dtype(dtype).itemsize
            self.message_bytes = float(self.edge_bytes.mean()) if len(numbers) else 0.0
        self.stream: StreamSamples | None = None
        if problem.stream is not None:
            assert method.samples is not None  # as it streams
            self.stream = StreamSamples(problem, method.samples, seed, dtype)
        on_cpu = jax.default_backend() == "cpu"
        self.options = CPU_OPTIONS if on_cpu else {}
        self.unroll = 8
        if on_cpu:  # two spare copies of the state, but cost one of what is kept for each sample
            much_data = problem.shards.samples > 4 * problem.nodes * problem.size
            self.unroll = 1 if much_data or "each" in method.hears else 2

    @property
    def nodes(self) -> np.ndarray | None:
        return self.layout.nodes

    @property
    def edges(self) -> np.ndarray:
        return self.layout.edges

    def origin(self) -> np.ndarray:
        layout, every = self.layout, np.zeros((self.problem.nodes, self.problem.size))
        X, eta = (layout.place(layout.own(a)) for a in (every, self.eta))
        return np.asarray(layout.join(self.called(origin, self.block, X, eta)))

    def start(self, X: np.ndarray, duals: np.ndarray | None) -> Any:
        layout, D = self.layout, None
        if duals is not None and self.problem.couples:
            D = layout.place_edges(duals)
        elif duals is not None and "each" in self.method.hears:
            D = layout.place_edges(edge_duals(self.graph, duals))
        elif duals is not None:
            D = layout.place(layout.own(duals))
        args = self.own_method, self.block, layout.place(X), D
        early = self.by_numpy(self.begin, args)
        program = early or compiled(layout.program(self.begin), args, {})
        start = time.perf_counter()
        carry = jax.block_until_ready(program(*args))
        self.starting_seconds = time.perf_counter() - start
        return carry if early else copied(carry)  # donated later: no aliases

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        phases = len(self.method.phases)
        steps, spent, done = rounds // phases, 0.0, 0
        if early := self.early_steps(carry, first, steps):
            carry, spent = self.advance_early(carry, first, early)
            done = early
        if done < steps and is_numpy(carry):
            carry = copied(carry)
        size = self.steps_at_once(steps - done)
        while done < steps:
            now = min(size, steps - done)
            args = self.arguments(carry, first + phases * done, now)
            program = self.compiled_for(args, now)
            jax.block_until_ready(args[4:])
            start = time.perf_counter()
            carry = jax.block_until_ready(program(*args))
            spent += time.perf_counter() - start
            done += now
        return carry, spent

    def compile_ahead(self, carry: Any, rounds: int) -> None:
        """In a thread, beside whatever comes first."""
        steps = -(-rounds // len(self.method.phases))
        steps -= self.early_steps(carry, 0, steps)
        if steps == 0 or self.problem.stream is not None:
            return

        def compile_it() -> None:
            with jax.enable_x64(True), contextlib.suppress(Exception):  # raised again by `advance`
                now = self.steps_at_once(steps)
                self.compiled_for(self.arguments(carry, 0, now), now)

        threading.Thread(target=compile_it).start()

    def steps_at_once(self, steps: int) -> int:
        """So that the random bits of a program fit, and all programs but the last are alike."""
        per_step = len(self.method.phases) * max(self.numbers_per_round(), 1)
        pieces = -(-steps // max(1, MOST_RANDOM_NUMBERS // per_step))
        return -(-steps // max(pieces, 1))

    def compiled_for(self, args: tuple[Any, ...], steps: int) -> Any:
        program, unroll = self.layout.program(self.program), min(self.unroll, steps)
        return compiled(program, args, self.options, 3, unroll=unroll)

    def numbers_per_round(self) -> int:
        """To be held for a round ahead."""
        random_bits: int = self.block.ids.size * self.method.random_draws
        return random_bits * (1 if self.stream is None else self.problem.shards.features)

    def arguments(self, carry: Any, first: int, steps: int) -> tuple[Any, ...]:
        """Of the program that goes on for so many steps."""
        block, fresh = self.block, None
        if self.stream is not None:
            block, fresh = self.stream.block(block), self.stream.samples(first, steps)
        carry, random_bits = self.layout.place_carry(carry), self.random_bits(first, steps)
        return self.own_method, self.network, block, carry, random_bits, fresh

    def random_bits(self, first: int, steps: int) -> Array:
        """(steps, phases, v, draws), on each device where there are several."""
        shape = steps, len(self.method.phases), self.method.random_draws
        return self.layout.random_bits(self.seed, self.block.ids, first, *shape)

    def view(self, carry: Any) -> tuple[Any, Any]:
        known = self.own_method, self.network, self.block.links, self.layout.place_carry(carry)
        X, duals = self.called(view_models, *known, here=is_numpy(carry))
        return self.layout.join(X), self.layout.join(duals)

    def edge_report(self, carry: Any) -> EdgeReport:
        seen, layout = self.edge_view(carry), self.layout
        nodes = jax.tree.map(layout.join, seen.nodes)
        return EdgeReport(nodes, *map(layout.join_edges, seen[1:]))

    def edge_view(self, carry: Any) -> EdgeReport:
        """The same, as a program gives it back."""
        known = self.own_method, self.network, self.block, self.layout.place_carry(carry)
        made: EdgeReport = self.called(view_edges, *known, here=is_numpy(carry))
        return made

    def counts(self, carry: Any, rounds: int) -> Counts:
        memory = carry[0].memory
        calls = np.asarray(self.layout.join(memory.calls))
        values = getattr(memory, "evaluations", None)
        values = 0 * calls if values is None else np.asarray(self.layout.join(values))
        messages, size = self.sent(carry, rounds), self.bytes_sent(carry, rounds)
        return Counts(messages, size, self.bodies(carry), calls, values)

    def bodies(self, carry: Any) -> np.ndarray:
        """(v,) of news, that have gone over directed edges."""
        own, join = self.nodes, self.layout.join
        degrees = self.graph.degrees if own is None else self.graph.degrees[own]
        return bodies_gone(self.method.hears, carry, degrees, join)

    def sent(self, carry: Any, rounds: int) -> int:
        """Messages that have gone over directed edges."""
        return rounds * self.graph.arc_count

    def bytes_sent(self, carry: Any, rounds: int) -> float:
        """Of these messages, bodies of news apart."""
        return self.sent(carry, rounds) * self.message_bytes

    def evaluation_block(self) -> Block:
        return self.layout.evaluation_block(self.block.rows)


def describe(method: Method) -> str:
    parts = [type(method).__name__]
    if method.gradient is not None:
        parts.append(type(method.gradient).__name__)
    return "-".join(parts)

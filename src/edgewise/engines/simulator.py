"""All nodes in one process: the network is a gather, and many rounds are one compiled scan."""

import contextlib
import threading
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from edgewise.backend.cache import keep_programs
from edgewise.backend.programs import compiled
from edgewise.backend.random_bits import draw_bits
from edgewise.data.stream import StreamReader
from edgewise.engines.wires import Perfect, connect, edge_duals
from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.problem.block import Block, Links
from edgewise.problem.rows import Dense
from edgewise.running.evaluator import Gauge


def run_rounds(
    method: Method, network: Perfect, p: Block, carry: Any, noise: Array, fresh: Any, unroll: int
) -> Any:
    """noise (steps, phases, v, draws): a round per phase, many steps in one program. `fresh` holds
    (rows, labels) per step where samples come from a stream, else nothing."""

    p = p._replace(links=p.links.ready(method.hears))
    again = method.sends_state  # not carried twice: it would be copied every round

    def body(carry: Any, now: tuple[Array, Any]) -> tuple[Any, None]:
        random_bits, samples = now
        here = p if samples is None else p._replace(rows=samples[0], labels=samples[1])
        state, outbox = one_step(method, network, here, whole(*carry), random_bits)
        return (state, () if again else outbox), None

    def whole(state: Any, outbox: Any) -> Any:
        return state, tuple(getattr(state, name) for name in again) or outbox

    state, outbox = carry
    start = (state, () if again else outbox)
    return whole(*lax.scan(body, start, (noise, fresh), unroll=unroll)[0])


def one_step(method: Method, network: Perfect, p: Block, carry: Any, random_bits: Array) -> Any:
    """All phases of a step, each after a round of messages; random_bits (phases, v, w)."""
    state, outbox = carry
    for k, phase in enumerate(method.phases):
        inbox = network.deliver(method.hears, p.links, outbox)
        state, outbox = getattr(method, phase)(p, state, inbox, random_bits[k])
    return state, outbox


def begin(method: Method, p: Block, X: Array, duals: Array | None) -> Any:
    return method.init(p, X, duals)


# Carries would otherwise be copied every round (measured: 793 to 654 us at V=50, n=2000).
CPU_OPTIONS = {
    "xla_cpu_copy_insertion_use_region_analysis": True,
    "xla_cpu_experimental_ynn_fusion_type": "",
}
MOST_NOISE = 1 << 22  # random bits in memory at a time


class Simulator:
    """A method on a graph of simulated nodes."""

    program: Any = staticmethod(run_rounds)
    begin: Any = staticmethod(begin)

    def __init__(self, problem: Any, graph: Graph, method: Method, seed: int, dtype: Any) -> None:
        if problem.stream is not None and not method.streams:
            raise MethodError(
                f"{describe(method)} needs a finite set of samples, this problem has a stream: "
                "use spd, or PrimalDual(SGD(batch=...))"
            )
        keep_programs()
        prepared, weights = method.prepare(problem, graph)
        self.eta = np.asarray(prepared.eta)
        self.name = describe(method)
        self.method = jax.tree.map(lambda a: jnp.asarray(a, dtype), prepared)
        self.problem = problem
        self.graph, self.dtype = graph, dtype
        self.weights = weights
        self.lay_out(weights)
        self.seed = jax.random.key(seed)
        if problem.stream is not None:
            assert method.samples is not None  # as it streams
            self.stream_reader = StreamReader(problem.stream, method.samples, seed)
        on_cpu = jax.default_backend() == "cpu"
        self.options = CPU_OPTIONS if on_cpu else {}
        self.unroll = 8
        if on_cpu:  # two spare copies of the state, but cost one of what is kept for each sample
            much_data = problem.shards.samples > 4 * problem.nodes * problem.size
            self.unroll = 1 if much_data or "each" in method.hears else 2

    def lay_out(self, weights: dict[str, np.ndarray]) -> None:
        """Put the nodes' data, and the wires between them, where they are to be used."""
        self.network: Any
        links, self.network = connect(self.graph, weights, self.dtype)
        self.block: Block = self.problem.block(links, self.dtype)

    def origin(self) -> np.ndarray:
        """(V, n) where a run begins if nobody says otherwise: the prox of zero, so feasible."""
        zero = jnp.zeros((self.problem.nodes, self.problem.size), self.dtype)
        return np.asarray(self.block.penalty.prox(zero, jnp.asarray(self.eta, self.dtype)))

    def starting(self, X: np.ndarray, duals: np.ndarray | None) -> tuple[Any, ...]:
        """Arguments of `begin`."""
        D = None
        if duals is not None:
            per_edge = "each" in self.method.hears
            D = jnp.asarray(edge_duals(self.graph, duals) if per_edge else duals, self.dtype)
        return self.method, self.block, jnp.asarray(X, self.dtype), D

    def start(self, X: np.ndarray, duals: np.ndarray | None) -> Any:
        args = self.starting(X, duals)
        program = compiled(self.begin, args, {})
        start = time.perf_counter()
        carry = jax.block_until_ready(program(*args))
        self.starting_seconds = time.perf_counter() - start
        return jax.tree.map(lambda a: jnp.array(a, copy=True), carry)  # donated later: no aliases

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        """`rounds` rounds after the first `first`, and the seconds that they took."""
        phases = len(self.method.phases)
        steps, spent, done = rounds // phases, 0.0, 0
        size = self.steps_at_once(steps)
        while done < steps:
            now = min(size, steps - done)
            args = self.arguments(carry, first + phases * done, now)
            program = self.compiled_for(args, now)
            jax.block_until_ready(args[4])
            start = time.perf_counter()
            carry = jax.block_until_ready(program(*args))
            spent += time.perf_counter() - start
            done += now
        return carry, spent

    def foresee(self, carry: Any, rounds: int) -> None:
        """Compile what `advance` will run, beside whatever comes first."""
        steps = -(-rounds // len(self.method.phases))
        if steps == 0 or self.problem.stream is not None:
            return

        def compile_it() -> None:
            with jax.enable_x64(True), contextlib.suppress(Exception):  # raised again by `advance`
                now = self.steps_at_once(steps)
                self.compiled_for(self.arguments(carry, 0, now), now)

        threading.Thread(target=compile_it).start()

    def steps_at_once(self, steps: int) -> int:
        """So that the random bits of a program fit, and all programs but the last are alike."""
        per_step = len(self.method.phases) * max(self.noise_per_round(), 1)
        pieces = -(-steps // max(1, MOST_NOISE // per_step))
        return -(-steps // max(pieces, 1))

    def compiled_for(self, args: tuple[Any, ...], steps: int) -> Any:
        return compiled(self.program, args, self.options, 3, unroll=min(self.unroll, steps))

    def noise_per_round(self) -> int:
        """Numbers to be held for a round ahead."""
        random_bits: int = self.block.ids.size * self.method.random_draws
        return random_bits * (1 if self.problem.stream is None else self.problem.shards.features)

    def arguments(self, carry: Any, first: int, steps: int) -> tuple[Any, ...]:
        """Of the program that goes on for so many steps."""
        block, fresh = self.block, None
        if self.problem.stream is not None:
            block, fresh = self.next_samples(first, steps)
        return self.method, self.network, block, carry, self.random_bits(first, steps), fresh

    def random_bits(self, first: int, steps: int) -> Array:
        """(steps, phases, v, random_bits)"""
        phases = len(self.method.phases)
        at = first + jnp.arange(steps * phases)
        noise = draw_bits(self.seed, self.block.ids, at, self.method.random_draws)
        return noise.reshape(steps, phases, *noise.shape[1:])

    def sent(self, carry: Any, rounds: int) -> int:
        """Messages that have gone over directed edges."""
        return rounds * 2 * self.graph.edge_count

    def present(self, round: int) -> np.ndarray:
        """(V,) who took part in the last of so many rounds."""
        return np.ones(self.graph.nodes, bool)

    @property
    def message_bytes(self) -> float:
        """Of one vector."""
        return float(self.problem.size * self.dtype.itemsize)

    def view(self, carry: Any) -> tuple[Array, Array]:
        """(V, n) the nodes' models, and their duals."""
        return look(self.method, self.network, self.block.links, carry)

    def per_node(self, a: Any) -> np.ndarray:
        """(V, ...) an array of the carry."""
        return np.asarray(a)

    # --- what an engine that has some of the nodes only must ask the others ----------------------

    speaks = True  # to the user
    rank, ranks = 0, 1

    @property
    def residents(self) -> np.ndarray | None:
        """The nodes that a carry is of, row by row; None: it goes into a checkpoint as it is."""
        return np.arange(self.graph.nodes)

    def own(self, X: np.ndarray) -> np.ndarray:
        """Of numbers of all nodes those of the nodes that are here."""
        return X

    def of_all(self, a: np.ndarray) -> np.ndarray:
        """(V, ...) from numbers of the nodes that are here."""
        return a

    def gathered(self, X: np.ndarray) -> np.ndarray:
        """As `of_all`, for large arrays: where one speaks, others may keep what they have."""
        return X

    def mean(self, X: np.ndarray, here: np.ndarray) -> np.ndarray:
        """(n,) of the models of those present."""
        out: np.ndarray = X[here].mean(0)
        return out

    def agree(self, number: int) -> int:
        """The largest that anyone says."""
        return number

    def slowest(self, seconds: float) -> float:
        return seconds

    def gauge(self) -> Gauge:
        return Gauge(self.problem, self.graph, self.block.rows)

    # --- streams ---------------------------------------------------------------------------------

    def next_samples(self, first: int, steps: int) -> tuple[Block, Any]:
        """A block whose nodes hold one batch each, and the batches of the next `steps` steps."""
        nodes, batch = self.problem.nodes, self.stream_reader.batch
        X = np.empty((steps, nodes, batch, self.problem.shards.features), self.dtype)
        y = np.empty((steps, nodes, batch), self.dtype)
        for i in range(nodes):
            X[:, i], labels = self.stream_reader.take(i, first, steps)
            y[:, i] = self.problem.encode(labels)
        fresh = (
            Dense(jnp.asarray(X.reshape(steps, nodes * batch, -1)), batch),
            jnp.asarray(y.reshape(steps, -1)),
        )
        begin = jnp.arange(nodes, dtype=jnp.int64) * batch
        now = self.block._replace(
            first=begin, counts=jnp.full_like(begin, batch), rows=None, labels=None
        )
        return now, fresh


@jax.jit
def look(method: Method, network: Perfect, links: Links, carry: Any) -> tuple[Array, Array]:
    state, outbox = carry
    inbox = network.deliver(method.hears, links, outbox)
    return method.answer(state), method.duals(links, state, inbox, outbox)


def describe(method: Method) -> str:
    parts = [type(method).__name__]
    if method.gradient is not None:
        parts.append(type(method.gradient).__name__)
    return "-".join(parts)

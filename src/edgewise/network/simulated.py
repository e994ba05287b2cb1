"""All nodes in one process: the network is a gather, and many rounds are one compiled scan."""

from collections.abc import Callable
from typing import Any, NamedTuple

import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array, lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.random import threefry_2x32

from scipy.sparse.linalg import splu

from edgewise.block import Block, Links
from edgewise.graph import Graph

MOST_SLOTS = 64  # nodes with more neighbours than this are summed edge by edge


def solid(f: Callable[..., Array]) -> Callable[..., Array]:
    """f as a call that XLA may not inline: what goes in and comes out is computed once.

    Otherwise, on a CPU, every reader of a gathered sum would gather it again.
    """
    jitted = jax.jit(f)

    def call(*args: Any) -> Array:
        with set_xla_metadata(inlineable="false"):
            return jitted(*args)

    return call


@solid
def pull_slots(own: Array, neighbours: Array, weights: Array) -> Array:
    total = jnp.zeros_like(own)
    for s in range(neighbours.shape[1]):
        heard = own.at[neighbours[:, s]].get(mode="promise_in_bounds")
        total = total + weights[:, s, None] * (heard - own)
    return total


@solid
def pull_edges(own: Array, owner: Array, other: Array, weight: Array) -> Array:
    parts = weight[:, None] * (own[other] - own[owner])
    return jax.ops.segment_sum(parts, owner, own.shape[0], indices_are_sorted=True)


@solid
def swap(messages: Array, reverse: Array) -> Array:
    return messages.at[reverse].get(mode="promise_in_bounds")


class Perfect(NamedTuple):
    """Every message arrives, in order: nothing is kept between rounds."""

    other: Any  # (e,) the node at the far end
    reverse: Any  # (e,) the same edge the other way
    neighbours: Any  # (V, d) the far ends again, a padded row per node; None where that is wasteful

    def deliver(
        self, hears: tuple[str, ...], links: Links, outbox: tuple[Array, ...]
    ) -> tuple[Array, ...]:
        return tuple(self.one(k, links, sent) for k, sent in zip(hears, outbox, strict=True))

    def one(self, kind: str, links: Links, sent: Array) -> Array:
        if kind == "each":
            return swap(sent, self.reverse)
        weight = getattr(links, kind)
        if self.neighbours is None:
            return pull_edges(sent, links.owner, self.other, weight)
        padded = weight.at[links.slots].get(mode="fill", fill_value=0)
        return pull_slots(sent, self.neighbours, padded)


def connect(graph: Graph, weights: dict[str, np.ndarray], dtype: Any) -> tuple[Links, Perfect]:
    """The links and the wires of a whole graph; `weights` are per undirected edge."""
    d, V = graph.directed, graph.nodes
    widest = int(graph.degrees.max(initial=0))
    slots = neighbours = None
    if 0 < widest <= MOST_SLOTS:
        position = np.arange(len(d.owner)) - np.searchsorted(d.owner, d.owner)
        slots = np.full((V, widest), len(d.owner), np.int32)
        slots[d.owner, position] = np.arange(len(d.owner))
        neighbours = np.tile(np.arange(V, dtype=np.int32)[:, None], (1, widest))
        neighbours[d.owner, position] = d.other
    both = {k: np.asarray(w)[d.edge].astype(dtype) for k, w in weights.items()}
    rho = both.get("rho")
    total = None
    if rho is not None:
        total = np.bincount(d.owner, weights[  "rho"][d.edge], V).astype(dtype)[:, None]
    links = Links(d.owner.astype(np.int32), rho, both.get("mixing"), total, slots)
    wires = Perfect(d.other.astype(np.int32), d.reverse.astype(np.int32), neighbours)
    return jax.tree.map(jnp.asarray, (links, wires))  # type: ignore[no-any-return]


def draw(seed: Array, ids: Array, rounds: Array, words: int) -> Array:
    """(rounds, v, words) 32-bit words: a function of (seed, node id, round) alone, so that every
    engine draws the same."""
    i, r = jnp.broadcast_arrays(ids[None].astype(jnp.uint32), rounds[:, None].astype(jnp.uint32))
    halves: list[Array] = []
    for j in range(-(-words // 2)):
        key = jax.random.key_data(jax.random.fold_in(seed, j))
        halves.extend(threefry_2x32(key, jnp.stack([i, r])))
    if not halves:
        return jnp.zeros((*i.shape, 0), jnp.uint32)
    return jnp.stack(halves[:words], -1)


def run_rounds(
    method: Any, network: Perfect, p: Block, carry: Any, noise: Array, fresh: Any, unroll: int
) -> Any:
    """noise (steps, phases, v, words): a round per phase, many steps in one program. `fresh` holds
    (rows, labels) per step where samples come from a stream, else nothing."""

    def body(carry: Any, now: tuple[Array, Any]) -> tuple[Any, None]:
        words, samples = now
        here = p if samples is None else p._replace(rows=samples[0], labels=samples[1])
        state, outbox = carry
        for k, phase in enumerate(method.phases):
            inbox = network.deliver(method.hears, p.links, outbox)
            state, outbox = getattr(method, phase)(here, state, inbox, words[k])
        return (state, outbox), None

    return lax.scan(body, carry, (noise, fresh), unroll=unroll)[0]


# Carries would otherwise be copied every round (measured: 793 to 654 us at V=50, n=2000).
CPU_OPTIONS = {
    "xla_cpu_copy_insertion_use_region_analysis": True,
    "xla_cpu_experimental_ynn_fusion_type": "",
}
MOST_NOISE = 1 << 22  # random words in memory at a time
COMPILED: dict[Any, Any] = {}


def signature(args: Any) -> tuple[Any, ...]:
    leaves, tree = jax.tree.flatten(args)
    return tree, tuple((a.shape, a.dtype) for a in leaves)


def compiled(f: Any, args: tuple[Any, ...], unroll: int, options: dict[str, Any]) -> Any:
    """f compiled ahead for these arguments, so that compiling is never timed."""
    key = (f, unroll, signature(args))
    if key not in COMPILED:
        jitted = jax.jit(f, static_argnames="unroll", donate_argnums=3, compiler_options=options)
        COMPILED[key] = jitted.lower(*args, unroll=unroll).compile()
    return COMPILED[key]


class Simulator:
    """A method on a graph of simulated nodes."""

    def __init__(self, problem: Any, graph: Graph, method: Any, seed: int, dtype: Any) -> None:
        prepared, weights = method.prepare(problem, graph)
        links, self.network = connect(graph, weights, dtype)
        self.eta = np.asarray(prepared.eta)
        self.start_step = self.eta
        self.name = describe(method)
        self.method = jax.tree.map(lambda a: jnp.asarray(a, dtype), prepared)
        self.block: Block = problem.block(links, dtype)
        self.graph, self.dtype = graph, dtype
        self.seed = jax.random.key(seed)
        on_cpu = jax.default_backend() == "cpu"
        self.options = CPU_OPTIONS if on_cpu else {}
        self.unroll = (1 if "each" in method.hears else 2) if on_cpu else 8

    def start(self, X: np.ndarray, duals: np.ndarray | None) -> Any:
        D = None if duals is None else jnp.asarray(duals, self.dtype)
        if D is not None and "each" in self.method.hears:
            D = jnp.asarray(edge_duals(self.graph, duals), self.dtype)
        begin = jax.jit(lambda m, p, X, D: m.init(p, X, D))
        carry = begin(self.method, self.block, jnp.asarray(X, self.dtype), D)
        return jax.tree.map(lambda a: jnp.array(a, copy=True), carry)  # donated later: no aliases

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        """`rounds` rounds after the first `first`, and the seconds that they took."""
        phases = len(self.method.phases)
        words = self.method.words
        per_step = max(1, phases * self.block.ids.shape[0] * max(words, 1))
        most = max(1, MOST_NOISE // per_step)
        steps, spent, done = rounds // phases, 0.0, 0
        pieces = -(-steps // most)
        size = -(-steps // max(pieces, 1))
        while done < steps:
            now = min(size, steps - done)
            at = first + phases * done + jnp.arange(now * phases)
            noise = draw_words(self.seed, self.block.ids, at, words)
            noise = noise.reshape(now, phases, *noise.shape[1:])
            args = (self.method, self.network, self.block, carry, noise, None)
            program = compiled(run_rounds, args, min(self.unroll, now), self.options)
            jax.block_until_ready(noise)
            start = time.perf_counter()
            carry = jax.block_until_ready(program(*args))
            spent += time.perf_counter() - start
            done += now
        return carry, spent


draw_words = jax.jit(draw, static_argnums=3)


def describe(method: Any) -> str:
    parts = [type(method).__name__]
    if hasattr(method, "gradient"):
        parts.append(type(method.gradient).__name__)
    return "-".join(parts)


def edge_duals(graph: Graph, duals: np.ndarray) -> np.ndarray:
    """(2E, n) antisymmetric duals of least norm that add up to the given sums at every node: a
    flow, from the graph's Laplacian."""
    i, j = graph.edges.T
    E = len(i)
    incidence = sp.csr_array(
        (np.r_[np.ones(E), -np.ones(E)], (np.r_[i, j], np.r_[np.arange(E), np.arange(E)])),
        shape=(graph.nodes, E),
    )
    ground = (incidence @ incidence.T).tocsc()[1:, 1:]  # node 0 at potential zero
    potential = np.zeros_like(duals)
    if graph.nodes > 1:
        potential[1:] = splu(ground).solve(np.ascontiguousarray(duals[1:]))
    flow = incidence.T @ potential
    d = graph.directed
    return np.asarray(np.where(d.owner < d.other, 1.0, -1.0)[:, None] * flow[d.edge])

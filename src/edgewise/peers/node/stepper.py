"""What one peer computes: the same steps as everywhere else, over a block of one node."""

import secrets
from collections.abc import Sequence
from copy import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.programs import compiled
from edgewise.backend.random_bits import draw
from edgewise.data.arrays import aligned_empty
from edgewise.engines.simulator import CPU_OPTIONS as SIMULATED
from edgewise.engines.simulator import begin
from edgewise.engines.wires import ReceivedMessages, links_of
from edgewise.methods.contract import Method
from edgewise.methods.knowledge import neighbourhood
from edgewise.peers.transport.edge_facts import EdgeFacts, NodeFacts
from edgewise.problem.problem import Problem
from edgewise.running.measures import own_step

AHEAD = 256  # rounds that random bits are drawn for at once
SUMS_EVERY = 1000  # rounds after which sums that go on from step to step are taken anew
CPU_OPTIONS = SIMULATED | {
    "xla_cpu_copy_insertion_use_region_analysis": False,  # it breaks some methods for one node
    # parts of a step one after another in this thread: to wake another takes longer than they do
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}


def facts_of(problem: Problem, degree: int) -> NodeFacts:
    L = problem.smoothness
    smooth = (float(a[0]) for a in (L.sample, L.mean, L.intercept))
    return NodeFacts(degree, int(problem.counts[0]), *smooth)


def system_bits(draws: int) -> np.ndarray:
    """(1, draws) 32-bit numbers that nobody can draw again: neither from the seed, which neighbours
    know, nor from anything that is kept."""
    return np.frombuffer(secrets.token_bytes(4 * draws), np.uint32)[None]


def one_round(
    fixed: list[Array],
    carry: list[Array],
    random_bits: Array,
    heard: tuple[Array, ...],
    trees: Any,
    phase: str,
) -> list[Array]:
    """A phase of a step; heard is a vector per neighbour, of each kind that the method hears."""
    method, p = jax.tree.unflatten(trees[0], fixed)
    state, outbox = jax.tree.unflatten(trees[1], carry)
    inbox = ReceivedMessages(heard).deliver(method.hears, p.links, outbox)
    return jax.tree.leaves(getattr(method, phase)(p, state, inbox, random_bits))


def look(
    fixed: list[Array], carry: list[Array], heard: tuple[Array, ...], t: Array, trees: Any
) -> dict[str, Array]:
    """What a peer can tell by itself: above all how far it is from where it would stay."""
    method, p = jax.tree.unflatten(trees[0], fixed)
    state, outbox = jax.tree.unflatten(trees[1], carry)
    X = method.answer(state)
    inbox = ReceivedMessages(heard).deliver(method.hears, p.links, outbox)
    duals = method.duals(p.links, state, inbox, outbox)
    each = edge_duals(method, p, state, inbox, outbox)
    moved = own_step(p, X, duals, t)
    objective, ridge = p.values(X), p.ridge(X)
    return {
        "residual": jnp.linalg.norm(X - moved) / t[0, 0],
        "settled": moved[0],  # where it would go; zero where its own penalty holds it there
        "shrunk": p.penalty.prox(X, t)[0],  # where the penalty alone would take it
        "objective": (objective + p.penalty.value(X))[0],
        "loss": (objective - 0.5 * (X * ridge).sum(1))[0],  # of its data alone
        "data_pull": jnp.linalg.norm(p.full(X) + ridge),  # how hard they pull where the model is
        "calls": state.memory.calls[0],
        "edge_duals": each,
        "pulls": jnp.linalg.norm(each, axis=1),  # how hard each edge pulls at the model
        "radius": jnp.zeros(0) if p.links.radius is None else p.links.radius,
    }


def edge_duals(method: Any, p: Any, state: Any, inbox: Any, outbox: Any) -> Array:
    """(e, n) each edge's part of the sum of duals; (0, n) for methods whose edges have none."""
    if not set(method.hears) <= {"each", "news"}:
        return jnp.zeros((0, method.answer(state).shape[1]))
    edges = jnp.arange(len(p.links.owner))

    def of(edge: Array) -> Array:
        """With all other edges as if nothing went over them."""
        pairs = zip(method.hears, inbox, outbox, strict=True)
        alone = [
            i if kind == "news" else jnp.where((edges == edge)[:, None], i, o)
            for kind, i, o in pairs
        ]
        own: Array = method.duals(p.links, state, tuple(alone), outbox)[0]
        return own

    return jax.vmap(of)(edges)


def sum_anew(fixed: list[Array], carry: list[Array], trees: Any) -> list[Array]:
    """The carry, with its estimator's sums taken of their terms."""
    method, p = jax.tree.unflatten(trees[0], fixed)
    state, outbox = jax.tree.unflatten(trees[1], carry)
    state = state._replace(memory=method.gradient.summed_anew(p, state.memory))
    return jax.tree.leaves((state, outbox))


class Stepper:
    """A peer's part of the computation, among neighbours in a fixed order."""

    watch = staticmethod(look)

    def __init__(
        self, problem: Problem, id: int, method: Method, seed: int, dtype: Any, own: NodeFacts
    ) -> None:
        self.problem, self.dtype, self.rule, self.own = problem, dtype, method.healing(), own
        steps, _ = self.rule.prepare(neighbourhood(problem, own, []))
        self.method = jax.tree.map(lambda a: jnp.asarray(a, dtype), steps)
        self.step_length = jnp.full((1, 1), 1 / own.sample_smoothness)
        gradient = self.rule.gradient
        self.secret_draws = gradient is not None and gradient.secret_draws
        self.seed = jax.random.key(seed)
        self.noise, self.first_drawn = np.zeros(0), -1
        self.options = CPU_OPTIONS if jax.default_backend() == "cpu" else {}
        block = problem.block(None, dtype)
        self.block = block._replace(ids=jnp.array([id], jnp.int32))
        self.link([])

    def link(self, pairs: list[EdgeFacts]) -> None:
        known = [pair.weighed() for pair in pairs]
        _, weights = self.rule.prepare(neighbourhood(self.problem, self.own, known))
        d = len(pairs)
        links = links_of(np.zeros(d, np.int64), np.arange(d), 1, weights, self.dtype)
        self.block = self.block._replace(links=jax.tree.map(jnp.asarray, links))
        self.fixed, self.tree = jax.tree.flatten((self.method, self.block))
        self.programs: dict[str, Any] = {}  # by phase, and the one that looks
        sizes = self.method.message_sizes(self.problem.size, self.problem.loss.outputs)
        self.heard = tuple(
            aligned_empty((d, size), np.dtype(np.float32 if kind == "news" else self.dtype))
            for kind, size in zip(self.method.hears, sizes, strict=True)
        )

    def among(self, pairs: list[EdgeFacts], ends: Sequence[Any] = ()) -> "Stepper":
        """The same peer among these neighbours; ends: its own of the edges, where these carry
        couplings."""
        other = copy(self)
        other.link(pairs)
        return other

    def start(self, dual_noise: float = 0.0) -> Any:
        """(state, outbox) at the prox of zero, as everywhere."""
        zero = jnp.zeros((1, self.problem.size), self.dtype)
        X = self.block.penalty.prox(zero, self.method.eta)
        carry = jax.jit(begin)(self.method, self.block, X, self.noisy_duals(dual_noise))
        return jax.tree.map(lambda a: jnp.array(a, copy=True), carry)

    def noisy_duals(self, dual_noise: float) -> Array | None:
        """Duals to begin with: random, of this deviation. They are drawn from the system and not
        from the seed, which neighbours know."""
        if not dual_noise:
            return None
        size, rows = self.problem.size, range(len(self.block.links.owner))
        each = [np.random.default_rng().normal(size=size) for _ in rows]  # a seed for each
        return jnp.asarray(dual_noise * np.reshape(each, (len(each), size)), self.dtype)

    def regrouped(self, carry: Any, places: list[int | None], dual_noise: float) -> Any:
        """The carry of another group of neighbours, among these: messages to the n-th are those to
        the one that was at places[n]; to new ones they begin, and so does what the state has of
        edges. News are of the node, and stay. For methods that heal."""
        state, outbox = carry
        hears = self.method.hears
        old = [k for k in places if k is not None]
        new = np.array([n for n, k in enumerate(places) if k is None], int)
        kept = np.array([n for n, k in enumerate(places) if k is not None], int)

        # of edges alone, so that no pass over the data is compiled for what else begins
        def opening(*known: Any) -> Any:
            begun, messages = begin(*known)
            along = [f for kind, f in zip(hears, messages, strict=True) if kind != "news"]
            return along, getattr(begun, "edges", ())

        noisy = self.noisy_duals(dual_noise)
        along, edges = jax.jit(opening)(self.method, self.block, state.X, noisy)
        first = iter(along)

        def along_edges(o: Array, f: Array) -> Array:
            return jnp.zeros_like(f).at[kept].set(o[np.array(old, int)]).at[new].set(f[new])

        if hasattr(state, "edges"):
            state = state._replace(edges=jax.tree.map(along_edges, state.edges, edges))
        rows = zip(hears, outbox, strict=True)
        return state, tuple(
            o if kind == "news" else along_edges(o, next(first)) for kind, o in rows
        )

    def random_bits(self, round: int) -> np.ndarray:
        if self.secret_draws:
            return system_bits(self.method.random_draws)
        first = round - round % AHEAD
        if first != self.first_drawn:
            args = self.seed, self.block.ids, first + np.arange(AHEAD)
            draws = self.method.random_draws
            self.noise = np.asarray(compiled(draw, args, self.options, draws=draws)(*args))
            self.first_drawn = first
        drawn: np.ndarray = self.noise[round - first]
        return drawn

    def step(self, carry: Any, round: int, heard: tuple[np.ndarray, ...]) -> tuple[Any, Any]:
        """The carry after a round, and the vectors to send, as NumPy arrays.

        NumPy arrays go to the program as they are: where it can read them in place it does, and to
        make JAX's arrays of them first takes as long as a small step.
        """
        phases = self.method.phases
        if round and round % SUMS_EVERY == 0:  # of the round alone: a restart changes nothing
            carry = self.with_sums_anew(carry)
        leaves, form = jax.tree.flatten(carry)
        args = (self.fixed, leaves, self.random_bits(round), heard)
        phase = phases[round % len(phases)]
        if phase not in self.programs:
            trees = (self.tree, form)
            self.programs[phase] = compiled(one_round, args, self.options, trees=trees, phase=phase)
        state, outbox = jax.tree.unflatten(form, self.programs[phase](*args))
        return (state, outbox), tuple(np.asarray(a) for a in outbox)

    def with_sums_anew(self, carry: Any) -> Any:
        """What rounding, or damage, has left in sums that go on from step to step is gone."""
        if self.method.gradient is None or not self.method.gradient.carries_sums:
            return carry
        leaves, form = jax.tree.flatten(carry)
        args = (self.fixed, leaves)
        if "sums" not in self.programs:
            trees = (self.tree, form)
            self.programs["sums"] = compiled(sum_anew, args, self.options, trees=trees)
        return jax.tree.unflatten(form, self.programs["sums"](*args))

    def mended(self, carry: Any) -> tuple[Any, bool]:
        """The carry of a checkpoint, and whether its sums had to be taken anew: where they differ
        from those of their terms by more than rounding. Else it stays as it is, bit by bit."""
        anew = self.with_sums_anew(carry)
        was, now = (
            [a for a in jax.tree.leaves(c[0].memory) if np.issubdtype(a.dtype, np.floating)]
            for c in (carry, anew)
        )
        terms = max((float(np.abs(a).max(initial=0)) for a in now), default=0.0)
        entries = float(np.abs(np.asarray(self.block.rows.values)).max(initial=1))
        close = np.sqrt(np.finfo(self.dtype).eps) * terms * entries
        pairs = zip(was, now, strict=True)
        sound = all(np.allclose(a, b, rtol=0, atol=close) for a, b in pairs)
        return (carry, False) if sound else (anew, True)

    def gathered(
        self, messages: Sequence[np.ndarray], news: Sequence[Any] = ()
    ) -> tuple[np.ndarray, ...]:
        """What was heard, from (k, n) vectors of each neighbour and, where the method has some, the
        row of its news: good until the next is gathered. By then the program that reads it in place
        is done: its results have been waited for."""
        for place, message in enumerate(messages):
            vectors = iter(message)
            for kind, rows in zip(self.method.hears, self.heard, strict=True):
                rows[place] = news[place] if kind == "news" else next(vectors)
        return self.heard

    def outgoing(self, sent: Any, place: int) -> np.ndarray:
        """(k, n) for the neighbour at this place."""
        rows = [
            np.asarray(a)[place if kind == "each" else 0][None]
            for kind, a in zip(self.method.hears, sent, strict=True)
            if kind != "news"
        ]
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    def trimmed(self, multipliers: np.ndarray) -> list[np.ndarray]:
        """By neighbour; there are none where models are equal."""
        return []

    def outgoing_news(self, sent: Any) -> Any:
        """(w,) for all neighbours; nothing where the method has no news."""
        hears = self.method.hears
        return np.asarray(sent[hears.index("news")])[0] if "news" in hears else ()

    def look(self, carry: Any, heard: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
        leaves, form = jax.tree.flatten(carry)
        args = (self.fixed, leaves, heard, self.step_length)
        if "look" not in self.programs:
            trees = (self.tree, form)
            self.programs["look"] = compiled(self.watch, args, self.options, trees=trees)
        return {k: np.asarray(a) for k, a in self.programs["look"](*args).items()}

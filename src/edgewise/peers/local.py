"""What one peer computes: the same steps as everywhere else, over a block of one node."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.graph import Graph
from edgewise.methods.primal_dual import PrimalDual
from edgewise.network.wires import links_of
from edgewise.problem import Problem
from edgewise.programs import compiled
from edgewise.smoothness import Smoothness
from edgewise.words import draw_words

AHEAD = 256  # rounds that random words are drawn for at once


class Facts(NamedTuple):
    """What the two ends of an edge must know of each other to weigh it alike."""

    degree: int
    samples: int
    sample_smoothness: float
    mean_smoothness: float


class Around(Smoothness):
    """Of a peer and its neighbours, as they say."""

    def __init__(self, problem: Problem, facts: list[Facts]) -> None:
        super().__init__(problem)
        self.counts = np.array([f.samples for f in facts])
        self.nodes = len(facts)
        self.__dict__["sample"] = np.array([f.sample_smoothness for f in facts])
        self.__dict__["mean"] = np.array([f.mean_smoothness for f in facts])


class Seen:
    """A problem as methods ask about it when they choose their steps: a peer and its neighbours."""

    def __init__(self, problem: Problem, facts: list[Facts]) -> None:
        self.problem, self.nodes = problem, len(facts)
        self.smoothness = Around(problem, facts)
        self.same_penalty = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)


def at_a_peer(method: Any) -> Any:
    """The method in the form that heals."""
    return replace(method, form="edge") if isinstance(method, PrimalDual) else method


def facts_of(problem: Problem, degree: int) -> Facts:
    L = problem.smoothness
    return Facts(degree, int(problem.counts[0]), float(L.sample[0]), float(L.mean[0]))


def one_round(
    fixed: list[Array], carry: list[Array], heard: tuple[Array, ...], trees: Any, phase: str
) -> Any:
    """A phase of a step; heard is a vector per neighbour, of each kind that the method hears."""
    method, p = jax.tree.unflatten(trees[0], fixed)
    state, outbox = jax.tree.unflatten(trees[1], carry[:-1])
    inbox = received(method, p, outbox, heard)
    after = getattr(method, phase)(p, state, inbox, carry[-1])
    return jax.tree.leaves(after), after[1]


def received(method: Any, p: Any, outbox: Any, heard: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(
        h if kind == "each" else p.links.pull(kind, own, h)
        for kind, own, h in zip(method.hears, outbox, heard, strict=True)
    )


@jax.jit
def look(method: Any, p: Any, state: Any, outbox: Any, heard: Any, t: Array) -> dict[str, Array]:
    """What a peer can tell by itself: its model, and how far it is from where it would stay."""
    X = method.answer(state)
    duals = method.duals(p.links, state, received(method, p, outbox, heard), outbox)
    G = p.full(X) + p.ridge(X) - duals
    own = (X - p.penalty.prox(X - t * G, t)) / t
    return {
        "x": X[0],
        "residual": jnp.linalg.norm(own),
        "objective": (p.values(X) + p.penalty.value(X))[0],
        "calls": state.memory.calls[0],
    }


class Local:
    """A peer's part of the computation; its neighbours are numbered in the order of their ids."""

    def __init__(
        self, problem: Problem, id: int, method: Any, seed: int, dtype: Any, facts: list[Facts]
    ) -> None:
        """facts: the peer's own, then its neighbours'."""
        method = at_a_peer(method)
        degree = len(facts) - 1
        star = Graph.from_edges([(0, j) for j in range(1, degree + 1)], nodes=degree + 1)
        star.__dict__["degrees"] = np.array([f.degree for f in facts])
        prepared, weights = method.prepare(Seen(problem, facts), star)
        self.method = jax.tree.map(lambda a: jnp.asarray(a, dtype), prepared)
        self.method = jax.tree.map(lambda a: a[:1] if a.ndim else a, self.method)
        links = links_of(np.zeros(degree, np.int64), np.arange(degree), 1, weights, dtype)
        self.block = problem.block(jax.tree.map(jnp.asarray, links), dtype)
        self.block = self.block._replace(ids=jnp.array([id], jnp.int32))
        self.fixed, self.tree = jax.tree.flatten((self.method, self.block))
        self.problem, self.dtype, self.degree = problem, dtype, degree
        self.step_length = jnp.full((1, 1), 1 / facts[0].sample_smoothness)
        self.seed = jax.random.key(seed)
        self.noise, self.first = np.zeros(0), -1
        self.programs: dict[str, Any] = {}  # by phase

    def start(self) -> Any:
        """(state, outbox) at the prox of zero, as everywhere."""
        zero = jnp.zeros((1, self.problem.size), self.dtype)
        X = self.block.penalty.prox(zero, self.method.eta)
        carry = jax.jit(lambda m, p, X: m.init(p, X, None))(self.method, self.block, X)
        return jax.tree.map(lambda a: jnp.array(a, copy=True), carry)

    def words(self, round: int) -> np.ndarray:
        first = round - round % AHEAD
        if first != self.first:
            at = first + jnp.arange(AHEAD)
            self.noise = np.asarray(draw_words(self.seed, self.block.ids, at, self.method.words))
            self.first = first
        drawn: np.ndarray = self.noise[round - first]
        return drawn

    def step(self, carry: Any, round: int, heard: tuple[np.ndarray, ...]) -> tuple[Any, Any]:
        """The carry after a round, and the vectors to send, as NumPy arrays."""
        phases = self.method.phases
        leaves, form = jax.tree.flatten(carry)
        args = (
            self.fixed,
            [*leaves, jnp.asarray(self.words(round))],
            tuple(map(jnp.asarray, heard)),
        )
        phase = phases[round % len(phases)]
        if phase not in self.programs:
            trees = (self.tree, form)
            self.programs[phase] = compiled(one_round, args, {}, trees=trees, phase=phase)
        after, sent = self.programs[phase](*args)
        return jax.tree.unflatten(form, after), tuple(np.asarray(a) for a in sent)

    def outgoing(self, sent: Any, place: int) -> np.ndarray:
        """(k, n) for the neighbour at this place."""
        rows = [
            np.asarray(a)[place if kind == "each" else 0]
            for kind, a in zip(self.method.hears, sent, strict=True)
        ]
        return np.stack(rows)

    def look(self, carry: Any, heard: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
        state, outbox = carry
        seen = look(self.method, self.block, state, outbox, heard, self.step_length)
        return {k: np.asarray(a) for k, a in seen.items()}

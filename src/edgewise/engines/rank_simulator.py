"""Nodes spread over the ranks of an MPI job: each runs the same steps on a block of its own."""

import copy
import time
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.programs import compiled
from edgewise.engines.mpi import MPI, Post
from edgewise.engines.rank_share import Posted
from edgewise.engines.simulator import Simulator
from edgewise.engines.wires import edge_duals
from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.problem.block import Links
from edgewise.problem.smoothness import Smoothness
from edgewise.running.evaluator import Gauge
from edgewise.running.measures import Sight, measure


def one_round(
    fixed: list[Array], carry: list[Array], came: tuple[Array, ...], trees: Any, phase: str
) -> Any:
    """A phase of a step on what came from other ranks, and what they want of it. Leaves instead of
    trees: to take a tree apart costs more than some rounds do.

    fixed: method, wires and block. carry: state, outbox, random bits of many rounds, which is next.
    """
    method, wires, p = jax.tree.unflatten(trees[0], fixed)
    state, outbox, noise, at = jax.tree.unflatten(trees[1], carry)
    inbox = wires.deliver(method.hears, p.links, whole(method, state, outbox), came)
    state, sent = getattr(method, phase)(p, state, inbox, noise[at])
    again = method.sends_state
    after = (state, () if again else sent, noise, at + 1)
    return jax.tree.leaves(after), wires.leaving(method.hears, sent)


def whole(method: Method, state: Any, outbox: Any) -> Any:
    """The outbox; where it is a part of the state it is not carried twice."""
    return tuple(getattr(state, name) for name in method.sends_state) or outbox


@jax.jit
def leaving(method: Method, wires: Posted, outbox: Any) -> tuple[Array, ...]:
    return wires.leaving(method.hears, outbox)


@jax.jit
def look(method: Method, wires: Posted, links: Links, carry: Any, came: Any) -> tuple[Array, Array]:
    state, outbox = carry
    inbox = wires.deliver(method.hears, links, outbox, came)
    return method.answer(state), method.duals(links, state, inbox, outbox)


class RankSimulator(Simulator):
    """A rank's nodes, and its way to the others. What is said of all nodes is gathered."""

    def __init__(
        self, problem: Any, graph: Graph, method: Method, seed: int, dtype: Any, engine: MPI
    ) -> None:
        if problem.stream is not None:
            raise MethodError("MPI has no streams: split samples with `edgewise split`")
        self.engine, self.speaks = engine, engine.rank == 0
        self.rank, self.ranks = engine.rank, engine.ranks
        self.share, self.local = engine.part(problem, graph)
        seen = copy.copy(problem)  # what methods ask of a problem, without its data
        seen.smoothness = Smoothness(self.local, partial(engine.gather, self.share))
        super().__init__(seen, graph, method, seed, dtype)
        # It spares copies in a scan over rounds, which ranks have not. Where a rank had one node it
        # left out a copy that sdcs's own loop needed: models were off by 1e-6 (jax 0.10.2).
        self.options = {k: v for k, v in self.options.items() if "region_analysis" not in k}

    def lay_out(self, weights: dict[str, np.ndarray]) -> None:
        share = self.share
        self.own_method = jax.tree.map(lambda a: a[share.nodes] if a.ndim else a, self.method)
        self.network = share.wires()
        self.block = self.local.block(share.links(weights, self.dtype), self.dtype)
        kinds = {"each": share.messages}
        lists = [kinds.get(kind, share.vectors) for kind in self.method.hears]
        self.post = Post(self.engine, lists, self.problem.size, self.dtype)
        self.models = Post(self.engine, [share.vectors], self.problem.size, np.dtype(np.float64))

    def own(self, X: np.ndarray) -> np.ndarray:
        return X[self.share.nodes]

    def origin(self) -> np.ndarray:
        zero = jnp.zeros((len(self.share.nodes), self.problem.size), self.dtype)
        eta = jnp.asarray(self.own(self.eta), self.dtype)
        return np.asarray(self.block.penalty.prox(zero, eta))

    def starting(self, X: np.ndarray, duals: np.ndarray | None) -> tuple[Any, ...]:
        D = None
        if duals is not None and "each" in self.method.hears:
            D = jnp.asarray(edge_duals(self.graph, duals)[self.share.edges], self.dtype)
        elif duals is not None:
            D = jnp.asarray(self.own(duals), self.dtype)
        return self.own_method, self.block, jnp.asarray(X, self.dtype), D

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        phases, spent, done = self.method.phases, 0.0, 0
        most = self.steps_at_once(rounds // len(phases)) * len(phases)
        fixed, tree = jax.tree.flatten((self.own_method, self.network, self.block))
        again = self.method.sends_state
        state, outbox = carry
        while done < rounds:
            now = min(most, rounds - done)
            noise = self.random_bits(first + done, now // len(phases))
            noise = noise.reshape(now, *noise.shape[2:])
            packed = leaving(self.own_method, self.network, outbox)
            before = (state, () if again else outbox, noise, jnp.zeros((), jnp.int32))
            leaves, form = jax.tree.flatten(before)
            args, trees = (fixed, leaves, self.post.came), (tree, form)
            programs = [
                compiled(one_round, args, self.options, 1, trees=trees, phase=phase)
                for phase in phases
            ]
            jax.block_until_ready((leaves, packed))
            start = time.perf_counter()
            for r in range(now):
                came = self.post.exchange(packed)
                leaves, packed = programs[r % len(phases)](fixed, leaves, came)
            jax.block_until_ready(packed)
            spent += time.perf_counter() - start
            state, outbox, *_ = jax.tree.unflatten(form, leaves)
            outbox = whole(self.own_method, state, outbox)
            done += now
        return (state, outbox), spent

    def foresee(self, carry: Any, rounds: int) -> None:
        """Nothing: a rank has a core at most, and MPI one thread."""

    def view(self, carry: Any) -> tuple[Array, Array]:
        came = self.post.exchange(leaving(self.own_method, self.network, carry[1]))
        seen = look(self.own_method, self.network, self.block.links, carry, came)
        return jax.block_until_ready(seen)

    # --- of all ranks ----------------------------------------------------------------------------

    def per_node(self, a: Any) -> np.ndarray:
        return self.of_all(np.asarray(a))

    @property
    def residents(self) -> np.ndarray:
        return self.share.nodes

    def of_all(self, a: np.ndarray) -> np.ndarray:
        return self.engine.gather(self.share, a)

    def gathered(self, X: np.ndarray) -> np.ndarray:
        return self.engine.gather_at_first(self.share, X)

    def mean(self, X: np.ndarray, here: np.ndarray) -> np.ndarray:
        return self.engine.total({"X": X.sum(0)})["X"] / self.graph.nodes

    def agree(self, number: int) -> int:
        return int(self.engine.largest(number))

    def slowest(self, seconds: float) -> float:
        return self.engine.largest(seconds)

    def gauge(self) -> Gauge:
        return RankGauge(self)

    @property
    def bytes_between_ranks(self) -> float:
        """Of one round, all ranks together."""
        sent = self.engine.total({"vectors": self.post.vectors})["vectors"]
        return float(sent) * self.message_bytes

    def close(self) -> None:
        self.post.close()
        self.models.close()


class RankGauge(Gauge):
    """Adds up what ranks measure of their own nodes."""

    def __init__(self, rank: RankSimulator) -> None:
        super().__init__(rank.local, rank.graph, rank.block.rows)
        self.rank = rank

    def aim(self, star: Any) -> None:
        super().aim(star)
        if self.target is not None:
            own = self.rank.share.nodes
            self.target = self.target._replace(
                gradients=self.target.gradients[own], subgradients=self.target.subgradients[own]
            )

    def read(self, X: Array, duals: Array, round: int) -> dict[str, Array]:
        rank = self.rank
        (far,) = rank.models.exchange(leaving_models(rank.network.vectors, X))
        return measure(
            self.block,
            X,
            far,
            duals,
            self.target,
            self.sight,
            rank.problem.same_penalty,
            rank.engine.total,
        )

    @cached_property
    def sight(self) -> Sight:
        rank = self.rank
        L = rank.problem.smoothness.sample
        i, j = map(jnp.asarray, (rank.share.owner, rank.share.vectors.place))
        numbers = map(jnp.asarray, (0.5, rank.own(L), L.sum(), float(len(L))))
        return Sight(i, j, *numbers)


@jax.jit
def leaving_models(rows: Array, X: Array) -> tuple[Array]:
    return (X.at[rows].get(mode="promise_in_bounds"),)

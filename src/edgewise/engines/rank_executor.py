"""Nodes spread over the ranks of an MPI job: each runs the same steps on a block of its own."""

import time
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.programs import compiled
from edgewise.engines.layout import OneDevice
from edgewise.engines.placement import GraphPart
from edgewise.engines.rank_communicator import RankCommunicator, RankExchange
from edgewise.engines.simulator import Simulator, outbox_of, view_edges, view_models
from edgewise.engines.wires import RankWires, far_ends_by_slot, links_of, rows_sent, slots_of
from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.problem.block import Block, Links
from edgewise.problem.smoothness import Smoothness


def one_round(
    fixed: list[Array], carry: list[Array], came: tuple[Array, ...], trees: Any, phase: str
) -> Any:
    """A phase of a step on what came from other ranks, and what they want of it. Leaves instead of
    trees: to take a tree apart costs more than some rounds do.

    fixed: method, wires and block. carry: state, outbox, random bits of many rounds, which is next.
    """
    method, wires, p = jax.tree.unflatten(trees[0], fixed)
    state, outbox, random_bits, at = jax.tree.unflatten(trees[1], carry)
    here = replace(wires, arrived=came)
    inbox = here.deliver(method.hears, p.links, outbox_of(method, state, outbox))
    state, sent = getattr(method, phase)(p, state, inbox, random_bits[at])
    again = method.sends_state
    after = (state, () if again else sent, random_bits, at + 1)
    return jax.tree.leaves(after), wires.leaving(method.hears, sent)


@jax.jit
def leaving(method: Method, wires: RankWires, outbox: Any) -> tuple[Array, ...]:
    return wires.leaving(method.hears, outbox)


class RankLayout(OneDevice):
    """The nodes of one rank; `problem` has these alone."""

    def __init__(self, problem: Any, graph: Graph, dtype: Any, part: GraphPart) -> None:
        super().__init__(problem, graph, dtype)
        self.part = part

    @property
    def nodes(self) -> np.ndarray:
        return self.part.nodes

    def lay_out(self, method: Method, weights: dict[str, np.ndarray]) -> tuple[Any, Any, Block]:
        own_method = jax.tree.map(lambda a: a[self.nodes] if a.ndim else a, method)
        block: Block = self.problem.block(self.links(weights), self.dtype)
        return own_method, rank_wires(self.part), block

    def links(self, weights: dict[str, np.ndarray]) -> Links:
        """`weights` are per undirected edge, of the whole graph."""
        part = self.part
        edge = self.graph.directed.edge[part.edges]
        made = links_of(part.owner, edge, len(part.nodes), weights, self.dtype)
        return jax.tree.map(jnp.asarray, made)

    def own(self, a: Any) -> Any:
        return a[self.nodes]

    @property
    def edges(self) -> np.ndarray:
        return self.part.edges

    def place_edges(self, a: np.ndarray) -> Array:
        return jnp.asarray(a[self.part.edges], self.dtype)


def rank_wires(part: GraphPart) -> RankWires:
    other, reverse = (c.places(c.in_turn()) for c in (part.vectors, part.messages))
    slots = slots_of(part.owner, len(part.nodes))
    neighbours = None if slots is None else far_ends_by_slot(slots, other)
    made = RankWires(other, reverse, neighbours, part.vectors.leaving, part.messages.leaving)
    return jax.tree.map(jnp.asarray, made)


class RankExecutor(Simulator):
    """A rank's nodes: a program a round, and messages between ranks in between."""

    def __init__(
        self,
        problem: Any,
        graph: Graph,
        method: Method,
        seed: int,
        dtype: Any,
        communicator: RankCommunicator,
    ) -> None:
        if problem.stream is not None:
            raise MethodError("MPI has no streams: split samples with `edgewise split`")
        self.communicator, part = communicator, communicator.part
        curvatures = Smoothness(communicator.problem, communicator.gather)  # of all nodes
        layout = RankLayout(communicator.problem, graph, dtype, part)
        super().__init__(problem, graph, method, seed, dtype, layout, curvatures)
        # It spares copies in a scan over rounds, which ranks have not. Where a rank had one node it
        # left out a copy that sdcs's own loop needed: models were off by 1e-6 (jax 0.10.2).
        self.options = {k: v for k, v in self.options.items() if "region_analysis" not in k}
        crossings = [part.messages if k == "each" else part.vectors for k in self.method.hears]
        rows = rows_sent(self.method, problem.size, problem.loss.outputs, dtype)
        self.exchange = RankExchange(communicator.engine, crossings, rows)

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        phases, spent, done = self.method.phases, 0.0, 0
        most = self.steps_at_once(rounds // len(phases)) * len(phases)
        fixed, tree = jax.tree.flatten((self.own_method, self.network, self.block))
        again = self.method.sends_state
        state, outbox = carry
        while done < rounds:
            now = min(most, rounds - done)
            random_bits = self.random_bits(first + done, now // len(phases))
            random_bits = random_bits.reshape(now, *random_bits.shape[2:])
            packed = leaving(self.own_method, self.network, outbox)
            before = (state, () if again else outbox, random_bits, jnp.zeros((), jnp.int32))
            leaves, form = jax.tree.flatten(before)
            args, trees = (fixed, leaves, self.exchange.came), (tree, form)
            programs = [
                compiled(one_round, args, self.options, 1, trees=trees, phase=phase)
                for phase in phases
            ]
            jax.block_until_ready((leaves, packed))
            start = time.perf_counter()
            for r in range(now):
                came = self.exchange.swap(packed, whole=r == 0)  # a checkpoint has no news heard
                leaves, packed = programs[r % len(phases)](fixed, leaves, came)
            jax.block_until_ready(packed)
            spent += time.perf_counter() - start
            state, outbox, *_ = jax.tree.unflatten(form, leaves)
            outbox = outbox_of(self.own_method, state, outbox)
            done += now
        return (state, outbox), spent

    def compile_ahead(self, carry: Any, rounds: int) -> None:
        """Nothing: a rank has a core at most, and MPI one thread."""

    def view(self, carry: Any) -> tuple[Array, Array]:
        came = self.exchange.swap(leaving(self.own_method, self.network, carry[1]))
        wires = replace(self.network, arrived=came)
        seen = view_models(self.own_method, wires, self.block.links, carry)
        return jax.block_until_ready(seen)

    def edge_view(self, carry: Any) -> Any:
        came = self.exchange.swap(leaving(self.own_method, self.network, carry[1]))
        wires = replace(self.network, arrived=came)
        return jax.block_until_ready(view_edges(self.own_method, wires, self.block, carry))

    @property
    def bytes_between_ranks(self) -> float:
        """Of one round, all ranks together; bodies of news apart, where those go by themselves."""
        return float(self.communicator.total({"bytes": self.exchange.bytes})["bytes"])

    def close(self) -> None:
        self.exchange.close()

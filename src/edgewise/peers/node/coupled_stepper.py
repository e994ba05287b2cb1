"""What one peer computes where edges carry couplings: messages have each edge's own rows."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.data.arrays import aligned_empty
from edgewise.engines.wires import ReceivedMessages, links_of
from edgewise.methods.knowledge import neighbourhood
from edgewise.peers.node.stepper import Stepper
from edgewise.peers.transport.edge_facts import EdgeFacts
from edgewise.problem.edge_ends import End, edge_ends
from edgewise.problem.problem import in_dtype
from edgewise.running.coupled_run import node_sums, relative_residual


def look(
    fixed: list[Array], carry: list[Array], heard: tuple[Array, ...], t: Array, trees: Any
) -> dict[str, Array]:
    """What a run with couplings measures, of this node and half of each of its edges."""
    method, p = jax.tree.unflatten(trees[0], fixed)
    state, outbox = jax.tree.unflatten(trees[1], carry)
    X = method.answer(state)
    inbox = ReceivedMessages(heard).deliver(method.hears, p.links, outbox)
    report = method.edge_report(p, state, inbox)
    total = node_sums(p, X, report.nodes, jnp.ones(1, bool), t)
    G = p.full(X) + p.ridge(X)
    return {
        "residual": relative_residual(total),
        "violation": jnp.sqrt(total["violation"]),
        "settled": p.penalty.prox(X - t * (G + report.nodes["pull"]), t)[0],
        "shrunk": p.penalty.prox(X, t)[0],
        "objective": total["objective"] + total["price"],
        "calls": state.memory.calls[0],
        "multipliers": report.duals,
    }


class CoupledStepper(Stepper):
    """Its own ends of the edges are all that it has of them. Inside, all edges have as many rows
    as the one that has most, over the wire each has its own: `columns` says which those are."""

    rule: Any
    ends: list[End]
    columns: list[np.ndarray]  # by neighbour
    watch = staticmethod(look)

    def link(self, pairs: list[EdgeFacts], ends: Sequence[End] = ()) -> None:
        self.ends = list(ends)
        made = edge_ends(self.ends, self.problem.size)
        reach = np.array([[pair.own.reach, pair.other.reach] for pair in pairs]).reshape(-1, 2)
        self.rule = replace(self.rule, rows=made.width)
        prepared, weights = self.rule.prepare(neighbourhood(self.problem, self.own, pairs, reach))
        self.method = jax.tree.map(lambda a: jnp.asarray(a, self.dtype), prepared)
        d = len(pairs)
        links = links_of(np.zeros(d, np.int64), np.arange(d), 1, weights, self.dtype)
        self.block = self.block._replace(
            links=jax.tree.map(jnp.asarray, links), couplings=in_dtype(made, self.dtype)
        )
        self.fixed, self.tree = jax.tree.flatten((self.method, self.block))
        self.programs = {}
        (numbers,) = self.method.message_sizes(self.problem.size, 1)
        self.heard = (aligned_empty((d, numbers), self.dtype),)
        self.heard[0][:] = 0
        blocks = np.arange(0, numbers - 1, made.width)
        self.columns = [
            np.append((blocks[:, None] + np.arange(len(end.rows.c))).ravel(), numbers - 1)
            for end in self.ends
        ]

    def among(self, pairs: list[EdgeFacts], ends: Sequence[End] = ()) -> "CoupledStepper":
        other = copy(self)
        other.link(pairs, ends)
        return other

    def regrouped(self, carry: Any, places: list[int | None], dual_noise: float) -> Any:
        """What is of the node stays, its Hessian and its penalty's dual too, and of each edge that
        was there its duals, weights and what its ends have seen. What is made of all edges' weights
        together, `local`, is made anew with the next step: it begins from weights of zero."""
        state, _ = carry

        # of edges alone, so that no pass over the data is compiled for what else begins
        def opening(method: Any, p: Any, X: Array) -> Any:
            begun, _ = method.init(p, X, None)
            return begun.edges, begun.local

        edges, local = jax.jit(opening)(self.method, self.block, state.X)
        kept = np.array([n for n, k in enumerate(places) if k is not None], int)
        old = np.array([k for k in places if k is not None], int)

        def along_edges(o: Array, f: Array) -> Array:
            width = min(o.shape[1], f.shape[1])  # rows of the edge that has most may be others
            return f.at[kept, :].set(0).at[kept, :width].set(o[old, :width])

        edges = jax.tree.map(along_edges, state.edges, edges)
        edges = edges._replace(rho=jnp.zeros_like(edges.rho))
        state = state._replace(edges=edges, local=local)
        return state, jax.jit(outbox)(self.method, self.block, state)

    def gathered(
        self, messages: Sequence[np.ndarray], news: Sequence[Any] = ()
    ) -> tuple[np.ndarray, ...]:
        for place, message in enumerate(messages):
            self.heard[0][place, self.columns[place]] = message[0]
        return self.heard

    def outgoing(self, sent: Any, place: int) -> np.ndarray:
        return np.asarray(sent[0])[place, self.columns[place]][None]

    def trimmed(self, multipliers: np.ndarray) -> list[np.ndarray]:
        """Those of each edge's own rows."""
        rows = zip(multipliers, self.ends, strict=True)
        return [np.asarray(each[: len(end.rows.c)], np.float64) for each, end in rows]


def outbox(method: Any, p: Any, state: Any) -> Any:
    return (method.message(p.couplings, p.links.owner, state),)

"""Which rank of a cluster has which nodes, and what it must tell the ranks of their neighbours."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.engines.wires import by_slots, hear, links_of, slots_of
from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.problem.block import Links


class Lists(NamedTuple):
    """Nodes' vectors, or edges' messages, that cross over in a round."""

    send: Any  # (m,) rows of what the rank has, rank after rank
    to: list[tuple[int, int]]  # rank, how many
    come: list[tuple[int, int]]  # rank, how many
    place: np.ndarray  # where an edge finds its own, after what the rank has

    @property
    def coming(self) -> int:
        return sum(count for _, count in self.come)


class Posted(NamedTuple):
    """A rank's wires: far ends are rows of what it has, and of what came after that."""

    other: Any  # (e,) the node at the far end
    reverse: Any  # (e,) the same edge the other way
    neighbours: Any  # (v, d) the far ends again, a padded row per node, or None
    vectors: Any  # (m,) nodes whose vectors others want
    messages: Any  # (m,) edges whose messages others want

    def deliver(
        self,
        hears: tuple[str, ...],
        links: Links,
        outbox: tuple[Array, ...],
        came: tuple[Array, ...],
    ) -> tuple[Array, ...]:
        return tuple(
            hear(self, kind, links, sent, jnp.concatenate([sent, far]) if len(far) else sent)
            for kind, sent, far in zip(hears, outbox, came, strict=True)
        )

    def leaving(self, hears: tuple[str, ...], outbox: tuple[Array, ...]) -> tuple[Array, ...]:
        """What other ranks want of the outbox, in the order of their messages."""
        return tuple(
            sent.at[self.messages if kind == "each" else self.vectors].get(mode="promise_in_bounds")
            for kind, sent in zip(hears, outbox, strict=True)
        )


class Share:
    """The part of a graph that one rank has."""

    def __init__(self, graph: Graph, home: np.ndarray, rank: int) -> None:
        d = graph.directed
        self.graph = graph
        self.everybody = [np.flatnonzero(home == r) for r in range(int(home.max()) + 1)]
        self.nodes = self.everybody[rank]
        self.edges = np.flatnonzero(home[d.owner] == rank)
        self.owner = np.searchsorted(self.nodes, d.owner[self.edges]).astype(np.int32)
        owner, other, back = d.owner[self.edges], d.other[self.edges], d.reverse[self.edges]
        there = home[other]
        self.vectors = lists(rank, there, self.nodes, owner, other)
        self.messages = lists(rank, there, self.edges, self.edges, back)

    def links(self, weights: dict[str, np.ndarray], dtype: Any) -> Links:
        """`weights` are per undirected edge, of the whole graph."""
        edge = self.graph.directed.edge[self.edges]
        made = links_of(self.owner, edge, len(self.nodes), weights, dtype)
        return jax.tree.map(jnp.asarray, made)

    def wires(self) -> Posted:
        other = self.vectors.place.astype(np.int32)
        reverse = self.messages.place.astype(np.int32)
        slots = slots_of(self.owner, len(self.nodes))
        neighbours = None if slots is None else by_slots(slots, other)
        made = Posted(other, reverse, neighbours, self.vectors.send, self.messages.send)
        return jax.tree.map(jnp.asarray, made)


def lists(
    rank: int, there: np.ndarray, own: np.ndarray, given: np.ndarray, wanted: np.ndarray
) -> Lists:
    """For each edge that leaves the rank: the rank at its far end, what that one is given, and what
    is wanted from it. Both sides send in the order of the graph's numbers."""
    send, to, come = [], [], []
    known = [own]
    for other in np.unique(there[there != rank]):
        across = there == other
        leaving, coming = np.unique(given[across]), np.unique(wanted[across])
        send.append(np.searchsorted(own, leaving))
        known.append(coming)
        to.append((int(other), len(leaving)))
        come.append((int(other), len(coming)))
    every = np.concatenate(known)
    order = np.argsort(every)
    place = order[np.searchsorted(every, wanted, sorter=order)] if len(wanted) else wanted
    rows = np.concatenate(send) if send else np.zeros(0, np.int64)
    return Lists(rows.astype(np.int32), to, come, place)


def partition(how: Any, graph: Graph, counts: np.ndarray, ranks: int) -> np.ndarray:
    """(V,) the rank that has each node."""
    V = graph.nodes
    if ranks > V:
        raise MethodError(
            f"{ranks} ranks for {V} nodes: start at most {V}, as every rank has a node at least"
        )
    if not isinstance(how, str):
        home = np.asarray(how)
        if home.shape != (V,) or set(home.tolist()) != set(range(ranks)):
            raise MethodError(
                f"partition must give each of the {V} nodes one of the ranks 0 to {ranks - 1}, and "
                "every rank a node"
            )
        return home.astype(np.int64)
    if how not in ("metis", "contiguous"):
        raise MethodError(f'partition={how!r}: give "metis", "contiguous", or a rank per node')
    stretches = np.arange(V) * ranks // V
    if how == "contiguous" or ranks in (1, V):
        return stretches
    import pymetis

    d = graph.directed
    begin = np.searchsorted(d.owner, np.arange(V + 1))
    graph_rows = pymetis.CSRAdjacency(begin.tolist(), d.other.tolist())
    _, found = pymetis.part_graph(ranks, graph_rows, vweights=counts.tolist())
    home = np.asarray(found, np.int64)
    full = len(np.unique(home)) == ranks  # not so on some tiny graphs
    return home if full else stretches

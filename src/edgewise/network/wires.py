"""A graph as arrays: the links that nodes know, and the wires that only a simulator has."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array
from scipy.sparse.linalg import splu

from edgewise.block import Links
from edgewise.graph import Graph
from edgewise.solid import solid

MOST_SLOTS = 64  # nodes with more neighbours than this are summed edge by edge


@solid
def pull_slots(own: Array, pool: Array, neighbours: Array, weights: Array) -> Array:
    """(v, n) pulls; neighbours are rows of the pool."""
    total = jnp.zeros_like(own)
    for s in range(neighbours.shape[1]):
        heard = pool.at[neighbours[:, s]].get(mode="promise_in_bounds")
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
        return pull_slots(sent, sent, self.neighbours, links.row(kind))


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
        total = np.bincount(d.owner, weights["rho"][d.edge], V).astype(dtype)[:, None]
    links = Links(d.owner.astype(np.int32), rho, both.get("mixing"), total, slots)
    wires = Perfect(d.other.astype(np.int32), d.reverse.astype(np.int32), neighbours)
    return jax.tree.map(jnp.asarray, (links, wires))


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

"""A graph as arrays: the links that nodes know, and the wires that messages go over."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array

from edgewise.backend.no_inline import no_inline
from edgewise.backend.placed import placed
from edgewise.backend.pytree import pytree
from edgewise.graph.graph import Graph
from edgewise.methods.contract import UNWEIGHTED, Method
from edgewise.problem.block import Links

MOST_SLOTS = 64  # nodes with more neighbours than this are summed edge by edge
NEWS = np.dtype(np.float32)


@no_inline
def pull_slots(own: Array, pool: Array, neighbours: Array, weights: Array) -> Array:
    """(v, n) pulls; neighbours are rows of the pool."""
    total = jnp.zeros_like(own)
    for s in range(neighbours.shape[1]):
        heard = pool.at[neighbours[:, s]].get(mode="promise_in_bounds")
        total = total + weights[:, s, None] * (heard - own)
    return total


@no_inline
def pull_edges(own: Array, owner: Array, other: Array, weight: Array) -> Array:
    parts = weight[:, None] * (own[other] - own[owner])
    return jax.ops.segment_sum(parts, owner, own.shape[0], indices_are_sorted=True)


@no_inline
def swap(messages: Array, reverse: Array) -> Array:
    return messages.at[reverse].get(mode="promise_in_bounds")


@pytree()
class DirectWires:
    """Every message arrives, in order: nothing is kept between rounds. Far ends are rows of a pool,
    which begins with what was sent here; in one process that is all of it."""

    other: Any  # (e,) the node at the far end
    reverse: Any  # (e,) the same edge the other way
    neighbours: Any  # (V, d) the far ends again, a padded row per node; None where that is wasteful

    def deliver(
        self, hears: tuple[str, ...], links: Links, outbox: tuple[Array, ...]
    ) -> tuple[Array, ...]:
        return tuple(
            self.inbox(kind, links, sent, self.pool(place, kind, sent))
            for place, (kind, sent) in enumerate(zip(hears, outbox, strict=True))
        )

    def pool(self, place: int, kind: str, sent: Array) -> Array:
        """Own rows, then those that came from elsewhere, of the outbox's vector at this place."""
        return sent

    def inbox(self, kind: str, links: Links, sent: Array, pool: Array) -> Array:
        if kind == "each":
            return swap(pool, self.reverse)
        if kind == "news":
            return swap(pool, self.other)
        weight = getattr(links, kind)
        if self.neighbours is None:
            return pull_edges(pool, links.owner, self.other, weight)[: sent.shape[0]]
        return pull_slots(sent, pool, self.neighbours, links.row(kind))


@pytree()
class OneWayWires(DirectWires):
    """Some links go one way: nothing comes along the other."""

    heard: Any  # (e,) whether something comes from the far end

    def inbox(self, kind: str, links: Links, sent: Array, pool: Array) -> Array:
        return jnp.where(self.heard[:, None], super().inbox(kind, links, sent, pool), 0)


@pytree()
class RankWires(DirectWires):
    """A rank's wires: what came from other ranks has been put into them."""

    vectors: Any  # (m,) nodes whose vectors others want
    messages: Any  # (m,) edges whose messages others want
    arrived: Any = ()  # (m, n) rows from other ranks, for each vector of the outbox

    def pool(self, place: int, kind: str, sent: Array) -> Array:
        far = self.arrived[place]
        return jnp.concatenate([sent, far]) if len(far) else sent

    def leaving(self, hears: tuple[str, ...], outbox: tuple[Array, ...]) -> tuple[Array, ...]:
        """What other ranks want of the outbox, in the order of their messages."""
        return tuple(
            sent.at[self.messages if kind == "each" else self.vectors].get(mode="promise_in_bounds")
            for kind, sent in zip(hears, outbox, strict=True)
        )


class ReceivedMessages(NamedTuple):
    """Wires whose messages have come in one by one, and are kept edge by edge: a peer's, and those
    of a network with faults."""

    last: tuple[Any, ...]  # (e, n) the last one along each edge, for each vector of an outbox
    alive: Any = None  # (e,) whether an edge counts; None: all do

    def deliver(
        self, hears: tuple[str, ...], links: Links, outbox: tuple[Array, ...]
    ) -> tuple[Array, ...]:
        return tuple(
            self.present(h) if kind in UNWEIGHTED else links.pull(kind, own, h)
            for kind, own, h in zip(hears, outbox, self.last, strict=True)
        )

    def present(self, messages: Array) -> Array:
        return messages if self.alive is None else jnp.where(self.alive[:, None], messages, 0)


class RowSent(NamedTuple):
    """What a row of one of an outbox's vectors is."""

    numbers: int
    head: int  # numbers that go with every message: all, but of news
    type: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes."""
        return self.numbers * self.type.itemsize


def rows_sent(method: Method, size: int, outputs: int, dtype: Any) -> list[RowSent]:
    """For each vector of an outbox, with models of this size and outputs."""
    return [
        RowSent(numbers, method.news_head, NEWS)
        if kind == "news"
        else RowSent(numbers, numbers, np.dtype(dtype))
        for kind, numbers in zip(method.hears, method.message_sizes(size, outputs), strict=True)
    ]


def traffic(
    method: Method, size: int, outputs: int, vector_bytes: Callable[[int], float]
) -> tuple[float, float]:
    """Bytes of what goes along an edge with every message, and of a body of news; `vector_bytes`
    says what so many numbers of any other vector take."""
    message, body = 0.0, 0.0
    for kind, numbers in zip(method.hears, method.message_sizes(size, outputs), strict=True):
        if kind == "news":
            message += NEWS.itemsize * method.news_head
            body += NEWS.itemsize * (numbers - method.news_head)
        else:
            message += vector_bytes(numbers)
    return message, body


def bodies_gone(
    hears: tuple[str, ...],
    carry: Any,
    degrees: np.ndarray,
    join: Callable[[Array], Any] = lambda a: a,
) -> np.ndarray:
    """(..., v) bodies of news that have gone over edges: those in the outbox are still to go."""
    memory = carry[0].memory
    counted = hasattr(memory, "bodies")
    gone = np.asarray(join(memory.bodies if counted else memory.calls)) * int(counted)
    for kind, out in zip(hears, carry[1], strict=True):
        if kind == "news":
            gone = gone - degrees * (np.asarray(join(out[..., 0])) > 0)
    return gone


def connect(graph: Graph, weights: dict[str, np.ndarray], dtype: Any) -> tuple[Links, DirectWires]:
    """The links and the wires of a whole graph; `weights` are per undirected edge."""
    d = graph.directed
    links = links_of(d.owner, d.edge, graph.nodes, weights, dtype)
    neighbours = None if links.slots is None else far_ends_by_slot(links.slots, d.other)
    ends = d.other.astype(np.int32), d.reverse.astype(np.int32), neighbours
    wires = OneWayWires(*ends, graph.open[d.reverse]) if graph.one_way else DirectWires(*ends)
    return jax.tree.map(placed, (links, wires))


def links_of(
    owner: np.ndarray, edge: np.ndarray, nodes: int, weights: dict[str, np.ndarray], dtype: Any
) -> Links:
    """Of directed edges in the order of their owners, each one way of an undirected edge."""
    both = {k: np.asarray(w)[edge].astype(dtype) for k, w in weights.items()}
    total = None
    if "rho" in weights:
        total = np.bincount(owner, weights["rho"][edge], nodes).astype(dtype)[:, None]
    slots = slots_of(owner, nodes)
    made = Links(owner.astype(np.int32), both.get("rho"), both.get("mixing"), total, slots)
    return made._replace(intercept=both.get("intercept"), radius=both.get("radius"))


def slots_of(owner: np.ndarray, nodes: int) -> np.ndarray | None:
    """(nodes, d) the edges of each node, padded with their number; None where one has too many."""
    degrees = np.bincount(owner, minlength=nodes)
    widest = int(degrees.max(initial=0))
    if not 0 < widest <= MOST_SLOTS:
        return None
    slots = np.full((nodes, widest), len(owner), np.int32)
    number, first = np.arange(len(owner), dtype=np.int32), np.cumsum(degrees) - degrees
    slots[owner, number - first[owner]] = number
    return slots


def far_ends_by_slot(slots: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(nodes, d) the far ends, the node itself where it has no more."""
    ends = np.repeat(np.arange(len(slots), dtype=np.int32)[:, None], slots.shape[1], axis=1)
    live = slots < len(other)
    ends[live] = other[slots[live]]
    return ends


def edge_duals(graph: Graph, duals: np.ndarray) -> np.ndarray:
    """(2E, n) antisymmetric duals of least norm that add up to the given sums at every node: a
    flow, from the graph's Laplacian."""
    i, j = graph.edges.T
    E = len(i)
    incidence = sp.csr_array(
        (np.r_[np.ones(E), -np.ones(E)], (np.r_[i, j], np.r_[np.arange(E), np.arange(E)])),
        shape=(graph.nodes, E),
    )
    from scipy.sparse.linalg import splu

    ground = (incidence @ incidence.T).tocsc()[1:, 1:]  # node 0 at potential zero
    potential = np.zeros_like(duals)
    if graph.nodes > 1:
        potential[1:] = splu(ground).solve(np.ascontiguousarray(duals[1:]))
    flow = incidence.T @ potential
    d = graph.directed
    return np.asarray(np.where(d.owner < d.other, 1.0, -1.0)[:, None] * flow[d.edge])

"""The network: who may talk to whom."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgewise.errors import GraphError, whole_number
from edgewise.graph.pairs import Ints, rank, uniform_tree, unrank
from edgewise.plotting.displays import graph_html, shown
from edgewise.plotting.graphs import plot_graph

Floats = NDArray[np.float64]


class Directed(NamedTuple):
    """Both directions of every edge, sorted by (owner, other)."""

    owner: Ints
    other: Ints
    edge: Ints  # the row of Graph.edges it came from
    reverse: Ints  # the position of the opposite direction


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph on the nodes 0 .. nodes-1, with read-only arrays.

    `edges` holds each edge once, as a row (i, j) with i < j, in lexicographic order; `weights`
    holds one positive number per edge, which scales the edge's dual weight.

    >>> graph = Graph.grid(2, 3)
    >>> graph.degrees.tolist(), graph.neighbours(1).tolist()
    ([2, 3, 2, 2, 3, 2], [0, 2, 4])
    """

    nodes: int
    edges: Ints
    weights: Floats = None  # type: ignore[assignment]  # ones, once __post_init__ has run

    one_way: ClassVar[bool] = False  # whether some links are

    def __post_init__(self) -> None:
        nodes = _count("nodes", self.nodes)
        edges = _integer_pairs(self.edges)
        _check_ids(edges, nodes)
        if (edges[:, 0] > edges[:, 1]).any() or (np.diff(edges @ [nodes, 1]) <= 0).any():
            raise GraphError("edges repeat or are not sorted, i < j: use Graph.from_edges instead")
        weights = np.ones(len(edges)) if self.weights is None else _weights(self.weights, edges)
        edges.flags.writeable = weights.flags.writeable = False
        for name, value in (("nodes", nodes), ("edges", edges), ("weights", weights)):
            object.__setattr__(self, name, value)

    @classmethod
    def ring(cls, nodes: int) -> Self:
        """A cycle; two nodes share a single edge."""
        return cls.torus(1, _count("nodes", nodes))

    @classmethod
    def circulant(cls, nodes: int) -> Self:
        """Four neighbours each: a ring with chords of one length, that which makes the algebraic
        connectivity largest (the shortest such)."""
        nodes = _count("nodes", nodes, least=5)
        here, chords = np.arange(nodes), np.arange(2, (nodes + 1) // 2)
        waves = 2 * np.pi * np.arange(1, nodes)[:, None] / nodes
        slowest = (4 - 2 * np.cos(waves) - 2 * np.cos(waves * chords)).min(axis=0)
        chord = chords[np.flatnonzero(slowest > slowest.max() - 1e-9)[0]]
        pairs = [np.stack([here, (here + hop) % nodes], axis=1) for hop in (1, chord)]
        return cls.from_edges(np.concatenate(pairs), nodes)

    @classmethod
    def path(cls, nodes: int) -> Self:
        return cls.grid(1, _count("nodes", nodes))

    @classmethod
    def star(cls, nodes: int) -> Self:
        """Node 0 is joined to all others, which know only node 0."""
        leaves = np.arange(1, _count("nodes", nodes))
        return cls(nodes, np.stack([np.zeros_like(leaves), leaves], axis=1))

    @classmethod
    def complete(cls, nodes: int) -> Self:
        return cls(nodes, np.stack(np.triu_indices(_count("nodes", nodes), k=1), axis=1))

    @classmethod
    def grid(cls, rows: int, cols: int) -> Self:
        """A rectangle; the node in row r and column c is r * cols + c."""
        here = _lattice(rows, cols)
        down = np.stack([here[:-1].ravel(), here[1:].ravel()], axis=1)
        right = np.stack([here[:, :-1].ravel(), here[:, 1:].ravel()], axis=1)
        return cls.from_edges(np.concatenate([down, right]), here.size)

    @classmethod
    def torus(cls, rows: int, cols: int) -> Self:
        """A grid whose opposite sides are joined."""
        here = _lattice(rows, cols)
        steps = [np.stack([here, np.roll(here, -1, axis)], -1).reshape(-1, 2) for axis in (0, 1)]
        pairs = np.concatenate(steps)
        stays_put = pairs[:, 0] == pairs[:, 1]  # where a side has length one
        return cls.from_edges(pairs[~stays_put], here.size)

    @classmethod
    def small_world(
        cls, nodes: int, neighbours: int = 4, rewire: float = 0.1, seed: int = 0
    ) -> Self:
        """Watts and Strogatz: a ring of near neighbours with a share of the edges rewired, drawn
        again until it is connected."""
        nodes, neighbours = _count("nodes", nodes), _count("neighbours", neighbours)
        if neighbours % 2 or neighbours >= nodes or not 0 <= rewire <= 1:
            raise GraphError(
                f"no small world has {nodes} nodes, {neighbours} neighbours and rewire {rewire}: "
                f"give an even number of neighbours below nodes, and a rewire from 0 to 1"
            )
        import networkx as nx

        try:
            drawn = nx.connected_watts_strogatz_graph(
                nodes, neighbours, rewire, seed=_count("seed", seed, 0)
            )
        except nx.NetworkXError as error:
            raise GraphError(f"{error}: give more neighbours or a smaller rewire") from error
        return cls.from_networkx(drawn)

    @classmethod
    def random(cls, nodes: int, edges: int, seed: int = 0) -> Self:
        """Connected, with exactly that many edges: drawn uniformly from all such graphs, or, where
        three draws are not connected, a uniform spanning tree plus edges drawn from the rest."""
        nodes, edges = _count("nodes", nodes), _count("edges", edges, least=0)
        most = nodes * (nodes - 1) // 2
        if not nodes - 1 <= edges <= most:
            raise GraphError(f"{edges} edges cannot join {nodes} nodes: give {nodes - 1} to {most}")
        if edges == most:
            return cls.complete(nodes)
        rng = np.random.default_rng(_count("seed", seed, 0))
        for _ in range(3):
            ranks = rng.choice(most, edges, replace=False, shuffle=False)
            graph = cls(nodes, unrank(np.sort(ranks), nodes))
            if graph.degrees.min() > 0 and graph.connected:  # a node alone is quicker seen
                return graph
        tree = np.sort(rank(uniform_tree(nodes, rng), nodes))
        further = rng.choice(most - len(tree), edges - len(tree), replace=False, shuffle=False)
        further.sort()  # neighbours are looked up after each other, near each other
        # The r-th pair outside the tree is pair number r plus the tree's pairs that precede it.
        further += np.searchsorted(tree - np.arange(len(tree)), further, side="right")
        return cls(nodes, unrank(np.sort(np.concatenate([tree, further])), nodes))

    @classmethod
    def from_edges(
        cls, edges: Iterable[Any], nodes: int | None = None, weights: ArrayLike | None = None
    ) -> Self:
        """From pairs in any order and direction; a pair given twice is one edge. Without `nodes`
        there are as many as the largest id asks for."""
        pairs = _integer_pairs(edges)
        if nodes is None:
            if not len(pairs):
                raise GraphError("no edges and no number of nodes: give nodes=")
            nodes = int(pairs.max()) + 1
        _check_ids(pairs, _count("nodes", nodes))
        pairs = np.sort(pairs, axis=1)
        _, kept, of_kept = np.unique(pairs @ [nodes, 1], return_index=True, return_inverse=True)
        if weights is None:
            return cls(nodes, pairs[kept])
        given = _weights(weights, pairs)
        differs = given != given[kept][of_kept]
        if differs.any():
            i, j = pairs[differs][0]
            raise GraphError(f"edge ({i}, {j}) is given twice, with two weights: give one")
        return cls(nodes, pairs[kept], given[kept])

    @classmethod
    def from_networkx(cls, graph: Any, weight: str | None = None) -> Self:
        """Nodes are numbered in the graph's order; `weight` names an attribute of its edges."""
        if graph.is_directed():
            raise GraphError(
                "the networkx graph is directed: give graph.to_undirected(), or use DirectedGraph"
            )
        number = {node: i for i, node in enumerate(graph)}
        edges = [(number[a], number[b]) for a, b in graph.edges()]
        if weight is None:
            return cls.from_edges(edges, len(number))
        weights = [value for _, _, value in graph.edges(data=weight)]
        if None in weights:
            raise GraphError(f"an edge has no {weight!r}: set it on every edge, or omit weight")
        return cls.from_edges(edges, len(number), weights)

    def to_networkx(self) -> Any:
        """A networkx.Graph with the weights as the edge attribute "weight"."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(range(self.nodes))
        i, j = self.edges.T.tolist()
        graph.add_weighted_edges_from(zip(i, j, self.weights.tolist(), strict=True))
        return graph

    plot = plot_graph

    def __repr__(self) -> str:
        low, high = self.degrees.min(), self.degrees.max()
        degrees = f"degrees {low}-{high}" if low < high else f"degree {low}"
        return f"Graph({self.nodes} nodes, {self.edge_count} edges, {degrees})"

    @shown
    def _repr_html_(self) -> str:
        return graph_html(self)

    @property
    def edge_count(self) -> int:
        return len(self.edges)

    @property
    def arc_count(self) -> int:
        """How many messages a round is."""
        return 2 * self.edge_count

    @property
    def out_degrees(self) -> Ints:
        """How many nodes each can send to."""
        return self.degrees

    @property
    def open(self) -> NDArray[np.bool_]:
        """(2E,) which of `directed`'s edges carry messages."""
        return np.ones(self.arc_count, bool)

    @cached_property
    def degrees(self) -> Ints:
        return np.bincount(self.edges.ravel(), minlength=self.nodes)

    @cached_property
    def directed(self) -> Directed:
        i, j = self.edges.T
        number = np.arange(len(i))
        back = np.argsort(j, kind="stable")  # the edges by (j, i): they are sorted by (i, j)
        lower, upper = (np.bincount(end, minlength=self.nodes) for end in (j, i))
        # of a node first the edges to lower nodes, then those to higher ones
        lower_before, upper_before = np.cumsum(lower), np.cumsum(upper) - upper
        there, here = np.empty_like(number), number + lower_before[i]
        there[back] = number + upper_before[j[back]]
        owner, other, edge, reverse = (np.empty(2 * len(i), np.int64) for _ in range(4))
        for place, opposite, near, far in ((here, there, i, j), (there, here, j, i)):
            owner[place], other[place], edge[place], reverse[place] = near, far, number, opposite
        return Directed(owner, other, edge, reverse)

    def neighbours(self, node: int) -> Ints:
        """The nodes joined to this one, in increasing order."""
        if not 0 <= node < self.nodes:
            raise GraphError(f"there is no node {node}: give one from 0 to {self.nodes - 1}")
        start, end = np.searchsorted(self.directed.owner, [node, node + 1])
        return self.directed.other[start:end]

    @cached_property
    def _parts(self) -> tuple[int, NDArray[np.int32]]:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        present, shape = np.ones(self.edge_count, np.int8), (self.nodes, self.nodes)
        links = coo_array((present, tuple(self.edges.T)), shape=shape)
        count, part = connected_components(links, directed=False)
        return int(count), part

    @property
    def connected(self) -> bool:
        return self._parts[0] == 1

    def require_connected(self) -> None:
        """Raises GraphError unless connected."""
        if not self.connected:
            count, part = self._parts
            apart = int((part != part[0]).argmax())
            raise GraphError(
                f"the graph is in {count} parts: there is no path from node 0 to node {apart}; "
                f"add an edge such as (0, {apart}), or fit the parts one by one"
            )


def _count(name: str, value: int, least: int = 1) -> int:
    return whole_number(name, value, least, GraphError)


def _lattice(rows: int, cols: int) -> Ints:
    return np.arange(_count("rows", rows) * _count("cols", cols)).reshape(rows, cols)


def _integer_pairs(edges: Iterable[Any]) -> Ints:
    try:
        pairs = np.array(edges if isinstance(edges, np.ndarray) else list(edges))
    except (TypeError, ValueError):  # not iterable, or rows of different lengths
        pairs = np.empty(1)
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise GraphError("the edges are not pairs: give (i, j) for each, an array of shape (E, 2)")
    if pairs.dtype.kind not in "iu":
        raise GraphError(f"node ids are {pairs.dtype}, not integers: number the nodes from 0")
    return pairs.astype(np.int64)


def _check_ids(pairs: Ints, nodes: int) -> None:
    outside = (pairs < 0) | (pairs >= nodes)
    if outside.any():
        raise GraphError(
            f"there is no node {pairs[outside][0]} among {nodes} nodes: "
            f"give ids from 0 to {nodes - 1}, or a larger number of nodes"
        )
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        raise GraphError(f"an edge joins node {pairs[loops][0, 0]} to itself: leave it out")


def _weights(weights: ArrayLike, edges: Ints) -> Floats:
    try:
        checked = np.array(weights, np.float64)
    except (TypeError, ValueError):
        checked = np.empty(())
    if checked.shape != (len(edges),):
        raise GraphError(f"weights do not match the edges: give {len(edges)} numbers, one per edge")
    wrong = ~((checked > 0) & np.isfinite(checked))
    if wrong.any():
        (i, j), weight = edges[wrong][0], checked[wrong][0]
        raise GraphError(f"edge ({i}, {j}) has weight {weight}: give a positive, finite number")
    return checked

"""Links that go one way."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from edgewise.errors import GraphError, whole_number
from edgewise.graph.graph import Graph, _check_ids, _integer_pairs
from edgewise.graph.pairs import Ints


@dataclass(frozen=True, eq=False, repr=False)
class DirectedGraph(Graph):
    """Arcs (i, j): i can send to j, and j to i only if (j, i) is there too. `push-saga` and
    `push-diging` run on it; the other methods, whose links go both ways, refuse.

    `edges` holds each pair that is joined once, i < j, and `ways` which way: 1 from i to j alone,
    -1 from j to i alone, 0 both.

    >>> graph = DirectedGraph.from_arcs([(0, 1), (1, 2), (2, 0), (0, 2)])
    >>> graph, graph.out_degrees.tolist()
    (DirectedGraph(3 nodes, 4 arcs, 1 of 3 pairs both ways), [2, 1, 1])
    """

    ways: Ints = None  # type: ignore[assignment]  # zeros, once __post_init__ has run

    one_way: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        ways = np.zeros(self.edge_count, np.int64) if self.ways is None else np.array(self.ways)
        if ways.shape != (self.edge_count,) or not np.isin(ways, (-1, 0, 1)).all():
            raise GraphError("ways are not 1, -1 or 0 for each edge: use DirectedGraph.from_arcs")
        ways.flags.writeable = False
        object.__setattr__(self, "ways", ways)

    @classmethod
    def from_arcs(cls, arcs: Iterable[Any], nodes: int | None = None) -> Self:
        """From pairs (sender, receiver) in any order. Without `nodes` there are as many as the
        largest id asks for."""
        pairs = _integer_pairs(arcs)
        if nodes is None:
            if not len(pairs):
                raise GraphError("no arcs and no number of nodes: give nodes=")
            nodes = int(pairs.max()) + 1
        _check_ids(pairs, nodes)
        graph = Graph.from_edges(pairs, nodes)
        rank, sent = graph.edges @ [nodes, 1], pairs @ [nodes, 1]
        forth, back = np.isin(rank, sent), np.isin(graph.edges @ [1, nodes], sent)
        return cls(graph.nodes, graph.edges, ways=forth.astype(np.int64) - back)

    @classmethod
    def cycle(cls, nodes: int) -> Self:
        """Each sends to the next, the last to the first."""
        here = np.arange(whole_number("nodes", nodes, 2, GraphError))
        return cls.from_arcs(np.stack([here, (here + 1) % nodes], axis=1), nodes)

    @classmethod
    def random(cls, nodes: int, arcs: int, seed: int = 0) -> Self:
        """Strongly connected: a cycle through all nodes in random order, and arcs drawn from the
        rest."""
        V, most = whole_number("nodes", nodes, 2, GraphError), nodes * (nodes - 1)
        if not V <= whole_number("arcs", arcs, 0, GraphError) <= most:
            raise GraphError(f"{arcs} arcs cannot join {V} nodes both ways: give {V} to {most}")
        rng = np.random.default_rng(whole_number("seed", seed, 0, GraphError))
        order = rng.permutation(V)
        taken = order * V + np.roll(order, -1)
        ranks = np.setdiff1d(np.setdiff1d(np.arange(V * V), np.arange(V) * (V + 1)), taken)
        ranks = np.concatenate([taken, rng.choice(ranks, arcs - V, replace=False)])
        return cls.from_arcs(np.stack(np.divmod(ranks, V), axis=1), V)

    @classmethod
    def from_networkx(cls, graph: Any, weight: str | None = None) -> Self:
        """Nodes are numbered in the graph's order; an undirected graph goes both ways."""
        if weight is not None:
            raise GraphError("arcs have no weights here: leave weight out")
        number = {node: i for i, node in enumerate(graph)}
        arcs = [(number[a], number[b]) for a, b in graph.to_directed().edges()]
        return cls.from_arcs(arcs, len(number))

    def to_networkx(self) -> Any:
        """A networkx.DiGraph."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(range(self.nodes))
        graph.add_edges_from(self.arcs.tolist())
        return graph

    def __repr__(self) -> str:
        both = int((self.ways == 0).sum())
        return (
            f"DirectedGraph({self.nodes} nodes, {self.arc_count} arcs, "
            f"{both} of {self.edge_count} pairs both ways)"
        )

    @cached_property
    def open(self) -> NDArray[np.bool_]:
        """(2E,) which of `directed`'s edges carry messages."""
        d = self.directed
        ways = self.ways[d.edge]
        return np.asarray(np.where(d.owner < d.other, ways >= 0, ways <= 0))

    @property
    def arcs(self) -> Ints:
        """(A, 2) sender and receiver, in order."""
        d = self.directed
        return np.stack([d.owner, d.other], axis=1)[self.open]

    @property
    def arc_count(self) -> int:
        return int(self.open.sum())

    @cached_property
    def out_degrees(self) -> Ints:
        return np.bincount(self.arcs[:, 0], minlength=self.nodes)

    @property
    def connected(self) -> bool:
        """Whether all can reach all."""
        return not self._missing_path

    @cached_property
    def _missing_path(self) -> tuple[int, int] | tuple[()]:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import breadth_first_order

        arcs, shape = self.arcs.T, (self.nodes, self.nodes)
        for ends in (arcs, arcs[::-1]):
            there = coo_array((np.ones(len(ends[0])), tuple(ends)), shape=shape).tocsr()
            reached = breadth_first_order(there, 0, return_predecessors=False)
            beyond = np.setdiff1d(np.arange(self.nodes), reached)
            if len(beyond):
                return (0, int(beyond[0])) if ends is arcs else (int(beyond[0]), 0)
        return ()

    def require_connected(self) -> None:
        """Raises GraphError: who asks means links that go both ways."""
        raise GraphError(
            "this is a directed graph, and links have to go both ways here: only solve, compare "
            "and tune take one, with push-diging or push-saga; if messages do go both ways, give "
            "Graph.from_edges(graph.edges)"
        )

    def require_strongly_connected(self) -> None:
        """Raises GraphError unless all can reach all."""
        if self._missing_path:
            a, b = self._missing_path
            raise GraphError(
                f"nothing that node {a} says ever comes to node {b}: add arcs until every node can "
                f"reach every other, such as ({a}, {b})"
            )

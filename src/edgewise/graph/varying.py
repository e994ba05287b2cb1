"""A graph that changes from round to round."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from edgewise.errors import GraphError, whole_number
from edgewise.graph.graph import Graph


@dataclass(frozen=True, eq=False, repr=False)
class TimeVarying:
    """Graphs on the same nodes, one after another, each for `every` rounds, and again from the
    first. In a round nothing goes over a link that its graph does not have.

    No graph need be connected, only their `union`: a node steps with what it last heard from each
    neighbour there. The methods that heal stay exact where links are drawn at random; by fixed
    turns pdmm and lt-saga-pd do, see docs/faults.md. `solve`, `compare`, `tune` and `sum_over` take
    it as a graph.

    >>> ring = Graph.ring(6)
    >>> TimeVarying([Graph.from_edges(ring.edges[k::2], 6) for k in (0, 1)], every=5)
    TimeVarying(2 graphs on 6 nodes, every=5, 6 links in all, 3-3 at a time)
    """

    graphs: Any
    every: int = 1

    def __post_init__(self) -> None:
        given = list(self.graphs) if isinstance(self.graphs, Iterable) else [self.graphs]
        if not given or not all(type(g) is Graph for g in given):
            raise GraphError(f"graphs={self.graphs!r}: give a list of Graph, undirected")
        sizes = sorted({g.nodes for g in given})
        if len(sizes) > 1:
            raise GraphError(f"graphs of {sizes[0]} and {sizes[-1]} nodes: give the same nodes")
        whole_number("every", self.every, 1, GraphError)
        object.__setattr__(self, "graphs", tuple(given))

    @classmethod
    def random(cls, graph: Graph, part: float, length: int = 1000, seed: int = 0) -> Self:
        """Every link of the graph is there with this probability, drawn anew for each of `length`
        rounds, after which they come again."""
        if not (isinstance(part, int | float | np.number) and 0 < part <= 1):
            raise GraphError(f"part={part!r}: give a part of one")
        rounds = whole_number("length", length, 1, GraphError)
        rng = np.random.default_rng(whole_number("seed", seed, 0, GraphError))
        on = rng.random((rounds, graph.edge_count)) < part
        on[rng.integers(rounds, size=graph.edge_count), np.arange(graph.edge_count)] = True
        return cls([Graph(graph.nodes, graph.edges[row], graph.weights[row]) for row in on])

    @classmethod
    def matchings(cls, graph: Graph, every: int = 1) -> Self:
        """Every node talks to one neighbour at a time: the links are coloured, greedily, so that no
        two of a colour meet, and colours take turns."""
        used: list[set[int]] = [set() for _ in range(graph.nodes)]
        colour = np.zeros(graph.edge_count, int)
        for at, (i, j) in enumerate(graph.edges.tolist()):
            taken = used[i] | used[j]
            colour[at] = next(c for c in range(len(taken) + 1) if c not in taken)
            used[i].add(int(colour[at]))
            used[j].add(int(colour[at]))
        rows = [colour == c for c in range(colour.max(initial=0) + 1)]
        parts = [Graph(graph.nodes, graph.edges[row], graph.weights[row]) for row in rows]
        return cls(parts, every)

    @property
    def nodes(self) -> int:
        return int(self.graphs[0].nodes)

    @cached_property
    def union(self) -> Graph:
        """All links that are ever there."""
        pairs = np.concatenate([g.edges for g in self.graphs])
        weights = np.concatenate([g.weights for g in self.graphs])
        return Graph.from_edges(pairs, self.nodes, weights)

    @cached_property
    def on(self) -> NDArray[np.bool_]:
        """(graphs, links of the union) which of them each graph has."""
        rank = self.union.edges @ [self.nodes, 1]
        return np.array([np.isin(rank, g.edges @ [self.nodes, 1]) for g in self.graphs])

    def __repr__(self) -> str:
        links = [g.edge_count for g in self.graphs]
        return (
            f"TimeVarying({len(links)} graphs on {self.nodes} nodes, every={self.every}, "
            f"{self.union.edge_count} links in all, {min(links)}-{max(links)} at a time)"
        )

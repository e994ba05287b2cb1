"""Graphs from text: `ring`, or a file of edges."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import GraphError, UnknownName
from edgewise.graph.graph import Graph


class GraphSize(NamedTuple):
    """What some kinds of graph take besides the number of nodes."""

    edges: int | None = None  # of random; 2.5 a node
    rows: int | None = None  # of grid and torus; as square as can be
    cols: int | None = None
    neighbours: int = 4  # of small-world, before rewiring
    rewire: float = 0.1


GRAPHS: dict[str, Callable[[int, GraphSize, int], Graph]] = {
    "ring": lambda nodes, size, seed: Graph.ring(nodes),
    "circulant": lambda nodes, size, seed: Graph.circulant(nodes),
    "path": lambda nodes, size, seed: Graph.path(nodes),
    "star": lambda nodes, size, seed: Graph.star(nodes),
    "complete": lambda nodes, size, seed: Graph.complete(nodes),
    "grid": lambda nodes, size, seed: Graph.grid(*sides(nodes, size)),
    "torus": lambda nodes, size, seed: Graph.torus(*sides(nodes, size)),
    "random": lambda nodes, size, seed: Graph.random(nodes, edge_count(nodes, size), seed),
    "small-world": lambda nodes, size, seed: Graph.small_world(
        nodes, size.neighbours, size.rewire, seed
    ),
}


def graph_of(given: Any, nodes: int) -> Any:
    """A graph as it is, or from its text."""
    return graph(given, nodes, 0) if isinstance(given, str) else given


def graph(text: str, nodes: int, seed: int, size: GraphSize = GraphSize()) -> Graph:  # noqa: B008
    """Of a kind, or of a text file with two node numbers a line."""
    if text in GRAPHS:
        return GRAPHS[text](nodes, size, seed)
    if not Path(text).is_file():
        raise UnknownName("graph", text, [*GRAPHS, "a file of edges"])
    try:
        pairs = np.loadtxt(text, dtype=np.int64, ndmin=2, delimiter=None)
    except ValueError as problem:
        raise GraphError(f"{text}: {problem}; give two node numbers a line") from None
    read = Graph.from_edges(pairs)
    if read.nodes != nodes:
        raise GraphError(
            f"{text} has {read.nodes} nodes and the data are split over {nodes}: "
            f"give --nodes {read.nodes}, or other edges"
        )
    return read


def edge_count(nodes: int, size: GraphSize) -> int:
    most = nodes * (nodes - 1) // 2
    return min(5 * nodes // 2, most) if size.edges is None else size.edges


def sides(nodes: int, size: GraphSize) -> tuple[int, int]:
    if size.rows is None and size.cols is None:
        rows = max(r for r in range(1, int(nodes**0.5) + 1) if nodes % r == 0)
        return rows, nodes // rows
    rows = nodes // max(size.cols or 1, 1) if size.rows is None else size.rows
    return rows, nodes // max(rows, 1) if size.cols is None else size.cols

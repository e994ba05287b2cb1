"""Which part of a machine, a device or a rank, has which nodes, and what parts must tell each
other."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import MethodError
from edgewise.graph.graph import Graph


class Crossing(NamedTuple):
    """What goes between one part and the others in a round: nodes' vectors, or edges' messages, by
    their numbers in the graph. Both sides send in the order of these numbers."""

    own: np.ndarray  # those that are here, in order
    send: dict[int, np.ndarray]  # by the other part: rows of `own` that it wants
    receive: dict[int, np.ndarray]  # by the other part: those of it that are wanted here
    wanted: np.ndarray  # (e,) the one that each edge wants, from here or elsewhere

    @property
    def leaving(self) -> np.ndarray:
        """(m,) rows of `own` that go elsewhere, part after part."""
        return np.concatenate([np.zeros(0, np.int32), *self.send.values()])

    @property
    def received(self) -> int:
        return sum(map(len, self.receive.values()))

    def places(self, begin: dict[int, int]) -> np.ndarray:
        """(e,) the row of a pool in which each edge finds what it wants. The pool starts with
        `own`; what comes from another part starts at the row `begin` says."""
        known = [self.own, *self.receive.values()]
        firsts = [0, *(begin[other] for other in self.receive)]
        items = np.concatenate(known)
        rows = np.concatenate([f + np.arange(len(k)) for f, k in zip(firsts, known, strict=True)])
        order = np.argsort(items)
        at = order[np.searchsorted(items, self.wanted, sorter=order)]
        return rows[at].astype(np.int32)

    def in_turn(self) -> dict[int, int]:
        """Where parts' rows begin if they follow on `own` one after another, without gaps."""
        sizes = [len(self.own), *map(len, self.receive.values())]
        return dict(zip(self.receive, np.cumsum(sizes).tolist(), strict=False))


class GraphPart:
    """The nodes that one device or rank has, their directed edges, and what crosses over."""

    def __init__(self, graph: Graph, home: np.ndarray, part: int) -> None:
        d = graph.directed
        self.nodes = np.flatnonzero(home == part)
        self.edges = np.flatnonzero(home[d.owner] == part)
        owner, other, back = d.owner[self.edges], d.other[self.edges], d.reverse[self.edges]
        self.owner = np.searchsorted(self.nodes, owner).astype(np.int32)
        there = home[other]
        self.vectors = crossing(part, there, self.nodes, owner, other)
        self.messages = crossing(part, there, self.edges, self.edges, back)


class Placement:
    """All parts of a graph; `home` (V,) is the part that has each node."""

    def __init__(self, graph: Graph, home: np.ndarray) -> None:
        self.graph, self.home = graph, home

    @cached_property
    def nodes(self) -> list[np.ndarray]:
        """The nodes of each part."""
        return [np.flatnonzero(self.home == part) for part in range(int(self.home.max()) + 1)]

    def part(self, k: int) -> GraphPart:
        return GraphPart(self.graph, self.home, k)


def crossing(
    part: int, there: np.ndarray, own: np.ndarray, given: np.ndarray, wanted: np.ndarray
) -> Crossing:
    """For each edge of a part: the part at its far end, what that one is given, and what is wanted
    from it."""
    send, receive = {}, {}
    for other in np.unique(there[there != part]).tolist():
        across = there == other
        send[other] = np.searchsorted(own, np.unique(given[across])).astype(np.int32)
        receive[other] = np.unique(wanted[across])
    return Crossing(own, send, receive, wanted)


def contiguous(nodes: int, parts: int) -> np.ndarray:
    """(V,) equal stretches, one after another."""
    cuts = np.arange(parts + 1) * nodes // parts
    return np.repeat(np.arange(parts), np.diff(cuts))


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
    if how == "contiguous" or ranks in (1, V):
        return contiguous(V, ranks)
    import pymetis

    d = graph.directed
    begin = np.searchsorted(d.owner, np.arange(V + 1))
    graph_rows = pymetis.CSRAdjacency(begin.tolist(), d.other.tolist())
    _, found = pymetis.part_graph(ranks, graph_rows, vweights=counts.tolist())
    home = np.asarray(found, np.int64)
    full = len(np.unique(home)) == ranks  # not so on some tiny graphs
    return home if full else contiguous(V, ranks)

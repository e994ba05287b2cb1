"""A problem on a graph whose edges carry couplings."""

from functools import cached_property
from typing import Any

import jax
import numpy as np

from edgewise.errors import GraphError, ProblemError
from edgewise.graph.graph import Graph
from edgewise.problem.between import edge_rows
from edgewise.problem.block import Block, Links
from edgewise.problem.couplings import Coupling, Rows, dense
from edgewise.problem.edge_ends import EdgeEnds, End, edge_ends
from edgewise.problem.problem import Problem, in_dtype


class CoupledProblem(Problem):
    """The same nodes, with what holds between neighbours."""

    couples = True

    graph: Graph
    edge_rows: list[Rows]  # of the graph's edges, A of the lower end

    def __init__(self, problem: Problem, graph: Graph, between: Any) -> None:
        self.__dict__.update(problem.__dict__)
        self.graph = graph
        self.edge_rows = edge_rows(between, graph, problem.sizes)
        norms = [[norm(rows.A), norm(rows.B)] for rows in self.edge_rows]
        self.reach = np.array(norms).reshape(-1, 2)

    def ends_of(self, edges: Any, size: int) -> EdgeEnds:
        """Of these directed edges, with models of that size."""
        d, made = self.graph.directed, []
        for k in edges:
            rows = self.edge_rows[d.edge[k]]
            lower = d.owner[k] < d.other[k]
            made.append(End(rows.A, rows, 1.0) if lower else End(rows.B, rows, -1.0))
        return edge_ends(made, size)

    @cached_property
    def ends(self) -> EdgeEnds:
        """Of the directed edges that leave the problem's nodes."""
        return self.ends_of(range(len(self.graph.directed.owner)), self.size)

    def group(
        self, nodes: np.ndarray, edges: np.ndarray, links: Links, dtype: Any
    ) -> tuple[Block, int]:
        """A block of some nodes and the edges that leave them, whose couplings are of models as
        long as the longest of these; and how long that is."""
        size = int(self.sizes[nodes].max())
        block = Problem.only(self, nodes).block(links, dtype)
        return block._replace(couplings=in_dtype(self.ends_of(edges, size), dtype)), size

    def only(self, nodes: Any) -> "CoupledProblem":
        """Of some nodes, in order, with the edges that leave them."""
        made = object.__new__(CoupledProblem)
        made.__dict__.update(super().only(nodes).__dict__)
        made.graph, made.edge_rows, made.reach = self.graph, self.edge_rows, self.reach
        leaving = np.isin(self.graph.directed.owner, nodes)
        made.ends = jax.tree.map(lambda a: a[leaving], self.ends)
        return made

    @property
    def rows(self) -> int:
        """Of the edge that has most."""
        return max((len(rows.c) for rows in self.edge_rows), default=1)

    @property
    def row_counts(self) -> np.ndarray:
        """(2E,) rows of each directed edge of the graph."""
        return np.array([len(r.c) for r in self.edge_rows], int)[self.graph.directed.edge]

    @property
    def has_data(self) -> bool:
        return self.cost is None or bool(self.cost.lossy.any())

    def block(self, links: Links | None, dtype: Any, rows: Any = None) -> Block:
        made = self.nodes_block(links, dtype, rows)
        if links is None:  # where nobody speaks
            return made
        return made._replace(couplings=in_dtype(self.ends, dtype))

    def nodes_block(self, links: Links | None, dtype: Any, rows: Any = None) -> Block:
        """Without what is on the edges."""
        return super().block(links, dtype, rows)

    def models(self, X: np.ndarray) -> list[np.ndarray]:
        """(V, n) as each node has it."""
        return [x[:size] for x, size in zip(np.asarray(X), self.sizes, strict=True)]

    def multipliers(self, duals: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
        """(2E, m) duals of directed edges -> those of each edge's own rows."""
        d, made = self.graph.directed, {}
        for k in np.flatnonzero(d.owner < d.other):
            i, j, e = int(d.owner[k]), int(d.other[k]), int(d.edge[k])
            made[i, j] = duals[k, : len(self.edge_rows[e].c)]
        return made


def couple(problem: Any, graph: Any, between: Any) -> CoupledProblem:
    """The problem on its graph, with what a user said of the edges; refuses what does not fit."""
    if not isinstance(problem, Problem):
        raise ProblemError(f"{problem!r} is no Problem: solve(problem, graph, ...) in this order")
    if not isinstance(graph, Graph):
        raise GraphError(f"{graph!r} is no Graph: use Graph.random(...) or Graph.from_edges(...)")
    if graph.one_way:
        graph.require_connected()
    if graph.nodes != problem.nodes:
        raise ProblemError(f"the graph has {graph.nodes} nodes, the problem {problem.nodes}")
    if problem.intercept:
        raise ProblemError("couplings go with no intercept: add a column of ones instead")
    if problem.loss.outputs != 1:
        name = type(problem.loss).__name__
        raise ProblemError(
            f"couplings go with losses of one output, and {name} has {problem.loss.outputs}: fit "
            "one class against the others, with Logistic"
        )
    if problem.stream is not None:
        raise ProblemError("couplings go with finite data, and this is a stream: give shards")
    return CoupledProblem(problem, graph, Coupling() if between is None else between)


def norm(A: Any) -> float:
    """How far a matrix reaches; 1 for one of zeros, which weighs nothing."""
    return float(np.linalg.norm(dense(A), 2)) or 1.0

"""A problem on a graph whose edges carry couplings."""

from typing import Any

import numpy as np

from edgewise.graph.graph import Graph
from edgewise.problem.between import edge_rows
from edgewise.problem.block import Block, Links
from edgewise.problem.couplings import dense
from edgewise.problem.edge_ends import EdgeEnds, edge_ends
from edgewise.problem.problem import Problem, in_dtype


class CoupledProblem(Problem):
    """The same nodes, with what holds between neighbours."""

    def __init__(self, problem: Problem, graph: Graph, between: Any) -> None:
        self.__dict__.update(problem.__dict__)
        self.graph = graph
        self.edge_rows = edge_rows(between, graph, problem.sizes)
        self.ends: EdgeEnds = edge_ends(self.edge_rows, graph, problem.size)
        norms = [[np.linalg.norm(dense(M), 2) for M in (r.A, r.B)] for r in self.edge_rows]
        reach = np.array(norms).reshape(-1, 2)
        self.reach = np.where(reach > 0, reach, 1.0)

    @property
    def rows(self) -> int:
        """Of the edge that has most."""
        return self.ends.width

    @property
    def has_data(self) -> bool:
        return self.cost is None or bool(self.cost.lossy.any())

    def block(self, links: Links | None, dtype: Any, rows: Any = None) -> Block:
        made = super().block(links, dtype, rows)
        return made._replace(couplings=in_dtype(self.ends, dtype))

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

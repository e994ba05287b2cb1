"""What nodes know when they choose their steps: of themselves, of their neighbours, and, where
somebody sees it, of the whole network."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.problem.contract import Curvatures
from edgewise.problem.smoothness import ReportedSmoothness

if TYPE_CHECKING:
    from edgewise.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Network:
    """What only somebody knows who sees all nodes: an engine that has them, and no peer."""

    graph: Graph
    curvatures: Curvatures  # of all V nodes
    same_penalty: bool  # whether every node has the same h_i


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Facts of k nodes: a block's own, and those at the far ends of its edges, as they tell.

    Both ends of an edge know the same of it, so that both come to the same weight by themselves.
    An end may be here twice, as it is and as it was when the edge came about: the weight of an edge
    stays, whoever else joins its ends. Where the network is known, node i is row i, and the edges
    are all of the graph's, in its order.
    """

    curvatures: Curvatures  # of the k nodes
    degrees: np.ndarray  # (k,)
    own: np.ndarray  # (v,) which of them are the block's, row by row
    edges: np.ndarray  # (m, 2) the two ends of each edge, rows of the k
    edge_weights: np.ndarray  # (m,) the user's, 1 where there are none
    strong_convexity: float  # of every f_i: the ridge, or 0 where an intercept is outside of it
    network: Network | None = None
    reach: np.ndarray | None = None  # (m, 2) norms of the ends' coupling matrices; None: identities

    def whole(self, need: str, instead: str) -> Network:
        """The network; raises MethodError, with what is needed, where nobody here sees it."""
        if self.network is None:
            raise MethodError(f"{need}, which no peer knows: {instead}")
        return self.network


def whole_network(
    problem: "Problem", graph: Graph, curvatures: Curvatures | None = None
) -> Knowledge:
    """Of an engine that sees all nodes, as one block. `curvatures`, of all nodes too, for one that
    has the samples of some only; default: the problem's."""
    curvatures = problem.smoothness if curvatures is None else curvatures
    return Knowledge(
        curvatures,
        graph.degrees,
        np.arange(graph.nodes),
        graph.edges,
        graph.weights,
        0.0 if problem.intercept else float(problem.loss.ridge),
        Network(graph, curvatures, problem.same_penalty),
        problem.reach,
    )


# degree, samples, L of one sample, L of the mean loss, and that along an intercept; and, of an end,
# whatever else was told
Facts = tuple[Any, ...]


def neighbourhood(
    problem: "Problem",
    own: Facts,
    edges: Sequence[tuple[Facts, Facts]],
    reach: np.ndarray | None = None,
) -> Knowledge:
    """Of one node, whose problem this is. An edge is what its two ends told each other when it
    came about, the own end first."""
    facts = [own, *(end for edge in edges for end in edge)]
    columns = zip(*(known[:5] for known in facts), strict=True)
    degrees, counts, sample, mean, intercept = map(np.array, columns)
    ridge = float(problem.loss.ridge)
    saturates = bool(getattr(problem.loss, "saturates", False))
    return Knowledge(
        ReportedSmoothness(counts, sample, mean, intercept, ridge, problem.size, saturates),
        degrees,
        np.zeros(1, np.int64),
        1 + np.arange(2 * len(edges)).reshape(-1, 2),
        np.ones(len(edges)),
        0.0 if problem.intercept else ridge,
        reach=reach,
    )

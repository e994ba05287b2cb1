"""Mixing weights: what the methods that average with their neighbours need, and the primal-dual
ones do not.

A weight w_ij = w_ji per edge stands for the matrix W = I - sum_e w_e (e_i - e_j)(e_i - e_j)^T,
which is symmetric with rows that add up to one, whatever the weights.
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse as sp

from edgewise.errors import GraphError, UnknownName
from edgewise.graph.graph import Graph

DENSE_NODES = 500  # up to here eigenvalues come from the whole matrix
LANCZOS_RESTARTS = 200


class KnownEdges(Protocol):
    """A graph, or what a node knows of its own edges."""

    @property
    def edges(self) -> np.ndarray:
        """(m, 2) the two ends of each."""

    @property
    def degrees(self) -> np.ndarray:
        """Of the ends, by the same numbers."""


def metropolis(graph: KnownEdges) -> np.ndarray:
    """1 / (1 + the larger degree of the two ends): each edge knows it by itself."""
    return 1 / (1 + larger_degree(graph))


def lazy_metropolis(graph: KnownEdges) -> np.ndarray:
    """Half of Metropolis: W is positive definite, as EXTRA's and D2's analyses want it."""
    return metropolis(graph) / 2


def max_degree(graph: Graph) -> np.ndarray:
    """1 / (1 + the largest degree of all), the same everywhere."""
    return np.full(graph.edge_count, 1 / (1 + graph.degrees.max(initial=0)))


def best_constant(graph: Graph) -> np.ndarray:
    """2 / (largest + second smallest eigenvalue of the Laplacian): the best of all equal weights
    (Xiao, Boyd 2004)."""
    if not graph.edge_count:
        return np.zeros(0)
    return np.full(graph.edge_count, 2 / sum(laplacian_range(graph)))


def laplacian_range(graph: Graph) -> tuple[float, float]:
    """The second smallest eigenvalue of the Laplacian, and the largest."""
    L = laplacian(graph, np.ones(graph.edge_count))
    return float(smallest_eigenvalues(L)[1]), float(largest_eigenvalue(L))


def larger_degree(graph: KnownEdges) -> np.ndarray:
    i, j = graph.edges.T
    return np.maximum(graph.degrees[i], graph.degrees[j])


def laplacian(graph: Graph, weights: np.ndarray) -> Any:
    i, j = graph.edges.T
    ends, others = np.r_[i, j], np.r_[j, i]
    both = np.r_[weights, weights]
    shape = (graph.nodes, graph.nodes)
    diagonal = np.bincount(ends, both, graph.nodes).astype(np.float64)  # integers if no edges
    return sp.diags_array(diagonal).tocsr() - sp.csr_array((both, (ends, others)), shape=shape)


LOCAL_RULES: dict[str, Callable[[KnownEdges], np.ndarray]] = {  # for the ends of an edge alone
    "metropolis": metropolis,
    "lazy-metropolis": lazy_metropolis,
}
RULES: dict[str, Callable[[Graph], np.ndarray]] = {
    **LOCAL_RULES,
    "max-degree": max_degree,
    "best-constant": best_constant,
}


def mixing_weights(mixing: Any, graph: Graph) -> np.ndarray:
    """(E,) weights from a rule's name, or from a (V, V) matrix that fits the graph."""
    if isinstance(mixing, str):
        if mixing not in RULES:
            raise UnknownName("mixing rule", mixing, RULES)
        return RULES[mixing](graph)
    return edge_weights(mixing, graph)


def edge_weights(W: Any, graph: Graph) -> np.ndarray:
    """The weights of a mixing matrix, after a check that it is one and that it fits the graph."""
    V = graph.nodes
    if not sp.issparse(W):
        W = np.asarray(W)
        if W.ndim == 0:
            raise GraphError(f"mixing={W.item()!r}: give a rule's name, or a ({V}, {V}) matrix")
    if W.dtype.kind not in "biuf":
        raise GraphError("the mixing matrix has entries that are no real numbers")
    W = sp.coo_array(W, dtype=np.float64)
    if W.shape != (V, V):
        raise GraphError(f"the mixing matrix has shape {W.shape}: give ({V}, {V})")
    if not np.isfinite(W.data).all():
        raise GraphError("the mixing matrix has entries that are not finite")
    C = W.tocsr()
    if abs(C - C.T).max() > 1e-10:
        raise GraphError("the mixing matrix is not symmetric: w_ij and w_ji must be the same")
    sums = np.asarray(C.sum(axis=1)).ravel()
    if np.abs(sums - 1).max() > 1e-8:
        row = int(np.argmax(np.abs(sums - 1)))
        raise GraphError(
            f"row {row} of the mixing matrix adds up to {sums[row]:.6g}: make it doubly stochastic"
        )
    i, j = graph.edges.T
    dense_edges = set(zip(i.tolist(), j.tolist(), strict=True))
    for a, b, w in zip(W.row.tolist(), W.col.tolist(), W.data.tolist(), strict=True):
        if a < b and w != 0 and (a, b) not in dense_edges:
            raise GraphError(f"the mixing matrix joins nodes {a} and {b}, the graph does not")
    weights = np.asarray(C[i, j]).ravel() if len(i) else np.zeros(0)
    if V > 1 and second_largest(C) >= 1 - 1e-12:
        raise GraphError("the mixing matrix does not mix: its second eigenvalue is not below one")
    return weights


def second_largest(W: Any) -> float:
    """The largest modulus of an eigenvalue, but for the one of the all-ones vector."""
    L = sp.eye_array(W.shape[0], format="csr") - W
    low = smallest_eigenvalues(L)
    rest = low[np.argmax(np.abs(low))]  # the other is the zero of the all-ones vector, or inside
    return float(max(abs(1 - rest), abs(1 - largest_eigenvalue(L))))


def contraction(graph: Graph, weights: np.ndarray) -> float:
    """How much of a disagreement is left after a round, at worst: `second_largest` of W."""
    W = sp.eye_array(graph.nodes, format="csr") - laplacian(graph, weights)
    return second_largest(W) if graph.nodes > 1 else 0.0


def smallest_eigenvalues(L: Any) -> np.ndarray:
    """(2,) of a symmetric matrix, in order."""
    return np.sort(at_one_end(L, 2, "SA"))


def largest_eigenvalue(L: Any) -> float:
    return float(at_one_end(L, 1, "LA")[0])


def at_one_end(L: Any, count: int, end: Literal["SA", "LA"]) -> np.ndarray:
    """The `count` smallest ("SA") or largest ("LA") eigenvalues. On a graph that mixes fast a few
    Lanczos steps find them. On one that does not, such as a long path, they lie too close for that;
    but then the factors of L, shifted past its end, are sparse."""
    if L.shape[0] <= DENSE_NODES:
        values = np.linalg.eigvalsh(L.toarray())
        return values[:count] if end == "SA" else values[-count:]
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    try:
        return eigsh(L, count, which=end, maxiter=LANCZOS_RESTARTS, return_eigenvectors=False)
    except ArpackNoConvergence:
        diagonal, reach = L.diagonal(), abs(L).sum(axis=1)
        around = reach - abs(diagonal)  # Gershgorin: no eigenvalue is beyond diagonal +- around
        past = (diagonal - around).min() if end == "SA" else (diagonal + around).max()
        shift = past + (-1 if end == "SA" else 1) * 1e-6 * reach.max()
        return eigsh(L.tocsc(), count, sigma=shift, return_eigenvectors=False)

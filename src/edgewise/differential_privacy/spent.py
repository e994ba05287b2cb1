"""What a run has spent of a budget, and to whom."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from edgewise.differential_privacy.accountant import epsilon_of
from edgewise.differential_privacy.budget import DP
from edgewise.differential_privacy.network_bound import mixing_matrix, releases_between
from edgewise.errors import GraphError
from edgewise.graph.graph import Graph


@dataclass(frozen=True)
class PrivacySpent:
    """What a run tells of any one sample: `result.privacy`.

    It is of all messages, of all nodes' models, and of what is made of these alone: predictions,
    the model file. It is not of the trace, whose residuals and objectives are measured on the data.
    """

    budget: DP
    rounds: int  # noisy gradients that a node releases
    noise: float  # z: deviation of the noise on a sum of clipped gradients, in clips
    row_norm: float
    graph: Graph | None = field(default=None, repr=False)  # None: a peer's, who does not know it
    weights: np.ndarray | None = field(default=None, repr=False)  # mixing weights of the edges,
    # where averaging hides a sample from those who are no neighbours
    deviations: np.ndarray | None = field(
        default=None, repr=False
    )  # (V,) of nodes' noise, with them
    adjacency: str = "a sample, or nothing in its place; how many there are is public"

    @property
    def mu(self) -> float:
        """What a node sends tells as much as one number that a sample moves by this, noise 1."""
        return float(np.sqrt(self.rounds)) / self.noise

    @property
    def rho(self) -> float:
        """The same in zero-concentrated differential privacy."""
        return self.mu**2 / 2

    @property
    def delta(self) -> float:
        return self.budget.delta

    @property
    def epsilon(self) -> float:
        """Local: to whoever sees all that a node sends, as its neighbours do, together with all
        else in the network."""
        return epsilon_of(self.mu, self.delta)

    @property
    def epsilon_replace(self) -> float:
        """The same where a sample is replaced by another: twice the distance."""
        return epsilon_of(2 * self.mu, self.delta)

    @cached_property
    def mu_between(self) -> np.ndarray:
        """(V, V) of what node v (column) learns of a sample of node u (row) from what it hears by
        itself; zero to itself, which has its own data."""
        graph, distances = self.known_graph, self.distances
        releases = np.maximum(self.rounds + 1 - np.maximum(distances, 1), 0.0)
        if self.weights is not None and self.deviations is not None:
            W = mixing_matrix(graph, self.weights)
            for v in range(graph.nodes):
                seen = distances[v] <= 1
                for u in np.flatnonzero(~seen):
                    known = releases_between(W, seen, int(u), self.rounds, self.deviations)
                    releases[u, v] = min(releases[u, v], known)
        np.fill_diagonal(releases, 0)
        return np.asarray(np.sqrt(releases) / self.noise)

    @cached_property
    def distances(self) -> np.ndarray:
        """(V, V) edges between two nodes."""
        from scipy.sparse.csgraph import shortest_path  # no peer needs it

        graph = self.known_graph
        i, j = graph.edges.T
        links = sp.csr_array((np.ones(len(i)), (i, j)), shape=(graph.nodes, graph.nodes))
        return np.asarray(shortest_path(links, directed=False, unweighted=True)).astype(int)

    @property
    def known_graph(self) -> Graph:
        if self.graph is None:
            raise GraphError(
                "a peer does not know the network, nor who is how far away: what it told is as if "
                "all were neighbours, `epsilon`"
            )
        return self.graph

    def between(self, node: int, observer: int) -> float:
        """Epsilon of a sample of `node` to the node `observer`, which tells nobody else."""
        return epsilon_of(float(self.mu_between[node, observer]), self.delta)

    def by_distance(self) -> dict[int, float]:
        """Epsilon to a single node so many edges away: the largest over all pairs. 1: neighbours.
        Nodes that put together what they see are not covered by it, `epsilon` is of all of them."""
        if self.graph is None:
            return {1: self.epsilon}
        far = self.distances
        return {
            int(d): epsilon_of(float(self.mu_between[far == d].max()), self.delta)
            for d in np.unique(far[far > 0])
        }

    def __str__(self) -> str:
        known = f"epsilon {self.epsilon:.3g} at delta {self.delta:g} for one sample"
        noise = f"{self.rounds} rounds with noise of {self.noise:.3g} clips"
        return f"{known}, to whoever sees all messages of its node ({noise})"

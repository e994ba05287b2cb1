"""What ranks of an MPI job tell each other: neighbours' vectors in every round, and what is said of
all nodes together."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.data.shards import aligned_empty
from edgewise.engines.mpi import MPI
from edgewise.engines.placement import Crossing
from edgewise.graph.graph import Graph


class RankExchange:
    """Vectors between the ranks of neighbours, straight from and to the memory of arrays.

    Non-blocking messages between two ranks: neighbourhood collectives were no faster on the whole
    (benchmarks/mpi.py), and take a copy where a rank sends several kinds of vectors.
    """

    def __init__(
        self, engine: MPI, crossings: Sequence[Crossing], rows: Sequence[tuple[int, Any]]
    ) -> None:
        """rows: the numbers and the type of those that each crossing is of."""
        self.finish = engine.finish
        ranks = sorted({rank for crossing in crossings for rank in crossing.send})
        self.comm = engine.comm.Create_dist_graph_adjacent(ranks, ranks, reorder=False)
        buffers = [
            aligned_empty((crossing.received, numbers), dtype)
            for crossing, (numbers, dtype) in zip(crossings, rows, strict=True)
        ]
        self.receive = [
            (buffers[k][rows], rank, k)
            for k, crossing in enumerate(crossings)
            for rank, rows in in_turn(crossing.receive).items()
        ]
        self.send = [
            (k, rank, rows)
            for k, crossing in enumerate(crossings)
            for rank, rows in in_turn(crossing.send).items()
        ]
        # On a CPU these are the buffers themselves, written to only when no program that reads them
        # is under way; elsewhere copies.
        self.in_place = jax.default_backend() == "cpu"
        self.buffers, self.row_bytes = buffers, [numbers * t.itemsize for numbers, t in rows]
        self.came: tuple[Array, ...] = tuple(
            map(jnp.from_dlpack if self.in_place else jnp.asarray, buffers)
        )

    def swap(self, leaving: Sequence[Array]) -> tuple[Array, ...]:
        """Send what leaves, and return what came; the next swap overwrites it."""
        out = [np.asarray(a) for a in leaving]  # waits until they are there; no copy
        requests = [self.comm.Irecv(buffer, rank, tag) for buffer, rank, tag in self.receive]
        requests += [self.comm.Isend(out[k][rows], rank, k) for k, rank, rows in self.send]
        self.finish(requests)
        if not self.in_place:
            self.came = tuple(map(jnp.asarray, self.buffers))
        return self.came

    @property
    def bytes(self) -> int:
        """That this rank sends in a round."""
        return sum((rows.stop - rows.start) * self.row_bytes[k] for k, _, rows in self.send)

    def close(self) -> None:
        self.comm.Free()


class RankCommunicator:
    """The ranks of an MPI job, with the nodes of a graph between them."""

    distributed = True

    def __init__(self, engine: MPI, problem: Any, graph: Graph) -> None:
        self.engine, self.rank, self.ranks = engine, engine.rank, engine.ranks
        placement, self.problem = engine.place(problem, graph)  # the problem of its own nodes
        self.nodes, self.part = placement.nodes, placement.part(self.rank)
        self.rows = jnp.asarray(self.part.vectors.leaving)
        self.models = RankExchange(
            engine, [self.part.vectors], [(problem.size, np.dtype(np.float64))]
        )

    def own(self, a: Any) -> Any:
        return a[self.part.nodes]

    def gather(self, a: np.ndarray) -> np.ndarray:
        return self.engine.gather(self.nodes, a)

    def gather_at_root(self, a: np.ndarray) -> np.ndarray:
        return self.engine.gather_at_root(self.nodes, a)

    def mean(self, X: np.ndarray, present: np.ndarray) -> np.ndarray:
        return self.engine.total({"X": X.sum(0)})["X"] / len(present)

    def total(self, sums: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.engine.total(sums)

    def agree(self, number: int) -> int:
        return int(self.engine.largest(number))

    def slowest(self, seconds: float) -> float:
        return self.engine.largest(seconds)

    def edges(self, graph: Graph) -> tuple[np.ndarray, np.ndarray, float]:
        """Directed ones: the other half of an edge is counted by its other end."""
        vectors = self.part.vectors
        return self.part.owner, vectors.places(vectors.in_turn()), 0.5

    def remote_models(self, X: Array) -> Array:
        (far,) = self.models.swap(rows_of(X, self.rows))
        return far

    def close(self) -> None:
        self.models.close()


@jax.jit
def rows_of(X: Array, rows: Array) -> tuple[Array]:
    return (X.at[rows].get(mode="promise_in_bounds"),)


def in_turn(items: dict[int, np.ndarray]) -> dict[int, slice]:
    """The rows of each rank, one after another."""
    ends = np.cumsum([len(rows) for rows in items.values()], dtype=int).tolist()
    parts = zip(items.items(), ends, strict=True)
    return {rank: slice(end - len(rows), end) for (rank, rows), end in parts}

"""What ranks of an MPI job tell each other: neighbours' vectors in every round, and what is said of
all nodes together."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.data.arrays import aligned_empty
from edgewise.engines.mpi import MPI
from edgewise.engines.placement import Crossing
from edgewise.engines.wires import RowSent
from edgewise.graph.graph import Graph

SMALL = 1 << 16  # bytes of a row of news that are sent sooner than sorted


class RankExchange:
    """Vectors between the ranks of neighbours, straight from and to the memory of arrays.

    Non-blocking messages between two ranks: neighbourhood collectives were no faster on the whole
    (benchmarks/mpi.py), and take a copy where a rank sends several kinds of vectors. Bodies of
    news that have not changed stay where they are.
    """

    def __init__(self, engine: MPI, crossings: Sequence[Crossing], rows: Sequence[RowSent]) -> None:
        """rows: what each crossing is of."""
        self.finish = engine.finish
        ranks = sorted({rank for crossing in crossings for rank in crossing.send})
        self.comm = engine.comm.Create_dist_graph_adjacent(ranks, ranks, reorder=False)
        buffers = [
            aligned_empty((crossing.received, row.numbers), row.type)
            for crossing, row in zip(crossings, rows, strict=True)
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
        self.buffers, self.rows = buffers, rows
        self.in_parts = [row.head < row.numbers and row.size > SMALL for row in rows]
        # where news that come in parts arrive, by their place in `receive`
        self.apart = {
            at: np.empty(buffer.size, buffer.dtype)
            for at, (buffer, _, k) in enumerate(self.receive)
            if self.in_parts[k]
        }
        self.came: tuple[Array, ...] = tuple(
            map(jnp.from_dlpack if self.in_place else jnp.asarray, buffers)
        )

    def swap(self, leaving: Sequence[Array], whole: bool = True) -> tuple[Array, ...]:
        """Send what leaves, and return what came; the next swap overwrites it. Not `whole`: of news
        only what has changed since the last swap."""
        out = [np.asarray(a) for a in leaving]  # waits until they are there; no copy
        apart = {} if whole else self.apart
        requests = [
            self.comm.Irecv(apart.get(at, buffer), rank, k)
            for at, (buffer, rank, k) in enumerate(self.receive)
        ]
        for k, rank, rows in self.send:
            sent = out[k][rows]
            if apart and self.in_parts[k]:
                sent = changed_part(sent, self.rows[k].head)
            requests.append(self.comm.Isend(sent, rank, k))
        self.finish(requests)
        for at, came in apart.items():
            buffer, _, k = self.receive[at]
            take_changes(buffer, came, self.rows[k].head)
        if not self.in_place:
            self.came = tuple(map(jnp.asarray, self.buffers))
        return self.came

    @property
    def bytes(self) -> int:
        """That this rank sends in a round; of news that go in parts, the heads."""
        parts = zip(self.rows, self.in_parts, strict=True)
        sizes = [row.head * row.type.itemsize if part else row.size for row, part in parts]
        return sum((rows.stop - rows.start) * sizes[k] for k, _, rows in self.send)

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
        model = RowSent(problem.size, problem.size, np.dtype(np.float64))
        self.models = RankExchange(engine, [self.part.vectors], [model])

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


def changed_part(news: np.ndarray, head: int) -> np.ndarray:
    """All heads, then the bodies that have changed."""
    return np.concatenate([news[:, :head].ravel(), news[news[:, 0] > 0, head:].ravel()])


def take_changes(news: np.ndarray, came: np.ndarray, head: int) -> None:
    """Put into the news what `changed_part` made of those of now."""
    m, numbers = news.shape
    news[:, :head] = came[: m * head].reshape(m, head)
    changed = np.flatnonzero(news[:, 0] > 0)
    bodies = came[m * head :][: len(changed) * (numbers - head)]
    news[changed, head:] = bodies.reshape(len(changed), numbers - head)


def in_turn(items: dict[int, np.ndarray]) -> dict[int, slice]:
    """The rows of each rank, one after another."""
    ends = np.cumsum([len(rows) for rows in items.values()], dtype=int).tolist()
    parts = zip(items.items(), ends, strict=True)
    return {rank: slice(end - len(rows), end) for (rank, rows), end in parts}

"""What an engine is made of: an executor, which advances rounds, and a communicator, which knows
who else is there."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from jax import Array

from edgewise.graph.graph import Graph
from edgewise.methods.contract import EdgeReport, Method
from edgewise.methods.knowledge import Knowledge
from edgewise.problem.block import Block, Links


class Wires(Protocol):
    """How an outbox becomes an inbox. One signature in one process, over devices and ranks, under
    faults and at a peer: what has come from elsewhere is part of the wires by then."""

    def deliver(
        self, hears: tuple[str, ...], links: Links, outbox: tuple[Array, ...]
    ) -> tuple[Array, ...]: ...


class Counts(NamedTuple):
    messages: int  # over directed edges, of the whole network
    bytes: float  # of these, bodies of news apart
    bodies: np.ndarray  # (v,) of news, that the nodes here have sent over directed edges
    oracle_calls: np.ndarray  # (v,) of the nodes here
    function_values: np.ndarray  # (v,)


class Rounds(Protocol):
    """What goes on from round to round."""

    method: Method  # with the steps of all nodes
    starting_seconds: float  # that `start` computed for

    def start(self, X: np.ndarray, duals: np.ndarray | None) -> Any:
        """The first carry, from models (v, n) of the nodes here and duals (V, n) of all; where they
        are coupled, (2E, m) of all directed edges."""

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        """`rounds` rounds after the first `first`, and the seconds that they took."""


class Executor(Rounds, Protocol):
    """Advances rounds of the nodes that are here: v of the network's V."""

    problem: Any
    knowledge: Knowledge  # that the method was prepared with
    weights: dict[str, np.ndarray]  # of undirected edges
    seed: Any
    dtype: Any
    eta: np.ndarray  # (V, 1)
    message_bytes: float  # of all vectors that go along an edge in a round, of news the head
    body_bytes: float  # of a body of news

    @property
    def nodes(self) -> np.ndarray | None:
        """(v,) the nodes that a carry is of, row by row; None: a checkpoint has it as it is."""

    @property
    def edges(self) -> np.ndarray:
        """(e,) the directed edges that leave these nodes, as `edge_report` has them."""

    def origin(self) -> np.ndarray:
        """(v, n) where a run begins if nobody says otherwise: the prox of zero, so feasible."""

    def compile_ahead(self, carry: Any, rounds: int) -> None:
        """Begin to compile what `advance` will run, where that helps."""

    def view(self, carry: Any) -> tuple[Any, Any]:
        """(v, n) the nodes' models, and their duals."""

    def edge_report(self, carry: Any) -> EdgeReport:
        """Of a method that is coupled, of the nodes and edges here."""

    def counts(self, carry: Any, rounds: int) -> Counts:
        """What so many rounds took."""

    def evaluation_block(self) -> Block:
        """The samples of the nodes here, in float64, where models are evaluated."""


class Communicator(Protocol):
    """The processes that have the nodes between them."""

    rank: int
    ranks: int
    distributed: bool  # whether sums over nodes have to be added up over processes

    def own(self, a: Any) -> Any:
        """(V, ...) numbers of all nodes -> (v, ...) those of the nodes here."""

    def gather(self, a: np.ndarray) -> np.ndarray:
        """(v, ...) numbers of the nodes here -> (V, ...) of all, at every rank."""

    def gather_at_root(self, a: np.ndarray) -> np.ndarray:
        """As `gather`, for large arrays: ranks other than 0 keep what they have."""

    def mean(self, X: np.ndarray, present: np.ndarray) -> np.ndarray:
        """(n,) of the models of those present (V,)."""

    def total(self, sums: Mapping[str, Any]) -> Mapping[str, Any]:
        """The sums of all ranks, added up."""

    def agree(self, number: int) -> int:
        """The largest that any rank says."""

    def slowest(self, seconds: float) -> float: ...

    def edges(self, graph: Graph) -> tuple[np.ndarray, np.ndarray, float]:
        """The ends i and j of edges to measure disagreement over, as rows of the models here and
        then of `remote_models`, and the part of each edge that is counted here."""

    def remote_models(self, X: Array) -> Array | None:
        """(m, n) the models of neighbours elsewhere."""

    def close(self) -> None: ...


class Engine(NamedTuple):
    executor: Executor
    communicator: Communicator


class OneProcess:
    """The communicator of a process that has all nodes."""

    rank, ranks, distributed = 0, 1, False

    def own(self, a: Any) -> Any:
        return a

    def gather(self, a: np.ndarray) -> np.ndarray:
        return a

    def gather_at_root(self, a: np.ndarray) -> np.ndarray:
        return a

    def mean(self, X: np.ndarray, present: np.ndarray) -> np.ndarray:
        out: np.ndarray = (X if present.all() else X[present]).mean(0)  # spares a copy
        return out

    def total(self, sums: Mapping[str, Any]) -> Mapping[str, Any]:
        return sums

    def agree(self, number: int) -> int:
        return number

    def slowest(self, seconds: float) -> float:
        return seconds

    def edges(self, graph: Graph) -> tuple[np.ndarray, np.ndarray, float]:
        i, j = graph.edges.T if len(graph.edges) else np.zeros((2, 0), int)
        return i, j, 1.0

    def remote_models(self, X: Array) -> None:
        return None

    def close(self) -> None:
        pass

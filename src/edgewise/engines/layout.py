"""Where an executor's arrays are: here on one device; `devices` and `rank_executor` have others."""

from collections.abc import Callable
from typing import Any, Protocol

import jax
import numpy as np
from jax import Array

from edgewise.backend.placed import placed
from edgewise.backend.programs import numpy_serves
from edgewise.backend.random_bits import draw_bits, draw_by_numpy
from edgewise.engines.wires import connect, links_of
from edgewise.graph.graph import Graph
from edgewise.methods.by_size import BySize, by_size, groups_of
from edgewise.methods.contract import Method
from edgewise.problem.block import Block

FEW_NUMBERS = 1 << 14  # that are drawn before a program for it would be compiled


class Layout(Protocol):
    """Puts what belongs to nodes and edges where programs find it, and gets it back."""

    @property
    def nodes(self) -> np.ndarray | None:
        """(v,) the nodes here, row by row; None where arrays have rows of no node in between."""

    def lay_out(self, method: Method, weights: dict[str, np.ndarray]) -> tuple[Any, Any, Block]:
        """The method, the wires and the block of the nodes here."""

    def own(self, a: Any) -> Any:
        """(V, ...) -> (v, ...)"""

    def place(self, a: Any) -> Array:
        """(v, ...) numbers of the nodes here, for a program."""

    def place_edges(self, a: np.ndarray) -> Array:
        """(2E, ...) numbers of all directed edges, for a program."""

    def place_carry(self, carry: Any) -> Any:
        """A carry that may come from a checkpoint."""

    def join(self, a: Array) -> Any:
        """(v, ...) from what a program gives back."""

    @property
    def edges(self) -> np.ndarray:
        """The directed edges that leave the nodes here, in the order of `join_edges`."""

    def join_edges(self, a: Array) -> Any:
        """(e, ...) of these edges, from what a program gives back."""

    def random_bits(
        self, seed: Any, ids: Array, first: int, steps: int, phases: int, draws: int
    ) -> Array: ...

    def program(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """f, written for a block of nodes, as it is to be compiled."""

    def call(self, f: Callable[..., Any], *args: Any) -> Any:
        """f of what a program is given."""

    def evaluation_block(self, rows: Any) -> Block:
        """In float64; `rows` are those of the block."""


class OneDevice:
    """All nodes on the device that JAX takes by itself."""

    def __init__(self, problem: Any, graph: Graph, dtype: Any) -> None:
        self.problem, self.graph, self.dtype = problem, graph, dtype

    @property
    def nodes(self) -> np.ndarray:
        return np.arange(self.graph.nodes)

    def lay_out(self, method: Method, weights: dict[str, np.ndarray]) -> tuple[Any, Any, Block]:
        links, wires = connect(self.graph, weights, self.dtype)
        if self.problem.couples and len(groups := groups_of(self.problem.sizes)) > 1:
            grouped = self.grouped(method, weights, groups)
            return grouped, wires, self.problem.nodes_block(links, self.dtype)
        return method, wires, self.problem.block(links, self.dtype)

    def grouped(self, method: Any, weights: dict[str, np.ndarray], groups: Any) -> BySize:
        def links(owner: np.ndarray, edge: np.ndarray, nodes: int) -> Any:
            return jax.tree.map(placed, links_of(owner, edge, nodes, weights, self.dtype))

        return by_size(method, self.problem, links, self.dtype, groups)

    def own(self, a: Any) -> Any:
        return a

    def place(self, a: Any) -> Array:
        return placed(a, self.dtype)

    def place_edges(self, a: np.ndarray) -> Array:
        return placed(a, self.dtype)

    def place_carry(self, carry: Any) -> Any:
        return carry

    def join(self, a: Array) -> Any:
        return a

    @property
    def edges(self) -> np.ndarray:
        return np.arange(len(self.graph.directed.owner))

    def join_edges(self, a: Array) -> Any:
        return a

    def random_bits(
        self, seed: Any, ids: Array, first: int, steps: int, phases: int, draws: int
    ) -> Array:
        """(steps, phases, v, draws)"""
        rounds = first + np.arange(steps * phases)
        if numpy_serves() and rounds.size * ids.size * draws <= FEW_NUMBERS:
            drawn = draw_by_numpy(seed, ids, rounds, draws)
            return placed(drawn.reshape(steps, phases, *drawn.shape[1:]))
        bits = draw_bits(seed, ids, placed(rounds), draws)
        return bits.reshape(steps, phases, *bits.shape[1:])

    def program(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return f

    def call(self, f: Callable[..., Any], *args: Any) -> Any:
        return f(*args)

    def evaluation_block(self, rows: Any) -> Block:
        made: Block = self.problem.block(None, np.float64, rows)
        return made

"""Many versions of one method, side by side in one compiled program: same data, same random bits,
other steps."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from edgewise.backend.programs import compiled
from edgewise.engines.base import Wires
from edgewise.engines.simulator import MOST_RANDOM_NUMBERS, Simulator, one_step
from edgewise.engines.wires import bodies_gone, connect
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.problem.block import Block
from edgewise.problem.problem import Problem
from edgewise.running.measures import Target, bregman
from edgewise.running.trajectory import Trajectory

Data = tuple[Wires, Block]
MOST_STEPS = 1024  # that random bits are drawn for at a time, needed or not


class Cells:
    """The executor of versions of one method, which differ in numbers only.

    What does not depend on those numbers is kept and computed once: the data, the rows that are
    sampled, a table's first pass, when a snapshot is due. Where the oracle calls depend on them
    (an epoch ends early, a local problem takes longer) cells branch apart. Side by side each would
    pay for every other's branches, so then they run one after another, in the same program.
    """

    starting_seconds = 0.0  # a cell has no part of it to itself

    def __init__(self, base: Simulator) -> None:
        """base: the executor of any one of them."""
        self.base, self.method = base, base.method
        self.data: Data = (base.network, base.block._replace(links=None))
        phases, draws = len(self.method.phases), max(self.method.random_draws, 1)
        random_bits = phases * base.problem.nodes * draws
        self.steps_at_once = max(1, min(MOST_STEPS, MOST_RANDOM_NUMBERS // random_bits))

    def load(self, cells: Sequence[Method]) -> None:
        """Other cells of the same structure."""
        graph, dtype, ready = self.base.graph, self.base.dtype, []
        for cell in cells:
            method, weights = cell.prepare(self.base.knowledge)
            method = jax.tree.map(lambda a: np.asarray(a, dtype), method)
            ready.append((method, connect(graph, weights, dtype)[0]))
        self.cells, own = [], []
        for column in zip(*map(jax.tree.leaves, ready), strict=True):
            each = np.stack(column)
            own.append(bool((each != each[0]).any()))
            self.cells.append(jnp.asarray(each if own[-1] else each[0]))
        self.form = Form(len(cells), jax.tree.structure(ready[0]), tuple(own))

    def start(self, X: np.ndarray, duals: np.ndarray | None = None) -> Any:
        """All cells at the models X (V, n)."""
        args = (self.cells, self.data, jnp.asarray(X, self.base.dtype))
        shape = (1, len(self.method.phases), len(X), self.method.random_draws)
        self.form = self.form.traced(*args, jnp.zeros(shape, jnp.uint32))
        carry = compiled(begin_all, args, {}, form=self.form)(*args)
        return jax.tree.map(lambda a: jnp.array(a, copy=True), carry)  # donated later

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        phases, room, spent = len(self.method.phases), self.steps_at_once, 0.0
        for done in range(0, rounds // phases, room):
            now = min(rounds // phases - done, room)
            random_bits = self.base.random_bits(first + phases * done, room)
            args = (self.cells, self.data, carry, random_bits, jnp.asarray(now))
            program = compiled(advance_all, args, self.base.options, 2, form=self.form)
            jax.block_until_ready(random_bits)
            start = time.perf_counter()
            carry = jax.block_until_ready(program(*args))
            spent += time.perf_counter() - start
        return carry, spent


class Sweep(Trajectory[Cells]):
    """Cells of one structure on their way, side by side."""

    def __init__(
        self, problem: Problem, graph: Graph, cells: Sequence[Method], seed: int, dtype: Any
    ) -> None:
        self.base = Simulator(problem, graph, cells[0], seed, dtype)
        super().__init__(Cells(self.base))
        self.block64 = self.base.evaluation_block()
        self.bytes_a_round = graph.arc_count * self.base.message_bytes
        self.load(cells)

    def load(self, cells: Sequence[Method]) -> None:
        """Other cells of the same structure."""
        self.executor.load(cells)

    @property
    def method_name(self) -> str:
        return type(self.base.method).__name__

    def begin(self) -> None:
        """All cells, where a run begins if nobody says otherwise."""
        self.start(self.base.origin())

    def spending(self) -> dict[str, np.ndarray]:
        """(cells,) what each has taken so far."""
        each = np.ones(self.form.size)
        return {
            "oracle_calls": each * self.calls(),
            "rounds": each * self.round,
            "bytes_sent": each * self.bytes_sent(),
            "seconds": each * self.seconds / self.form.size,
        }

    @property
    def form(self) -> "Form":
        return self.executor.form

    def calls(self) -> np.ndarray:
        """(cells,) mean oracle calls of a node."""
        calls = np.asarray(self.carry[0].memory.calls).mean(-1)
        return np.broadcast_to(calls, self.form.size)

    def bytes_sent(self) -> np.ndarray:
        """(cells,)"""
        bodies = bodies_gone(self.base.method.hears, self.carry, self.base.graph.degrees).sum(-1)
        bytes_sent = self.round * self.bytes_a_round + bodies * self.base.body_bytes
        return np.broadcast_to(bytes_sent, self.form.size)

    def divergences(self, target: Target) -> np.ndarray:
        """(cells,) from the optimum; infinite where a cell's models are no numbers any more."""
        args = (self.executor.cells, self.block64, self.carry, target)
        found = np.asarray(compiled(divergence_all, args, {}, form=self.form)(*args))
        return np.where(np.isfinite(found), found, np.inf)


@dataclass(frozen=True)
class Form:
    """What the cells have in common: the program, and which arrays each has of its own."""

    size: int
    tree: Any  # of a cell: method, links
    own: tuple[bool, ...]  # for each array of a cell
    carry_tree: Any = None  # of what goes from step to step
    carry_own: tuple[bool, ...] = ()

    @property
    def axes(self) -> list[int | None]:
        return [0 if own else None for own in self.own]

    @property
    def carry_axes(self) -> Any:
        return jax.tree.unflatten(self.carry_tree, [0 if own else None for own in self.carry_own])

    @property
    def branching(self) -> bool:
        return self.carry_axes[0].memory.calls is not None

    def cell(self, leaves: Any) -> Any:
        return jax.tree.unflatten(self.tree, leaves)

    def traced(self, cells: Any, data: Data, X: Array, random_bits: Array) -> "Form":
        """With the carry's part found out, by following how differences spread."""
        everywhere, own = spread(self.begin, self.size, (self.axes, None, None), cells, data, X)
        form = replace(self, carry_tree=jax.tree.structure(everywhere), carry_own=own)
        carry = [
            jax.ShapeDtypeStruct(a.shape[0 if o else 1 :], a.dtype)
            for a, o in zip(jax.tree.leaves(everywhere), own, strict=True)
        ]
        _, own = spread(
            form.advance,
            self.size,
            (form.axes, None, form.carry_axes, None, None),
            *(cells, data, jax.tree.unflatten(form.carry_tree, carry), random_bits, jnp.asarray(1)),
        )
        return replace(form, carry_own=own)

    def begin(self, leaves: Any, data: Data, X: Array) -> Any:
        method, links = self.cell(leaves)
        return method.init(data[1]._replace(links=links), X, None)

    def advance(self, leaves: Any, data: Data, carry: Any, random_bits: Array, steps: Array) -> Any:
        method, links = self.cell(leaves)
        p = data[1]._replace(links=links)

        def body(t: Array, carry: Any) -> Any:
            return one_step(method, data[0], p, carry, random_bits[t])

        return lax.fori_loop(0, steps, body, carry)

    def divergence(self, leaves: Any, p: Block, carry: Any, target: Target) -> Array:
        method, _ = self.cell(leaves)
        return bregman(p, method.answer(carry[0]).astype(np.float64), target)


def spread(f: Callable[..., Any], size: int, axes: Any, *args: Any) -> tuple[Any, tuple[bool, ...]]:
    """f's result over all cells, as shapes, and which of its arrays differ from cell to cell."""
    own: list[bool] = []

    def spy(*args: Any) -> Any:
        out = f(*args)
        own[:] = [getattr(a, "batch_dim", None) is not None for a in jax.tree.leaves(out)]
        return out

    return jax.eval_shape(jax.vmap(spy, axes, axis_size=size), *args), tuple(own)


def begin_all(cells: Any, data: Data, X: Array, form: Form) -> Any:
    return jax.vmap(form.begin, (form.axes, None, None), form.carry_axes, axis_size=form.size)(
        cells, data, X
    )


def advance_all(
    cells: Any, data: Data, carry: Any, random_bits: Array, steps: Array, form: Form
) -> Any:
    if not form.branching:
        axes = (form.axes, None, form.carry_axes, None, None)
        side_by_side = jax.vmap(form.advance, axes, form.carry_axes, axis_size=form.size)
        return side_by_side(cells, data, carry, random_bits, steps)

    def one(i: Array) -> Any:
        cell = [a[i] if own else a for a, own in zip(cells, form.own, strict=True)]
        parts = zip(jax.tree.leaves(carry), form.carry_own, strict=True)
        state = jax.tree.unflatten(form.carry_tree, [a[i] if own else a for a, own in parts])
        return form.advance(cell, data, state, random_bits, steps)

    parts = zip(jax.tree.leaves(lax.map(one, jnp.arange(form.size))), form.carry_own, strict=True)
    return jax.tree.unflatten(form.carry_tree, [a if own else a[0] for a, own in parts])


def divergence_all(cells: Any, p: Block, carry: Any, target: Target, form: Form) -> Array:
    axes = (form.axes, None, form.carry_axes, None)
    return jax.vmap(form.divergence, axes, axis_size=form.size)(cells, p, carry, target)

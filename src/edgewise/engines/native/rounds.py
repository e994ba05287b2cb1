"""The compiled rounds, in place of the simulator's own."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental.layout import Layout, with_layout_constraint

from edgewise.backend.pytree import pytree
from edgewise.engines.native import kernels
from edgewise.engines.native.soft_threshold import threshold_and_shrink
from edgewise.engines.simulator import Simulator
from edgewise.engines.wires import DirectWires
from edgewise.problem.block import Block
from edgewise.problem.rows import Dense

TARGET = "edgewise_round"


@cache
def register() -> None:
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(kernels.handle.ctypes), platform="cpu")


@cache
def worker(kind: int, bits: int, row_bits: int) -> Any:
    return kernels.worker(kind, bits, row_bits)


@pytree("tile")
class Known(Dense):
    """Rows whose margins, of those picked, have been worked out already."""

    values: Any
    tile: int
    margins: Any  # (v, b)

    def dot(self, taken: Array, W: Array) -> Array:
        return self.margins


def panels(rows: Array) -> Array:
    """(k, n) -> (panels, k, COLUMNS), filled up with zeros."""
    many = -(-rows.shape[1] // kernels.COLUMNS)
    wide = jnp.pad(rows, ((0, 0), (0, many * kernels.COLUMNS - rows.shape[1])))
    made = wide.reshape(len(rows), many, kernels.COLUMNS).swapaxes(0, 1)
    # otherwise XLA would leave it as it lay, and turn it round before every call
    return with_layout_constraint(made, Layout((0, 1, 2)))


def from_panels(a: Array, n: int) -> Array:
    return a.swapaxes(0, 1).reshape(a.shape[1], -1)[:, :n]


class InPanels(Block):
    """A block whose models, and mean gradients, come in panels."""

    def refresh(self, table: Any, mean: Array, X: Any, due: Array) -> tuple[Any, Array]:
        n = self.rows.values.shape[1]

        def again(state: Any) -> Any:
            left, (table, mean) = state

            def in_rows(a: Array) -> Array:
                if a.ndim < 3:
                    return a
                # `left` changes in this loop: what did not would be computed before it, always
                return from_panels(jnp.where(left[:, None], a, 0), n)

            models = X(in_rows) if callable(X) else in_rows(X)
            table, rows = Block(*self).refresh(table, from_panels(mean, n), models, left)
            return jnp.zeros_like(left), (table, panels(rows))

        # a branch, as a loop: what it carries is then changed in place
        start = due, (table, mean)
        made: tuple[Any, Array] = lax.while_loop(lambda state: state[0].any(), again, start)[1]
        return made


def in_form(state: Any, form: Callable[[Array], Array], names: tuple[str, ...]) -> Any:
    """The state with the arrays that rounds change in another form."""
    memory = state.memory._replace(mean=form(state.memory.mean))
    if hasattr(memory.extra, "total"):
        memory = memory._replace(extra=memory.extra._replace(total=form(memory.extra.total)))
    changed = {name: form(getattr(state, name)) for name in names}
    return state._replace(memory=memory, **changed)


def run_rounds(
    method: Any, network: DirectWires, p: Block, carry: Any, noise: Array, tasks: Array, unroll: int
) -> Any:
    """As `simulated.run_rounds`; tasks (2,): workers for margins and for rounds, which work out
    the next round's margins as they go."""
    (state, (sent,)), node_form, rows = carry, method.form == "node", p.rows
    n = state.X.shape[1]
    picked = jax.vmap(lambda random_bits: p.pick(random_bits).at)(noise[:, 0])  # (steps, v, b)
    first = jnp.searchsorted(p.links.owner, jnp.arange(len(p.ids) + 1)).astype(jnp.int32)
    rho = p.links.rho.astype(jnp.float64)
    gamma = 1 / (1 / method.eta + p.links.total)
    threshold, shrink = threshold_and_shrink(p.penalty.members[0], gamma)

    def body(carry: Any, now: tuple[Array, Array]) -> tuple[Any, None]:
        (state, sent, margins), (random_bits, coming) = carry, now
        here = InPanels(*p)._replace(rows=Known(rows.values, rows.tile, margins))
        models = from_panels(state.X, n) if method.gradient.looks_at_models else state.X
        draw, memory = method.gradient.draw_unsummed(here, models, state.memory, random_bits[0])
        part = jnp.zeros_like(gamma) if draw.part is None else draw.part
        kept = jnp.ones_like(gamma) if draw.over is None else ~draw.over[:, None]
        last = state.gain if node_form else 1 / method.eta
        ridge = jnp.broadcast_to(p.loss.ridge, gamma.shape)
        columns = (part, gamma, p.links.total, ridge, threshold, shrink, last, kept)
        of_node = jnp.concatenate([a.astype(jnp.float64) for a in columns], 1)
        slopes = draw.slopes.astype(jnp.float64)
        args: tuple[Any, ...] = (tasks[1], rows.values, draw.pick.at, state.X, slopes)
        args += (of_node, first, network.other, rho, draw.base)
        args += (state.S, state.R) if node_form else (sent, network.reverse)
        args += (coming,)
        args += () if draw.part is None else (draw.new, memory.table)
        args += () if draw.over is None else (memory.extra.total,)
        changed = [3, 9, 10, 11] if node_form else [3, 9, 10]
        changed += [len(args) - 1] if len(args) > 13 else []
        *results, margins = jax.ffi.ffi_call(
            TARGET,
            [*(jax.ShapeDtypeStruct(args[k].shape, args[k].dtype) for k in changed), looked],
            input_output_aliases={k: at for at, k in enumerate(changed)},
        )(*args)
        new = dict(zip(changed, results, strict=True))
        memory = memory._replace(mean=new[9], table=new.get(14, memory.table))
        if draw.over is not None:
            memory = memory._replace(extra=memory.extra._replace(total=new[13]))
        margins = margins.sum(0).astype(state.X.dtype)
        if not node_form:
            return (state._replace(X=new[3], memory=memory), new[10], margins), None
        state = state._replace(X=new[3], S=new[10], R=new[11], memory=memory)
        return (state._replace(gain=jnp.minimum(2 * state.gain, 2)), (), margins), None

    names = ("X", "S", "R") if node_form else ("X",)
    state = in_form(state, panels, names)
    looked = jax.ShapeDtypeStruct((len(state.X), *picked.shape[1:]), jnp.float64)
    look: Any = jax.ffi.ffi_call(TARGET, looked)
    margins = look(tasks[0], rows.values, picked[0], state.X).sum(0).astype(state.X.dtype)
    # in node form the outbox is X again, and one of the two would be copied every round
    carried: Any = (state, () if node_form else panels(sent), margins)
    coming = jnp.roll(picked, -1, 0)  # of the last round nobody's
    state, sent, _ = lax.scan(body, carried, (noise, coming))[0]
    state = in_form(state, lambda a: from_panels(a, n), names)
    return state, (state.X if node_form else from_panels(sent, n),)


class NativeSimulator(Simulator):
    program = staticmethod(run_rounds)

    def arguments(self, carry: Any, first: int, steps: int) -> tuple[Any, ...]:
        random_bits = self.random_bits(first, steps)
        return self.method, self.network, self.block, carry, random_bits, self.tasks()

    def tasks(self) -> Array:
        """Addresses in this process, so never part of a program."""
        register()
        bits = 8 * self.dtype.itemsize, 8 * self.block.rows.values.dtype.itemsize
        kind = kernels.NODE_ROUND if self.method.form == "node" else kernels.EDGE_ROUND
        both = (kernels.MARGINS, kind)
        return jnp.asarray([worker(k, *bits).address for k in both], jnp.int64)

"""The compiled rounds, in place of the simulator's own."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from edgewise.block import Block
from edgewise.native import kernels
from edgewise.native.soft import soft
from edgewise.network.simulated import Simulator
from edgewise.network.wires import Perfect
from edgewise.pytree import pytree
from edgewise.rows import Dense

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


def run_rounds(
    method: Any, network: Perfect, p: Block, carry: Any, noise: Array, tasks: Array, unroll: int
) -> Any:
    """As `simulated.run_rounds`; tasks (2, 2): workers for margins and for rounds, which work out
    the next round's margins as they go."""
    (state, (sent,)), node_form, rows = carry, method.form == "node", p.rows
    picked = jax.vmap(lambda words: p.pick(words).at)(noise[:, 0])  # (steps, v, b)
    first = jnp.searchsorted(p.links.owner, jnp.arange(len(p.ids) + 1)).astype(jnp.int32)
    rho = p.links.rho.astype(jnp.float64)
    gamma = 1 / (1 / method.eta + p.links.total)
    threshold, shrink = soft(p.penalty.members[0], gamma)

    def pieces(columns: int) -> Any:
        many = -(-rows.values.shape[1] // columns)
        return jax.ShapeDtypeStruct((many, *picked.shape[1:]), jnp.float64)

    def body(carry: Any, now: tuple[Array, Array]) -> tuple[Any, None]:
        (state, sent, margins), (words, coming) = carry, now
        here = p._replace(rows=Known(rows.values, rows.tile, margins))
        draw, memory = method.gradient.draw(here, state.X, state.memory, words[0])
        part = jnp.zeros_like(gamma) if draw.part is None else draw.part
        last = state.gain if node_form else 1 / method.eta
        ridge = jnp.broadcast_to(p.loss.ridge, gamma.shape)
        columns = (part, gamma, p.links.total, ridge, threshold, shrink, last)
        of_node = jnp.concatenate(columns, 1).astype(jnp.float64)
        slopes = draw.slopes.astype(jnp.float64)
        args: tuple[Any, ...] = (tasks[1], rows.values, draw.pick.at, state.X, slopes)
        args += (of_node, first, network.other, rho, draw.base)
        args += (state.S, state.R) if node_form else (sent, network.reverse)
        args += (coming,) if draw.part is None else (coming, draw.new, memory.table)
        changed = [k for k, yes in ((3, True), (9, True), (10, True), (11, node_form)) if yes]
        changed += [14] if len(args) > 14 else []
        *results, margins = jax.ffi.ffi_call(
            TARGET,
            [
                *(jax.ShapeDtypeStruct(args[k].shape, args[k].dtype) for k in changed),
                pieces(kernels.COLUMNS),
            ],
            input_output_aliases={k: at for at, k in enumerate(changed)},
        )(*args)
        new = dict(zip(changed, results, strict=True))
        memory = memory._replace(mean=new[9], table=new.get(14, memory.table))
        margins = margins.sum(0).astype(state.X.dtype)
        if not node_form:
            return (state._replace(X=new[3], memory=memory), new[10], margins), None
        state = state._replace(X=new[3], S=new[10], R=new[11], memory=memory)
        return (state._replace(gain=jnp.minimum(2 * state.gain, 2)), (), margins), None

    look: Any = jax.ffi.ffi_call(TARGET, pieces(kernels.DOT_COLUMNS))
    margins = look(tasks[0], rows.values, picked[0], state.X).sum(0).astype(state.X.dtype)
    # in node form the outbox is X again, and one of the two would be copied every round
    carried = (state, () if node_form else sent, margins)
    coming = jnp.roll(picked, -1, 0)  # of the last round nobody's
    state, sent, _ = lax.scan(body, carried, (noise, coming))[0]
    return state, (state.X if node_form else sent,)


class NativeSimulator(Simulator):
    program = staticmethod(run_rounds)

    def arguments(self, carry: Any, first: int, steps: int) -> tuple[Any, ...]:
        words = self.words(first, steps)
        return self.method, self.network, self.block, carry, words, self.tasks()

    def tasks(self) -> Array:
        """Addresses in this process, so never part of a program, and the columns of a piece."""
        register()
        bits = 8 * self.dtype.itemsize, 8 * self.block.rows.values.dtype.itemsize
        kind = kernels.NODE_ROUND if self.method.form == "node" else kernels.EDGE_ROUND
        both = (kernels.MARGINS, kernels.DOT_COLUMNS), (kind, kernels.COLUMNS)
        return jnp.asarray([[worker(k, *bits).address, width] for k, width in both], jnp.int64)

"""The GPU's kernels, in place of what XLA makes of rounds and full passes.

At 50 nodes and 2000 unknowns a round's arithmetic takes less time than launching its kernels, so
there should be few; and a pass over the nodes that are due, decided by a branch, has the host wait
for the GPU in every round. See docs/performance.md for what that came to.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from edgewise.backend.declared import declared
from edgewise.backend.pytree import pytree
from edgewise.engines import simulator as simulated
from edgewise.engines.native import gpu_kernels as kernels
from edgewise.engines.native.formulas import IN_PARTS
from edgewise.engines.native.soft_threshold import threshold_and_shrink, thresholds_softly
from edgewise.engines.simulator import Simulator
from edgewise.engines.wires import DirectWires
from edgewise.problem.block import Block
from edgewise.problem.passes import SampleChunk
from edgewise.problem.rows import Dense


@pytree("tile")
class DenseInPlace(Dense):
    """Rows that are read where they lie, not gathered first."""

    values: Any
    tile: int

    def take(self, at: Array) -> Array:
        return at

    def dot(self, taken: Array, W: Array) -> Array:
        return kernels.margins(self.values, taken, W)

    def spread(self, taken: Array, s: Array) -> Array:
        return super().spread(super().take(taken), s)


class GpuBlock(Block):
    """A block whose full passes are two kernels, whoever is due."""

    def refresh(self, table: Any, mean: Array, X: Any, due: Array) -> tuple[Any, Array]:
        models = (X(lambda a: a) if callable(X) else X).astype(mean.dtype)
        rows, due_now = self.rows, kernels.Due(due, self.first, self.counts)
        into = jnp.zeros(self.labels.shape, mean.dtype) if table is None else table
        into = kernels.slopes_anew(
            self.loss, rows.values, self.labels, self.scale, due_now, rows.tile, models, into
        )
        mean = kernels.means_anew(rows.values, due_now, into, mean)
        return None if table is None else into, mean

    def node_means(
        self, X: Array, each: Callable[[SampleChunk, Array], Array], due: Array | None = None
    ) -> Array:
        gathered = Dense(self.rows.values, self.rows.tile)
        return Block(*self)._replace(rows=gathered).node_means(X, each, due)


def on_gpu(p: Block) -> Block:
    return GpuBlock(*p)._replace(rows=DenseInPlace(p.rows.values, p.rows.tile))


def begin(method: Any, p: Block, X: Array, duals: Array | None) -> Any:
    return simulated.begin(method, on_gpu(p), X, duals)


def run_rounds(
    method: Any,
    network: DirectWires,
    p: Block,
    carry: Any,
    random_bits: Array,
    fresh: Any,
    unroll: int,
) -> Any:
    """As `simulated.run_rounds`, with the block's passes replaced."""
    return simulated.run_rounds(method, network, on_gpu(p), carry, random_bits, fresh, unroll)


def run_whole_rounds(
    method: Any,
    network: DirectWires,
    p: Block,
    carry: Any,
    random_bits: Array,
    fresh: Any,
    unroll: int,
) -> Any:
    """As `simulated.run_rounds`, for primal-dual methods: all that follows a draw is one kernel."""
    state, (sent,) = carry
    node_form = method.form == "node"
    p = on_gpu(p)
    gamma = 1 / (1 / method.eta + p.links.total)
    second = p.links.total if node_form else 1 / method.eta
    columns = [gamma, second, p.loss.ridge, *threshold_and_shrink(p.penalty.members[0], gamma)]
    of_node = jnp.concatenate([jnp.broadcast_to(a, gamma.shape) for a in columns], 1)
    rho = p.links.row("rho")
    if not node_form:
        back = network.reverse.at[p.links.slots].get(mode="fill", fill_value=0)

    def body(carry: Any, random_bits: Array) -> tuple[Any, None]:
        state, sent = carry
        drawn, memory = method.gradient.draw(p, state.X, state.memory, random_bits[0])
        draw = p.rows.values, drawn.pick.at, drawn.slopes
        kept = () if drawn.part is None else (drawn.part, drawn.new, memory.table)
        if node_form:
            X, S, R, *after = kernels.node_round(
                draw, state.X, state.S, state.R, drawn.base, kept, state.gain, of_node,
                (network.neighbours, rho),
            )  # fmt: skip
            state = state._replace(S=S, R=R, gain=jnp.minimum(2 * state.gain, 2))
        else:
            X, sent, *after = kernels.edge_round(
                draw, state.X, drawn.base, kept, of_node, (p.links.slots, back, rho), sent
            )
        if kept:
            memory = memory._replace(mean=after[0], table=after[1])
        return (state._replace(X=X, memory=memory), sent), None

    # in node form the outbox is X again, and one of the two would be copied every round
    start = (state, () if node_form else sent)
    state, sent = lax.scan(body, start, random_bits, unroll=unroll)[0]
    return state, (state.X if node_form else sent,)


class GpuSimulator(Simulator):
    begin = staticmethod(begin)

    def __init__(self, problem: Any, graph: Any, method: Any, seed: int, dtype: Any) -> None:
        super().__init__(problem, graph, method, seed, dtype)
        whole = (
            declared(method) == "primal-dual"
            and declared(method.gradient) in IN_PARTS
            and self.block.links.slots is not None
            and thresholds_softly(problem)
        )
        self.options = {}
        self.program = run_whole_rounds if whole else run_rounds

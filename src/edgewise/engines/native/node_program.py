"""Many rounds of many nodes in one call, by one thread that leads and others that help."""

# mypy: ignore-errors
# (Numba has types of its own.)
from pathlib import Path

from numba import int64, njit

from edgewise.engines.native import program, work_sharing
from edgewise.engines.native.node_kernels import nodes_round, reading
from edgewise.engines.native.program import drawn_in
from edgewise.engines.native.vectors import keep_apart, unowned

COMPILED = (*program.COMPILED, "local_kernels", "node_kernels", "node_program")
LEAST_NODES, MOST_NODES, PIECES = 16, 2048, 64  # of a piece; pieces of a round, within that


@njit
def piece(rule, samples, state, spare, edges, numbers, memory, drawn, model, size, k):
    """The k-th; models are in state.X in even rounds, in `spare` in odd ones."""
    keep_apart()
    even = drawn.now % 2 == 0
    now = state if even else reading(state, spare)
    into = spare if even else state.X
    last = min((k + 1) * size, state.X.shape[1])
    nodes_round(rule, samples, now, into, edges, numbers, memory, drawn, model, k * size, last)


@njit
def work_here(
    thread, rule, samples, state, spare, edges, numbers, memory,
    picked, coins, slopes, margins, models, shared,
):  # fmt: skip
    """As in `program`: picked (rounds, v b), coins (rounds, v or 0); models (threads, n)."""
    model, nodes = models[thread], state.X.shape[1]
    size = min(max(nodes // PIECES, LEAST_NODES), MOST_NODES)
    pieces, looks, helping = int64(-(-nodes // size)), 0, thread > 0
    if helping:
        while not work_sharing.stopped(shared):
            k = work_sharing.take(shared, True)
            if k < 0:
                looks += 1
                if looks > work_sharing.PATIENCE:
                    work_sharing.give_way()
                continue
            looks = 0
            drawn = drawn_in(picked, coins, slopes, margins, shared[work_sharing.ROUND])
            piece(rule, samples, state, spare, edges, numbers, memory, drawn, model, size, k)
            work_sharing.finish(shared)
        return
    for t in range(len(picked)):
        drawn = drawn_in(picked, coins, slopes, margins, t)
        work_sharing.offer(shared, 0, t, pieces)
        k = work_sharing.take(shared, False)
        while k >= 0:
            piece(rule, samples, state, spare, edges, numbers, memory, drawn, model, size, k)
            work_sharing.finish(shared)
            k = work_sharing.take(shared, False)
        work_sharing.wait(shared, pieces)
    work_sharing.stop(shared)


def kept_with(number):
    """As in `program`."""

    @njit(nogil=True, cache=True)
    def work(*args):
        if number >= 0:
            work_here(*unowned(args))

    return work


work = kept_with(program.sources(Path(__file__).parent, COMPILED))

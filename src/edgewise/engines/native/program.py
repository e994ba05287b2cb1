"""Many compiled rounds in one call, by one thread that leads and others that help."""

# mypy: ignore-errors
# (Numba has types of its own.)
import hashlib
from pathlib import Path

from numba import int64, njit

from edgewise.engines.native import kernels, sketch_kernels, work_sharing
from edgewise.engines.native.edge_kernels import edge_round
from edgewise.engines.native.estimators import (
    ASVRG,
    LSVRG,
    SEGA,
    add_up,
    draw,
    epochs,
    pass_piece,
    plan_pass,
)
from edgewise.engines.native.kernels import GAIN, Drawn
from edgewise.engines.native.vectors import keep_apart, unowned

COMPILED = (
    "edge_kernels",
    "estimators",
    "kernels",
    "program",
    "sketch_kernels",
    "vector_math",
    "vectors",
    "work_sharing",
)  # files of this folder
# kinds of pieces; a look again is at what lies elsewhere since full passes, a sketch at all data
LOOK, LOOK_AGAIN, ROUND, PASS, SKETCH = 0, 1, 2, 3, 4


@njit
def piece(kind, rule, samples, state, edges, numbers, memory, full, sketches, drawn, scratch, k):
    keep_apart()
    if kind == SKETCH:
        counts, first, now = samples.counts, samples.first, drawn.now
        args = samples.rows, counts, first, state.X, sketches, now, k, scratch
        sketch_kernels.look_piece(rule, *args)
        return
    if kind == PASS:
        pass_piece(rule, samples, memory, full, k)
        return
    if kind in (LOOK, LOOK_AGAIN):
        kernels.margins(samples.rows, state, numbers, drawn.at, k, drawn.margins)
    elif rule.edge_form:
        edge_round(samples.rows, state, edges, numbers, drawn, k)
    else:
        kernels.node_round(samples.rows, state, edges, numbers, drawn, k, scratch)
    kernels.journey(state, k, memory.moves)


@njit
def there_and_back(k, pieces, threads, t):
    """The panel that is a round's k-th piece. Every other round a thread goes through its panels in
    reverse: those that it had last are still in its own cache."""
    if t % 2 == 0:
        return k
    half = pieces // threads
    return half - 1 - k if k < half else pieces - 1 - k + half


@njit
def drawn_in(picked, coins, slopes, margins, t):
    last = len(picked) - 1
    now = min(t, last)
    coming = picked[min(t + 1, last)]
    return Drawn(picked[now], coming, slopes, margins, coins[now], t, len(picked))


@njit
def work_here(
    thread, rule, samples, state, edges, numbers, memory, full, sketches,
    picked, coins, slopes, margins, scratch, shared,
):  # fmt: skip
    """picked (rounds, v b): the samples of every round, none where gradients are sketches; coins
    (rounds, v or 0). Thread 0 leads. All threads run the same function, compiled once."""
    own, helping = scratch[thread], thread > 0
    rounds = 0 if helping else len(picked)
    panels, looks, i = int64(len(state.X)), 0, int64(0)
    if helping:
        while not work_sharing.stopped(shared):
            k = work_sharing.take(shared, True)
            if k < 0:
                looks += 1
                if looks > work_sharing.PATIENCE:
                    work_sharing.give_way()
                continue
            looks, kind = 0, shared[work_sharing.KIND]
            drawn = drawn_in(picked, coins, slopes, margins, shared[work_sharing.ROUND])
            if kind == ROUND:
                k = there_and_back(k, panels, len(scratch), drawn.now)
            piece(kind, rule, samples, state, edges, numbers, memory, full, sketches, drawn, own, k)
            work_sharing.finish(shared)
    # jobs of the leader: a look at margins, then of each round full passes, where any node is
    # due, and the round itself. Coins are tossed in a round, for passes after it
    t, kind = int64(0), int64(LOOK)
    while t < rounds or kind == PASS:
        drawn, pieces = drawn_in(picked, coins, slopes, margins, t), panels
        if kind == PASS:
            pieces, i = plan_pass(rule, samples, memory, state, numbers, full, i)
        if kind == SKETCH:
            sketch_kernels.look_ahead(state, sketches, t)
            pieces = int64(len(sketches.pieces) - 1)
        if kind == ROUND:
            draw(rule, samples, memory, state, drawn)
        work_sharing.offer(shared, kind, t, pieces)
        k = work_sharing.take(shared, False)
        while k >= 0:
            at = there_and_back(k, panels, len(scratch), t) if kind == ROUND else k
            piece(
                kind, rule, samples, state, edges, numbers, memory, full, sketches, drawn, own, at
            )
            work_sharing.finish(shared)
            k = work_sharing.take(shared, False)
        work_sharing.wait(shared, pieces)
        if kind == PASS:
            add_up(samples, state, full, pieces)
            if i == len(memory.due):
                kind = int64(LOOK_AGAIN if rule.estimator == ASVRG else ROUND)
            continue
        if kind == SKETCH:
            sketch_kernels.show(samples.counts, state, sketches, t)
        if kind in (LOOK_AGAIN, SKETCH):
            kind = int64(ROUND)
            continue
        if kind == ROUND:
            if rule.estimator == SEGA:
                sketch_kernels.keep(state, sketches, t)
            t += 1
            if not rule.edge_form:
                for j in range(len(numbers)):
                    numbers[j, GAIN] = min(2 * numbers[j, GAIN], 2)
        i, kind = int64(0), int64(SKETCH if rule.estimator == SEGA else ROUND)
        if (t < rounds or rule.estimator == LSVRG) and epochs(rule, samples, memory, numbers):
            kind = int64(PASS)
    if not helping:
        work_sharing.stop(shared)


def sources(folder, names):
    """A number that changes with the files that compiled code comes from."""
    files = (folder / f"{name}.py" for name in names)
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()
    return int.from_bytes(digest[:7], "little")


def kept_with(number):
    """Numba keeps compiled code until the file of the outermost function changes. Of what that one
    calls it sees nothing, but for numbers that enclose it."""

    @njit(nogil=True, cache=True)
    def work(*args):
        if number >= 0:
            work_here(*unowned(args))

    return work


work = kept_with(sources(Path(__file__).parent, COMPILED))

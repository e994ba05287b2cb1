"""A round of the primal-dual method in one pass over the state, a panel of columns at a time.

Columns do not mix but in a sample's margin <d, x>, so a panel of them, few enough to stay in the
nearest caches, is brought through a whole round: pulls from the neighbours, gradients, prox, duals.
The formulas are those of `methods.primal_dual`, which the tests hold them to.

Arrays of the state have the shape (panels, nodes or edges, COLUMNS), so that a panel is read as it
lies: it was a seventh faster than rows of all columns. Beyond the last column they hold zeros. They
are changed in place. A round also works out the margins of the next one's samples: so rows come
from memory while other columns are worked on.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from typing import Any, NamedTuple

from numba import njit, uint64

from edgewise.engines.native.vectors import (
    WIDTH,
    address,
    bytes_each,
    clip,
    filled,
    keep_apart,
    load,
    load_first,
    prefetch,
    store,
    sum_of,
    unowned,
    vector_like,
    widened,
    width_of,
)

COLUMNS = 4 * WIDTH  # 51 kB of 50 nodes
LINE = 64  # bytes of a cache line
AHEAD = 3  # nodes; what memory takes to answer
FAST = {"contract", "nsz"}
# columns of a node's numbers; GAIN is what the edge form has 1 / eta in, BETA is momentum
PART, GAMMA, DEGREE, RIDGE, THRESHOLD, SHRINK, GAIN, KEPT, BETA, NUMBERS = range(10)


class PanelState(NamedTuple):
    """In panels; empty where a method or an estimator has no such thing."""

    X: Any
    mean: Any  # gradient remembered
    S: Any  # node form
    R: Any
    sent: Any  # edge form: (panels, edges, COLUMNS), and what `edge_kernels` has instead meanwhile
    even: Any
    odd: Any
    heard: Any
    said: Any
    total: Any  # sum of an epoch's iterates
    start: Any  # an epoch's first iterate; where a coin says so, the next snapshot
    last: Any  # the iterate before
    center: Any  # the snapshot, where gradients are taken between it and the iterate


class Edges(NamedTuple):
    """Directed, in the order of their owners."""

    begin: Any  # (v + 1,) a node's first
    other: Any  # (e,) the far end
    reverse: Any  # (e,) the same edge the other way
    rho: Any  # (e,)


class Drawn(NamedTuple):
    """The samples of a round, b of each node in turn."""

    at: Any  # (v b,) which rows
    coming: Any  # (v b,) those of the next round
    slopes: Any  # (v b,) of the gradient, times the samples' shares
    margins: Any  # (panels, v b) of the next round's, to be worked out
    coins: Any  # (v,) random bits; (0,) where estimators toss none
    now: Any  # which round of this stretch it is
    rounds: Any  # of this stretch


@njit(forceinline=True)
def panel(a, k):
    """The address of a panel."""
    return address(a) + a.itemsize * k * a.shape[1] * COLUMNS


@njit(fastmath=FAST, forceinline=True)
def row_from(rows, row, c, like, row_like):
    """A row's features from column c on, zeros beyond its end."""
    n = rows.shape[1]
    begin = address(rows) + bytes_each(row_like) * (row * n + c)
    if c + width_of(row_like) <= n:
        return widened(load(begin, row_like), like)
    return widened(load_first(begin, n - c, row_like), like)


@njit(fastmath=FAST, forceinline=True)
def point(x, center, here, beta, like):
    """Where a gradient is taken; center: the panel of snapshots, or 0 where it is taken at x."""
    if center == 0:
        return x
    return filled(1 - beta, like) * load(center + here, like) + filled(beta, like) * x


@njit(forceinline=True)
def centers(state, k):
    return panel(state.center, k) if state.center.size else 0


@njit(fastmath=FAST, forceinline=True)
def margin(rows, row, X, center, i, beta, lo, like, row_like):
    """<d, x> over a panel that begins at column `lo`, of node i."""
    z = filled(0.0, like)
    for c in range(0, min(COLUMNS, rows.shape[1] - lo), WIDTH):
        here = bytes_each(like) * (i * COLUMNS + c)
        x = point(load(X + here, like), center, here, beta, like)
        z += row_from(rows, row, lo + c, like, row_like) * x
    return sum_of(z)


@njit(fastmath=FAST)
def margins(rows, state, numbers, at, k, out):
    """Over the k-th panel, of the samples `at` of each node in turn."""
    keep_apart()
    rows, state, at, out = unowned(rows), unowned(state), unowned(at), unowned(out)
    numbers = unowned(numbers)
    like, row_like = vector_like(state.X), vector_like(rows)
    batch, X, C = len(at) // state.X.shape[1], panel(state.X, k), centers(state, k)
    for q in range(len(at)):
        i = q // batch
        beta = numbers[i, BETA]
        out[k, q] = margin(rows, at[q], X, C, i, beta, k * COLUMNS, like, row_like)


@njit(fastmath=FAST)
def journey(state, k, moves):
    """|x - last|^2 and |x - start|^2 over the k-th panel, of every node."""
    keep_apart()
    if state.last.size == 0:
        return
    state, moves = unowned(state), unowned(moves)
    like = vector_like(state.X)
    for i in range(state.X.shape[1]):
        moved, gained = filled(0.0, like), filled(0.0, like)
        for c in range(0, COLUMNS, WIDTH):
            here = bytes_each(like) * (i * COLUMNS + c)
            x = load(panel(state.X, k) + here, like)
            move = x - load(panel(state.last, k) + here, like)
            gain = x - load(panel(state.start, k) + here, like)
            moved += move * move
            gained += gain * gain
        moves[k, i, 0], moves[k, i, 1] = sum_of(moved), sum_of(gained)


@njit(fastmath=FAST, forceinline=True)
def fetch_row(rows, row, c, row_like):
    """A vector of a row will be wanted."""
    begin = address(rows) + bytes_each(row_like) * (row * rows.shape[1] + c)
    for line in range(begin, begin + bytes_each(row_like) * WIDTH, LINE):
        prefetch(line)


@njit(fastmath=FAST, forceinline=True)
def sampled(rows, drawn, first, last, c, like, row_like):
    """sum_q slope_q d_q over a node's samples, from column c on."""
    moved = filled(0.0, like)
    for q in range(first, last):
        at = uint64(q)
        moved += filled(drawn.slopes[at], like) * row_from(rows, drawn.at[at], c, like, row_like)
    return moved


@njit(fastmath=FAST, forceinline=True)
def remember(state, k, here, x, mean, moved, numbers, i, like):
    """What estimators keep of a round, besides slopes; x: where the gradient was taken."""
    if numbers[i, PART] != 0:
        store(panel(state.mean, k) + here, mean + filled(numbers[i, PART], like) * moved)
    if state.total.size:
        T = panel(state.total, k) + here
        store(T, filled(numbers[i, KEPT], like) * (load(T, like) + x))
    if state.last.size:
        store(panel(state.last, k) + here, x)


@njit(fastmath=FAST)
def node_round(rows, state, edges, numbers, drawn, k, scratch):
    """scratch (v COLUMNS,): this thread's."""
    keep_apart()
    rows, state, edges = unowned(rows), unowned(state), unowned(edges)
    numbers, drawn, scratch = unowned(numbers), unowned(drawn), unowned(scratch)
    like, row_like = vector_like(state.X), vector_like(rows)
    V, n, lo, number = state.X.shape[1], rows.shape[1], k * COLUMNS, bytes_each(like)
    batch, begin, other, rho = len(drawn.at) // V, edges.begin, edges.other, edges.rho
    X, M, S, R = panel(state.X, k), panel(state.mean, k), panel(state.S, k), panel(state.R, k)
    C, old, alone = centers(state, k), address(scratch), batch == 1
    for c in range(0, V * COLUMNS, WIDTH):
        store(old + number * c, load(X + number * c, like))
    for i in range(V):
        later = min(i + AHEAD, V - 1)
        gamma, degree = filled(numbers[i, GAMMA], like), filled(numbers[i, DEGREE], like)
        ridge, gain = filled(numbers[i, RIDGE], like), filled(numbers[i, GAIN], like)
        threshold, shrink = filled(numbers[i, THRESHOLD], like), filled(numbers[i, SHRINK], like)
        beta, z = numbers[i, BETA], filled(0.0, like)
        for c in range(0, min(COLUMNS, n - lo), WIDTH):
            for q in range(batch * later, batch * (later + 1)):
                fetch_row(rows, drawn.at[uint64(q)], lo + c, row_like)
                fetch_row(rows, drawn.coming[uint64(q)], lo + c, row_like)
            here = number * (i * COLUMNS + c)
            x, mean = load(old + here, like), load(M + here, like)
            pull = filled(0.0, like)
            for e in range(begin[i], begin[i + 1]):
                theirs = load(old + number * (other[uint64(e)] * COLUMNS + c), like)
                pull += filled(rho[uint64(e)], like) * (theirs - x)
            moved = sampled(rows, drawn, batch * i, batch * (i + 1), lo + c, like, row_like)
            s = load(S + here, like) + gain * pull
            store(S + here, s)
            u = s + load(R + here, like)
            at = point(x, C, here, beta, like)
            y = x + gamma * (u - moved - mean - ridge * at)
            new = (y - clip(y, threshold)) * shrink
            store(R + here, degree * (new - x) - u)
            store(X + here, new)
            remember(state, k, here, at, mean, moved, numbers, i, like)
            if alone:
                d = row_from(rows, drawn.coming[uint64(i)], lo + c, like, row_like)
                z += d * point(new, C, here, beta, like)
        if alone:
            drawn.margins[k, i] = sum_of(z)
            continue
        for q in range(batch * i, batch * (i + 1)):
            drawn.margins[k, q] = margin(rows, drawn.coming[q], X, C, i, beta, lo, like, row_like)

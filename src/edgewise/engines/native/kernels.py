"""A round of the primal-dual method in one pass over the state, a panel of columns at a time.

Columns do not mix but in a sample's margin <d, x>, so a panel of them, few enough to stay in the
nearest caches, is brought through a whole round: pulls from the neighbours, gradients, prox, duals.
The formulas are those of `methods.primal_dual`, which the tests hold them to.

Arrays of the state have the shape (panels, nodes or edges, COLUMNS), so that a panel is read as it
lies: it was a seventh faster than rows of all columns. Beyond the last column they hold zeros.

Arguments of a call: 0 the worker's address, 1 the rows of data, 2 which are picked (v, b), 3 X; of
a round also 4 slopes (v, b), 5 numbers of each node (v, 8), 6 where its edges begin, 7 their far
ends, 8 rho, 9 the mean gradient; 10 S and 11 R, or 10 the messages and 11 the same edges the other
way; 12 what will be picked next (v, b); then, where slopes are remembered, 13 new ones (v, b) and
14 their table, or where iterates are summed, 13 their sum. What belongs to the state is changed in
place. The last result is margins (panels, v, b), of a round those of the next one: so rows come
from memory while other columns are worked on.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from typing import Any

from numba import carray, cfunc, float32, float64, int32, int64, njit

from edgewise.engines.native import pool
from edgewise.engines.native.lanes import (
    WIDTH,
    clip,
    every,
    get,
    get_first,
    lanes32,
    lanes64,
    put,
    size,
    total,
    widened,
)
from edgewise.engines.native.pool import at, operand, word

COLUMNS = 4 * WIDTH  # 51 kB of 50 nodes
LINE = 64  # bytes of a cache line
AHEAD = 3  # nodes; what memory takes to answer
MARGINS, NODE_ROUND, EDGE_ROUND = 0, 1, 2
FAST = {"contract", "nsz"}


@njit(forceinline=True)
def features(frame):
    return word(operand(frame, 1)[1] + 8)


@njit(forceinline=True)
def panel(frame, argument, k, like):
    """The address of the k-th panel of an argument, and how many rows it has."""
    begin, shape = operand(frame, argument)
    return begin + size(like) * k * word(shape + 8) * COLUMNS, word(shape + 8)


@njit(fastmath=FAST, forceinline=True)
def row_from(rows, row, c, n, like, row_like):
    """A row's features from column c on, zeros beyond its end."""
    begin = rows + size(row_like) * (row * n + c)
    if c + WIDTH <= n:
        return widened(get(begin, row_like), like)
    return widened(get_first(begin, n - c, row_like), like)


@njit(fastmath=FAST, forceinline=True)
def margin(rows, row, x, lo, n, like, row_like):
    """<d, x> over a panel that begins at column `lo`; x is the address of a model there."""
    z = every(0.0, like)
    for c in range(0, min(COLUMNS, n - lo), WIDTH):
        z += row_from(rows, row, lo + c, n, like, row_like) * get(x + size(like) * c, like)
    return total(z)


@njit(fastmath=FAST)
def margins(frame, k, like, row_like):
    rows, (picked, sizes), (x, V) = (
        operand(frame, 1)[0],
        operand(frame, 2),
        panel(frame, 3, k, like),
    )
    n, batch = features(frame), word(sizes + 8)
    out = margins_of(frame, k)
    for q in range(V * batch):
        x_i = x + size(like) * (q // batch) * COLUMNS
        out[q] = margin(rows, word(picked + 8 * q), x_i, k * COLUMNS, n, like, row_like)


@njit(forceinline=True)
def margins_of(frame, k):
    """(v b,) the k-th panel's."""
    sizes = operand(frame, 2)[1]
    many = word(sizes) * word(sizes + 8)
    return carray(at(pool.last_result(frame) + 8 * k * many), (many,), float64)


@njit(fastmath=FAST, forceinline=True)
def soon(rows, row, c, n, row_like):
    """A vector of a row will be wanted."""
    begin = rows + size(row_like) * (row * n + c)
    for line in range(begin, begin + size(row_like) * WIDTH, LINE):
        pool.fetch(line)


@njit(fastmath=FAST, forceinline=True)
def sampled(rows, picked, slopes, own, c, n, like, row_like):
    """sum_q slope_q d_q over a node's `own` samples, from column c on."""
    moved = every(0.0, like)
    for q in range(own[0], own[1]):
        moved += every(slopes[q], like) * row_from(rows, picked[q], c, n, like, row_like)
    return moved


@njit(forceinline=True)
def samples(frame):
    """The rows of data, which are picked, and their slopes; and how many a node picks."""
    sizes = operand(frame, 2)[1]
    batch = word(sizes + 8)
    picked = carray(at(operand(frame, 2)[0]), (word(sizes) * batch,), int64)
    slopes = carray(at(operand(frame, 4)[0]), (word(sizes) * batch,), float64)
    return operand(frame, 1)[0], picked, slopes, batch


@njit(forceinline=True)
def summed(frame, k, like):
    """The address of a panel of the sum of iterates, or 0 where there is none."""
    return panel(frame, 13, k, like)[0] if pool.arguments(frame) == 14 else int64(0)


@njit(fastmath=FAST)
def node_round(frame, k, like, row_like):
    X, V = panel(frame, 3, k, like)
    n, lo, number = features(frame), k * COLUMNS, size(like)
    M, S = panel(frame, 9, k, like)[0], panel(frame, 10, k, like)[0]
    R, T = panel(frame, 11, k, like)[0], summed(frame, k, like)
    of = carray(at(operand(frame, 5)[0]), (V, 8), float64)
    first = carray(at(operand(frame, 6)[0]), (V + 1,), int32)
    other = carray(at(operand(frame, 7)[0]), (first[V],), int32)
    rho = carray(at(operand(frame, 8)[0]), (first[V],), float64)
    rows, picked, slopes, batch = samples(frame)
    scratch = pool.allocate(number * V * COLUMNS + LINE)
    old = (scratch + LINE - 1) // LINE * LINE  # else every vector would straddle two lines
    for c in range(0, V * COLUMNS, WIDTH):
        put(old + number * c, get(X + number * c, like))
    coming, ahead = carray(at(operand(frame, 12)[0]), (V * batch,), int64), margins_of(frame, k)
    for i in range(V):
        later = min(i + AHEAD, V - 1)
        part, gamma, degree = every(of[i, 0], like), every(of[i, 1], like), every(of[i, 2], like)
        ridge, threshold = every(of[i, 3], like), every(of[i, 4], like)
        shrink, gain, kept = every(of[i, 5], like), every(of[i, 6], like), every(of[i, 7], like)
        own = (batch * i, batch * (i + 1))
        for c in range(0, min(COLUMNS, n - lo), WIDTH):
            for q in range(batch * later, batch * (later + 1)):
                soon(rows, coming[q], lo + c, n, row_like)
            here = number * (i * COLUMNS + c)
            x, mean = get(old + here, like), get(M + here, like)
            pull = every(0.0, like)
            for e in range(first[i], first[i + 1]):
                theirs = get(old + number * (other[e] * COLUMNS + c), like)
                pull += every(rho[e], like) * (theirs - x)
            moved = sampled(rows, picked, slopes, own, lo + c, n, like, row_like)
            s = get(S + here, like) + gain * pull
            put(S + here, s)
            u = s + get(R + here, like)
            y = x + gamma * (u - moved - mean - ridge * x)
            new = (y - clip(y, threshold)) * shrink
            put(R + here, degree * (new - x) - u)
            put(X + here, new)
            if of[i, 0] != 0:
                put(M + here, mean + part * moved)
            if T != 0:
                put(T + here, kept * (get(T + here, like) + x))
        for q in range(batch * i, batch * (i + 1)):
            x_i = X + number * i * COLUMNS
            ahead[q] = margin(rows, coming[q], x_i, lo, n, like, row_like)
    pool.free(scratch)


@njit(fastmath=FAST)
def edge_round(frame, k, like, row_like):
    X, V = panel(frame, 3, k, like)
    n, lo, number = features(frame), k * COLUMNS, size(like)
    M, sent = panel(frame, 9, k, like)[0], panel(frame, 10, k, like)[0]
    T = summed(frame, k, like)
    of = carray(at(operand(frame, 5)[0]), (V, 8), float64)
    first = carray(at(operand(frame, 6)[0]), (V + 1,), int32)
    reverse = carray(at(operand(frame, 11)[0]), (first[V],), int32)
    other = carray(at(operand(frame, 7)[0]), (first[V],), int32)
    rho = carray(at(operand(frame, 8)[0]), (first[V],), float64)
    rows, picked, slopes, batch = samples(frame)
    for c in range(0, min(COLUMNS, n - lo), WIDTH):
        for i in range(V):
            part, gamma, rate = every(of[i, 0], like), every(of[i, 1], like), every(of[i, 6], like)
            ridge, threshold = every(of[i, 3], like), every(of[i, 4], like)
            here = number * (i * COLUMNS + c)
            x, mean = get(X + here, like), get(M + here, like)
            heard = every(0.0, like)
            for e in range(first[i], first[i + 1]):
                heard += get(sent + number * (reverse[e] * COLUMNS + c), like)
            own = (batch * i, batch * (i + 1))
            moved = sampled(rows, picked, slopes, own, lo + c, n, like, row_like)
            y = gamma * (x * rate - moved - mean - ridge * x + heard)
            put(X + here, (y - clip(y, threshold)) * every(of[i, 5], like))
            if of[i, 0] != 0:
                put(M + here, mean + part * moved)
            if T != 0:
                put(T + here, every(of[i, 7], like) * (get(T + here, like) + x))
        for i in range(V):
            x = get(X + number * (i * COLUMNS + c), like)
            for e in range(first[i], first[i + 1]):
                back = reverse[e]
                if e < back:  # both ways at once: each needs what the other was
                    mine = sent + number * (e * COLUMNS + c)
                    theirs = sent + number * (back * COLUMNS + c)
                    m, t, twice = get(mine, like), get(theirs, like), every(2 * rho[e], like)
                    put(mine, twice * x - t)
                    far = get(X + number * (other[e] * COLUMNS + c), like)
                    put(theirs, twice * far - m)
    coming, ahead = carray(at(operand(frame, 12)[0]), (V * batch,), int64), margins_of(frame, k)
    for q in range(V * batch):
        x_i = X + number * (q // batch) * COLUMNS
        ahead[q] = margin(rows, coming[q], x_i, lo, n, like, row_like)


def worker(kind: int, bits: int, row_bits: int) -> Any:
    """The C function that works at a job, for one kind of call and one pair of precisions."""

    @cfunc("int64(int64)", cache=True)
    def work(job):
        helping = job & 1
        job -= helping
        frame = word(job + pool.FRAME)  # gone, unless there is a piece left to take
        like = lanes64() if bits == 64 else lanes32()
        row_like = lanes64() if row_bits == 64 else lanes32()
        k = pool.take(job, helping)
        while k >= 0:
            if kind == MARGINS:
                margins(frame, k, like, row_like)
            elif kind == NODE_ROUND:
                node_round(frame, k, like, row_like)
            else:
                edge_round(frame, k, like, row_like)
            if kind != MARGINS and k == 0 and pool.arguments(frame) > 14:
                remember(frame, float64(0) if bits == 64 else float32(0))
            pool.add(job + pool.DONE, 1)
            k = pool.take(job, helping)
        if helping:
            pool.leave(job)
        return 0

    return work


@njit
def remember(frame, like):
    """New slopes into the table."""
    sizes = operand(frame, 2)[1]
    picked, slopes, table = operand(frame, 2)[0], operand(frame, 13)[0], operand(frame, 14)[0]
    for q in range(word(sizes) * word(sizes + 8)):
        put(table + size(like) * word(picked + 8 * q), get(slopes + size(like) * q, like))


@cfunc("int64(int64)", cache=True)
def handle(frame):
    """What XLA calls: offers the pieces to its other threads, and works at them itself."""
    if pool.only_asked(frame):
        return 0
    work, panels = word(operand(frame, 0)[0]), word(operand(frame, 3)[1])
    job = pool.share(frame, panels, work)
    pool.call(work, job)
    while pool.latest(job + pool.DONE) < panels:
        pass
    pool.leave(job)
    return 0

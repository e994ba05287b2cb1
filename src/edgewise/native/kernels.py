"""A round of the primal-dual method in one pass over the state, a stretch of columns at a time.

Columns do not mix but in a sample's margin <d, x>, so a stretch of them, few enough to stay in the
nearest cache, is brought through a whole round: pulls from the neighbours, gradients, prox, duals.
The formulas are those of `methods.primal_dual`, which the tests hold them to.

Arguments of a call: 0 (the worker's address, columns of a piece), 1 the rows of data, 2 which are
picked (v, b), 3 X; of a round also 4 slopes (v, b), 5 numbers of each node (v, 7), 6 where its
edges begin, 7 their far ends, 8 rho, 9 the mean gradient; 10 S and 11 R, or 10 the messages and 11
the same edges the other way; 12 what will be picked next (v, b); and where slopes are remembered,
13 new ones (v, b) and 14 their table. What belongs to the state is changed in place. The last
result is margins (pieces, v, b), of a round those of the next one: so rows come from memory while
other columns are worked on.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from typing import Any

from numba import carray, cfunc, float32, float64, int32, int64, njit

from edgewise.native import pool
from edgewise.native.lanes import (
    WIDTH,
    clip,
    count,
    every,
    get,
    lanes32,
    lanes64,
    put,
    size,
    total,
    widened,
)
from edgewise.native.pool import at, operand, word

COLUMNS = 4 * WIDTH  # 51 kB of 50 nodes
DOT_COLUMNS = 16 * WIDTH
LINE = 64  # bytes of a cache line
AHEAD = 3  # nodes; what memory takes to answer
MARGINS, NODE_ROUND, EDGE_ROUND = 0, 1, 2
FAST = {"contract", "nsz"}


@njit(fastmath=FAST, forceinline=True)
def margin(rows, row, x, begin, end, n, like, row_like):
    """<d, x> over these columns; x is the address of a model."""
    z = every(0.0, like)
    d = rows + size(row_like) * row * n
    for c in range(begin, end, count(like)):
        z += widened(get(d + size(row_like) * c, row_like), like) * get(x + size(like) * c, like)
    return total(z)


@njit(fastmath=FAST)
def margins(frame, k, lo, hi, like, row_like):
    rows, (picked, sizes), (X, shape) = operand(frame, 1)[0], operand(frame, 2), operand(frame, 3)
    n, batch = word(shape + 8), word(sizes + 8)
    out = margins_of(frame, k)
    for q in range(len(out)):
        x = X + size(like) * (q // batch) * n
        out[q] += margin(rows, word(picked + 8 * q), x, lo, hi, n, like, row_like)


@njit(forceinline=True)
def margins_of(frame, k):
    """(v b,) the k-th piece's."""
    sizes = operand(frame, 2)[1]
    many = word(sizes) * word(sizes + 8)
    return carray(at(pool.last_result(frame) + 8 * k * many), (many,), float64)


@njit(fastmath=FAST, forceinline=True)
def soon(rows, row, begin, end, n, row_like):
    """A stretch of a row will be wanted."""
    d = rows + size(row_like) * row * n
    for line in range(d + size(row_like) * begin, d + size(row_like) * end, LINE):
        pool.fetch(line)


@njit(fastmath=FAST, forceinline=True)
def sampled(rows, picked, slopes, own, begin, n, like, row_like):
    """sum_q slope_q d_q over a node's `own` samples, from column `begin`."""
    moved = every(0.0, like)
    for q in range(own[0], own[1]):
        d = get(rows + size(row_like) * (picked[q] * n + begin), row_like)
        moved += every(slopes[q], like) * widened(d, like)
    return moved


@njit(forceinline=True)
def samples(frame):
    """The rows of data, which are picked, and their slopes; and how many a node picks."""
    sizes = operand(frame, 2)[1]
    batch = word(sizes + 8)
    picked = carray(at(operand(frame, 2)[0]), (word(sizes) * batch,), int64)
    slopes = carray(at(operand(frame, 4)[0]), (word(sizes) * batch,), float64)
    return operand(frame, 1)[0], picked, slopes, batch


@njit(fastmath=FAST)
def node_round(frame, k, lo, hi, like, row_like):
    X, shape = operand(frame, 3)
    V, n, number, wide = word(shape), word(shape + 8), size(like), hi - lo
    M, S, R = operand(frame, 9)[0], operand(frame, 10)[0], operand(frame, 11)[0]
    of = carray(at(operand(frame, 5)[0]), (V, 7), float64)
    first = carray(at(operand(frame, 6)[0]), (V + 1,), int32)
    other = carray(at(operand(frame, 7)[0]), (first[V],), int32)
    rho = carray(at(operand(frame, 8)[0]), (first[V],), float64)
    rows, picked, slopes, batch = samples(frame)
    scratch = pool.allocate(number * V * wide + LINE)
    old = (scratch + LINE - 1) // LINE * LINE  # else every vector would straddle two lines
    for i in range(V):
        for c in range(0, wide, count(like)):
            put(old + number * (i * wide + c), get(X + number * (i * n + lo + c), like))
    coming, ahead = carray(at(operand(frame, 12)[0]), (V * batch,), int64), margins_of(frame, k)
    for i in range(V):
        later = min(i + AHEAD, V - 1)
        part, gamma, degree = every(of[i, 0], like), every(of[i, 1], like), every(of[i, 2], like)
        ridge, threshold = every(of[i, 3], like), every(of[i, 4], like)
        shrink, gain = every(of[i, 5], like), every(of[i, 6], like)
        own = (batch * i, batch * (i + 1))
        for c in range(0, wide, count(like)):
            for q in range(batch * later, batch * (later + 1)):
                soon(rows, coming[q], lo + c, lo + c + count(like), n, row_like)
            here = number * (i * n + lo + c)
            x, mean = get(old + number * (i * wide + c), like), get(M + here, like)
            pull = every(0.0, like)
            for e in range(first[i], first[i + 1]):
                theirs = get(old + number * (other[e] * wide + c), like)
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
        for q in range(batch * i, batch * (i + 1)):
            x_i = X + number * i * n
            ahead[q] += margin(rows, coming[q], x_i, lo, hi, n, like, row_like)
    pool.free(scratch)


@njit(fastmath=FAST)
def edge_round(frame, k, lo, hi, like, row_like):
    X, shape = operand(frame, 3)
    V, n, number = word(shape), word(shape + 8), size(like)
    M, sent = operand(frame, 9)[0], operand(frame, 10)[0]
    of = carray(at(operand(frame, 5)[0]), (V, 7), float64)
    first = carray(at(operand(frame, 6)[0]), (V + 1,), int32)
    reverse = carray(at(operand(frame, 11)[0]), (first[V],), int32)
    other = carray(at(operand(frame, 7)[0]), (first[V],), int32)
    rho = carray(at(operand(frame, 8)[0]), (first[V],), float64)
    rows, picked, slopes, batch = samples(frame)
    for c in range(lo, hi, count(like)):
        for i in range(V):
            part, gamma, rate = every(of[i, 0], like), every(of[i, 1], like), every(of[i, 6], like)
            ridge, threshold = every(of[i, 3], like), every(of[i, 4], like)
            here = number * (i * n + c)
            x, mean = get(X + here, like), get(M + here, like)
            heard = every(0.0, like)
            for e in range(first[i], first[i + 1]):
                heard += get(sent + number * (reverse[e] * n + c), like)
            own = (batch * i, batch * (i + 1))
            moved = sampled(rows, picked, slopes, own, c, n, like, row_like)
            y = gamma * (x * rate - moved - mean - ridge * x + heard)
            put(X + here, (y - clip(y, threshold)) * every(of[i, 5], like))
            if of[i, 0] != 0:
                put(M + here, mean + part * moved)
        for i in range(V):
            x = get(X + number * (i * n + c), like)
            for e in range(first[i], first[i + 1]):
                back = reverse[e]
                if e < back:  # both ways at once: each needs what the other was
                    mine, theirs = sent + number * (e * n + c), sent + number * (back * n + c)
                    m, t, twice = get(mine, like), get(theirs, like), every(2 * rho[e], like)
                    put(mine, twice * x - t)
                    put(theirs, twice * get(X + number * (other[e] * n + c), like) - m)
    coming, ahead = carray(at(operand(frame, 12)[0]), (V * batch,), int64), margins_of(frame, k)
    for q in range(V * batch):
        x_i = X + number * (q // batch) * n
        ahead[q] += margin(rows, coming[q], x_i, lo, hi, n, like, row_like)


def worker(kind: int, bits: int, row_bits: int) -> Any:
    """The C function that works at a job, for one kind of call and one pair of precisions."""

    @cfunc("int64(int64)", cache=True)
    def work(job):
        helping = job & 1
        job -= helping
        frame = word(job + pool.FRAME)  # gone, unless there is a piece left to take
        like = lanes64() if bits == 64 else lanes32()
        row_like = lanes64() if row_bits == 64 else lanes32()
        one = float64(0) if bits == 64 else float32(0)
        row_one = float64(0) if row_bits == 64 else float32(0)
        k = pool.take(job, helping)
        while k >= 0:
            n, width = word(operand(frame, 3)[1] + 8), word(operand(frame, 0)[0] + 8)
            lo, hi = width * k, min(width * (k + 1), n)
            even = lo + (hi - lo) // WIDTH * WIDTH  # then the columns that fill no vector
            margins_of(frame, k)[:] = 0.0
            if kind == MARGINS:
                margins(frame, k, lo, even, like, row_like)
                margins(frame, k, even, hi, one, row_one)
            elif kind == NODE_ROUND:
                node_round(frame, k, lo, even, like, row_like)
                node_round(frame, k, even, hi, one, row_one)
            else:
                edge_round(frame, k, lo, even, like, row_like)
                edge_round(frame, k, even, hi, one, row_one)
            if kind != MARGINS and k == 0 and pool.arguments(frame) > 13:
                remember(frame, one)
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
    task = operand(frame, 0)[0]
    n, work, width = word(operand(frame, 3)[1] + 8), word(task), word(task + 8)
    pieces = (n + width - 1) // width
    job = pool.share(frame, pieces, work)
    pool.call(work, job)
    while pool.latest(job + pool.DONE) < pieces:
        pass
    pool.leave(job)
    return 0

"""Local training with sparse rows: a step touches the coordinates of its sample only.

A round of a node is one pass that takes in what it heard, its steps (`lazy_coordinates`), and one
pass that says what it answers. Messages are sums over rounds, as in `edge_kernels`: a node reads
its neighbours' sums, so that nothing of an edge is read or written but at the ends of a stretch.
The formulas are those of `methods.local_training` and `gradients.saga`, which the tests hold them
to.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from edgewise.engines.native.estimators import slope_at
from edgewise.engines.native.lazy_coordinates import (
    begin_lazy,
    catch_up,
    later,
    rests,
    touch,
)
from edgewise.engines.native.lazy_looks import (
    correction,
    length,
    look,
    may_settle,
    own_move,
    undisturbed,
)
from edgewise.engines.native.local_kernels import picked, settled
from edgewise.engines.native.program import sources
from edgewise.engines.native.vectors import (
    WIDTH,
    address,
    bytes_each,
    filled,
    keep_apart,
    load,
    prefetch,
    store,
    unowned,
    vector_like,
)

COMPILED = (
    "estimators",
    "kernels",
    "lazy_coordinates",
    "lazy_looks",
    "local_kernels",
    "program",
    "sparse_kernels",
    "vectors",
)  # files of this folder
FAST = {"contract", "nsz"}
LINE = 64  # bytes of a cache line


class SparseRows(NamedTuple):
    values: Any
    columns: Any
    begin: Any  # (N + 1,) a row's first entry
    bias: Any  # () the intercept's coordinate, or -1


class Sums(NamedTuple):
    """Of a stretch of rounds, (v, n) each."""

    even: Any  # models after rounds of even number
    odd: Any
    heard: Any  # messages when it began
    said: Any


@njit(fastmath=FAST)
def add(a, into):
    keep_apart()
    for c in range(len(into)):
        into[c] += a[c]


@njit
def begin_sums(edges, sent, sums, first, last):
    """Of no rounds yet, of nodes first..last-1."""
    for i in range(first, last):
        heard, said = unowned(sums.heard[i]), unowned(sums.said[i])
        heard[:] = 0
        said[:] = 0
        sums.even[i] = 0
        sums.odd[i] = 0
        for e in range(edges.begin[i], edges.begin[i + 1]):
            add(sent[edges.reverse[e]], heard)
            add(sent[e], said)


@njit(fastmath=FAST)
def settle(edges, stiff, sent, sums, bias, rounds, first, last, into):
    """Messages so many rounds later, of both ways over the edges that nodes first..last-1 own and
    that come before their reverse."""
    even = rounds % 2 == 0
    late, early = (sums.even, sums.odd) if even else (sums.odd, sums.even)
    for i in range(first, last):
        for e in range(edges.begin[i], edges.begin[i + 1]):
            back, j = edges.reverse[e], edges.other[e]
            if e > back:
                continue
            m, t, mine, theirs = sent[e], sent[back], unowned(into[e]), unowned(into[back])
            ends = unowned(late[i]), unowned(late[j]), unowned(early[i]), unowned(early[j])
            along(2 * edges.rho[e], even, m, t, ends, 0, len(m), mine, theirs)
            if bias >= 0:
                along(2 * stiff[e], even, m, t, ends, bias, bias + 1, mine, theirs)


@njit(fastmath=FAST)
def along(twice, even, m, t, ends, first, last, mine, theirs):
    """An edge's two messages, of columns first..last-1."""
    keep_apart()
    late_i, late_j, early_i, early_j = ends
    for c in range(first, last):
        a, b = (m[c], t[c]) if even else (-t[c], -m[c])
        mine[c] = a + twice * (late_i[c] - early_j[c])
        theirs[c] = b + twice * (late_j[c] - early_i[c])


@njit(fastmath=FAST)
def take_in(edges, stiff, s, sums, bias, now, i, U, lazy):
    """What node i has heard before a round, and where its coordinates begin."""
    keep_apart()
    x, mean, n = unowned(s.X[i]), unowned(s.mean[i]), len(U)
    point, current = unowned(lazy.point), unowned(lazy.current)
    whole = n - n % WIDTH
    heard_in_vectors(edges, sums, now, i, whole, U)
    for c in range(whole, n):
        U[c] = heard_at(edges, edges.rho, sums, now, i, c)
    if bias >= 0:
        U[bias] = heard_at(edges, stiff, sums, now, i, bias)
    for c in range(n):
        point[c, 0], point[c, 1] = x[c], U[c] - mean[c]
    current[:] = 0


@njit(fastmath=FAST)
def heard_in_vectors(edges, sums, now, i, whole, U):
    """Into the first so many of U. Left to the compiler it took four times as long."""
    like = vector_like(U)
    number, n, even = bytes_each(like), len(U), now % 2 == 0
    begin, other, rho = unowned(edges.begin), unowned(edges.other), unowned(edges.rho)
    theirs, mine = address(sums.odd), address(sums.even)
    if even:
        theirs, mine = mine, theirs
    first, sign = address(sums.heard if even else sums.said), filled(1.0 if even else -1.0, like)
    for c in range(0, whole, WIDTH):
        here = number * (i * n + c)
        own, pull = load(mine + here, like), filled(0.0, like)
        for e in range(begin[i], begin[i + 1]):
            far = load(theirs + number * (other[e] * n + c), like)
            pull += filled(2 * rho[e], like) * (far - own)
        store(address(U) + number * c, sign * load(first + here, like) + pull)


@njit(fastmath=FAST)
def heard_at(edges, rho, sums, now, i, c):
    """Of one column."""
    even = now % 2 == 0
    theirs, mine = (sums.even, sums.odd) if even else (sums.odd, sums.even)
    pull = sums.heard[i, c] if even else -sums.said[i, c]
    for e in range(edges.begin[i], edges.begin[i + 1]):
        pull += 2 * rho[e] * (theirs[edges.other[e], c] - mine[i, c])
    return pull


@njit(fastmath=FAST)
def answer(usual, free, s, sums, bias, now, i, U, lazy, made):
    """All coordinates after the steps made, into node i's model, mean gradient and sum."""
    keep_apart()
    x, mean, n = unowned(s.X[i]), unowned(s.mean[i]), len(U)
    point, current = unowned(lazy.point), unowned(lazy.current)
    own = unowned(sums.odd[i] if now % 2 == 0 else sums.even[i])
    if bias >= 0 and current[bias] < made:
        m = made - current[bias]
        point[bias, 0] = later(free, bias, point[bias, 0], point[bias, 1], m)
        current[bias] = made
    for c in range(n):
        m, new, G = made - current[c], point[c, 0], point[c, 1]
        if m > 0 and not rests(usual, c, new, G):
            new = later(usual, c, new, G, m)
        x[c] = new
        own[c] += new
        if U[c] - mean[c] != G:  # as it was, or a sample has touched it
            mean[c] = U[c] - G


@njit(forceinline=True)
def fetch(a, begin, end):
    """What is next, while something else is worked on."""
    for at in range(address(a) + a.itemsize * begin, address(a) + a.itemsize * end, LINE):
        prefetch(at)


@njit
def train_sparse(
    rule, ridge, samples, edges, node, looks, s, sums, bits, now, first, last, U, lazy
):  # fmt: skip
    """A round of nodes first..last-1, by SAGA; U (n,) and `lazy` are this thread's."""
    rows = samples.rows
    values, columns, begin, bias = (
        unowned(rows.values),
        unowned(rows.columns),
        rows.begin,
        rows.bias,
    )
    rows = SparseRows(values, columns, begin, bias)
    U, point, current = unowned(U), unowned(lazy.point), unowned(lazy.current)
    there = 1 if bias >= 0 else 0
    intercept, one = np.full(there, bias, columns.dtype), np.ones(there, values.dtype)
    for i in range(first, last):
        before, K = unowned(s.X[i]), samples.counts[i]
        usual, free = begin_lazy(lazy, node, i, ridge)
        take_in(edges, node.stiff, s, sums, bias, now, i, U, lazy)
        most, own, watched = node.steps[i], len(U) - there, node.enough[i] > 0
        stretch, made, way, pull = -(-most // looks), 0, 0.0, max(node.gamma[i], node.free[i])
        if watched:
            way = undisturbed(usual, point, 0, own, most)
            way = np.sqrt(way + undisturbed(free, point, own, len(U), most))
        added = 0.0  # by samples so far, to gradients
        row = samples.first[i] + picked(bits[i, 0], K) if most > 0 else 0
        for t in range(most):
            at, with_ = columns[begin[row] : begin[row + 1]], values[begin[row] : begin[row + 1]]
            here = row
            if t + 1 < most:
                row = samples.first[i] + picked(bits[i, t + 1], K)
                fetch(columns, begin[row], begin[row + 1])
                fetch(values, begin[row], begin[row + 1])
            z = catch_up(usual, current, point, at, with_, t)
            z += catch_up(free, current, point, intercept, one, t)
            new = slope_at(rule, samples.labels, samples.scale, s.table, here, z)
            delta = new - s.table[here]
            s.table[here] = new
            settles = False
            if watched:  # the mean gradient has what was added before, shared out
                size = abs(delta) * length(with_, there)
                way += pull * (size + added / K)
                added += size
                if (t + 1) % stretch == 0:
                    moved = own_move(usual, point, at, with_, delta)
                    moved += own_move(free, point, intercept, one, delta)
                    if may_settle(node, i, moved, way):
                        moved, far = look(usual, current, point, before, 0, own, t)
                        more, longer = look(free, current, point, before, own, len(U), t)
                        moved, far = moved + more, far + longer
                        more, longer = correction(usual, point, before, at, with_, delta)
                        moved, far = moved + more, far + longer
                        more, longer = correction(free, point, before, intercept, one, delta)
                        settles = settled(node, i, moved + more, far + longer)
            touch(usual, current, point, at, with_, t, delta, K)
            touch(free, current, point, intercept, one, t, delta, K)
            made = t + 1
            if settles:
                break
        answer(usual, free, s, sums, bias, now, i, U, lazy, made)
        s.calls[i] += made


def kept_with(number):
    """As in `program`."""

    @njit(nogil=True, cache=True)
    def rounds(*args):
        if number >= 0:
            train_sparse(*args)

    @njit(nogil=True, cache=True)
    def beginning(*args):
        if number >= 0:
            begin_sums(*args)

    @njit(nogil=True, cache=True)
    def settling(*args):
        if number >= 0:
            settle(*args)

    return rounds, beginning, settling


rounds, beginning, settling = kept_with(sources(Path(__file__).parent, COMPILED))

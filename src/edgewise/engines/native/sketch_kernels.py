"""Coordinates of whole gradients, for SEGA: one pass over the data in a round, from margins or from
function values.

Samples go a tile at a time, as many as a vector has numbers. Of data that fit into a few caches
there is a copy whose tiles hold a feature after the other, so that margins of a tile need no sums
across a vector; larger data are read where they lie. The formulas are those of `gradients.sega` and
`gradients.finite_difference`, which the tests hold them to.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from typing import Any, NamedTuple

from numba import njit

from edgewise.engines.native.kernels import COLUMNS, FAST, row_from
from edgewise.engines.native.vector_math import slopes_of, values_of
from edgewise.engines.native.vectors import (
    WIDTH,
    address,
    bytes_each,
    filled,
    keep_apart,
    load,
    store,
    sum_of,
    unowned,
    vector_like,
    widened,
)


class Sketches(NamedTuple):
    """What a run of SEGA has besides; T tiles, of nodes in turn, the last of a node filled up."""

    at: Any  # (rounds, v b) coordinates
    parts: Any  # (P, 4) node, first and last tile, and the sample that its first tile begins with
    pieces: Any  # (pieces + 1,) parts of a job's pieces
    tiles: Any  # (T, n, WIDTH) copies of samples; (0, n, WIDTH) where they are read as they lie
    labels: Any  # (T WIDTH,)
    weights: Any  # (T WIDTH,) of the samples' losses, zero beyond a node's last
    each: Any  # (T WIDTH,) slopes, or margins where values are asked for
    sums: Any  # (P, 1 + b) losses, then of every coordinate slopes times features, or losses ahead
    ahead: Any  # (v b,) how far ahead these losses were taken
    seen: Any  # (v b,) what is to be remembered after a round
    step: Any  # (1,) of differences; 0: coordinates are exact
    scale: Any  # (1,) coordinates in all to one that is asked for, n / b
    ridge: Any  # (1,)


@njit(fastmath=FAST, forceinline=True)
def tile_margins(tiles, tile, X, i, like, tile_like):
    """<d, x> of a tile's samples."""
    n, many = tiles.shape[1], bytes_each(tile_like) * WIDTH
    here, z, odd = address(tiles) + many * n * tile, filled(0.0, like), filled(0.0, like)
    for k in range(X.shape[0]):
        width = min(COLUMNS, n - k * COLUMNS)
        for c in range(0, width - 1, 2):  # two sums: neither waits for the other
            z += filled(X[k, i, c], like) * widened(load(here, tile_like), like)
            odd += filled(X[k, i, c + 1], like) * widened(load(here + many, tile_like), like)
            here += 2 * many
        if width % 2:
            z += filled(X[k, i, width - 1], like) * widened(load(here, tile_like), like)
            here += many
    return z + odd


@njit(fastmath=FAST)
def row_margins(rows, first, last, X, i, out):
    """The same of rows as they lie, one after another."""
    keep_apart()
    rows, X = unowned(rows), unowned(X)
    like, row_like = vector_like(X), vector_like(rows)
    number, stride = bytes_each(like), bytes_each(like) * X.shape[1] * COLUMNS
    for row in range(first, last):
        z = filled(0.0, like)
        for k in range(X.shape[0]):
            own = address(X) + stride * k + number * i * COLUMNS
            for c in range(0, min(COLUMNS, rows.shape[1] - k * COLUMNS), WIDTH):
                d = row_from(rows, row, k * COLUMNS + c, like, row_like)
                z += d * load(own + number * c, like)
        out[row - first] = sum_of(z)


@njit(fastmath=FAST, forceinline=True)
def feature(rows, s, tile, first, last, j, column, like, row_like):
    """The j-th of a tile's samples, which are rows first to last."""
    if s.tiles.shape[0]:
        here = address(s.tiles) + bytes_each(row_like) * WIDTH * (s.tiles.shape[1] * tile + j)
        return widened(load(here, row_like), like)
    for row in range(first, last):
        column[row - first] = rows[row, j]
    return load(address(column), like)


@njit(fastmath=FAST)
def look_piece(rule, rows, counts, firsts, X, s, now, k, scratch):
    """Sums over the samples of some parts; scratch: at least WIDTH numbers of this thread's."""
    keep_apart()
    s, rows, X, scratch = unowned(s), unowned(rows), unowned(X), unowned(scratch)
    like, row_like = vector_like(X), vector_like(rows)
    number, nothing = bytes_each(like) * WIDTH, filled(0.0, like)
    batch, step = s.sums.shape[1] - 1, s.step[0]
    labels, weights, each = address(s.labels), address(s.weights), address(s.each)
    for p in range(s.pieces[k], s.pieces[k + 1]):
        i, begin, end = s.parts[p, 0], s.parts[p, 1], s.parts[p, 2]
        over, losses = firsts[i] + counts[i], nothing
        for tile in range(begin, end):
            if s.tiles.shape[0]:
                z = tile_margins(s.tiles, tile, X, i, like, row_like)
            else:
                first = s.parts[p, 3] + (tile - begin) * WIDTH
                row_margins(rows, first, min(first + WIDTH, over), X, i, scratch)
                z = load(address(scratch), like)
            y, w = load(labels + number * tile, like), load(weights + number * tile, like)
            if step > 0:
                losses += w * values_of(rule.loss, rule.of_loss, z, y, like)
                store(each + number * tile, z)
            else:
                store(each + number * tile, w * slopes_of(rule.loss, rule.of_loss, z, y, like))
        s.sums[p, 0] = sum_of(losses)
        for q in range(batch):
            j, total = s.at[now, i * batch + q], nothing
            ahead = filled(s.ahead[i * batch + q], like)
            for tile in range(begin, end):
                first = s.parts[p, 3] + (tile - begin) * WIDTH
                d = feature(
                    rows, s, tile, first, min(first + WIDTH, over), j, scratch, like, row_like
                )
                kept = load(each + number * tile, like)
                if step > 0:
                    y, w = load(labels + number * tile, like), load(weights + number * tile, like)
                    z = kept + ahead * d
                    total += w * values_of(rule.loss, rule.of_loss, z, y, like)
                else:
                    total += kept * d
            s.sums[p, 1 + q] = sum_of(total)


@njit
def look_ahead(state, s, now):
    """How far a step goes, as numbers are rounded, from each coordinate."""
    if s.step[0] == 0:
        return
    batch, kind = s.sums.shape[1] - 1, state.X.dtype.type
    for q in range(len(s.ahead)):
        j = s.at[now, q]
        x = state.X[j // COLUMNS, q // batch, j % COLUMNS]
        s.ahead[q] = kind(x + kind(s.step[0])) - x


@njit
def show(counts, state, s, now):
    """Into the gradient: what was remembered, but for coordinates seen now."""
    batch, p = s.sums.shape[1] - 1, 0
    for i in range(state.X.shape[1]):
        last = p
        while last < len(s.parts) and s.parts[last, 0] == i:
            last += 1
        for q in range(i * batch, (i + 1) * batch):
            total, here = 0.0, 0.0
            for part in range(p, last):
                total += s.sums[part, 1 + q - i * batch]
                here += s.sums[part, 0]
            j = s.at[now, q]
            k, c = j // COLUMNS, j % COLUMNS
            x, ahead = state.X[k, i, c], s.ahead[q]
            seen = total / counts[i] + s.ridge[0] * x
            if s.step[0] > 0:
                seen = (total - here) / counts[i] / ahead + s.ridge[0] * (x + 0.5 * ahead)
            s.seen[q] = seen
            old = state.mean[k, i, c]
            state.mean[k, i, c] = old + (s.seen[q] - old) * s.scale[0]
        p = last


@njit
def keep(state, s, now):
    """What was seen is remembered."""
    batch = s.sums.shape[1] - 1
    for q in range(len(s.seen)):
        j = s.at[now, q]
        state.mean[j // COLUMNS, q // batch, j % COLUMNS] = s.seen[q]

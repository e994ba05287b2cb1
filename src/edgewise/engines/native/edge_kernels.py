"""A round of the edge form with two sums a node in place of a message an edge.

A message is m_ij <- 2 rho_ij x_i - m_ji, so that what goes over an edge in rounds of one parity is
a sum of what its ends were. With E_i the sum of x_i over even rounds and O_i over odd ones, counted
from where the messages were m_ij(0), they are

    after an even round   m_ij =  m_ij(0) + 2 rho_ij (E_i - O_j)
    after an odd round    m_ij = -m_ji(0) + 2 rho_ij (O_i - E_j)

and a round reads a neighbour's sum, as the node form reads its model: half the time of a message an
edge. Every WINDOW rounds, and at the end, the messages are worked out and the sums begin anew, so
that these stay short and rounding is that of the messages.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from numba import njit, uint64

from edgewise.engines.native.kernels import (
    AHEAD,
    BETA,
    COLUMNS,
    FAST,
    GAIN,
    GAMMA,
    RIDGE,
    SHRINK,
    THRESHOLD,
    centers,
    fetch_row,
    margin,
    panel,
    point,
    remember,
    row_from,
    sampled,
)
from edgewise.engines.native.vectors import (
    WIDTH,
    bytes_each,
    clip,
    filled,
    keep_apart,
    load,
    store,
    sum_of,
    unowned,
    vector_like,
)

WINDOW = 32  # rounds, an even number


@njit(fastmath=FAST)
def settle(state, edges, k, rounds):
    """The messages, so many rounds after those that are there."""
    keep_apart()
    state, edges = unowned(state), unowned(edges)
    like = vector_like(state.X)
    begin, other, reverse, rho = edges.begin, edges.other, edges.reverse, edges.rho
    sent, number = panel(state.sent, k), bytes_each(like)
    even = rounds % 2 == 0
    late = panel(state.even, k) if even else panel(state.odd, k)
    early = panel(state.odd, k) if even else panel(state.even, k)
    for i in range(state.X.shape[1]):
        for e in range(begin[i], begin[i + 1]):
            back = reverse[e]
            if e > back:
                continue  # both ways at once: each needs what the other was
            twice = filled(2 * rho[e], like)
            for c in range(0, COLUMNS, WIDTH):
                here, there = number * (i * COLUMNS + c), number * (other[e] * COLUMNS + c)
                mine, theirs = number * (e * COLUMNS + c), number * (back * COLUMNS + c)
                m, t = load(sent + mine, like), load(sent + theirs, like)
                if not even:
                    m, t = filled(0.0, like) - t, filled(0.0, like) - m
                store(
                    sent + mine, m + twice * (load(late + here, like) - load(early + there, like))
                )
                store(
                    sent + theirs, t + twice * (load(late + there, like) - load(early + here, like))
                )


@njit(fastmath=FAST)
def begin_sums(state, edges, k):
    """Sums of no rounds, and of each node's messages: `heard`, and `said`."""
    keep_apart()
    state, edges = unowned(state), unowned(edges)
    like = vector_like(state.X)
    sent, number, nothing = panel(state.sent, k), bytes_each(like), filled(0.0, like)
    for i in range(state.X.shape[1]):
        for c in range(0, COLUMNS, WIDTH):
            here, heard, said = number * (i * COLUMNS + c), nothing, nothing
            for e in range(edges.begin[i], edges.begin[i + 1]):
                heard += load(sent + number * (edges.reverse[e] * COLUMNS + c), like)
                said += load(sent + number * (e * COLUMNS + c), like)
            store(panel(state.heard, k) + here, heard)
            store(panel(state.said, k) + here, said)
            store(panel(state.even, k) + here, nothing)
            store(panel(state.odd, k) + here, nothing)


@njit(fastmath=FAST)
def one_round(rows, state, edges, numbers, drawn, k):
    keep_apart()
    rows, state, edges = unowned(rows), unowned(state), unowned(edges)
    numbers, drawn = unowned(numbers), unowned(drawn)
    like, row_like = vector_like(state.X), vector_like(rows)
    V, n, lo, number = state.X.shape[1], rows.shape[1], k * COLUMNS, bytes_each(like)
    batch, begin, other, rho = len(drawn.at) // V, edges.begin, edges.other, edges.rho
    X, M, C = panel(state.X, k), panel(state.mean, k), centers(state, k)
    even = drawn.now % 2 == 0
    first = panel(state.heard, k) if even else panel(state.said, k)
    theirs = panel(state.even, k) if even else panel(state.odd, k)
    mine = panel(state.odd, k) if even else panel(state.even, k)
    sign, alone = filled(1.0 if even else -1.0, like), batch == 1
    for i in range(V):
        gamma, rate = filled(numbers[i, GAMMA], like), filled(numbers[i, GAIN], like)
        ridge, threshold = filled(numbers[i, RIDGE], like), filled(numbers[i, THRESHOLD], like)
        shrink, later = filled(numbers[i, SHRINK], like), min(i + AHEAD, V - 1)
        beta, z = numbers[i, BETA], filled(0.0, like)
        for c in range(0, min(COLUMNS, n - lo), WIDTH):
            for q in range(batch * later, batch * (later + 1)):
                fetch_row(rows, drawn.at[uint64(q)], lo + c, row_like)
                fetch_row(rows, drawn.coming[uint64(q)], lo + c, row_like)
            here = number * (i * COLUMNS + c)
            x, mean, own = load(X + here, like), load(M + here, like), load(mine + here, like)
            pull = filled(0.0, like)
            for e in range(begin[i], begin[i + 1]):
                far = load(theirs + number * (other[uint64(e)] * COLUMNS + c), like)
                pull += filled(2 * rho[uint64(e)], like) * (far - own)
            heard = sign * load(first + here, like) + pull
            moved = sampled(rows, drawn, batch * i, batch * (i + 1), lo + c, like, row_like)
            at = point(x, C, here, beta, like)
            y = gamma * (x * rate - moved - mean - ridge * at + heard)
            new = (y - clip(y, threshold)) * shrink
            store(X + here, new)
            store(mine + here, own + new)
            remember(state, k, here, at, mean, moved, numbers, i, like)
            if alone:
                d = row_from(rows, drawn.coming[uint64(i)], lo + c, like, row_like)
                z += d * point(new, C, here, beta, like)
        if alone:
            drawn.margins[k, i] = sum_of(z)
            continue
        for q in range(batch * i, batch * (i + 1)):
            drawn.margins[k, q] = margin(rows, drawn.coming[q], X, C, i, beta, lo, like, row_like)


@njit
def edge_round(rows, state, edges, numbers, drawn, k):
    keep_apart()
    if drawn.now % WINDOW == 0:
        if drawn.now > 0:
            settle(state, edges, k, WINDOW)
        begin_sums(state, edges, k)
    one_round(rows, state, edges, numbers, drawn, k)
    if drawn.now == drawn.rounds - 1:
        settle(state, edges, k, drawn.now % WINDOW + 1)

"""A round of the primal-dual method where nodes are many: all of a node's in one go.

A panel of columns of that many nodes would not stay in the cache, and models are short: so a node
reads its sample, its neighbours' models and its own state once, and writes that. State lies node by
node, in arrays (1, nodes, columns): one panel that has all columns. Models are written elsewhere
than they are read, as neighbours need those of the round before.

What a node reads of others lies anywhere, so that it is asked for some nodes ahead: otherwise a
round would wait for memory, one neighbour after the other.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from numba import njit, uint64

from edgewise.engines.native.estimators import (
    LSVRG,
    SAGA,
    chance_part,
    epoch_over,
    heads,
    new_epoch,
    news_of,
)
from edgewise.engines.native.kernels import (
    BETA,
    DEGREE,
    FAST,
    GAIN,
    GAMMA,
    KEPT,
    LINE,
    PART,
    RIDGE,
    SHRINK,
    THRESHOLD,
    PanelState,
    centers,
    point,
    row_from,
    sampled,
)
from edgewise.engines.native.local_kernels import node_pass
from edgewise.engines.native.vectors import (
    NARROW,
    address,
    bytes_each,
    clip,
    filled,
    keep_apart,
    load,
    load_first,
    narrow_like,
    prefetch,
    store,
    store_first,
    sum_of,
    unowned,
    width_of,
)

AHEAD = 1024  # bytes of models
MOST_AHEAD = 12  # nodes


@njit(forceinline=True)
def part(begin, live, like):
    """The numbers at an address, zeros from the `live`-th on: nothing of the next node's is read,
    which would be another line of the cache."""
    if live >= width_of(like):
        return load(begin, like)
    return load_first(begin, live, like)


@njit(forceinline=True)
def put(begin, live, value):
    """The first `live` numbers to an address."""
    if live >= width_of(value):
        store(begin, value)
    else:
        store_first(begin, live, value)


@njit(forceinline=True)
def fetch(begin, size):
    """All lines of so many bytes will be wanted."""
    for line in range(begin & -LINE, begin + size, LINE):
        prefetch(line)


@njit(forceinline=True)
def fetch_for(i, batch, samples, memory, edges, drawn, X, model_bytes):
    """What node i will read that does not lie beside what the node before it reads."""
    rows, labels, table = samples.rows, samples.labels, memory.table
    row_bytes = rows.itemsize * rows.shape[1]
    for q in range(batch * i, batch * (i + 1)):
        row = drawn.at[q]
        fetch(address(rows) + row_bytes * row, row_bytes)
        prefetch(address(table) + table.itemsize * row)
        prefetch(address(labels) + labels.itemsize * row)
    for e in range(edges.begin[i], edges.begin[i + 1]):
        fetch(X + model_bytes * edges.other[e], model_bytes)


@njit(forceinline=True)
def walked(state, moves, i):
    """|x - last|^2 and |x - start|^2 of a node."""
    moved, gained = 0.0, 0.0
    for c in range(state.X.shape[2]):
        x = state.X[0, i, c]
        moved += (x - state.last[0, i, c]) ** 2
        gained += (x - state.start[0, i, c]) ** 2
    moves[0, i, 0], moves[0, i, 1] = moved, gained


@njit
def begin_epoch(rule, samples, state, numbers, memory, i, model):
    """At node i; kept apart, as to hand all this over takes as long as a step."""
    keep_apart()
    new_epoch(rule, memory, state, numbers, i, model)
    take_pass(rule, samples, state, memory, i, model)


@njit
def take_pass(rule, samples, state, memory, i, model):
    node_pass(rule, samples, memory.table, state.mean[0, i], i, model)
    memory.calls[i] += samples.counts[i]


@njit(fastmath=FAST, forceinline=True)
def margin(rows, row, X, center, i, beta, like, row_like):
    """<d, x> of node i."""
    z, n = filled(0.0, like), rows.shape[1]
    for c in range(0, n, NARROW):
        here = bytes_each(like) * (i * n + c)
        x = point(load(X + here, like), center, here, beta, like)
        z += row_from(rows, row, c, like, row_like) * x
    return sum_of(z)


@njit(fastmath=FAST, forceinline=True)
def pulled(x, X, first, last, other, rho, row_bytes, live, like):
    """sum_j rho_ij (x_j - x_i) over some edges; X: the address of node 0's columns."""
    pull = filled(0.0, like)
    for e in range(first, last):
        theirs = part(X + row_bytes * other[uint64(e)], live, like)
        pull += filled(rho[uint64(e)], like) * (theirs - x)
    return pull


@njit(fastmath=FAST, forceinline=True)
def node_step(state, here, live, x, pull, moved, numbers, i, into, like):
    """The node form of `live` columns that begin `here`, as in `kernels.node_round`; whole vectors
    are read, of which what is not the node's is not written."""
    gamma, degree = filled(numbers[i, GAMMA], like), filled(numbers[i, DEGREE], like)
    ridge, gain = filled(numbers[i, RIDGE], like), filled(numbers[i, GAIN], like)
    threshold, shrink = filled(numbers[i, THRESHOLD], like), filled(numbers[i, SHRINK], like)
    S, R, M = address(state.S) + here, address(state.R) + here, address(state.mean) + here
    mean, s = load(M, like), load(S, like) + gain * pull
    u = s + load(R, like)
    at = point(x, centers(state, 0), here, numbers[i, BETA], like)
    y = x + gamma * (u - moved - mean - ridge * at)
    new = (y - clip(y, threshold)) * shrink
    put(S, live, s)
    put(R, live, degree * (new - x) - u)
    put(into + here, live, new)
    if numbers[i, PART] != 0:
        put(M, live, mean + filled(numbers[i, PART], like) * moved)
    if state.total.size:
        T = address(state.total) + here
        put(T, live, filled(numbers[i, KEPT], like) * (load(T, like) + at))
    if state.last.size:
        put(address(state.last) + here, live, at)


@njit(fastmath=FAST)
def nodes_round(rule, samples, state, into, edges, numbers, memory, drawn, model, first, last):
    """Nodes first..last-1; into (1, v, n): the new models; model (n,) is this thread's."""
    keep_apart()
    samples, state, edges = unowned(samples), unowned(state), unowned(edges)
    numbers, memory, drawn = unowned(numbers), unowned(memory), unowned(drawn)
    into, model, rows, share = unowned(into), unowned(model), samples.rows, samples.share
    begin, other, rho = edges.begin, edges.other, edges.rho
    like, row_like, number = narrow_like(state.X), narrow_like(rows), state.X.itemsize
    n, batch, X = rows.shape[1], len(drawn.at) // state.X.shape[1], address(state.X)
    new, C, model_bytes = address(into), centers(state, 0), number * n
    ahead = max(1, min(MOST_AHEAD, AHEAD // model_bytes))
    for i in range(first, last):
        if i + ahead < last:
            fetch_for(i + ahead, batch, samples, memory, edges, drawn, X, model_bytes)
        if rule.estimator != SAGA and rule.estimator != LSVRG:
            if state.last.size:
                walked(state, memory.moves, i)
            if epoch_over(rule, memory, numbers, i):
                begin_epoch(rule, samples, state, numbers, memory, i, model)
        chance, beta = chance_part(rule, memory, drawn.coins, i), numbers[i, BETA]
        for q in range(batch * i, batch * (i + 1)):
            z = margin(rows, drawn.at[q], X, C, i, beta, like, row_like)
            news = news_of(rule, samples.labels, samples.scale, memory.table, drawn.at[q], z)
            drawn.slopes[q] = news * share[q] * chance
        if chance > 0:
            memory.calls[i] += samples.batch[i] * (1 if rule.estimator == SAGA else 2)
        for c in range(0, n, NARROW):
            live, here, there = n - c, model_bytes * i + number * c, X + number * c
            x = part(X + here, live, like)
            ends = begin[i], begin[i + 1]
            pull = pulled(x, there, ends[0], ends[1], other, rho, model_bytes, live, like)
            moved = sampled(rows, drawn, batch * i, batch * (i + 1), c, like, row_like)
            node_step(state, here, live, x, pull, moved, numbers, i, new, like)
        if numbers[i, GAIN] < 2:
            numbers[i, GAIN] = min(2 * numbers[i, GAIN], 2)
        if rule.estimator == LSVRG and heads(drawn.coins[i], 1 / samples.counts[i]):
            take_pass(rule, samples, state, memory, i, state.X[0, i])


@njit(forceinline=True)
def reading(s, X):
    """The state with its models in X."""
    edges = s.sent, s.even, s.odd, s.heard, s.said
    return PanelState(X, s.mean, s.S, s.R, *edges, s.total, s.start, s.last, s.center)

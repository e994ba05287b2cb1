"""What estimators do between two passes of the compiled rounds: slopes, tables, epochs.

The formulas are those of `gradients.saga`, `svrg`, `plain_svrg`, `lsvrg` and `asvrg`, and of
`problem.losses`, which the tests hold them to.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from edgewise.engines.native.kernels import (
    BETA,
    COLUMNS,
    FAST,
    KEPT,
    WIDTH,
    address,
    bytes_each,
    filled,
    load,
    row_from,
    store,
    sum_of,
    vector_like,
)
from edgewise.engines.native.vectors import keep_apart, prefetch, unowned

ESTIMATORS = SAGA, SVRG, PLAIN_SVRG, LSVRG, ASVRG, SEGA = 0, 1, 2, 3, 4, 5
LOSSES = LOGISTIC, SQUARED, HUBER, SMOOTHED_HINGE = 0, 1, 2, 3
PASS_PIECES = 32  # of full passes, in one job
NODE_PIECES, LEAST_ROWS = 16, 32  # of one node at most; of one piece at least


class Samples(NamedTuple):
    rows: Any  # (N, n)
    labels: Any  # (N,)
    scale: Any  # (N,) weight of a sample's loss, or (0,): all one
    first: Any  # (v,) a node's first
    counts: Any  # (v,)
    share: Any  # (v b,) of a drawn sample in the gradient
    batch: Any  # (v,) how many are drawn


class CompiledFormula(NamedTuple):
    """Numbers that decide what is computed."""

    edge_form: int
    estimator: int
    loss: int
    of_loss: float  # Huber's delta, the hinge's width
    stop: float  # of SVRG: 0, or when an epoch ends early
    own_length: int  # of ASVRG: whether its epochs' length was given


class FlatMemory(NamedTuple):
    table: Any  # (N,) a slope per sample
    calls: Any  # (v,)
    done: Any  # (v,) iterates of the epoch so far
    length: Any  # (v,) of the epoch
    shortest: Any  # (v,) epoch that may end early
    longest: Any  # (v,) epoch
    path: Any  # (v,) walked in the epoch
    ask: Any  # (v,) chance that samples are asked for
    pace: Any  # (v,) length of an epoch, before momentum divides it
    floor: Any  # (v,) of momentum; -1: it stays as it is
    due: Any  # (v,) whether a full pass is, in this round
    moves: Any  # (panels, v, 2) as `kernels.journey` has them


class Pass(NamedTuple):
    """Full passes over the data of nodes that are due, a few pieces at a time."""

    pieces: Any  # (PASS_PIECES, 4) node, row of its model, first sample, and where it ends
    models: Any  # (PASS_PIECES, columns)
    sums: Any  # (PASS_PIECES, columns) of gradients


@njit
def slope(rule, z, y):
    if rule.loss == LOGISTIC:
        return -y / (1 + math.exp(y * z))
    if rule.loss == SQUARED:
        return z - y
    if rule.loss == HUBER:
        return min(max(z - y, -rule.of_loss), rule.of_loss)
    return -y * min(max(1 - y * z, 0.0), rule.of_loss) / rule.of_loss


@njit
def slope_at(rule, labels, scale, table, row, z):
    """Of one sample, as the table can hold it."""
    number = table.dtype.type
    s = slope(rule, number(z), labels[row])
    return number(s if scale.size == 0 else s * scale[row])


@njit(forceinline=True)
def chance_part(rule, memory, coins, i):
    """What a node's slopes are multiplied by: zero where it asks for no samples."""
    if rule.estimator == ASVRG:
        return 1 / memory.ask[i] if heads(coins[i], memory.ask[i]) else 0.0
    return 1.0


@njit(forceinline=True)
def news_of(rule, labels, scale, table, row, z):
    """What has changed of a sample's slope since it was remembered; SAGA remembers the new one."""
    new = slope_at(rule, labels, scale, table, row, z)
    delta = new - table[row]
    if rule.estimator == SAGA:
        table[row] = new
    return delta


@njit
def draw(rule, samples, memory, state, drawn):
    """Slopes of the round's samples from their margins, and what is kept of them."""
    keep_apart()
    drawn, table, calls = unowned(drawn), unowned(memory.table), unowned(memory.calls)
    labels, scale, share = unowned(samples.labels), unowned(samples.scale), unowned(samples.share)
    batch, many = len(drawn.at) // len(calls), unowned(samples.batch)
    coins, part = drawn.coins, 1.0
    for q in range(len(drawn.at)):
        z = 0.0
        for k in range(drawn.margins.shape[0]):
            z += drawn.margins[k, q]
        row, later = drawn.at[q], drawn.coming[q]
        i = q // batch
        part = chance_part(rule, memory, coins, i)
        drawn.slopes[q] = news_of(rule, labels, scale, table, row, z) * share[q] * part
        prefetch(address(table) + table.itemsize * later)
        prefetch(address(labels) + labels.itemsize * later)
        if q % batch == 0 and part > 0:
            calls[i] += many[i] * (1 if rule.estimator == SAGA else 2)
    if rule.estimator == LSVRG:
        toss(samples, memory, state, coins)


@njit
def heads(bits, chance):
    return np.float64(bits) < chance * 2.0**32


@njit
def toss(samples, memory, state, coins):
    """Whose snapshot is to be taken anew after the round, where they are before it."""
    for i in range(len(coins)):
        memory.due[i] = heads(coins[i], 1 / samples.counts[i])
        if memory.due[i]:
            for k in range(state.X.shape[0]):
                state.start[k, i] = state.X[k, i]


@njit
def epochs(rule, samples, memory, numbers):
    """Whether the snapshot of any node is due to be taken anew; `memory.due` says whose."""
    keep_apart()
    if rule.estimator == SAGA or rule.estimator == SEGA:
        return False
    due = memory.due
    for i in range(len(due)):
        if rule.estimator != LSVRG:  # `toss` has said so
            due[i] = epoch_over(rule, memory, numbers, i)
        if due[i]:
            memory.calls[i] += samples.counts[i]
    return due.any()


@njit(forceinline=True)
def epoch_over(rule, memory, numbers, i):
    """Whether node i's is, with the iterate that it has now."""
    done = memory.done
    if rule.estimator == PLAIN_SVRG:
        over = done[i] >= memory.length[i]
        done[i] = 1 if over else done[i] + 1
        return over
    done[i] += 1
    over = done[i] >= memory.length[i]
    if rule.stop > 0:
        over |= leads_nowhere(rule, memory, i) and done[i] >= memory.shortest[i]
    numbers[i, KEPT] = 0 if over else 1
    return over


@njit(forceinline=True)
def leads_nowhere(rule, memory, i):
    moved, gained = 0.0, 0.0
    for k in range(memory.moves.shape[0]):
        moved += memory.moves[k, i, 0]
        gained += memory.moves[k, i, 1]
    memory.path[i] += math.sqrt(moved)
    return math.sqrt(gained) < rule.stop * memory.path[i]


@njit
def new_epoch(rule, memory, state, numbers, i, model):
    """Begins at node i; its snapshot."""
    divisor, beta = max(memory.done[i], 1), state.X.dtype.type(numbers[i, BETA])
    X, columns = state.start if rule.estimator == LSVRG else state.X, state.X.shape[2]
    for k in range(X.shape[0]):
        for c in range(columns):
            x = X[k, i, c]
            if rule.stop > 0:
                state.start[k, i, c] = x
            if rule.estimator == ASVRG:
                x = (1 - beta) * state.center[k, i, c] + beta * x
            if rule.estimator == SVRG or rule.estimator == ASVRG:
                x = (state.total[k, i, c] + x) / divisor
            if rule.estimator == ASVRG:
                state.center[k, i, c] = x
            model[k * columns + c] = x
    if rule.estimator == SVRG:
        memory.done[i], memory.path[i] = 0, 0
        memory.length[i] = min(2 * memory.length[i], memory.longest[i])
    if rule.estimator == ASVRG:
        memory.done[i] = 0
        if memory.floor[i] >= 0:
            less_momentum(rule, memory, numbers, i, memory.table.dtype.type)


@njit
def less_momentum(rule, memory, numbers, i, number):
    """number: the run's precision, in which the plain rounds find an epoch's length too."""
    beta, pace = number(numbers[i, BETA]), memory.pace[i]
    squared = beta * beta
    after = (np.sqrt(squared * squared + number(4) * squared) - squared) / number(2)
    after = max(number(memory.floor[i]), after)
    numbers[i, BETA] = after
    memory.ask[i] = number(memory.ask[i]) * (after / beta)
    rounds = number(pace) / after if rule.own_length else pace / np.float64(after)
    memory.length[i] = math.ceil(rounds)


@njit
def plan_pass(rule, samples, memory, state, numbers, full, i):
    """As many nodes that are due, from i on, as one job takes: its pieces, and the next node."""
    keep_apart()
    pieces, nodes = 0, 0
    while i < len(memory.due):
        if memory.due[i]:
            count = samples.counts[i]
            parts = max(1, min(NODE_PIECES, count // LEAST_ROWS))
            if pieces + parts > PASS_PIECES:
                break
            new_epoch(rule, memory, state, numbers, i, full.models[nodes])
            for part in range(parts):
                full.pieces[pieces, 0], full.pieces[pieces, 1] = i, nodes
                full.pieces[pieces, 2] = samples.first[i] + count * part // parts
                full.pieces[pieces, 3] = samples.first[i] + count * (part + 1) // parts
                pieces += 1
            nodes += 1
        i += 1
    return pieces, i


@njit(fastmath=FAST)
def pass_piece(rule, samples, memory, full, k):
    """Slopes of a stretch of a node's samples into the table, and the sum of their gradients."""
    keep_apart()
    rows, table, labels = unowned(samples.rows), unowned(memory.table), unowned(samples.labels)
    scale = unowned(samples.scale)
    like, row_like = vector_like(full.sums), vector_like(rows)
    number, n = bytes_each(like), rows.shape[1]
    begin, end = full.pieces[k, 2], full.pieces[k, 3]
    model = address(full.models) + number * full.pieces[k, 1] * full.models.shape[1]
    into = address(full.sums) + number * k * full.sums.shape[1]
    for c in range(0, full.sums.shape[1], WIDTH):
        store(into + number * c, filled(0.0, like))
    for row in range(begin, end):
        z = filled(0.0, like)
        for c in range(0, n, WIDTH):
            z += row_from(rows, row, c, like, row_like) * load(model + number * c, like)
        s = slope_at(rule, labels, scale, table, row, sum_of(z))
        table[row] = s
        for c in range(0, n, WIDTH):
            d = row_from(rows, row, c, like, row_like)
            store(into + number * c, load(into + number * c, like) + filled(s, like) * d)


@njit
def add_up(samples, state, full, pieces):
    """The pieces of a pass, in order, into mean gradients."""
    keep_apart()
    mean = state.mean
    for k in range(mean.shape[0]):
        before = -1
        for q in range(pieces):
            i = full.pieces[q, 0]
            for c in range(COLUMNS):
                part = full.sums[q, k * COLUMNS + c] / samples.counts[i]
                mean[k, i, c] = part if i != before else mean[k, i, c] + part
            before = i

"""The local steps of some nodes between two messages, each node's state in the nearest caches.

The formulas are those of `methods.local_training`, `gradients.saga` and `gradients.svrg`, which the
tests hold them to. Sparse rows have kernels of their own: `sparse_kernels`.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from edgewise.engines.native.estimators import SAGA, slope_at
from edgewise.engines.native.program import sources

COMPILED = "estimators", "kernels", "local_kernels", "program", "vectors"
FAST = {"contract", "nsz", "reassoc"}


class Node(NamedTuple):
    """Numbers of every node, (v,) each."""

    steps: Any  # tau_i
    enough: Any  # part of the way that is as good as there
    gamma: Any
    rate: Any  # 1 / eta
    degree: Any
    threshold: Any
    shrink: Any
    free: Any  # gamma of an intercept
    lower: Any  # bounds, infinite where there are none
    upper: Any
    stiff: Any  # (e,) weights of edges on it


class Local(NamedTuple):
    """What nodes keep, changed in place."""

    X: Any  # (v, n)
    mean: Any  # (v, n)
    table: Any  # (N,)
    calls: Any  # (v,)
    total: Any  # (v, n) of SVRG's epochs; (0, n) where there are none
    start: Any  # (v, n) where they may end early
    last: Any  # (v, n)
    path: Any  # (v,)
    done: Any  # (v,)
    length: Any  # (v,)
    shortest: Any  # (v,)
    longest: Any  # (v,)


@njit
def gather(edges, sent, i, U):
    for c in range(len(U)):
        U[c] = 0
    for e in range(edges.begin[i], edges.begin[i + 1]):
        heard = sent[edges.reverse[e]]
        for c in range(len(U)):
            U[c] += heard[c]


@njit
def answer(edges, sent, i, x, into):
    """m_ij = 2 rho_ij x_i - m_ji"""
    for e in range(edges.begin[i], edges.begin[i + 1]):
        heard, mine, twice = sent[edges.reverse[e]], into[e], 2 * edges.rho[e]
        for c in range(len(x)):
            mine[c] = twice * x[c] - heard[c]


@njit(fastmath=FAST)
def dot(d, x):
    z = 0.0
    for c in range(len(d)):
        z += d[c] * x[c]
    return z


@njit(fastmath=FAST)
def distances(x, last, start):
    moved, gained = 0.0, 0.0
    for c in range(len(x)):
        moved += (x[c] - last[c]) ** 2
        gained += (x[c] - start[c]) ** 2
    return np.sqrt(moved), np.sqrt(gained)


@njit(fastmath=FAST)
def retake(rule, samples, s, i, model):
    """A full pass at a snapshot, which `model` is overwritten with."""
    x, total, many = s.X[i], s.total[i], max(s.done[i], 1)
    for c in range(len(x)):
        model[c] = (total[c] + x[c]) / many
    node_pass(rule, samples, s.table, s.mean[i], i, model)
    s.calls[i] += samples.counts[i]


@njit(fastmath=FAST)
def node_pass(rule, samples, table, mean, i, model):
    """One node's slopes at a model into the table, and their gradients' mean."""
    K = samples.counts[i]
    for c in range(len(model)):
        mean[c] = 0
    for row in range(samples.first[i], samples.first[i] + K):
        d = samples.rows[row]
        s = slope_at(rule, samples.labels, samples.scale, table, row, dot(d, model))
        table[row] = s
        for c in range(len(model)):
            mean[c] += s * d[c]
    for c in range(len(model)):
        mean[c] /= K


@njit
def epoch(rule, samples, s, i, scratch):
    """What SVRG does before a step: its epoch may be over."""
    x, total = s.X[i], s.total[i]
    s.done[i] += 1
    over = s.done[i] >= s.length[i]
    if rule.stop > 0:
        moved, gained = distances(x, s.last[i], s.start[i])
        s.path[i] += moved
        over |= s.done[i] >= s.shortest[i] and gained < rule.stop * s.path[i]
        s.last[i] = x
    if not over:
        for c in range(len(x)):
            total[c] += x[c]
        return
    retake(rule, samples, s, i, scratch)
    s.done[i], s.path[i] = 0, 0
    s.length[i] = min(2 * s.length[i], s.longest[i])
    total[:] = 0
    if rule.stop > 0:
        s.start[i] = x


@njit(fastmath=FAST)
def move(d, delta, part, ridge, x, mean, U, before, node, i):
    """A step: how far it went, and how far the node is from `before`, both squared."""
    gamma, rate, threshold = node.gamma[i], node.rate[i], node.threshold[i]
    shrink, moved, way = node.shrink[i], 0.0, 0.0
    lower, upper = node.lower[i], node.upper[i]
    for c in range(len(x)):
        y = gamma * (x[c] * rate - delta * d[c] - mean[c] - ridge * x[c] + U[c])
        new = (y - min(max(y, -threshold), threshold)) * shrink
        new = min(max(new, lower), upper)
        moved += (new - x[c]) ** 2
        way += (new - before[c]) ** 2
        mean[c] += part * delta * d[c]
        x[c] = new
    return moved, way


@njit(fastmath=FAST)
def move_unmeasured(d, delta, part, ridge, x, mean, U, node, i):
    """The same step, without the distances."""
    gamma, rate, threshold = node.gamma[i], node.rate[i], node.threshold[i]
    shrink, lower, upper = node.shrink[i], node.lower[i], node.upper[i]
    for c in range(len(x)):
        y = gamma * (x[c] * rate - delta * d[c] - mean[c] - ridge * x[c] + U[c])
        new = (y - min(max(y, -threshold), threshold)) * shrink
        new = min(max(new, lower), upper)
        mean[c] += part * delta * d[c]
        x[c] = new


@njit
def settled(node, i, moved, way):
    pull = node.enough[i] * node.gamma[i] * node.degree[i]
    return moved <= pull * pull * way


@njit
def picked(bits, K):
    """A sample of K, as `problem.block.choose` has it."""
    return (np.int64(bits) * np.int64(K)) >> 32


@njit
def train_dense(rule, ridge, samples, edges, node, looks, s, sent, into, bits, first, last, spare):
    """Nodes first..last-1; spare (3, n) is this thread's."""
    U, before, scratch = spare[0], spare[1], spare[2]
    for i in range(first, last):
        x, K = s.X[i], samples.counts[i]
        gather(edges, sent, i, U)
        before[:] = x
        part = 1 / K if rule.estimator == SAGA else 0.0
        stretch = -(-node.steps[i] // looks)
        for t in range(node.steps[i]):
            if rule.estimator != SAGA:
                epoch(rule, samples, s, i, scratch)
            row = samples.first[i] + picked(bits[i, t], K)
            d = samples.rows[row]
            new = slope_at(rule, samples.labels, samples.scale, s.table, row, dot(d, x))
            delta = new - s.table[row]
            if rule.estimator == SAGA:
                s.table[row] = new
            s.calls[i] += 1 if rule.estimator == SAGA else 2
            if (t + 1) % stretch == 0:
                moved, way = move(d, delta, part, ridge, x, s.mean[i], U, before, node, i)
                if settled(node, i, moved, way):
                    break
            else:
                move_unmeasured(d, delta, part, ridge, x, s.mean[i], U, node, i)
        answer(edges, sent, i, x, into)


def kept_with(number):
    """As in `program`."""

    @njit(nogil=True, cache=True)
    def dense(*args):
        if number >= 0:
            train_dense(*args)

    return dense


dense = kept_with(sources(Path(__file__).parent, COMPILED))

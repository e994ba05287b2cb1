"""The smooth part of a whole problem in one place: what a centralised solver works with."""

from typing import Any

import jax
import numpy as np
import scipy.sparse as sp
from jax import Array

from edgewise.backend.programs import light
from edgewise.backend.threads import over
from edgewise.problem.problem import Problem
from edgewise.problem.whole_nodes import has_hessians

CHUNK_NUMBERS = 1 << 19  # taken at a time, so that rows cast to float64 are still in the cache
MOST_UNKNOWNS = 2500  # beyond these no Hessian is formed
CHUNKS_AT_ONCE = 8  # for a Hessian
MOST_FLOPS = 5e11  # beyond these it is that of evenly spaced samples, near enough for a step


class Smooth:
    """F = (1/V) sum_i f_i at one x for all nodes: one weighted sum over all samples."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        counts = np.repeat(problem.counts, problem.counts)
        scale = 1.0 if problem.scale is None else problem.scale
        self.weight = np.asarray(scale / (counts * problem.nodes), np.float64)
        self.offset = problem.offset
        width = max(problem.size, problem.shards.features)
        if sp.issparse(problem.shards.X) and problem.loss.linear:
            width = problem.shards.X.nnz // problem.shards.samples
        rows = max(1, CHUNK_NUMBERS // max(width, 1))
        self.chunks = [slice(a, a + rows) for a in range(0, problem.shards.samples, rows)]

    def ridge(self, x: np.ndarray) -> np.ndarray:
        inside = np.arange(len(x)) < len(x) - self.problem.free
        return np.asarray(float(self.problem.loss.ridge) * x * inside)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        parts = over(self.chunks, lambda c: self._part(x, c, self.weight[c]))
        return np.sum(parts, axis=0) + self.ridge(x)

    def node_gradients(self, x: np.ndarray) -> np.ndarray:
        problem = self.problem
        first, weight = problem.shards.first, self.weight * problem.nodes

        def part(c: slice) -> tuple[int, np.ndarray]:
            """Of the nodes with samples in this chunk, and the first of them."""
            end = min(c.stop, problem.shards.samples)
            low, high = np.searchsorted(first, [c.start, end - 1], side="right") - 1
            if low == high:
                return low, self._part(x, c, weight[c])[None]
            starts = np.append(np.maximum(first[low : high + 1], c.start), end) - c.start
            return low, self._parts(x, c, weight[c], starts)

        total = np.zeros((problem.nodes, problem.size))
        for low, sums in over(self.chunks, part):
            total[low : low + len(sums)] += sums
        return total + self.ridge(x)

    def value(self, x: np.ndarray) -> float:
        def part(c: slice) -> float:
            each = values(self.problem.loss, *self._at(x, c, self._rows(c)))
            return float(self.weight[c] @ np.asarray(each))

        return sum(over(self.chunks, part)) + 0.5 * float(x @ self.ridge(x))

    def mean_square_slope(self) -> float:
        """Over samples, with their weights, of a linear loss at the model zero."""
        x = np.zeros(self.problem.size)

        def part(c: slice) -> float:
            s = np.asarray(slopes(self.problem.loss, *self._at(x, c, self._rows(c))))
            return float(self.weight[c] @ (s.reshape(len(s), -1) ** 2).sum(1))

        return sum(over(self.chunks, part))

    def bends(self, x: np.ndarray) -> np.ndarray:
        """(N,) second derivatives along margins, of a loss with one output."""

        def part(c: slice) -> np.ndarray:
            z, y = self._at(x, c, self._rows(c))
            return np.asarray(bends(self.problem.loss, z, np.ones_like(z), y))

        return np.concatenate(over(self.chunks, part))

    def hessian(self, x: np.ndarray, center: np.ndarray | None = None) -> np.ndarray | None:
        """(n, n), of all samples or evenly spaced ones; None where it would cost too much. With a
        `center` that of F as a function of weights and of the intercept for columns less it."""
        problem = self.problem
        if not has_hessians(problem.loss) or problem.size > MOST_UNKNOWNS:
            return None
        if not problem.loss.linear:
            own = [self._bends(x, c) for c in self.chunks]
            return np.asarray(np.sum(own, axis=0) + np.diag(self.ridge(np.ones_like(x))))
        every = int(np.ceil(problem.shards.samples * problem.size**2 / MOST_FLOPS))
        C, p = problem.loss.outputs, problem.shards.features
        own = [np.arange(c * p, c * p + p) for c in range(C)]  # the unknowns of each output
        if problem.free:
            own = [np.append(at, C * p + c) for c, at in enumerate(own)]
        H = np.zeros((len(x), len(x)))
        rows = self.chunks[0].stop * CHUNKS_AT_ONCE
        some = [slice(a, a + rows) for a in range(0, problem.shards.samples, rows)][::every]
        for cut in some:
            X = dense(problem.shards.X[cut])  # in its own precision: that is enough for a step
            z, y = self._margins(x, X, cut), problem.labels[cut]
            X = X if center is None else X - center.astype(X.dtype)
            X = np.column_stack([X, np.ones(len(X), X.dtype)]) if problem.free else X
            for c in range(C):
                along = np.ones_like(z) if C == 1 else np.broadcast_to(np.eye(C)[c], z.shape)
                bend = np.asarray(bends(problem.loss, z, along, y)).reshape(len(z), C)
                if C == 1:  # as a square, which takes half the work
                    A = X * np.sqrt(self.weight[cut, None] * bend).astype(X.dtype)
                    H += A.T @ A
                    continue
                for d in range(C):
                    part = (X.T * (self.weight[cut] * bend[:, d])) @ X
                    H[np.ix_(own[d], own[c])] += part
        taken = sum(self.weight[cut].sum() for cut in some)
        return H * (self.weight.sum() / taken) + np.diag(self.ridge(np.ones_like(x)))

    def _bends(self, x: np.ndarray, c: slice) -> np.ndarray:
        made = hessians(self.problem.loss, *self._at(x, c, self._rows(c)))
        return np.asarray(np.tensordot(self.weight[c], np.asarray(made), 1))

    def _part(self, x: np.ndarray, c: slice, weight: np.ndarray) -> np.ndarray:
        X = self._rows(c)
        s = np.asarray(slopes(self.problem.loss, *self._at(x, c, X)))
        if not self.problem.loss.linear:
            return weight @ s
        s = (s.T * weight).T
        flat = np.asarray((X.T @ s).T).ravel()
        return np.append(flat, s.sum(0)) if self.problem.free else flat

    def _parts(self, x: np.ndarray, c: slice, weight: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """As `_part`, one row for each stretch of samples between two of `starts`."""
        X = self._rows(c)
        s = np.asarray(slopes(self.problem.loss, *self._at(x, c, X)))
        rows = np.arange(len(weight))

        def added(weight: np.ndarray, Y: Any) -> np.ndarray:
            by_node = sp.csr_array((weight, rows, starts), shape=(len(starts) - 1, len(rows)))
            return dense(by_node @ Y)

        if not self.problem.loss.linear:
            return added(weight, s)
        each = s.reshape(len(s), -1)  # (rows, outputs)
        flat = np.hstack([added(weight * along, X) for along in each.T])
        return np.hstack([flat, added(weight, each)]) if self.problem.free else flat

    def _at(self, x: np.ndarray, c: slice, X: Any) -> tuple[np.ndarray, ...]:
        """What the loss of these samples, with their rows X, at x depends on."""
        y = self.problem.labels[c]
        return (self._margins(x, X, c), y) if self.problem.loss.linear else (x, dense(X), y)

    def _margins(self, x: np.ndarray, X: Any, c: slice) -> np.ndarray:
        outputs, free = self.problem.loss.outputs, self.problem.free
        W = x[: len(x) - free]
        W = W if outputs == 1 else W.reshape(outputs, -1)
        z = np.asarray(X @ W.T)
        z = z if self.offset is None else z + self.offset[c]
        if not free:
            return z
        return z + (x[-1] if outputs == 1 else x[-free:])

    def _rows(self, c: slice) -> Any:
        X = self.problem.shards.X[c]
        return X if X.dtype == np.float64 else X.astype(np.float64)


def dense(X: Any) -> np.ndarray:
    return X.toarray() if isinstance(X, sp.csr_array) else np.asarray(X)


@light
def values(loss: Any, *at: Array) -> Array:
    return loss.value(*at) if loss.linear else jax.vmap(loss.fn, (None, 0, 0))(*at)


@light
def slopes(loss: Any, *at: Array) -> Array:
    return loss.slope(*at) if loss.linear else jax.vmap(jax.grad(loss.fn), (None, 0, 0))(*at)


@light
def hessians(loss: Any, *at: Array) -> Array:
    return jax.vmap(jax.hessian(loss.fn), (None, 0, 0))(*at)


@light
def bends(loss: Any, z: Array, along: Array, y: Array) -> Array:
    return jax.jvp(lambda a: loss.slope(a, y), (z,), (along,))[1]

"""How curved the losses are, from each node's own data: what every step rule starts from."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import scipy.sparse as sp

from edgewise.threads import over

if TYPE_CHECKING:
    from edgewise.problem import Problem

POWER_ITERATIONS = 20
SAFETY = 1.05  # power iteration comes from below
CURVED_SAMPLES = 16  # per node, to guess at a custom loss
CURVED_NODES = 64  # at a time
MANY_NODES = 256  # from here on small nodes go together, as one block-diagonal matrix
GROUP_NUMBERS = 1 << 19  # of such a matrix


class Smoothness:
    """L_i of one sample's loss (`sample`, the paper's), of a node's mean loss (`mean`, never more
    than that), and of what an estimator with a batch sees (`expected`). Ridge is in all."""

    def __init__(self, problem: "Problem") -> None:
        self._problem = problem
        self.counts, self.nodes = problem.counts, problem.nodes
        self.size = problem.size
        self.ridge = float(problem.loss.ridge)

    @cached_property
    def sample(self) -> np.ndarray:
        """(V,) the largest over a node's samples."""
        problem = self._problem
        if not problem.loss.linear:
            return lifted(self._custom + self.ridge)
        norms = squared_row_norms(problem.shards.X) + float(problem.intercept)
        if problem.scale is not None:
            norms = norms * problem.scale
        largest = np.maximum.reduceat(norms, problem.shards.first)
        return lifted(problem.loss.curvature() * largest + self.ridge)

    @cached_property
    def mean(self) -> np.ndarray:
        """(V,) by power iteration on each node's data."""
        problem = self._problem
        if not problem.loss.linear:
            return self.sample
        small = problem.shards.samples * problem.shards.features <= GROUP_NUMBERS // 16 * self.nodes
        if self.nodes >= MANY_NODES and small:
            tops = np.concatenate(over(self._groups(), self._tops))
        else:
            tops = np.array(over(range(self.nodes), self._top))
        return lifted(
            np.minimum(SAFETY * problem.loss.curvature() * tops + self.ridge, self.sample)
        )

    def expected(self, batch: int) -> np.ndarray:
        """(V,) expected smoothness of a batch drawn without replacement: from `sample` for one
        sample to `mean` for all (Gower et al. 2019)."""
        if batch == 1:
            return self.sample
        K = self.counts.astype(np.float64)
        b = np.minimum(batch, K)
        single = np.where(K > 1, (K - b) / (b * np.maximum(K - 1, 1)), 0.0)
        return single * self.sample + (1 - single) * self.mean

    def _top(self, i: int) -> float:
        X, _ = self._problem.shards[i]
        weight = None if self._problem.scale is None else self._problem.scale[self._problem.own(i)]
        v = np.random.default_rng(i).standard_normal(X.shape[1] + self._problem.intercept)
        top = 0.0
        for _ in range(POWER_ITERATIONS):
            v = (v / np.linalg.norm(v)).astype(X.dtype)  # else every product would cast all of X
            z = X @ v[: X.shape[1]] + (v[-1] if self._problem.intercept else 0.0)
            z = z if weight is None else z * weight
            down = X.T @ z / len(z)
            v = np.append(down, z.mean()) if self._problem.intercept else down
            top = float(np.linalg.norm(v))
            if top == 0:
                break
        return top

    def _groups(self) -> list[slice]:
        """Consecutive nodes, with GROUP_NUMBERS numbers at a time where one has not more alone."""
        shards = self._problem.shards
        reached = (shards.first + shards.counts) * shards.features // GROUP_NUMBERS
        cuts = np.flatnonzero(np.diff(reached)) + 1
        return [slice(a, b) for a, b in zip([0, *cuts], [*cuts, self.nodes], strict=True)]

    def _tops(self, nodes: slice) -> np.ndarray:
        """`_top` of each of these nodes: a product with all their data is one with a matrix whose
        blocks are theirs."""
        problem, extra = self._problem, int(self._problem.intercept)
        counts, first = self.counts[nodes], int(problem.shards.first[nodes.start])
        own = slice(first, first + int(counts.sum()))
        X = sp.csr_array(problem.shards.X[own])
        if extra:
            X = sp.hstack([X, sp.csr_array(np.ones((X.shape[0], 1)))], format="csr")
        m, width = len(counts), X.shape[1]
        block = np.repeat(np.repeat(np.arange(m), counts), np.diff(X.indptr))
        shape = (X.shape[0], m * width)
        D = sp.csr_array((X.data, block * width + X.indices, X.indptr), shape=shape)
        weight = 1 / np.repeat(counts, counts)
        weight = weight if problem.scale is None else weight * problem.scale[own]
        start = [np.random.default_rng(i) for i in range(nodes.start, nodes.stop)]
        V = np.array([rng.standard_normal(width) for rng in start])
        tops = np.linalg.norm(V, axis=1)
        for _ in range(POWER_ITERATIONS):
            V = V / np.maximum(tops, 1e-300)[:, None]
            V = (D.T @ (weight * (D @ V.ravel()))).reshape(m, width)
            tops = np.linalg.norm(V, axis=1)
        return tops

    @cached_property
    def _custom(self) -> np.ndarray:
        loss, problem = self._problem.loss, self._problem
        if loss.smoothness is not None:
            weights = 1.0 if problem.scale is None else problem.scale
            each = np.broadcast_to(
                np.asarray(loss.smoothness * weights, float), problem.labels.shape
            )
            return np.maximum.reduceat(each, problem.shards.first)

        def curve(x: jax.Array, v: jax.Array, d: jax.Array, y: jax.Array) -> jax.Array:
            def times(w: jax.Array) -> jax.Array:
                return jax.jvp(lambda u: jax.grad(loss.fn)(u, d, y), (x,), (w,))[1]

            for _ in range(POWER_ITERATIONS):
                w = times(v)
                v = w / jax.numpy.maximum(jax.numpy.linalg.norm(w), 1e-300)
            return jax.numpy.linalg.norm(times(v))

        rng = np.random.default_rng(0)
        out = np.zeros(problem.nodes)
        with jax.enable_x64(True):
            many = jax.jit(jax.vmap(curve))
            for begin in range(0, self.nodes, CURVED_NODES):
                nodes = range(begin, min(begin + CURVED_NODES, self.nodes))
                drawn = [self._points(i, rng) for i in nodes]
                at = np.concatenate([at for at, _ in drawn])
                points = np.concatenate([x for _, x in drawn], axis=1)
                rows: Any = problem.shards.X[at]
                d = rows.toarray() if isinstance(rows, sp.csr_array) else rows
                weight = 1.0 if problem.scale is None else problem.scale[at]
                tops = np.asarray(
                    many(points[0], points[1], np.asarray(d, float), problem.labels[at])
                )
                out[begin : nodes.stop] = (tops * weight).reshape(len(nodes), -1).max(1)
        return SAFETY * out

    def _points(self, i: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Samples of node i, and for each where to look at its curve and in which direction."""
        own = np.arange(self.counts[i]) + self._problem.shards.first[i]
        at = rng.choice(own, CURVED_SAMPLES)
        points = rng.standard_normal((2, len(at), self.size))
        points[0, ::2] = 0  # half of them where runs begin
        return at, points


def lifted(L: np.ndarray) -> np.ndarray:
    """A node without curvature (all-zero rows) could take any step, but its links could not: it
    takes the largest L of all."""
    top = L.max()
    return np.where(L / max(top, 1e-300) > 1e-6, L, top if top > 0 else 1.0)


def squared_row_norms(X: np.ndarray | sp.csr_array) -> np.ndarray:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()
    out = np.empty(len(X))
    step = max(1, (1 << 20) // max(X.shape[1], 1))
    for a in range(0, len(X), step):
        np.einsum(
            "ij,ij->i",
            X[a : a + step],
            X[a : a + step],
            out=out[a : a + step],
            dtype=np.float64,
            casting="safe",
        )
    return out

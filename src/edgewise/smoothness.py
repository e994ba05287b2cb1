"""How curved the losses are, from each node's own data: what every step rule starts from."""

from functools import cached_property
from typing import TYPE_CHECKING

import jax
import numpy as np
import scipy.sparse as sp

from edgewise.threads import over

if TYPE_CHECKING:
    from edgewise.problem import Problem

POWER_ITERATIONS = 20
SAFETY = 1.05  # power iteration comes from below
CURVED_SAMPLES = 16  # per node, to guess at a custom loss


class Smoothness:
    """L_i of one sample's loss (`sample`, the paper's), of a node's mean loss (`mean`, never more
    than that), and of what an estimator with a batch sees (`expected`). Ridge is in all."""

    def __init__(self, problem: "Problem") -> None:
        self._problem = problem
        self.counts = problem.counts
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
        tops = np.array(over(range(problem.nodes), self._top))
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
            for i in range(problem.nodes):
                at = rng.choice(
                    np.arange(problem.counts[i]) + problem.shards.first[i], CURVED_SAMPLES
                )
                d = problem.shards.X[at]
                d = d.toarray() if sp.issparse(d) else d
                points = rng.standard_normal((2, len(at), problem.size))
                points[0, ::2] = 0  # half of them where runs begin
                weight = 1.0 if problem.scale is None else problem.scale[at]
                tops = np.asarray(
                    many(points[0], points[1], np.asarray(d, float), problem.labels[at])
                )
                out[i] = (tops * weight).max()
        return SAFETY * out


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

"""How curved the losses are, from each node's own data: what every step rule starts from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import scipy.sparse as sp

from edgewise.backend.threads import one_blas_thread, over
from edgewise.data.arrays import Matrix
from edgewise.problem.contract import Curvatures
from edgewise.problem.whole_nodes import is_whole

if TYPE_CHECKING:
    from edgewise.problem.problem import Problem

POWER_ITERATIONS = 20
SAFETY = 1.05  # power iteration comes from below
CURVED_SAMPLES = 16  # per node, to guess at a custom loss
CURVED_NODES = 64  # at a time
MANY_NODES = 256  # from here on small nodes go together, as one block-diagonal matrix
GROUP_NUMBERS = 1 << 19  # of such a matrix
PART_NUMBERS = 1 << 20  # of a node's data that a core takes at a time

Gather = Callable[[np.ndarray], np.ndarray]


class Smoothness:
    """L_i of one sample's loss (`sample`, the paper's), of a node's mean loss (`mean`, never more
    than that), and of what an estimator with a batch sees (`expected`). Ridge is in all.

    Where the problem is that of some nodes only, `gather` makes of (v,) numbers of these the (V,)
    of all, and all that is said here is of all. It is called equally often everywhere, and what a
    node contributes depends on its data and its id alone, not on who else is here.
    """

    def __init__(self, problem: "Problem", gather: Gather | None = None) -> None:
        self._problem = problem
        self._gather: Gather = (lambda own: own) if gather is None else gather
        self.counts = np.asarray(self._gather(problem.counts), np.int64)
        self.nodes = len(self.counts)
        self.size = problem.size
        self.ridge = float(problem.loss.ridge)
        self.saturates = bool(getattr(problem.loss, "saturates", False))
        tops = problem.cost_tops
        self.costs = 0.0 if tops is None else np.asarray(self._gather(tops), np.float64)

    @cached_property
    def sample(self) -> np.ndarray:
        """(V,) the largest over a node's samples."""
        problem = self._problem
        if not problem.loss.linear:
            return lifted(self._gather(self._custom) + self.ridge + self.costs)
        norms = squared_row_norms(problem.shards.X) + float(problem.intercept)
        if self._bends is not None:
            norms = norms * self._bends
        largest = np.maximum.reduceat(norms, problem.shards.first)
        return lifted(self._most * self._gather(largest) + self.ridge + self.costs)

    @cached_property
    def _most(self) -> float:
        """The loss's curvature, where that is the same for all labels."""
        loss = self._problem.loss
        assert loss.linear
        most = loss.curvature()
        return most if np.isfinite(most) else 1.0

    @cached_property
    def _bends(self) -> np.ndarray | None:
        """(N,) each sample's factor: its weight, and its own curvature where losses of unlike
        labels have unlike ones. Where no bound holds, a count of zero would have none: there it is
        the one of the node's mean label."""
        problem, loss = self._problem, self._problem.loss
        assert loss.linear
        if np.isfinite(loss.curvature()):
            return problem.scale
        y = np.asarray(problem.labels, np.float64)
        bends = loss.curvatures(y)
        if not problem.smooth:
            means = np.add.reduceat(y, problem.shards.first) / problem.counts
            bends = np.maximum(bends, loss.curvatures(np.repeat(means, problem.counts)))
        return bends if problem.scale is None else bends * problem.scale

    @cached_property
    def mean(self) -> np.ndarray:
        """(V,) by power iteration on each node's data."""
        problem = self._problem
        if not problem.loss.linear:
            return self.sample
        numbers = int(self.counts.sum()) * problem.shards.features
        if self.nodes >= MANY_NODES and numbers <= GROUP_NUMBERS // 16 * self.nodes:
            own = np.concatenate(over(self._groups(), self._tops))
        else:
            # BLAS's own threads add up in an order of theirs: in float32 that is seen
            with one_blas_thread():
                own = np.array(over(range(problem.nodes), self._top))
        tops = self._gather(own)
        return lifted(np.minimum(SAFETY * self._most * tops + self.ridge + self.costs, self.sample))

    @cached_property
    def intercept(self) -> np.ndarray:
        """(V,) as careful as `mean`, so that one may be taken off the other."""
        problem = self._problem
        own = np.zeros(problem.nodes)
        if problem.intercept and problem.loss.linear:
            bends = np.ones(len(problem.labels)) if self._bends is None else self._bends
            sums = np.add.reduceat(np.asarray(bends, np.float64), problem.shards.first)
            own = SAFETY * self._most * sums / problem.counts
        return np.asarray(self._gather(own), np.float64)

    def expected(self, batch: int) -> np.ndarray:
        return expected_smoothness(self, batch)

    def _top(self, i: int) -> float:
        problem, K = self._problem, int(self._problem.counts[i])
        p, extra = problem.shards.features, problem.intercept
        parts = self._parts(i)
        v = np.random.default_rng(problem.ids[i]).standard_normal(p + extra)

        def product(part: tuple[Any, Any]) -> np.ndarray:
            X, weight = part
            z = X @ v[:p] + (v[-1] if extra else 0.0)
            z = z if weight is None else z * weight
            return np.append(X.T @ z, z.sum()) if extra else X.T @ z

        top = 0.0
        for _ in range(POWER_ITERATIONS):
            # in X's own type, else every product would cast all of X
            v = (v / np.linalg.norm(v)).astype(parts[0][0].dtype)
            v = np.asarray(sum(over(parts, product)) / K)
            top = float(np.linalg.norm(v))
            if top == 0:
                break
        return top

    def _parts(self, i: int) -> list[tuple[Matrix, np.ndarray | None]]:
        """The node's rows and their weights, PART_NUMBERS numbers at a time."""
        problem, own = self._problem, self._problem.own(i)
        X = problem.shards.X
        if isinstance(X, np.ndarray):
            before = np.arange(own.stop - own.start) * X.shape[1]
        else:
            before = X.indptr[own] - X.indptr[own.start]
        # each part makes a vector as long as a row: it should have as many numbers
        cuts = consecutive(before, max(PART_NUMBERS, X.shape[1]))
        rows = [slice(own.start + cut.start, own.start + cut.stop) for cut in cuts]
        return [(X[r], None if self._bends is None else self._bends[r]) for r in rows]

    def _groups(self) -> list[slice]:
        """Consecutive nodes, with GROUP_NUMBERS numbers at a time where one has not more alone."""
        shards = self._problem.shards
        return consecutive(shards.first * shards.features, GROUP_NUMBERS)

    def _tops(self, nodes: slice) -> np.ndarray:
        """`_top` of each of these nodes: a product with all their data is one with a matrix whose
        blocks are theirs."""
        problem, extra = self._problem, int(self._problem.intercept)
        counts, first = problem.counts[nodes], int(problem.shards.first[nodes.start])
        own = slice(first, first + int(counts.sum()))
        X = sp.csr_array(problem.shards.X[own])
        if extra:
            X = sp.hstack([X, sp.csr_array(np.ones((X.shape[0], 1)))], format="csr")
        m, width = len(counts), X.shape[1]
        block = np.repeat(np.repeat(np.arange(m), counts), np.diff(X.indptr))
        shape = (X.shape[0], m * width)
        D = sp.csr_array((X.data, block * width + X.indices, X.indptr), shape=shape)
        weight = 1 / np.repeat(counts, counts)
        weight = weight if self._bends is None else weight * self._bends[own]
        start = [np.random.default_rng(i) for i in problem.ids[nodes]]
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
        assert not loss.linear
        fn = loss.fn
        weights = 1.0 if problem.scale is None else problem.scale
        if is_whole(loss):
            return np.asarray(loss.curvatures(np.asarray(problem.shards.X)) * weights)
        if loss.smoothness is not None:
            each = np.broadcast_to(
                np.asarray(loss.smoothness * weights, float), problem.labels.shape
            )
            return np.maximum.reduceat(each, problem.shards.first)

        def curve(x: jax.Array, v: jax.Array, d: jax.Array, y: jax.Array) -> jax.Array:
            def times(w: jax.Array) -> jax.Array:
                return jax.jvp(lambda u: jax.grad(fn)(u, d, y), (x,), (w,))[1]

            for _ in range(POWER_ITERATIONS):
                w = times(v)
                v = w / jax.numpy.maximum(jax.numpy.linalg.norm(w), 1e-300)
            return jax.numpy.linalg.norm(times(v))

        out = np.zeros(problem.nodes)
        with jax.enable_x64(True):
            many = jax.jit(jax.vmap(curve))
            for begin in range(0, problem.nodes, CURVED_NODES):
                nodes = range(begin, min(begin + CURVED_NODES, problem.nodes))
                drawn = [self._points(i) for i in nodes]
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

    def _points(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Samples of node i, and for each where to look at its curve and in which direction."""
        rng, own = np.random.default_rng([0, self._problem.ids[i]]), self._problem.own(i)
        at = own.start + rng.integers(own.stop - own.start, size=CURVED_SAMPLES)
        points = rng.standard_normal((2, len(at), self.size))
        points[0, ::2] = 0  # half of them where runs begin
        return at, points


@dataclass(frozen=True, eq=False)
class ReportedSmoothness:
    """The same, of nodes that report it and keep their data."""

    counts: np.ndarray
    sample: np.ndarray
    mean: np.ndarray
    intercept: np.ndarray
    ridge: float
    size: int
    saturates: bool = False

    def expected(self, batch: int) -> np.ndarray:
        return expected_smoothness(self, batch)


def expected_smoothness(nodes: Curvatures, batch: int) -> np.ndarray:
    """(k,) of a batch drawn without replacement: from `sample` for one sample to `mean` for all
    (Gower et al. 2019)."""
    if batch == 1:
        return nodes.sample
    K = nodes.counts.astype(np.float64)
    b = np.minimum(batch, K)
    single = np.where(K > 1, (K - b) / (b * np.maximum(K - 1, 1)), 0.0)
    return single * nodes.sample + (1 - single) * nodes.mean


def consecutive(before: np.ndarray, numbers: int) -> list[slice]:
    """Consecutive items, so many numbers at a time where one has not more alone; before[k] numbers
    lie before item k."""
    cuts = np.flatnonzero(np.diff(before // numbers)) + 1
    return [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(before)], strict=True)]


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

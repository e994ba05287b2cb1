"""The centralised answer, to high accuracy: all data in one place, no network."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from edgewise import penalties
from edgewise.problem import Problem
from edgewise.smoothness import POWER_ITERATIONS, SAFETY

CHUNK_NUMBERS = 1 << 23  # rows are cast to float64, where they must be, this many numbers at a time


@dataclass(frozen=True)
class Reference:
    """The optimum of a problem."""

    x: np.ndarray  # (n,)
    objective: float  # sum_i f_i(x) + h_i(x)
    residual: float  # norm of the prox-gradient residual of the whole problem
    gradients: np.ndarray  # (V, n) grad f_i(x)
    subgradients: np.ndarray  # (V, n) v_i in the subdifferential of h_i at x
    iterations: int


def reference(problem: Problem, tol: float = 1e-12, iterations: int = 20_000) -> Reference:
    """Minimise the whole problem by Anderson-accelerated generalised forward-backward splitting.

    One copy z_g of the model per distinct penalty h_g, with the share w_g of the nodes that have
    it: x = sum_g w_g z_g, z_g <- z_g + prox_{t h_g}(2x - z_g - t grad F(x)) - x, where F is the
    mean of the f_i (Raguet, Fadili, Peyre 2013). With one penalty this is the proximal gradient
    method. Stops at a residual of `tol` relative to the gradient at the start, or when rounding
    lets it fall no further.
    """
    kept = problem.__dict__.get("_reference")
    if kept is not None and kept[0] <= tol:
        return kept[1]
    with jax.enable_x64(True):
        answer = _solve(problem, tol, iterations)
    problem.__dict__["_reference"] = (tol, answer)
    return answer


def _solve(problem: Problem, tol: float, iterations: int) -> Reference:
    smooth = Smooth(problem)
    members, group_of = groups(problem)
    share = np.bincount(group_of, minlength=len(members)) / problem.nodes
    proxes = [jax.jit(penalties.stack(h, 1, problem.size, free=problem.free).prox) for h in members]
    step = 1 / smooth.lipschitz()

    def prox(y: np.ndarray) -> np.ndarray:
        t = np.full((1, 1), step)
        return np.stack([np.asarray(f(row[None], t))[0] for f, row in zip(proxes, y, strict=True)])

    def forward(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = share @ z
        y = 2 * x - z - step * smooth.gradient(x)
        return x, y, prox(y)

    def advance(flat: np.ndarray) -> np.ndarray:
        z = flat.reshape(len(members), -1)
        x, _, inner = forward(z)
        return (inner - x).ravel()

    zero = np.zeros((len(members), problem.size))
    scale = float(step * np.linalg.norm(smooth.gradient(zero[0]))) + 1e-300
    z, spent = anderson(advance, prox(zero).ravel(), tol * scale, iterations)
    _, y, inner = forward(z.reshape(zero.shape))
    x = share @ inner
    subgradients = ((y - inner) / step)[group_of]
    gradients = smooth.node_gradients(x)
    if len(members) == 1:
        subgradients = np.broadcast_to(-gradients.mean(0), gradients.shape)
    else:  # what rounding leaves of the sum is shared out
        subgradients = subgradients - (subgradients + gradients).mean(0)
    again, _, back = forward(
        np.tile(x, (len(members), 1)) if len(members) == 1 else z.reshape(zero.shape)
    )
    gap = np.sqrt((share * ((back - again) ** 2).sum(1)).sum())
    value = penalties.stack(problem.penalty, problem.nodes, problem.size, free=problem.free).value
    h = np.asarray(value(jnp.broadcast_to(x, (problem.nodes, problem.size)))).sum()
    return Reference(
        x,
        float(problem.nodes * smooth.value(x) + h),
        float(problem.nodes * gap / step),
        gradients,
        np.array(subgradients),
        spent,
    )


def groups(problem: Problem) -> tuple[list[Any], np.ndarray]:
    """The distinct penalties, and which of them each node has."""
    if problem.same_penalty:
        one = problem.penalty[0] if isinstance(problem.penalty, list | tuple) else problem.penalty
        return [one], np.zeros(problem.nodes, int)
    members: list[Any] = []
    group_of = np.empty(problem.nodes, int)
    for i, h in enumerate(problem.penalty):
        known = (g for g, other in enumerate(members) if penalties.same([h, other]))
        group_of[i] = next(known, len(members))
        if group_of[i] == len(members):
            members.append(h)
    return members, group_of


class Smooth:
    """F = (1/V) sum_i f_i at one x for all nodes: one weighted sum over all samples."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        counts = np.repeat(problem.counts, problem.counts)
        scale = 1.0 if problem.scale is None else problem.scale
        self.weight = np.asarray(scale / (counts * problem.nodes), np.float64)
        rows = max(1, CHUNK_NUMBERS // max(problem.size, problem.shards.features, 1))
        self.chunks = [slice(a, a + rows) for a in range(0, problem.shards.samples, rows)]
        loss = problem.loss
        if loss.linear:
            self._slope, self._value = jax.jit(loss.slope), jax.jit(loss.value)
        else:
            self._slope = jax.jit(jax.vmap(jax.grad(loss.fn), (None, 0, 0)))
            self._value = jax.jit(jax.vmap(loss.fn, (None, 0, 0)))

    def ridge(self, x: np.ndarray) -> np.ndarray:
        inside = np.arange(len(x)) < len(x) - self.problem.free
        return np.asarray(float(self.problem.loss.ridge) * x * inside)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return sum(self._part(x, c, self.weight[c]) for c in self.chunks) + self.ridge(x)

    def node_gradients(self, x: np.ndarray) -> np.ndarray:
        weight = self.weight * self.problem.nodes
        out = []
        for i in range(self.problem.nodes):
            own = self.problem.own(i)
            step = self.chunks[0].stop
            cuts = [slice(a, min(a + step, own.stop)) for a in range(own.start, own.stop, step)]
            out.append(sum(self._part(x, c, weight[c]) for c in cuts) + self.ridge(x))
        return np.array(out)

    def value(self, x: np.ndarray) -> float:
        total = 0.0
        for c in self.chunks:
            first = self._margins(x, c) if self.problem.loss.linear else x
            extra = () if self.problem.loss.linear else (self._dense(c),)
            each = self._value(first, *extra, self.problem.labels[c])
            total += float(self.weight[c] @ np.asarray(each))
        return total + 0.5 * float(x @ self.ridge(x))

    def lipschitz(self) -> float:
        """Of the gradient of F, by power iteration over all samples."""
        problem = self.problem
        if not problem.loss.linear:
            return float(problem.smoothness.mean.mean())
        v = np.random.default_rng(0).standard_normal(problem.shards.features)
        v, b, top = v / np.linalg.norm(v), float(problem.intercept), 0.0
        for _ in range(POWER_ITERATIONS):
            down, last = np.zeros_like(v), 0.0
            for c in self.chunks:
                z = (self._rows(c) @ v + b) * self.weight[c]
                down, last = down + self._rows(c).T @ z, last + z.sum()
            b = float(last) if problem.intercept else 0.0
            top = float(np.hypot(np.linalg.norm(down), b))
            if top == 0:
                break
            v, b = down / top, b / top
        return SAFETY * problem.loss.curvature() * top + float(problem.loss.ridge) + 1e-300

    def _part(self, x: np.ndarray, c: slice, weight: np.ndarray) -> np.ndarray:
        y = self.problem.labels[c]
        if not self.problem.loss.linear:
            return weight @ np.asarray(self._slope(x, self._dense(c), y))
        s = np.asarray(self._slope(self._margins(x, c), y))
        s = (s.T * weight).T
        X = self._rows(c)
        flat = np.asarray((X.T @ s).T).ravel()
        return np.append(flat, s.sum(0)) if self.problem.free else flat

    def _margins(self, x: np.ndarray, c: slice) -> np.ndarray:
        outputs, free = self.problem.loss.outputs, self.problem.free
        W = x[: len(x) - free]
        W = W if outputs == 1 else W.reshape(outputs, -1)
        z = np.asarray(self._rows(c) @ W.T)
        if not free:
            return z
        return z + (x[-1] if outputs == 1 else x[-free:])

    def _rows(self, c: slice) -> Any:
        X = self.problem.shards.X[c]
        return X if X.dtype == np.float64 else X.astype(np.float64)

    def _dense(self, c: slice) -> np.ndarray:
        X = self._rows(c)
        return X.toarray() if isinstance(X, sp.csr_array) else np.asarray(X)


def anderson(
    advance: Callable[[np.ndarray], np.ndarray], z: np.ndarray, tol: float, iterations: int
) -> tuple[np.ndarray, int]:
    """A root of `advance` (a fixed point's displacement), from the last `memory` steps at a time.

    Where the accelerated point's displacement is larger than twice the best so far, the plain
    step from the best point is taken instead and the memory is dropped.
    """
    memory, patience = 15, 400
    move = advance(z)
    best, best_z, best_move, since = np.linalg.norm(move), z, move, 0
    steps: list[np.ndarray] = []
    changes: list[np.ndarray] = []
    for k in range(iterations):
        if best <= tol or (since > patience and best < 1e3 * tol):
            return best_z, k
        if steps:
            A = np.stack(changes, 1)
            scale = np.linalg.norm(A, axis=0)
            mix = np.linalg.lstsq(A / scale, move, rcond=1e-12)[0] / scale
            new = z + move - np.stack(steps, 1) @ mix - A @ mix
        else:
            new = z + move
        new_move = advance(new)
        size = np.linalg.norm(new_move)
        if not size <= 2 * best and steps:
            steps, changes = [], []
            z, move = best_z, best_move
            continue
        steps, changes = [*steps[1 - memory :], new - z], [*changes[1 - memory :], new_move - move]
        if not np.any(changes[-1]):
            return new, k
        z, move, since = new, new_move, since + 1
        if size < best:
            since = since if size > 0.9 * best else 0
            best, best_z, best_move = size, new, new_move
    return best_z, iterations

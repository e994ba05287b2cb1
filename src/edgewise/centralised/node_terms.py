"""Losses, costs and penalties of nodes with models of their own, as functions of all of them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array

from edgewise.problem.block import Block
from edgewise.problem.coupled import CoupledProblem


class NodeTerms:
    """sum_i f_i(x_i) + h_i(x_i) of x (N,), models one after the other. Call within `on_host`."""

    def __init__(self, problem: CoupledProblem) -> None:
        self.block = problem.block(None, np.float64)
        sizes = np.asarray(problem.sizes)
        self.nodes, self.most = len(sizes), int(sizes.max())
        self.own = np.arange(self.most) < sizes[:, None]  # (V, n) of a model, not beyond it
        number = np.cumsum(self.own).reshape(self.own.shape) - 1
        self.pairs = self.own[:, :, None] & self.own[:, None, :]
        shape = self.pairs.shape
        self.row = np.broadcast_to(number[:, :, None], shape)[self.pairs]
        self.column = np.broadcast_to(number[:, None, :], shape)[self.pairs]
        self.size = int(sizes.sum())
        members = self.block.penalty.members
        self.separable = all(getattr(h, "separable", False) for h in members)

    def padded(self, x: np.ndarray) -> Array:
        X = np.zeros(self.own.shape)
        X[self.own] = x
        return jnp.asarray(X)

    def flat(self, X: Any) -> np.ndarray:
        return np.asarray(X)[self.own]

    def models(self, x: np.ndarray) -> list[np.ndarray]:
        return [X[own] for X, own in zip(np.asarray(self.padded(x)), self.own, strict=True)]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.flat(gradients(self.block, self.padded(x)))

    def value(self, x: np.ndarray) -> float:
        return float(values(self.block, self.padded(x)))

    def prox(self, x: np.ndarray, t: float) -> np.ndarray:
        return self.flat(prox(self.block, self.padded(x), jnp.full((self.nodes, 1), t)))

    def hessian(self, x: np.ndarray) -> Any:
        """(N, N) sparse, a block per node."""
        return self._blocks(np.asarray(hessians(self.block, self.padded(x))))

    def prox_slopes(self, x: np.ndarray, t: float) -> Any:
        """(N, N) sparse, the Jacobian of the prox, or an element of the generalised one."""
        steps = jnp.full((self.nodes, 1), t)
        if self.separable:
            ones = prox_along(self.block, self.padded(x), steps, jnp.ones(self.own.shape))
            return sp.diags_array(sound(self.flat(ones)))
        P = np.asarray(prox_jacobians(self.block, self.padded(x), steps))
        return self._blocks(sound((P + P.transpose(0, 2, 1)) / 2))

    def _blocks(self, H: np.ndarray) -> Any:
        shape = (self.size, self.size)
        return sp.csr_array((H[self.pairs], (self.row, self.column)), shape)


def sound(P: np.ndarray) -> np.ndarray:
    """At a kink a derivative may be no number: any slope from 0 to 1 will do, steps are tried."""
    return np.where(np.isfinite(P), P, 0)


@jax.jit
def gradients(p: Block, X: Array) -> Array:
    return p.full(X) + p.ridge(X)


@jax.jit
def values(p: Block, X: Array) -> Array:
    return (p.values(X) + p.penalty.value(X)).sum()


@jax.jit
def prox(p: Block, X: Array, t: Array) -> Array:
    return p.penalty.prox(X, t)


@jax.jit
def prox_along(p: Block, X: Array, t: Array, way: Array) -> Array:
    return jax.jvp(lambda Y: p.penalty.prox(Y, t), (X,), (way,))[1]


@jax.jit
def prox_jacobians(p: Block, X: Array, t: Array) -> Array:
    """(v, n, n)"""

    def along(e: Array) -> Array:
        return prox_along(p, X, t, jnp.broadcast_to(e, X.shape))

    return jax.vmap(along)(jnp.eye(X.shape[1])).transpose(1, 2, 0)


@jax.jit
def hessians(p: Block, X: Array) -> Array:
    """(v, n, n) of losses, ridge and costs."""
    v, n = X.shape
    if not p.loss.linear:  # of a custom loss: a derivative of its gradient, column by column
        return jax.vmap(
            lambda e: jax.jvp(lambda Y: gradients(p, Y), (X,), (jnp.broadcast_to(e, X.shape),))[1],
            out_axes=2,
        )(jnp.eye(n))
    H = p.hessians(jnp.zeros((v, 1, n, n)), X, jnp.ones(v, bool))[:, 0]
    if p.cost is None:
        return H + p.loss.ridge * jnp.eye(n)
    return H + p.cost.Q + (p.loss.ridge * p.cost.lossy)[:, :, None] * jnp.eye(n)

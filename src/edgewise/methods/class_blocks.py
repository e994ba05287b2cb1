"""Matrices over models, as blocks: one per class of a multinomial loss, and one that classes share.

A model u with C outputs of f weights each (intercepts among them) is C vectors u_c. W turns it into
C + 1: what each has beyond their mean, u_c - mean, and sqrt(C) times the mean. W'W = I. A matrix is
kept as C + 1 blocks of f x f, and means

    M = W' diag(M_1, ..., M_C, M_mean) W.

A Hessian's blocks are its own H_cc, and sum_cd H_cd / C. What is lost are the couplings of two
classes beyond the mean: a Newton step that has these instead takes as many rounds (docs/theory.md),
and costs C times less memory, and C^2 times less to solve with. The mean is apart because a softmax
does not change with it: there the ridge is all the curvature there is.

With one output there is one block, and W is the identity.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from edgewise.problem.block import Block


def block_shape(size: int, outputs: int) -> tuple[int, int]:
    """How many blocks, and of how many rows each."""
    return (1, size) if outputs == 1 else (outputs + 1, size // outputs)


def times(M: Array, z: Array) -> Array:
    """Of symmetric blocks (..., b, f, f) and vectors (..., b, f). With one axis before the matrices
    they are read as they lie; with more XLA would lay out a copy."""
    f = z.shape[-1]
    M, rows = M.reshape(-1, f, f), z.reshape(-1, f)
    return jnp.einsum("vij,vi->vj", M, rows, precision=lax.Precision.HIGHEST).reshape(z.shape)


class ClassBlocks(NamedTuple):
    """How models turn into vectors of blocks, and back."""

    outputs: int
    intercepts: bool

    @classmethod
    def of(cls, p: Block) -> "ClassBlocks":
        return cls(p.loss.outputs, p.mask is not None)

    def classes(self, u: Array) -> Array:
        """(..., n) -> (..., C, f), a vector per class: its weights, then its intercept."""
        if self.outputs == 1:
            return u[..., None, :]
        C = self.outputs
        weights = u[..., : u.shape[-1] - C] if self.intercepts else u
        weights = weights.reshape(*u.shape[:-1], C, -1)
        if not self.intercepts:
            return weights
        return jnp.concatenate([weights, u[..., u.shape[-1] - C :, None]], -1)

    def model(self, z: Array) -> Array:
        """The inverse of `classes`."""
        if self.outputs == 1:
            return z[..., 0, :]
        if not self.intercepts:
            return z.reshape(*z.shape[:-2], -1)
        weights = z[..., :-1].reshape(*z.shape[:-2], -1)
        return jnp.concatenate([weights, z[..., -1]], -1)

    def split(self, u: Array) -> Array:
        """W u: (..., n) -> (..., b, f)."""
        own = self.classes(u)
        if self.outputs == 1:
            return own
        mean = own.mean(-2, keepdims=True)
        return jnp.concatenate([own - mean, self.outputs**0.5 * mean], -2)

    def join(self, z: Array) -> Array:
        """W' z: (..., b, f) -> (..., n)."""
        if self.outputs == 1:
            return self.model(z)
        own, shared = z[..., :-1, :], z[..., -1:, :]
        return self.model(own - own.mean(-2, keepdims=True) + shared / self.outputs**0.5)

    def times(self, M: Array, u: Array) -> Array:
        """M u: (..., b, f, f), (..., n) -> (..., n)."""
        return self.join(times(M, self.split(u)))

    def with_diagonal(self, M: Array, d: Array) -> Array:
        """M + diag(d), d (..., n); near it where classes differ in d."""
        own = self.classes(d)
        if self.outputs > 1:
            own = jnp.concatenate([own, own.mean(-2, keepdims=True)], -2)
        return add_diagonal(M, own)

    def scaled(self, M: Array, d: Array) -> Array:
        """diag(d) M diag(d), d (..., n); near it where classes differ in d."""
        own = self.classes(d)
        if self.outputs > 1:
            own = jnp.concatenate([own, own.mean(-2, keepdims=True)], -2)
        return own[..., :, None] * M * own[..., None, :]

    def sizes(self, M: Array) -> Array:
        """(..., b, f) the diagonals, of what classes share at least the mean of theirs: what
        rounding is measured by."""
        d = diagonals(M)
        if self.outputs == 1:
            return d
        shared = jnp.maximum(d[..., -1:, :], d[..., :-1, :].mean(-2, keepdims=True))
        return jnp.concatenate([d[..., :-1, :], shared], -2)


def diagonals(M: Array) -> Array:
    return jnp.diagonal(M, axis1=-2, axis2=-1)


def add_diagonal(M: Array, d: Array) -> Array:
    return M + d[..., None] * jnp.eye(M.shape[-1], dtype=M.dtype)

"""The prox of a penalty in the metric of a matrix: the step of a Newton method with a penalty."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.linalg import cho_solve

from edgewise.problem.stacked_penalties import StackedPenalties

JITTER = 1e-9  # part of a diagonal, more in float32: rounding may take a matrix below zero
RELAXED = 1.6  # over-relaxation of the inner steps


class Solver(NamedTuple):
    """(M + S)^-1 of every node; S is zero where there is no penalty, or one that is quadratic and
    part of M, else the weight of the inner steps, a diagonal."""

    inverse: Array  # (v, n, n)
    weight: Array  # (v, n) the diagonal S


def make_solver(M: Array, penalty: StackedPenalties) -> Solver:
    """Everything scaled by M's diagonal, so that the units of columns do not matter. The weight is
    the geometric mean of the scaled eigenvalues; one number where coordinates hang together."""
    n = M.shape[1]
    M = M + quadratic(penalty, M[:, 0])[:, :, None] * jnp.eye(n, dtype=M.dtype)
    diagonal = jnp.diagonal(M, axis1=1, axis2=2)
    empty = diagonal <= 0  # a column that nobody around knows anything of
    jitter = max(JITTER, 4 * n * float(jnp.finfo(M.dtype).eps))
    M = M + jnp.where(empty, 1, jitter * diagonal)[:, :, None] * jnp.eye(n, dtype=M.dtype)
    diagonal = jnp.where(empty, 1, diagonal)
    if penalty.smooth:
        return Solver(inverse(M), jnp.zeros_like(diagonal))
    size = 1 / jnp.sqrt(diagonal)
    root = jnp.linalg.cholesky(size[:, :, None] * M * size[:, None])
    mean = jnp.exp(2 * jnp.log(jnp.diagonal(root, axis1=1, axis2=2)).mean(1, keepdims=True))
    weight = jnp.maximum(mean, 1e-4) * diagonal
    common = jnp.exp(jnp.log(weight).mean(1, keepdims=True))
    weight = jnp.where(penalty.at_nodes("separable")[:, None], weight, common)
    weight = jnp.where(without_kinks(penalty)[:, None], 0, weight)
    return Solver(inverse(M + weight[:, :, None] * jnp.eye(n, dtype=M.dtype)), weight)


def without_kinks(penalty: StackedPenalties) -> Array:
    return penalty.at_nodes("absent") | penalty.at_nodes("quadratic")


def quadratic(penalty: StackedPenalties, X: Array) -> Array:
    """(v, n) the ridge of penalties that are nothing else: it goes into the matrix."""
    return jnp.where(penalty.at_nodes("quadratic")[:, None], penalty.ridge(X), 0)


def inverse(M: Array) -> Array:
    n, size = M.shape[1], 1 / jnp.sqrt(jnp.diagonal(M, axis1=1, axis2=2))
    root = jnp.linalg.cholesky(size[:, :, None] * M * size[:, None])
    made: Array = cho_solve((root, True), jnp.broadcast_to(jnp.eye(n, dtype=M.dtype), M.shape))
    return size[:, :, None] * made * size[:, None]


def times(M: Array, x: Array) -> Array:
    """Of symmetric matrices: read as they lie, with no copy."""
    return jnp.einsum("vij,vi->vj", M, x, precision=lax.Precision.HIGHEST)


def newton_step(
    penalty: StackedPenalties, solver: Solver, X: Array, r: Array, Y: Array, tol: float, most: int
) -> tuple[Array, Array]:
    """(v, n) argmin_u <r, u - X> + |u - X|^2_M / 2 + h(u), and the penalty's dual there, a
    subgradient of h. Y: that of the round before, to begin with.

    ADMM: u solves the quadratic with the weight S, z is a prox, so that it has exact zeros and is
    feasible, and Y adds up S (u - z). It ends where u and z differ, and z moves, by at most tol of
    the way from X; or at rounding.
    """
    r = r + quadratic(penalty, X) * X
    if penalty.smooth:
        return X - times(solver.inverse, r), Y
    exact = without_kinks(penalty)[:, None]
    S = solver.weight
    t = 1 / jnp.where(S > 0, S, 1)
    over = jnp.where(S > 0, RELAXED, 1)  # without a penalty the first step is the last
    rounding = 8 * jnp.finfo(X.dtype).eps

    def size(a: Array) -> Array:
        return jnp.sqrt((S * a * a).sum(1))

    def busy(carry: Any) -> Array:
        taken, *_, left = carry
        return (taken < most) & left.any()

    def inner(carry: Any) -> Any:
        taken, z, Y, left = carry
        # M (u - X) + r + Y + S (u - z) = 0
        u = X - times(solver.inverse, r + Y + S * (X - z))
        u = over * u + (1 - over) * z
        new = jnp.where(exact, u, penalty.prox(u + Y * t, t))
        dual = Y + S * (u - new)
        apart = jnp.maximum(size(u - new), size(new - z))
        close = apart <= tol * size(new - X) + rounding * size(new)
        keep = left[:, None]
        return taken + 1, jnp.where(keep, new, z), jnp.where(keep, dual, Y), left & ~close

    everyone = jnp.ones(len(X), bool)
    _, z, Y, _ = lax.while_loop(busy, inner, (jnp.zeros((), jnp.int32), X, Y, everyone))
    return z, Y

"""The prox of a penalty in the metric of a matrix: the step of a Newton method with a penalty."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.linalg import solve_triangular

from edgewise.methods.class_blocks import ClassBlocks, add_diagonal, block_shape, diagonals, times
from edgewise.problem.stacked_penalties import StackedPenalties

JITTER = 1e-9  # part of a diagonal, more in float32: rounding may take a matrix below zero
RELAXED = 1.6  # over-relaxation of the inner steps


class Solver(NamedTuple):
    """(M + S)^-1 of every node; S is zero where there is no penalty, or one that is quadratic and
    part of M, else the weight of the inner steps, a diagonal."""

    inverse: Array  # (v, C, f, f) M_c^-1
    shared: Array  # (v, 2, f, f) that of the mean, (sum_c M_c^-1)^-1; (v, 0, f, f) for one output
    weight: Array  # (v, n) the diagonal S


def make_solver(M: Array, penalty: StackedPenalties, blocks: ClassBlocks, like: Array) -> Solver:
    """Everything scaled by M's diagonal, so that the units of columns do not matter. The weight is
    the geometric mean of the scaled eigenvalues; one number where coordinates hang together, and
    the same for all classes. like: (v, n), for its shape and type."""
    M = blocks.with_diagonal(M, quadratic(penalty, like))
    diagonal, sizes = diagonals(M), blocks.sizes(M)
    empty = sizes <= 0  # a column that nobody around knows anything of
    jitter = max(JITTER, 4 * M.shape[-1] * float(jnp.finfo(M.dtype).eps))
    M = add_diagonal(M, jnp.where(empty, 1, jitter * sizes))
    if penalty.smooth:
        return Solver(*inverses(M, blocks), jnp.zeros_like(like))
    diagonal = jnp.where(empty, 1, diagonal)[:, : blocks.outputs]
    size = 1 / jnp.sqrt(diagonal)
    own = M[:, : blocks.outputs]
    root = jnp.linalg.cholesky(size[..., None] * own * size[..., None, :])
    mean = jnp.exp(2 * jnp.log(diagonals(root)).mean((1, 2)))[:, None]
    weight = jnp.maximum(mean, 1e-4) * diagonal.mean(1)
    common = jnp.exp(jnp.log(weight).mean(1, keepdims=True))
    weight = jnp.where(penalty.at_nodes("separable")[:, None], weight, common)
    weight = jnp.where(without_kinks(penalty)[:, None], 0, weight)
    M = add_diagonal(M, weight[:, None])
    weights = jnp.broadcast_to(weight[:, None], size.shape)
    return Solver(*inverses(M, blocks), blocks.model(weights))


def no_solver(X: Array, blocks: ClassBlocks) -> Solver:
    """Zeros, of the shapes that a solver has."""
    (b, f), v, C = block_shape(X.shape[1], blocks.outputs), len(X), blocks.outputs
    own, shared = (jnp.zeros((v, many, f, f), X.dtype) for many in (C, 2 * (b > 1)))
    return Solver(own, shared, jnp.zeros_like(X))


def without_kinks(penalty: StackedPenalties) -> Array:
    return penalty.at_nodes("absent") | penalty.at_nodes("quadratic")


def quadratic(penalty: StackedPenalties, X: Array) -> Array:
    """(v, n) the ridge of penalties that are nothing else: it goes into the matrix."""
    return jnp.where(penalty.at_nodes("quadratic")[:, None], penalty.ridge(X), 0)


def inverses(M: Array, blocks: ClassBlocks) -> tuple[Array, Array]:
    own = inverse(M[:, : blocks.outputs])
    if blocks.outputs == 1:
        return own, own[:, :0]
    return own, inverse(jnp.concatenate([M[:, -1:], own.sum(1, keepdims=True)], 1))


def inverse(M: Array) -> Array:
    n, size = M.shape[-1], 1 / jnp.sqrt(diagonals(M))
    root = jnp.linalg.cholesky(size[..., None] * M * size[..., None, :])
    unit = jnp.broadcast_to(jnp.eye(n, dtype=M.dtype), M.shape)
    half = solve_triangular(root, unit, lower=True) * size[..., None, :]
    return jnp.einsum("...ki,...kj->...ij", half, half, precision=lax.Precision.HIGHEST)


def solve(solver: Solver, r: Array, blocks: ClassBlocks) -> Array:
    """(v, n) (M + S)^-1 r. With classes: u_c = M_c^-1 (r_c - mu), mu such that they add up to zero,
    and what they share by its own block."""
    parts = blocks.classes(r)
    if blocks.outputs == 1:
        return blocks.model(times(solver.inverse, parts))
    sums = times(solver.inverse, parts).sum(1)
    shared = times(solver.shared, jnp.stack([parts.mean(1), sums], 1))
    return blocks.model(times(solver.inverse, parts - shared[:, 1:]) + shared[:, :1])


def newton_step(
    penalty: StackedPenalties,
    solver: Solver,
    X: Array,
    r: Array,
    Y: Array,
    tol: float,
    most: int,
    blocks: ClassBlocks,
) -> tuple[Array, Array, Array]:
    """(v, n) argmin_u <r, u - X> + |u - X|^2_M / 2 + h(u), the penalty's dual there, a subgradient
    of h, and (v,) |u - X|_M. Y: the dual of the round before, to begin with.

    ADMM: u solves the quadratic with the weight S, z is a prox, so that it has exact zeros and is
    feasible, and Y adds up S (u - z). It ends where u and z differ, and z moves, by at most tol of
    the way from X; or at rounding.
    """
    r = r + quadratic(penalty, X) * X
    if penalty.smooth:
        step = solve(solver, r, blocks)
        return X - step, Y, root((r * step).sum(1))
    S, split = solver.weight, splitting(penalty, solver, X, r, blocks)
    rounding = 8 * jnp.finfo(X.dtype).eps

    def size(a: Array) -> Array:
        return jnp.sqrt((S * a * a).sum(1))

    def busy(carry: Any) -> Array:
        taken, *_, left = carry
        return (taken < most) & left.any()

    def inner(carry: Any) -> Any:
        taken, z, Y, left = carry
        u, new, dual = split(z, Y)
        apart = jnp.maximum(size(u - new), size(new - z))
        close = apart <= tol * size(new - X) + rounding * size(new)
        keep = left[:, None]
        return taken + 1, jnp.where(keep, new, z), jnp.where(keep, dual, Y), left & ~close

    everyone = jnp.ones(len(X), bool)
    _, z, Y, _ = lax.while_loop(busy, inner, (jnp.zeros((), jnp.int32), X, Y, everyone))
    return z, Y, root(((r + Y) * (X - z)).sum(1))


def splitting(
    penalty: StackedPenalties, solver: Solver, X: Array, r: Array, blocks: ClassBlocks
) -> Callable[[Array, Array], tuple[Array, Array, Array]]:
    """A step of ADMM from z and the dual Y: u, and both anew. r has the quadratic penalties'
    slope."""
    exact = without_kinks(penalty)[:, None]
    S = solver.weight
    t = 1 / jnp.where(S > 0, S, 1)
    over = jnp.where(S > 0, RELAXED, 1)  # without a penalty the first step is the last

    def step(z: Array, Y: Array) -> tuple[Array, Array, Array]:
        # M (u - X) + r + Y + S (u - z) = 0
        u = X - solve(solver, r + Y + S * (X - z), blocks)
        u = over * u + (1 - over) * z
        new = jnp.where(exact, u, penalty.prox(u + Y * t, t))
        return u, new, Y + S * (u - new)

    return step


def root(square: Array) -> Array:
    return jnp.sqrt(jnp.maximum(square, 0))

"""The minimum of a quadratic and a penalty, to rounding: the local problem of nodes whose edges or
costs are matrices."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from edgewise.methods.class_blocks import ClassBlocks
from edgewise.methods.metric_prox import (
    Solver,
    make_solver,
    newton_step,
    no_solver,
    quadratic,
    solve,
    splitting,
)
from edgewise.problem.penalty_sum import takes_steps
from edgewise.problem.stacked_penalties import StackedPenalties

ONE = ClassBlocks(1, False)
MOST_UNKNOWNS = 100  # beyond which a factorisation a round is too dear: ADMM alone, factored once
NEWTON, SPLIT, SWEEPS = 8, 50, 60  # steps of either kind in a sweep, and sweeps at most
CLOSE = 1e-12  # of the way that a node moves, where its step ends
SPLIT_CLOSE = 1e-6  # the same, where ADMM is all there is
REFINED = 3  # solutions with what the last has left over
FLAT = 1e-9  # of the smallest eigenvalue to the largest, columns of like size: below it M is flat
HELD = 1e-7  # part of its diagonal that a flat matrix gets


class QuadraticSolver(NamedTuple):
    """What stays as long as the matrices do."""

    M: Array  # (v, n, n)
    admm: Solver


def takes_each(penalty: StackedPenalties) -> bool:
    """Whether all nodes' penalties take a step for each coordinate."""
    return all(takes_steps(member) for member in penalty.members)


def quadratic_solver(M: Array, penalty: StackedPenalties, X: Array) -> QuadraticSolver:
    """M (v, n, n) positive semidefinite. A flat one gets a little more: it is about X, where a step
    begins, so that this moves no fixed point."""
    eye = jnp.eye(M.shape[1], dtype=M.dtype)
    size = jnp.diagonal(M, axis1=1, axis2=2)
    free = size <= 0  # nothing holds these, and of models shorter than others there are some more
    unit = 1 / jnp.sqrt(jnp.where(free, 1, size))
    scaled = unit[:, :, None] * M * unit[:, None, :] + jnp.where(free, 1, 0)[:, :, None] * eye
    spread = jnp.linalg.eigvalsh(scaled)
    flat = free | (spread[:, :1] <= FLAT * spread[:, -1:])
    top = size.max(1, keepdims=True)
    M = M + (jnp.where(flat, HELD, 0) * jnp.where(top > 0, top, 1))[:, :, None] * eye
    return QuadraticSolver(M, make_solver(M[:, None], penalty, ONE, X))


def no_quadratic_solver(X: Array) -> QuadraticSolver:
    v, n = X.shape
    return QuadraticSolver(jnp.zeros((v, n, n), X.dtype), no_solver(X, ONE))


def quadratic_prox(
    penalty: StackedPenalties, solver: QuadraticSolver, X: Array, r: Array, Y: Array
) -> tuple[Array, Array]:
    """(v, n) argmin_u <r, u - X> + |u - X|^2_M / 2 + h(u), and h's subgradient there. Y: that of
    the round before, to begin with.

    u is where u = prox_t(u - t (M (u - X) + r)). Newton's method on that, with the derivative of
    the prox, is the active set method where the prox is of pieces that are planes: it ends after
    a step once it knows the piece, which it does at once in most rounds. From afar it may go round
    in circles, so that it takes turns with ADMM, which does not, and sees to the pieces.
    """
    if penalty.smooth:
        return refined(penalty, solver, X, r), Y
    if X.shape[1] > MOST_UNKNOWNS:
        most = SPLIT * SWEEPS
        return newton_step(penalty, solver.admm, X, r, Y, SPLIT_CLOSE, most, ONE)[:2]
    M, eye = solver.M, jnp.eye(X.shape[1], dtype=X.dtype)
    scale = jnp.diagonal(M, axis1=1, axis2=2)
    # penalties that take one step for all coordinates get the shortest
    t = 1 / (scale if takes_each(penalty) else scale.max(1, keepdims=True))
    rounding = 32 * jnp.finfo(X.dtype).eps
    split = splitting(penalty, solver.admm, X, r + quadratic(penalty, X) * X, ONE)

    def slope(u: Array) -> Array:
        made: Array = jnp.einsum("vij,vj->vi", M, u - X, precision=lax.Precision.HIGHEST)
        return made + r

    def prox(u: Array) -> Array:
        return penalty.prox(u, t)

    def size(a: Array) -> Array:
        return jnp.sqrt((scale * a * a).sum(1))

    def far(u: Array, there: Array) -> Array:
        """(v,) whether u is not yet where a step would leave it."""
        enough = CLOSE * size(there - X) + rounding * (size(there) + size(t * r))
        return ~(size(u - there) <= enough)

    def newton(carry: Any) -> Any:
        taken, u, there, left = carry
        at = u - t * slope(u)
        P = jax.vmap(lambda e: jax.jvp(prox, (at,), (jnp.broadcast_to(e, at.shape),))[1])(eye)
        P = jnp.moveaxis(P, 0, 2)  # (v, n, n) the derivative of the prox
        J = eye - P @ (eye - t[:, :, None] * M)
        new = u + jnp.linalg.solve(J, (there - u)[..., None])[..., 0]
        new = jnp.where(left[:, None] & jnp.isfinite(new).all(1, keepdims=True), new, u)
        there = prox(new - t * slope(new))
        return taken + 1, new, there, left & far(new, there)

    def sweep(carry: Any) -> Any:
        taken, z, Y, left = carry
        there = prox(z - t * slope(z))
        begun = zero, z, there, left & far(z, there)
        _, _, there, beyond = lax.while_loop(lambda c: (c[0] < NEWTON) & c[3].any(), newton, begun)
        done = (left & ~beyond)[:, None]
        z, Y = jnp.where(done, there, z), jnp.where(done, -slope(there), Y)

        def more() -> tuple[Array, Array]:
            def one(_: int, now: tuple[Array, Array]) -> tuple[Array, Array]:
                return split(*now)[1:]

            new, dual = lax.fori_loop(0, SPLIT, one, (z, Y))
            keep = beyond[:, None]
            return jnp.where(keep, new, z), jnp.where(keep, dual, Y)

        z, Y = lax.cond(beyond.any(), more, lambda: (z, Y))
        return taken + 1, z, Y, beyond

    zero, everyone = jnp.zeros((), jnp.int32), jnp.ones(len(X), bool)
    start = zero, X, Y, everyone
    _, z, Y, _ = lax.while_loop(lambda c: (c[0] < SWEEPS) & c[3].any(), sweep, start)
    return z, Y


def refined(penalty: StackedPenalties, solver: QuadraticSolver, X: Array, r: Array) -> Array:
    """(v, n) without kinks: the linear system, whose inverse is of a matrix with a little more on
    its diagonal, until that does not matter."""
    bend = quadratic(penalty, X)
    r = r + bend * X
    step = jnp.zeros_like(X)
    for _ in range(REFINED):
        made = jnp.einsum("vij,vj->vi", solver.M, step, precision=lax.Precision.HIGHEST)
        step = step + solve(solver.admm, r - made - bend * step, ONE)
    return X - step

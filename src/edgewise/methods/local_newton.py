"""The minimum of a node's loss, penalty and edges, by Newton's method: few passes over its data,
and as exact as the next round needs, whatever the edges' matrices are."""

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from edgewise.methods.quadratic_prox import MOST_UNKNOWNS, quadratic_prox, quadratic_solver
from edgewise.methods.subproblem import length, local_argmin
from edgewise.problem.block import Block
from edgewise.problem.losses import Squared

STEPS = 15  # at most; then gradient steps, as where a step leads astray
FALLS = 0.9  # a step is good if it leaves at most this part of the residual


def takes_newton(p: Block, size: int) -> bool:
    """Whether losses have Hessians, small enough to factor in every round."""
    return bool(p.loss.linear) and p.loss.outputs == 1 and size <= MOST_UNKNOWNS


def constant_hessian(p: Block) -> bool:
    return isinstance(p.loss, Squared)


def hessians(p: Block, X: Array, due: Array) -> Array:
    """(v, n, n) of losses, ridge and costs, at the nodes that are due."""
    v, n = X.shape
    H = p.hessians(jnp.zeros((v, 1, n, n), X.dtype), X, due)[:, 0]
    eye = jnp.eye(n, dtype=X.dtype)
    if p.cost is None:
        return H + p.loss.ridge * eye
    return H + p.cost.Q + (p.loss.ridge * p.cost.lossy)[:, :, None] * eye


def newton_argmin(
    p: Block,
    X: Array,
    Y: Array,
    bend: Array,
    U: Array,
    eta: Array,
    top: Array,
    least: Array,
    tol: Any,
    most: int,
    due: Array | None = None,
) -> tuple[Array, Array, Array]:
    """(v, n) argmin_x f_i(x) + h_i(x) - <U_i, x> + x' bend_i x / 2, a subgradient of the penalty
    there, and (v,) oracle calls: a gradient and a Hessian of every sample for each step.

    A node ends with a step that is at most tol of its whole way from X: what is then left is, for
    Newton's method, about the square of that. A node whose residual does not fall goes on from its
    best point by the gradient steps of `local_argmin`, which always get there. due: (v,) the nodes
    that are asked; default: all.
    """
    t = 1 / (1 / eta + top)
    rounding = 32 * jnp.finfo(X.dtype).eps

    def slope(Z: Array, due: Array) -> Array:
        G = p.refresh(None, jnp.zeros_like(Z), Z, due)[1] + p.ridge(Z)
        return G + jnp.einsum("vij,vj->vi", bend, Z, precision=lax.Precision.HIGHEST) - U

    def residual(Z: Array, r: Array) -> Array:
        return length(Z - p.penalty.prox(Z - t * r, t))[:, 0]

    def step(carry: Any) -> Any:
        taken, Z, Y, r, far, left, astray, calls = carry
        M = bend + hessians(p, Z, left)
        M = jnp.where(left[:, None, None], M, jnp.eye(X.shape[1], dtype=X.dtype))
        new, dual = quadratic_prox(p.penalty, quadratic_solver(M, p.penalty, Z), Z, r, Y)
        moved, way = length(new - Z)[:, 0], length(new - X)[:, 0]
        sound = jnp.isfinite(new).all(1)
        close = sound & (moved <= tol * way + rounding * length(new)[:, 0])
        go_on = left & sound & ~close
        there = slope(jnp.where(go_on[:, None], new, Z), go_on)
        after = residual(new, there)
        falls = after <= FALLS * far
        take = left & sound & (close | falls)
        keep = take[:, None]
        calls = calls + jnp.where(left, p.counts, 0) + jnp.where(go_on, p.counts, 0)
        Z, Y = jnp.where(keep, new, Z), jnp.where(keep, dual, Y)
        r, far = jnp.where(go_on[:, None], there, r), jnp.where(take, after, far)
        return taken + 1, Z, Y, r, far, left & take & ~close, astray | (left & ~take), calls

    asked, zero = jnp.ones(len(X), bool) if due is None else due, jnp.zeros((), jnp.int32)
    r = slope(X, asked)
    nobody = jnp.zeros_like(asked)
    start = (zero, X, Y, r, residual(X, r), asked, nobody, jnp.where(asked, p.counts, 0))
    _, Z, Y, _, _, left, astray, calls = lax.while_loop(
        lambda c: (c[0] < STEPS) & c[5].any(), step, start
    )
    lost = left | astray

    def descend(_: None) -> tuple[Array, Array]:
        there, spent = local_argmin(p, Z, eta, bend, U, tol, most, top, least, lost)
        return jnp.where(lost[:, None], there, Z), calls + spent

    Z, calls = lax.cond(lost.any(), descend, lambda _: (Z, calls), None)
    return Z, Y, calls

"""How far a node goes towards the minimum of its model: until its own problem falls enough."""

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from edgewise.methods.class_blocks import ClassBlocks
from edgewise.problem.block import Block

ARMIJO = 1e-4  # part of the fall that the slope promises
HALVINGS = 20


def damped(
    p: Block, X: Array, loss: Array, D: Array, r: Array, G: Array, target: Array
) -> tuple[Array, Array, Array]:
    """(v,) the part of the way from X to the target that each node goes, its mean loss there, and
    how often it asked for that. r: the gradient at X of the node's own problem

        f_i(x) + h_i(x) + sum_j ( |x - x_j|^2_{P_ij} / 2 + <lambda_ji, x> ),    f_i with its ridge,

    D = sum_j P_ij, G the gradient of the losses alone, `loss` their mean at X. The penalty is
    bounded by convexity between the two points."""
    way = target - X
    penalty = p.penalty.value(X)
    rise = p.penalty.value(target) - penalty
    finite = jnp.isfinite(rise)
    rise, penalty = jnp.where(finite, rise, 0), jnp.where(finite, penalty, 0)
    slope = (r * way).sum(1) + rise
    straight = ((r - G) * way).sum(1) + rise
    curved = 0.5 * ((ClassBlocks.of(p).times(D, way) + p.ridge(way)) * way).sum(1)
    # of what is added up: a fall below its rounding tells nothing, and steps near the end are such
    sizes = jnp.abs(loss) + jnp.abs(penalty) + jnp.abs((r - G) * way).sum(1) + curved
    slack = 64 * jnp.finfo(X.dtype).eps * sizes

    def halve(carry: Any) -> Any:
        length, at, left, tried = carry
        there = p.mean_losses(X + length[:, None] * way, left)
        change = there - loss + length * straight + length**2 * curved
        falls = change <= ARMIJO * length * slope + slack
        end = tried + left > HALVINGS
        at = jnp.where(left & falls, there, at)
        length = jnp.where(left & ~falls, jnp.where(end, 0, length / 2), length)
        return length, at, left & ~falls & ~end, tried + left

    v = len(X)
    start = (jnp.ones(v, X.dtype), loss, jnp.ones(v, bool), jnp.zeros(v, jnp.int64))
    length, at, _, tried = lax.while_loop(lambda c: c[2].any(), halve, start)
    return length, at, tried

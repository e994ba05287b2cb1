"""Gradients of `NewtonPD` that are read off a model, for as long as that is good enough.

A node keeps its last whole gradient G, taken at Z, its anchor, and its Hessian H. Between two
passes over its data the gradient at x is taken to be G + H (x - Z). Every pass tells how good that
was: `error`, in the metric of the node's step, over the way from the anchor. The next pass is due
when the error, foreseen by that, would be a twentieth of a step; so a node at rest takes one. With
a quadratic loss there is no error, and a node hardly ever looks at its data again. With several
classes H is not the Hessian (`class_blocks`) and no model: every round takes a pass.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from edgewise.methods.class_blocks import ClassBlocks
from edgewise.methods.metric_prox import Solver, root, solve
from edgewise.problem.block import Block

ENOUGH = 0.05  # part of a step that the model's error may come to
FORGET = 0.25  # part of an error that the next one has at least: one way is not all ways
LEAST_ERROR = 1e-3  # over the way: at rest a node is at its anchor, or takes another


class Anchor(NamedTuple):
    Z: Array  # (v, n) where the last whole gradients are from
    G: Array  # (v, n) these, ridge apart
    error: Array  # (v,) of the model over the way from the anchor, as last seen; 1: not known
    reach: Array  # (v,) how long that way was
    step: Array  # (v,) how long the last step was


def first_anchor(X: Array) -> Anchor:
    none = jnp.zeros(len(X), X.dtype)
    return Anchor(X + 0, jnp.zeros_like(X), none + 1, none, none)


def gradients(
    p: Block, a: Anchor, X: Array, H: Array, D: Array, solver: Solver, able: Array
) -> tuple[Anchor, Array, Array]:
    """The anchors, (v, n) gradients of the mean losses at X, ridge apart, and (v,) which of them a
    pass over the data has given. Ways are measured in H + D, with the ridge, errors in its inverse,
    so far as the solver has that; able: (v,) who is to move at all."""
    blocks, between = ClassBlocks.of(p), X - a.Z
    bent = blocks.times(H, between)
    way = root((between * (bent + blocks.times(D, between) + p.ridge(between))).sum(1))
    known = jnp.where(way <= a.reach, a.error, 1)  # beyond what was seen nothing is
    take = able & ~((known * way < ENOUGH * a.step) & (blocks.outputs == 1))
    model = a.G + bent
    G = p.refresh(None, model, X, take)[1]
    off = G - model
    return seen(a, take, X, G, way, root((off * solve(solver, off, blocks)).sum(1))), G, take


def seen(a: Anchor, taken: Array, X: Array, G: Array, way: Array, error: Array) -> Anchor:
    """After whole gradients G at the nodes (v,) that have taken one, so far from the anchor."""
    told = taken & (way > 0)
    ratio = jnp.where(told, error / jnp.where(told, way, 1), 1)
    ratio = jnp.where(jnp.isfinite(ratio), ratio, 1)
    ratio = jnp.clip(jnp.maximum(ratio, FORGET * a.error), LEAST_ERROR, 1)
    rows = taken[:, None]
    return Anchor(
        jnp.where(rows, X, a.Z),
        jnp.where(rows, G, a.G),
        jnp.where(told, ratio, a.error),
        jnp.where(told, way, a.reach),
        a.step,
    )

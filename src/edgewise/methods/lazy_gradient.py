"""Gradients of `NewtonPD` that are read off a model, for as long as that is good enough.

A node keeps its last whole gradient G, taken at Z, its anchor, and its Hessian H. Between two
passes over its data the gradient at x is taken to be G + H (x - Z). Every pass tells how good that
was: `error`, in the metric of the node's step, over the way from the anchor. The next pass is due
when the error, foreseen by that, would be a twentieth of the last step, as far as that went; so a
node that comes to rest has a whole gradient. With a quadratic loss there is no error, and passes
are rare. Where H is not the Hessian (several classes, `class_blocks`) or jumps (Huber's loss, the
smoothed hinge) every round takes a pass: models were tried there, and runs diverged.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from edgewise.methods.class_blocks import ClassBlocks
from edgewise.methods.metric_prox import Solver, root, solve
from edgewise.problem.block import Block
from edgewise.problem.whole_nodes import has_hessians

ENOUGH = 0.05  # part of a step that the model's error may come to
FORGET = 0.25  # part of an error that the next one has at least: one way is not all ways
STALE = 0.02  # error with less of which a refresh needs no Hessian
POOR = 0.25  # error with which the Hessian is taken anew at once
ROUNDING = 64  # times what is added up, and rounded
LEAST_ERROR = 1e-3  # over the way: at rest a node is at its anchor, or takes another


class Anchor(NamedTuple):
    Z: Array  # (v, n) where the last whole gradients are from
    G: Array  # (v, n) these, ridge apart
    begun: Array  # (v,) whether there has been one
    error: Array  # (v,) of the model over the way from the anchor, as last seen; 1: not known
    reach: Array  # (v,) how long that way was
    step: Array  # (v,) how long the last step was
    size: Array  # (v,) the largest gradient so far, which rounding is measured by


def foretells(p: Block) -> bool:
    """Whether H tells gradients at all."""
    if not has_hessians(p.loss) or p.loss.outputs != 1:
        return False
    return bool(getattr(p.loss, "hessian_continuous", False))


def first_anchor(X: Array) -> Anchor:
    none = jnp.zeros(len(X), X.dtype)
    return Anchor(X + 0, jnp.zeros_like(X), none > 0, none + 1, none, none, none)


class Lazy(NamedTuple):
    """What `gradients` gives."""

    anchor: Anchor
    G: Array  # (v, n) gradients of the mean losses at X, ridge apart
    taken: Array  # (v,) which of them a pass over the data has given
    poor: Array  # (v,) whether that has shown the model to be poor


def gradients(
    p: Block, a: Anchor, X: Array, H: Array, D: Array, solver: Solver, able: Array
) -> Lazy:
    """Ways are measured in H + D, with the ridge, errors in its inverse, or below it by as much as
    the solver adds for a penalty; able: (v,) who is to move at all."""
    blocks, between = ClassBlocks.of(p), X - a.Z
    bent = blocks.times(H, between)
    way = root((between * (bent + blocks.times(D, between) + p.ridge(between))).sum(1))
    known = jnp.where(way <= a.reach, a.error, 1)  # beyond what was seen nothing is
    there = a.begun & (between == 0).all(1)  # at its anchor a node has the gradient
    enough = (known * way < ENOUGH * a.step) & foretells(p)
    take = able & ~(there | enough)
    model = a.G + bent
    G = p.refresh(None, model, X, take)[1]
    off = G - model
    error = root((off * solve(solver, off, blocks)).sum(1))
    size = jnp.maximum(a.size, jnp.where(take, root((G * solve(solver, G, blocks)).sum(1)), 0))
    told = take & a.begun & (way > 0)
    right = error < ROUNDING * jnp.finfo(X.dtype).eps * size  # over a short way not much, and noise
    ratio = jnp.where(told & ~right, error / jnp.where(told, way, 1), 0)
    ratio = jnp.where(jnp.isfinite(ratio), ratio, 1)
    ratio = jnp.clip(jnp.maximum(ratio, FORGET * a.error), LEAST_ERROR, 1)
    rows = take[:, None]
    anchor = Anchor(
        jnp.where(rows, X, a.Z),
        jnp.where(rows, G, a.G),
        a.begun | take,
        jnp.where(told, ratio, a.error),
        jnp.where(told, jnp.where(right, jnp.maximum(way, a.reach), way), a.reach),
        a.step,
        size,
    )
    most = POOR if foretells(p) else STALE  # Hessians that jump are kept only where they are right
    poor = told & ~right & (anchor.error > most) & (blocks.outputs == 1)
    return Lazy(anchor, G, take, poor)

"""Gradients of `NewtonPD` that are read off a model, for as long as that is good enough.

A node keeps its last whole gradient G, taken at Z, its anchor, and its Hessian H. Between two
passes over its data the gradient at x is taken to be G + H (x - Z). Every pass tells how good that
was: `error`, in the metric of the node's step, over the way from the anchor. With a quadratic loss
it is rounding, and a node hardly ever looks at its data again.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

ENOUGH = 0.1  # part of a step that the model's error may come to
TRUSTED = 0.5  # the same at the step's end, for it to be taken without a look at the losses
WITHIN = 1.0  # times the way that was seen: beyond, the model is not known
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


def predicted(a: Anchor, way: Array) -> Array:
    """(v,) the error of the model so far (v,) from the anchor: all of the way beyond what was seen."""
    return jnp.where(way <= WITHIN * a.reach, a.error, 1) * way


def seen(a: Anchor, taken: Array, X: Array, G: Array, way: Array, error: Array) -> Anchor:
    """After whole gradients G at the nodes (v,) that have taken one, so far from the anchor."""
    told = taken & (way > 0)
    ratio = jnp.where(told, error / jnp.where(told, way, 1), 1)
    ratio = jnp.maximum(jnp.where(jnp.isfinite(ratio), ratio, 1), FORGET * a.error)
    ratio = jnp.clip(ratio, LEAST_ERROR, 1)
    rows = taken[:, None]
    return Anchor(
        jnp.where(rows, X, a.Z),
        jnp.where(rows, G, a.G),
        jnp.where(told, ratio, a.error),
        jnp.where(told, way, a.reach),
        a.step,
    )

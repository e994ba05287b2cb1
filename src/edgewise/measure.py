"""How far a run has come: everything a trace reports, in float64 and outside the timing."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from edgewise.block import Block
from edgewise.passes import Part


class Target(NamedTuple):
    """The optimum, as seen from each node."""

    x: Array  # (n,)
    gradients: Array  # (V, n) grad f_i(x), ridge included
    subgradients: (
        Array  # (V, n) v_i in the subdifferential of h_i at x; with `gradients` they sum to 0
    )
    objective: Array  # () sum_i f_i(x) + h_i(x)


def target_of(star: Any) -> Target:
    """From a `Reference`."""
    return Target(*map(jnp.asarray, (star.x, star.gradients, star.subgradients, star.objective)))


class Ends(NamedTuple):
    """The undirected edges, for the disagreement over them."""

    i: Array  # (E,)
    j: Array  # (E,)


@partial(jax.jit, static_argnames="same_penalty")
def measure(
    p: Block,
    X: Array,
    duals: Array,
    target: Target | None,
    ends: Ends,
    sample_smoothness: Array,
    same_penalty: bool,
) -> dict[str, Array]:
    """objective_gap, bregman, consensus and residual of the nodes' models X (V, n)."""
    center = X.mean(0)
    spread = jnp.sqrt(((X - center) ** 2).sum(1).mean())
    if same_penalty:
        residual = whole_residual(p, center, sample_smoothness)
        residual = jnp.hypot(residual, pull(X, ends, sample_smoothness))
    else:
        residual = node_residual(p, X, duals, ends, sample_smoothness)
    missing = jnp.full((), jnp.nan)
    report = {
        "objective_gap": missing,
        "bregman": missing,
        "consensus": spread,
        "residual": residual,
    }
    if target is not None:
        report["objective_gap"] = (p.values(X) + p.penalty.value(X)).sum() - target.objective
        report["bregman"] = bregman(p, X, target)
    return report


def bregman(p: Block, X: Array, target: Target) -> Array:
    """() sum_i D_{f_i + h_i}(x_i, x*)."""
    star = jnp.broadcast_to(target.x, X.shape)
    rise = p.penalty.value(X) - p.penalty.value(star)
    from_h = rise - (target.subgradients * (X - star)).sum(1)
    return jnp.maximum(divergences(p, X, target) + from_h, 0).sum()


def divergences(p: Block, X: Array, target: Target) -> Array:
    """(V,) D_{f_i}(x_i, x*), sample by sample, so that no large terms cancel."""
    apart = X - target.x
    ridge = 0.5 * (apart * p.ridge(apart)).sum(1)
    if not p.loss.linear:
        star = jnp.broadcast_to(target.x, X.shape)
        data = target.gradients - p.ridge(star)
        change = p.values(X) - p.values(star) - 0.5 * (X * p.ridge(X) - star * p.ridge(star)).sum(1)
        return change - (data * apart).sum(1) + ridge

    def each(part: Part, models: Array) -> Array:
        star = jnp.broadcast_to(target.x, models.shape)
        at, y = part.margins(p, star), part.y
        return part.weighed(p.loss.divergence(part.margins(p, models), y, at))

    return p.node_means(X, each) + ridge


def whole_residual(p: Block, x: Array, sample_smoothness: Array) -> Array:
    """|x - prox_{t h}(x - t grad F(x))| / t for F = sum_i f_i, h = sum_i h_i, t = 1 / sum_i L_i."""
    V = sample_smoothness.shape[0]
    t = 1 / sample_smoothness.sum()
    everywhere = jnp.broadcast_to(x, (V, x.shape[0]))
    gradient = (p.full(everywhere) + p.ridge(everywhere)).sum(0)
    moved = p.penalty.prox(
        jnp.broadcast_to(x - t * gradient, everywhere.shape), jnp.full((V, 1), t * V)
    )[0]
    return jnp.linalg.norm(x - moved) / t


def node_residual(p: Block, X: Array, duals: Array, ends: Ends, sample_smoothness: Array) -> Array:
    """All nodes' prox-gradient residuals with their duals (which must add up to zero), together
    with the disagreement over edges."""
    balanced = duals - duals.mean(0)
    t = 1 / sample_smoothness[:, None]
    G = p.full(X) + p.ridge(X) - balanced
    own = (X - p.penalty.prox(X - t * G, t)) / t
    return jnp.hypot(jnp.linalg.norm(own), pull(X, ends, sample_smoothness))


def pull(X: Array, ends: Ends, sample_smoothness: Array) -> Array:
    """The disagreement over edges, in the units of a gradient."""
    return sample_smoothness.mean() * jnp.linalg.norm(X[ends.i] - X[ends.j])

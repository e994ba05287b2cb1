"""How far a run has come: everything a trace reports, in float64 and outside the timing."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.placed import placed
from edgewise.problem.block import Block
from edgewise.problem.passes import SampleChunk


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
    return Target(
        *map(placed, (star.x, star.gradients, star.subgradients, np.float64(star.objective)))
    )


class NetworkView(NamedTuple):
    """What a block of nodes sees of the network, for the disagreement over its edges."""

    i: Any  # (e,) a node of the block
    j: Any  # (e,) its neighbour, a row of the block's models and those from elsewhere
    share: Any  # () of an edge that is counted here: a half where its other end counts it too
    smoothness: Any  # (v,) sample smoothness
    sum_smoothness: Any  # () over all nodes of the network
    nodes: Any  # () how many these are


def as_they_are(sums: Any) -> Any:
    return sums


def measure(
    p: Block,
    X: Array,
    far: Array | None,
    duals: Array,
    target: Target | None,
    network: NetworkView,
    same_penalty: bool,
    total: Callable[[Any], Any] = as_they_are,
) -> dict[str, Array]:
    """objective_gap, bregman, consensus and residual of the nodes' models X (v, n); and `settled`
    (n,), where a step of the map that the residual is of takes their mean.

    `total` adds up sums over blocks, where nodes are spread over several; `far` (m, n) are then
    the models of neighbours elsewhere.
    """
    first = total(models_and_duals(X, duals))
    center, level = first["models"] / network.nodes, first["duals"] / network.nodes
    sums = total(deviations(p, X, far, duals, target, network, center, level, same_penalty))
    return figures(p, sums, target, network, center, same_penalty)


measure_whole = jax.jit(partial(measure, total=as_they_are), static_argnames="same_penalty")


@jax.jit
def models_and_duals(X: Array, duals: Array) -> dict[str, Array]:
    return {"models": X.sum(0), "duals": duals.sum(0)}


def own_step(p: Block, X: Array, duals: Array, t: Array) -> Array:
    """(v, n) where a step t takes each node, with these duals."""
    G = p.full(X) + p.ridge(X) - duals
    return p.penalty.prox(X - t * G, t)


@partial(jax.jit, static_argnames="same_penalty")
def deviations(
    p: Block,
    X: Array,
    far: Array | None,
    duals: Array,
    target: Target | None,
    network: NetworkView,
    center: Array,
    level: Array,
    same_penalty: bool,
) -> dict[str, Array]:
    """Sums over the block's nodes of all that is measured."""
    every = X if far is None else jnp.concatenate([X, far])
    sums = {
        "spread": ((X - center) ** 2).sum(),
        "edges": network.share * ((every[network.i] - every[network.j]) ** 2).sum(),
    }
    if same_penalty:  # of the centre: it is as good as any
        everywhere = jnp.broadcast_to(center, X.shape)
        sums["gradient"] = (p.full(everywhere) + p.ridge(everywhere)).sum(0)
    else:  # of every node by itself, with its duals, which must add up to zero
        t = 1 / network.smoothness[:, None]
        moved = own_step(p, X, duals - level, t)
        sums["own"] = (((X - moved) / t) ** 2).sum()
        sums["zeros"] = (moved == 0).sum(0)
    if target is not None:
        sums["objective"] = (p.values(X) + p.penalty.value(X)).sum()
        sums["bregman"] = bregman(p, X, target)
    return sums


@partial(jax.jit, static_argnames="same_penalty")
def figures(
    p: Block,
    sums: dict[str, Array],
    target: Target | None,
    network: NetworkView,
    center: Array,
    same_penalty: bool,
) -> dict[str, Array]:
    """What a trace says, from sums over all nodes."""
    if same_penalty:
        settled = whole_step(p, center, sums["gradient"], network)
        own = jnp.linalg.norm(center - settled) * network.sum_smoothness
    else:  # zero where any node's own penalty holds it there
        settled = jnp.where(sums["zeros"] > 0, 0, center)
        own = jnp.sqrt(sums["own"])
    # the disagreement over edges, in the units of a gradient
    pull = network.sum_smoothness / network.nodes * jnp.sqrt(sums["edges"])
    missing = jnp.full((), jnp.nan)
    return {
        "objective_gap": missing if target is None else sums["objective"] - target.objective,
        "bregman": missing if target is None else sums["bregman"],
        "consensus": jnp.sqrt(sums["spread"] / network.nodes),
        "residual": jnp.hypot(own, pull),
        "objective": missing if target is None else sums["objective"],
        "settled": settled,
        "violation": jnp.sqrt(sums["edges"]),
    }


def whole_step(p: Block, x: Array, gradient: Array, network: NetworkView) -> Array:
    """prox_{t h}(x - t grad F(x)) for F = sum_i f_i, h = sum_i h_i, t = 1 / sum_i L_i: over t it is
    as far from x as the residual says."""
    t = 1 / network.sum_smoothness
    v = network.smoothness.shape[0]
    return p.penalty.prox(
        jnp.broadcast_to(x - t * gradient, (v, x.shape[0])), jnp.full((v, 1), t * network.nodes)
    )[0]


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
    loss = p.loss
    if not loss.linear:
        star = jnp.broadcast_to(target.x, X.shape)
        data = target.gradients - p.ridge(star)
        change = p.values(X) - p.values(star) - 0.5 * (X * p.ridge(X) - star * p.ridge(star)).sum(1)
        return change - (data * apart).sum(1) + ridge

    def each(part: SampleChunk, models: Array) -> Array:
        star = jnp.broadcast_to(target.x, models.shape)
        at, y = part.margins(p, star), part.y
        return part.weighed(loss.divergence(part.margins(p, models), y, at))

    return p.node_means(X, each) + ridge

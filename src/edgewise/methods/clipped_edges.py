"""Edges that pull no harder than a radius: consensus by total variation, robust to liars.

The edge form with a price radius |x_i - x_j| in the place of x_i = x_j. With c_ij the dual of an
edge as i has it, and own_ij the message that i sent, a round at node i is, edge by edge,

    c_ij <- clip( (own_ij - m_ji) / 2 )        to the ball |c| <= radius_ij
    z_ij <- rho_ij x_i - c_ij

and the step of x_i with z_ij in the place of m_ji; it sends own_ij = 2 rho_ij x_i - z_ij. That is
Douglas-Rachford splitting, half a reflection a round (`methods/coupled.py` with theta = 1/2): the
step pulls from where the node is, and along each edge with c_ij. So whatever arrives, an edge pulls
with no more than its radius, in every round and not only at rest. What was last heard and z are all
there is of duals, and both forget: it heals as the edge form does.

Where an optimum of plain consensus has edge duals within the balls, it is one here too: the
subgradients of radius |x_i - x_j| at x_i = x_j are that ball.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.errors import MethodError
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.steps import positive
from edgewise.problem.block import Block
from edgewise.problem.rows import row_dot

LARGEST = {np.dtype("float64"): 1e150, np.dtype("float32"): 1e16}


class Taken(NamedTuple):
    """Of directed edges, as the node that owns them has them."""

    z: Array  # (e, n) what the last step went by


class ClippedState(NamedTuple):
    X: Array  # (v, n)
    memory: Any
    edges: Taken


def radii(radius: Any, k: Knowledge) -> np.ndarray:
    """(m,) one number, or one per edge of a network that is known; "auto" is
    sqrt(min(L_i, L_j)) / max(d_i, d_j), L that of a node's mean loss: all edges of a node together
    may then pull about as hard as its data could at a model of zeros, if their labels are of about
    one. What an end says of itself can only lower that."""
    if isinstance(radius, str):
        if radius != "auto":
            raise MethodError(f"radius={radius!r}: give 'auto', one number, or one per edge")
        ends = k.edges.T
        least = k.curvatures.mean[ends].min(axis=0)
        return np.asarray(np.sqrt(least) / np.maximum(k.degrees[ends].max(axis=0), 1))
    return positive("radius", radius, len(k.edges), "edge", k.network is not None)


def own_messages(p: Block, X: Array, z: Array) -> Array:
    """(e, n) what was sent last."""
    return 2 * p.edge_weights() * X[p.links.owner] - z


def clipped(c: Array, radius: Array) -> Array:
    """(e, n) the nearest duals that an edge may have; none of what is no number."""
    c = jnp.where(jnp.isfinite(c).all(1, keepdims=True), c, 0)
    c = jnp.clip(c, -LARGEST[c.dtype], LARGEST[c.dtype])  # squares of more would overflow
    length = jnp.sqrt(row_dot(c, c))[:, None]
    bound = radius[:, None]
    return jnp.where(length > bound, c * (bound / jnp.maximum(length, bound)), c)


def taken_in(p: Block, s: ClippedState, heard: Array) -> Array:
    """(e, n) z of this round; none along edges that do not count."""
    c = clipped(0.5 * (own_messages(p, s.X, s.edges.z) - heard), p.links.radius)
    alive = p.links.rho[:, None] > 0
    return jnp.where(alive, p.edge_weights() * s.X[p.links.owner] - c, 0)

"""What the methods share that solve a problem of their own at every node and round."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from edgewise.methods.knowledge import Knowledge
from edgewise.methods.steps import KAPPA, dual_weights
from edgewise.problem.block import Block

LEAST_RATIO = 1e-6  # of strong convexity to smoothness: below it momentum would hardly die down
ASSUMED_RATIO = 1e-2  # the same, for the weights, of losses with less ridge than that or none


def local_argmin(
    p: Block,
    X: Array,
    eta: Array,
    D: Array,
    U: Array,
    tol: Array,
    most: int,
    top: Array | None = None,
    least: Array | None = None,
    due: Array | None = None,
) -> tuple[Array, Array]:
    """(v, n) argmin_x f_i(x) + h_i(x) - <U_i, x> + (D_i/2) |x|^2, and (v,) oracle calls. D: (v, 1);
    or a diagonal (v, n) or a matrix (v, n, n), with the `top` and the `least` of its eigenvalues.

    Proximal gradient steps from X of length t = 1 / (1/eta + D), eta at most 1 / L_i, with
    Nesterov's momentum for strongly convex functions, all nodes side by side. A step that moves
    its point by s ends with a subgradient of at most 2 s / t, so the minimiser is within
    2 s / (t mu), mu being D and the ridge, if that applies to all coordinates. A node stops, and
    asks for no more gradients, when this is at most tol times the way it has come from X, so that
    errors shrink as the outer method settles; or at rounding; or after `most` steps. due: (v,) the
    nodes that are asked; default: all. The others stay where they are.
    """
    top, least = D if top is None else top, D if least is None else least
    t = 1 / (1 / eta + top)
    plain = p.mask is None and p.cost is None
    mu = least + p.loss.ridge if plain else least

    def bent(Y: Array) -> Array:
        if D.ndim == 2:
            return D * Y
        return jnp.einsum("vij,vj->vi", D, Y, precision=lax.Precision.HIGHEST)

    root = jnp.sqrt(jnp.maximum(t * mu, LEAST_RATIO))
    momentum = (1 - root) / (1 + root)
    rounding = 4 * jnp.finfo(X.dtype).eps

    def busy(carry: Any) -> Array:
        taken, *_, left, _ = carry
        return (taken < most) & left.any()

    def descend(carry: Any) -> Any:
        taken, Z, Y, G, left, calls = carry
        G = p.refresh(None, G, Y, left)[1]
        new = p.penalty.prox(Y - t * (G + p.ridge(Y) - U + bent(Y)), t)
        moved = length(new - Y)
        close = 2 * moved <= tol * t * mu * length(new - X)
        close |= moved <= rounding * (length(new) + t * length(U))
        Y = new + momentum * (new - Z)
        Z = jnp.where(left[:, None], new, Z)
        return taken + 1, Z, Y, G, left & ~close[:, 0], calls + jnp.where(left, p.counts, 0)

    asked = jnp.ones(X.shape[0], bool) if due is None else due
    none = jnp.zeros_like(p.counts)
    start = (jnp.zeros((), jnp.int32), X, X, jnp.zeros_like(X), asked, none)
    _, Z, *_, calls = lax.while_loop(busy, descend, start)
    return Z, calls


def length(X: Array) -> Array:
    return jnp.sqrt((X * X).sum(1, keepdims=True))


def argmin_weights(rho: Any, factor: float, k: Knowledge) -> np.ndarray:
    """(m,) as `dual_weights`, but "auto" is factor sqrt(s_i s_j / (d_i d_j)), s_i = sqrt(mu_i L_i):
    with d edges of a kind they add factor s_i to a node's curvature. The two ends of an edge can
    work it out by themselves. mu_i is the ridge, at least a hundredth of L_i."""
    return dual_weights(rho, KAPPA / (factor * local_curvature(k)), k)


def local_curvature(k: Knowledge) -> np.ndarray:
    """(k,) s_i = sqrt(mu_i L_i), mu_i the ridge, at least a hundredth of L_i."""
    L = k.curvatures.mean
    return np.asarray(np.sqrt(np.maximum(k.curvatures.ridge, ASSUMED_RATIO * L) * L))

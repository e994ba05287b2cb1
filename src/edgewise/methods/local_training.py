"""Local training: several gradient steps of a node between two messages."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from edgewise.errors import MethodError, whole_number
from edgewise.gradients.contract import Estimator
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.steps import KAPPA, dual_weights, trained_steps
from edgewise.methods.subproblem import ASSUMED_RATIO
from edgewise.problem.block import Block, match
from edgewise.problem.rows import row_dot

MOST_STEPS = 2000  # of the rule
FACTOR = 2.0
STIFF = 0.3  # part of its own curvature that edges add to an intercept
ENOUGH = 0.1
LOOKS = 8  # times a round that a node looks whether it has settled: each is a pass over its model


def require_local(local: Any) -> None:
    """Raises MethodError unless it says how many steps there are between two messages."""
    if isinstance(local, str) and local != "auto":
        raise MethodError(f"local={local!r}: give 'auto', or how many steps a node takes a round")
    if not isinstance(local, str):
        whole_number("PrimalDual's local", local, 1, MethodError)


def steps_by_rule(local: int | str, gradient: Estimator, k: Knowledge) -> np.ndarray:
    """(k,) tau_i: as given, or by "auto" 1 / (eta_i s_i), s_i = sqrt(mu_i L_i) as in
    `argmin_weights`: with edges that add s_i to a node's curvature, so many steps get within a
    fraction of the local minimum, and more would gain little. eta_i is the rule's, whatever the
    method's: versions of a method that differ in numbers only are then one program."""
    if not isinstance(local, str):
        return np.full(len(k.degrees), local)
    eta = trained_steps("auto", gradient, k)
    return np.ceil(1 / (eta * trained_curvature(k))).clip(1, MOST_STEPS).astype(np.int64)


def enough_by_rule(
    local: int | str, gradient: Estimator, tau: np.ndarray, k: Knowledge
) -> np.ndarray:
    """(k,) ENOUGH by "auto"; zero, so that a node never looks, where its steps are given, or draw
    fewer samples than it has: the noise of the others would not let it settle."""
    drawn = np.inf if gradient.samples is None else gradient.samples * tau
    return np.where((drawn >= k.curvatures.counts) & isinstance(local, str), ENOUGH, 0.0)


def trained_weights(
    rho: Any, eta: np.ndarray, tau: np.ndarray, k: Knowledge
) -> dict[str, np.ndarray]:
    """(m,) rho_ij: as `dual_weights`, but "auto" is FACTOR sqrt(s_i s_j / (d_i d_j)) with
    s_i = max(sqrt(mu_i L_i), 1 / (eta_i tau_i)): with fewer steps than the local minimum takes a
    node follows its edges only if they pull so much harder.

    Unless by "theory" an intercept has rho times sqrt(r_i r_j), b_i being its curvature and
    r_i = max(1, STIFF b_i / (FACTOR s_i)): a hundred times it where rows are short, as in text."""
    pull = np.maximum(trained_curvature(k), 1 / (eta * tau))
    made = {"rho": dual_weights(rho, KAPPA / (FACTOR * pull), k)}
    if not (isinstance(rho, str) and rho == "theory") and k.curvatures.intercept.any():
        i, j = k.edges.T
        stiffer = np.maximum(1, STIFF * k.curvatures.intercept / (FACTOR * pull))
        made["intercept"] = np.sqrt(stiffer[i] * stiffer[j])
    return made


def trained_curvature(k: Knowledge) -> np.ndarray:
    """(k,) as `local_curvature`, of all coordinates but the intercept; and where there are many,
    mu_i is not assumed to be more than L of a sample over n, which no mean of curvatures is."""
    c = k.curvatures
    L = np.maximum(c.mean - c.intercept, ASSUMED_RATIO * c.mean)
    assumed = np.minimum(ASSUMED_RATIO * L, c.sample / c.size)
    return np.asarray(np.sqrt(np.maximum(c.ridge, assumed) * L))


class Training(NamedTuple):
    eta: Array  # (v, 1) the step
    steps: Array  # (v,) tau_i, how many at most
    enough: Array  # (v,) when to stop before that: see `settled`


def train(
    gradient: Estimator,
    p: Block,
    X: Array,
    memory: Any,
    U: Array,
    training: Training,
    random_bits: Array,
) -> tuple[Array, Any]:
    """X and the estimator's memory after tau_i times

        x_i <- prox_{gamma h_i}( gamma_i ( x_i/eta_i - g_i(x_i) + U_i ) )

    from random bits (v, most, draws). A node that is done asks for nothing and stays as it is, also
    in its memory.
    """
    eta, steps, enough = training
    D = p.edge_totals()
    gamma = 1 / (1 / eta + D)
    stretch = jnp.ceil(steps / LOOKS)

    def busy(carry: Any) -> Array:
        return carry[2].any()

    def descend(carry: Any) -> Any:
        t, old, active, memory = carry
        G, asked = gradient(p._replace(active=active), old, memory, random_bits[:, t])
        new = p.penalty.prox(gamma * (old / eta - G + U), gamma)
        new = jnp.where(active[:, None], new, old)
        memory = jax.tree.map(lambda a, b: kept(active, a, b), asked, memory)
        still = settled(new - old, new - X, (gamma * D)[:, 0], enough)
        active &= (t + 1 < steps) & ~(still & ((t + 1) % stretch == 0))
        return t + 1, new, active, memory

    start = (jnp.zeros((), jnp.int32), X, steps > 0, memory)
    _, X, _, memory = lax.while_loop(busy, descend, start)
    return X, memory


def kept(active: Array, new: Array, old: Array) -> Array:
    """New at active nodes. What leads with samples the estimator keeps itself: to copy a table at
    every step would take longer than the step."""
    if new.shape[:1] != active.shape:
        return new
    return jnp.where(match(active, new), new, old)


def settled(move: Array, way: Array, pull: Array, enough: Array) -> Array:
    """(v,) whether more steps are hardly worth their gradients. The local problem is D-strongly
    convex, so that a step takes at least a share D / (1/eta + D), the `pull`, off what is left:
    after a move of length s that is at most s / pull. Enough is a part of the way since the last
    message, so that errors shrink as the run settles."""
    return row_dot(move, move) <= (enough * pull) ** 2 * row_dot(way, way)

"""The share of a label at a node, or the mean of its labels, from its gradient."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from edgewise.attacks.membership import rows_with_intercept
from edgewise.problem.problem import Problem

STIFF = 0.1  # part of the mean variance that each coordinate has besides


def can_estimate(problem: Problem) -> bool:
    """Two classes; or numbers whose slope is affine in them."""
    loss = problem.loss
    if not loss.linear or loss.outputs != 1:
        return False
    if problem.classes is not None:
        return True
    zero = jnp.zeros(3)
    slopes = np.asarray(loss.slope(zero, jnp.array([0.0, 1.0, 2.0])))
    return bool(problem.intercept and np.isclose(slopes[2] - slopes[1], slopes[1] - slopes[0]))


def true_shares(problem: Problem) -> np.ndarray:
    """(V,) of the second class; or mean labels."""
    own = [problem.labels[problem.own(i)] for i in range(problem.nodes)]
    two = problem.classes is not None
    return np.array([np.mean(y > 0) if two else np.mean(y) for y in own])


def known_factor(problem: Problem, node: int) -> float:
    """What a node's losses are multiplied by: of the numbers of samples, which all know."""
    scale = problem.scale
    return 1.0 if scale is None else float(np.mean(scale[problem.own(node)]))


def estimated(problem: Problem, g: np.ndarray, x: np.ndarray, victim: int, attackers: Any) -> float:
    """From the victim's gradient g at x, ridge apart. Where there is an intercept and the model is
    zero its gradient is the mean slope, and tells the share; else the attackers place the gradient
    between the means of those that their own samples of either label have there, in the direction
    that tells these apart best."""
    loss: Any = problem.loss
    g = g / known_factor(problem, victim)
    ends = np.asarray(loss.slope(jnp.zeros(2), jnp.array([1.0, -1.0 * two(problem)])))
    low, high = ends[1], ends[0]  # of label 0 or the first class; of 1 or the second
    if problem.intercept and not np.any(x) and np.isfinite(g[-1]):
        share = float((g[-1] - low) / (high - low))
        return float(np.clip(share, 0, 1)) if two(problem) else share
    if not two(problem):
        return np.nan
    parts = [own_gradients(problem, x, a) for a in attackers]
    gradients, second = (np.concatenate(a) for a in zip(*parts, strict=True))
    if second.all() or not second.any():
        return np.nan
    one, other = gradients[second].mean(0), gradients[~second].mean(0)
    there = np.isfinite(g)
    apart = np.concatenate([gradients[second] - one, gradients[~second] - other])[:, there]
    spread = apart.T @ apart / len(apart)
    spread += STIFF * np.trace(spread) / len(spread) * np.eye(len(spread))
    way = np.linalg.solve(spread, (one - other)[there])
    return float(np.clip((g - other)[there] @ way / ((one - other)[there] @ way), 0, 1))


def two(problem: Problem) -> bool:
    return problem.classes is not None


def own_gradients(problem: Problem, x: np.ndarray, node: int) -> tuple[np.ndarray, np.ndarray]:
    """(K, n) of each of a node's samples, and (K,) whether it is of the second class."""
    own = problem.own(node)
    D = rows_with_intercept(problem, np.arange(problem.shards.samples)[own])
    y = problem.labels[own]
    loss: Any = problem.loss
    s = np.asarray(loss.slope(jnp.asarray(D @ x), jnp.asarray(y)))
    return s[:, None] * D, y > 0

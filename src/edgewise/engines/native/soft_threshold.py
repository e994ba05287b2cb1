"""Penalties whose prox is soft thresholding and shrinking, coordinate by coordinate."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from edgewise.backend.declared import declared

# by what the class declares: the weights of |x|_1 and of |x|^2 / 2
WEIGHTS: dict[str | None, Callable[[Any], tuple[Any, Any]]] = {
    "none": lambda h: (0.0, 0.0),
    "l1": lambda h: (h.lam, 0.0),
    "squared-l2": lambda h: (0.0, h.lam),
    "elastic-net": lambda h: (h.l1, h.l2),
}


def thresholds_softly(problem: Any) -> bool:
    """Whether all nodes have the same kind of penalty, and one of these."""
    penalties = problem.penalty if isinstance(problem.penalty, list | tuple) else [problem.penalty]
    kinds = {declared(h) for h in penalties}
    return len(kinds) == 1 and kinds <= WEIGHTS.keys()


def threshold_and_shrink(h: Any, gamma: Array) -> tuple[Array, Array]:
    """(v, 1) each, of prox(y) = shrink (y - clip(y, -threshold, threshold))."""
    weights = WEIGHTS[declared(h)](h)
    l1, l2 = (jnp.reshape(jnp.asarray(a, gamma.dtype), (-1, 1)) for a in weights)
    return gamma * l1, 1 / (1 + gamma * l2)

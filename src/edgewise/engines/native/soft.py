"""Penalties whose prox is soft thresholding and shrinking, coordinate by coordinate."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from edgewise.problem.penalties import L1, ElasticNet, NoPenalty, SquaredL2


def soft_penalties(problem: Any) -> bool:
    """Whether all nodes have the same kind, and one of these."""
    penalties = problem.penalty if isinstance(problem.penalty, list | tuple) else [problem.penalty]
    kinds = {type(h) for h in penalties}
    return len(kinds) == 1 and kinds <= {NoPenalty, L1, SquaredL2, ElasticNet}


def soft(h: Any, gamma: Array) -> tuple[Array, Array]:
    """(threshold, shrink) of prox(y) = shrink (y - clip(y, threshold))."""
    l1 = h.lam if isinstance(h, L1) else h.l1 if isinstance(h, ElasticNet) else 0.0
    l2 = h.lam if isinstance(h, SquaredL2) else h.l2 if isinstance(h, ElasticNet) else 0.0
    l1, l2 = (jnp.reshape(jnp.asarray(a, gamma.dtype), (-1, 1)) for a in (l1, l2))
    return gamma * l1, 1 / (1 + gamma * l2)

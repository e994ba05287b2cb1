"""Penalties whose prox softens and shrinks, or clips, each coordinate alone."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.declared import declared

# by what the class declares: the weights of |x|_1 and of |x|^2 / 2
WEIGHTS: dict[str | None, Callable[[Any], tuple[Any, Any]]] = {
    "none": lambda h: (0.0, 0.0),
    "l1": lambda h: (h.lam, 0.0),
    "squared-l2": lambda h: (0.0, h.lam),
    "elastic-net": lambda h: (h.l1, h.l2),
}
# the same, where each coordinate has weights of its own
SCALED: dict[str | None, Callable[[Any], tuple[Any, Any]]] = {
    "scaled-ridge": lambda h: (0.0, h.ridge),
    "scaled-elastic-net": lambda h: (h.l1, h.l2),
}

# the least and the most that a coordinate may be
BOUNDS: dict[str | None, Callable[[Any], tuple[Any, Any]]] = {
    "box": lambda h: (h.lower, h.upper),
    "non-negative": lambda h: (0.0, np.inf),
}


def thresholds_softly(problem: Any) -> bool:
    """Whether all nodes have the same kind of penalty, and one of `WEIGHTS`."""
    kinds = {declared(h) for h in penalties_of(problem)}
    return len(kinds) == 1 and kinds <= WEIGHTS.keys()


def bounds_alike(problem: Any) -> bool:
    """Whether all nodes have the same kind of `BOUNDS`, a number for all coordinates."""
    each = penalties_of(problem)
    kinds = {declared(h) for h in each}
    return (
        len(kinds) == 1
        and kinds <= BOUNDS.keys()
        and all(np.ndim(bound) == 0 for h in each for bound in BOUNDS[declared(h)](h))
    )


def alike(problem: Any) -> bool:
    """Whether every node and coordinate has the same kind of penalty."""
    return thresholds_softly(problem) or bounds_alike(problem)


def separable(problem: Any) -> bool:
    """Whether every node's penalty is one of these, of whatever kind."""
    return {declared(h) for h in penalties_of(problem)} <= {*WEIGHTS, *SCALED, *BOUNDS}


def by_coordinate(h: Any) -> tuple[np.ndarray, ...]:
    """The two weights and the two bounds of such penalties, stacked: (v or 1, n or 1) each."""
    kind = declared(h)
    weights, within = (0.0, 0.0), (-np.inf, np.inf)
    if kind in BOUNDS:
        within = BOUNDS[kind](h)
    else:
        weights = (WEIGHTS | SCALED)[kind](h)
    each = (np.asarray(a, np.float64) for a in (*weights, *within))
    return tuple(a.reshape(1 if a.ndim == 0 else len(a), -1) for a in each)


def penalties_of(problem: Any) -> Any:
    return problem.penalty if isinstance(problem.penalty, list | tuple) else [problem.penalty]


def bounds(h: Any) -> tuple[Any, Any]:
    """() or (v, 1) each, infinite where there are none."""
    found = BOUNDS[declared(h)](h) if declared(h) in BOUNDS else (-np.inf, np.inf)
    lower, upper = (np.reshape(np.asarray(a, np.float64), (-1, 1)) for a in found)
    return lower, upper


def threshold_and_shrink(h: Any, gamma: Array) -> tuple[Array, Array]:
    """(v, 1) each, of prox(y) = shrink (y - clip(y, -threshold, threshold)), bounds apart."""
    kind = declared(h)
    weights = (0.0, 0.0) if kind in BOUNDS else WEIGHTS[kind](h)
    l1, l2 = (jnp.reshape(jnp.asarray(a, gamma.dtype), (-1, 1)) for a in weights)
    return gamma * l1, 1 / (1 + gamma * l2)

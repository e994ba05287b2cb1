"""A plane and a box together: balances, budgets, portfolios."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from edgewise.backend.pytree import pytree
from edgewise.errors import ProblemError
from edgewise.problem.penalties import _as, _Set


@pytree()
class Budget(_Set):
    """a·x = b and lower <= x <= upper, numbers or vectors; bounds may be infinite.

    The projection is clip(x - nu t a, lower, upper) with the nu that a·x = b wants: a·clip(...)
    falls in nu piece by piece, so that nu is bracketed by its corners, and then read off a line.
    """

    diagonal: ClassVar[bool] = True  # prox takes a step for each coordinate

    a: Any
    b: Any
    lower: Any = -np.inf
    upper: Any = np.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.a, self.b, self.lower, self.upper
        if any(isinstance(value, Tracer) for value in given):
            return
        a = np.asarray(self.a)
        if not {np.shape(self.lower), np.shape(self.upper)} <= {(), a.shape}:
            raise ProblemError(
                f"Budget: lower and upper have other lengths than a: give numbers, or {len(a)} each"
            )
        low, high = np.broadcast_arrays(self.lower, self.upper)
        if np.any(low > high):
            raise ProblemError("Budget: lower > upper: give lower <= upper")
        with np.errstate(invalid="ignore"):
            ends = np.where(a == 0, 0, np.stack([a * low, a * high]))
        least, most = ends.min(0).sum(), ends.max(0).sum()
        slack = 1e-9 * (1 + abs(self.b))
        if not least - slack <= self.b <= most + slack:
            raise ProblemError(
                f"Budget: a·x is from {least:.6g} to {most:.6g} within the bounds, and cannot be "
                f"{self.b:.6g}: give other bounds, or another b"
            )

    def prox(self, x: Array, t: Array) -> Array:
        a, b = _as(x, self.a), _as(x, self.b)
        low, high = (jnp.broadcast_to(_as(x, v), x.shape) for v in (self.lower, self.upper))
        way = a if jnp.ndim(t) == 0 else _as(x, t) * a
        moves = way != 0
        # where each coordinate meets its bounds: between two such corners a·x is a line in nu
        unit = jnp.where(moves, way, 1)
        corners = jnp.concatenate([(x - low) / unit, (x - high) / unit])
        real = jnp.isfinite(corners) & jnp.concatenate([moves, moves])
        corners = jnp.where(real, corners, 0)
        at_corners = jnp.clip(x - corners[:, None] * way, low, high)
        excess = (a * at_corners).sum(1) - b
        before = jnp.where(real & (excess >= 0), corners, -jnp.inf).max()
        after = jnp.where(real & (excess < 0), corners, jnp.inf).min()
        # a point within the piece tells who moves there; beyond the last corner any will do
        inner = jnp.where(
            jnp.isfinite(before), before, jnp.where(jnp.isfinite(after), after, 0) - 1
        )
        outer = jnp.where(jnp.isfinite(after), after, inner + 2)
        middle = 0.5 * (inner + outer)
        there = jnp.clip(x - middle * way, low, high)
        free = moves & (x - middle * way > low) & (x - middle * way < high)
        slope = jnp.where(free, a * way, 0).sum()
        gap = jnp.where(free, a * x, a * there).sum() - b
        nu = gap / jnp.where(slope > 0, slope, 1)
        # no one moves: a corner is it, where a·x = b by itself
        held = jnp.clip(x - jnp.where(jnp.isfinite(before), before, inner) * way, low, high)
        return jnp.where(slope > 0, jnp.where(free, x - nu * way, there), held)

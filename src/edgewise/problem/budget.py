"""A plane and a box together: balances, budgets, portfolios."""

from typing import Any, ClassVar

import numpy as np
from jax import Array
from jax.core import Tracer

from edgewise.backend.pytree import pytree
from edgewise.errors import ProblemError
from edgewise.problem.penalties import _as, _Set
from edgewise.problem.penalty_terms import Plane, Terms
from edgewise.problem.projections import onto_plane


@pytree()
class Budget(_Set):
    """a·x = b and lower <= x <= upper, numbers or vectors; bounds may be infinite."""

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

    def terms(self) -> Terms:
        plane = Plane(self.a, self.b, equal=True)
        return Terms(lower=self.lower, upper=self.upper, cone=False, planes=(plane,))

    def prox(self, x: Array, t: Array) -> Array:
        a, b, low, high = (_as(x, v) for v in (self.a, self.b, self.lower, self.upper))
        return onto_plane(x, _as(x, t), a, b, True, low, high)

"""Penalties h on one node's vector x, each with h(x) and its proximal map.

value(x) -> scalar          prox(x, t) = argmin_u h(u) + |u - x|² / 2t
"""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from edgewise.backend.pytree import pytree
from edgewise.errors import ProblemError
from edgewise.problem.contract import Penalty
from edgewise.problem.penalty_sum import Addable
from edgewise.problem.penalty_terms import Plane, Terms
from edgewise.problem.projections import onto_l1_ball, onto_simplex, soften

FEASIBLE = 1e-6

_weight = ("a finite number from 0 up", lambda v: v.ndim == 0 and 0 <= v < np.inf)
_bound = ("a number or a vector, no NaN", lambda v: v.ndim <= 1 and not np.isnan(v).any())
_PARAMETERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **{"lam": _weight, "l1": _weight, "l2": _weight, "lower": _bound, "upper": _bound},
    "radius": ("a finite number above 0", lambda v: v.ndim == 0 and 0 < v < np.inf),
    "a": ("a finite vector, not all 0", lambda v: v.ndim == 1 and 0 < np.linalg.norm(v) < np.inf),
    "b": ("a finite number", lambda v: v.ndim == 0 and np.isfinite(v)),
    "groups": ("an integer per coefficient", lambda v: v.ndim == 1 and np.all(v == np.rint(v))),
}


class Checked(Addable):
    """Parameters are checked when given; jax rebuilds instances from tracers without this."""

    def __post_init__(self) -> None:
        concrete = {k: v for k, v in vars(self).items() if not isinstance(v, Tracer)}
        for name, value in concrete.items():
            needed, fits = _PARAMETERS[name]
            try:
                number = np.array(value, np.float64)
            except (TypeError, ValueError):
                number = np.array(np.nan)
            if not fits(number):
                raise ProblemError(f"{type(self).__name__}: {name} is {value!r}: give {needed}")
            object.__setattr__(self, name, number if number.ndim else float(number))


class _Set(Checked):
    """The indicator of a set: 0 on it and infinite off it. Its prox is the projection."""

    is_set = True

    def prox(self, x: Array, t: Array) -> Array:
        raise NotImplementedError

    def value(self, x: Array) -> Array:
        nearest = self.prox(x, jnp.ones((), x.dtype))
        slack = FEASIBLE * (1 + jnp.linalg.norm(nearest))
        return jnp.where(jnp.linalg.norm(x - nearest) <= slack, 0, jnp.inf).astype(x.dtype)


@pytree()
class NoPenalty(Checked):
    absent: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    compiled_as = "none"

    def terms(self) -> Terms:
        return Terms()

    def value(self, x: Array) -> Array:
        return jnp.zeros((), x.dtype)

    def prox(self, x: Array, t: Array) -> Array:
        return x


@pytree()
class L1(Checked):
    """lam |x|₁"""

    separable: ClassVar[bool] = True
    compiled_as = "l1"

    lam: Any

    def terms(self) -> Terms:
        return Terms(l1=self.lam)

    def value(self, x: Array) -> Array:
        return _as(x, self.lam) * jnp.abs(x).sum()

    def prox(self, x: Array, t: Array) -> Array:
        return soften(x, _as(x, t) * _as(x, self.lam))


@pytree()
class SquaredL2(Checked):
    """lam/2 |x|²"""

    separable: ClassVar[bool] = True
    quadratic: ClassVar[bool] = True
    compiled_as = "squared-l2"

    lam: Any

    @property
    def ridge(self) -> Any:
        return self.lam

    def terms(self) -> Terms:
        return Terms(l2=self.lam)

    def value(self, x: Array) -> Array:
        return _as(x, self.lam) / 2 * (x * x).sum()

    def prox(self, x: Array, t: Array) -> Array:
        return x / (1 + _as(x, t) * _as(x, self.lam))


@pytree()
class ElasticNet(Checked):
    """l1 |x|₁ + l2/2 |x|²"""

    separable: ClassVar[bool] = True
    compiled_as = "elastic-net"

    l1: Any
    l2: Any

    @property
    def ridge(self) -> Any:
        return self.l2

    def terms(self) -> Terms:
        return Terms(l1=self.l1, l2=self.l2)

    def value(self, x: Array) -> Array:
        return L1(self.l1).value(x) + SquaredL2(self.l2).value(x)

    def prox(self, x: Array, t: Array) -> Array:
        return SquaredL2(self.l2).prox(L1(self.l1).prox(x, t), t)


@pytree()
class GroupL2(Checked):
    """lam Σ_g √|g| |x_g|; `groups` has one group id per coordinate, any integers."""

    lam: Any
    groups: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.groups, Tracer):
            consecutive = np.unique(self.groups, return_inverse=True)[1]
            object.__setattr__(self, "groups", consecutive.astype(np.int32))

    def terms(self) -> Terms:
        return Terms(groups=(self,))

    def _root_sizes_and_norms(self, x: Array) -> tuple[Array, Array]:
        both = jnp.stack([jnp.ones_like(x), x * x], axis=1)
        sizes, squares = jax.ops.segment_sum(both, self.groups, num_segments=x.size).T
        # The slope of √ at 0 is infinite: the inner where keeps it out of the derivative.
        norms = jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)
        return jnp.sqrt(sizes), norms

    def value(self, x: Array) -> Array:
        root_sizes, norms = self._root_sizes_and_norms(x)
        return _as(x, self.lam) * (root_sizes * norms).sum()

    def prox(self, x: Array, t: Array) -> Array:
        root_sizes, norms = self._root_sizes_and_norms(x)
        threshold = _as(x, t) * _as(x, self.lam) * root_sizes
        kept = jnp.where(norms >= threshold, 1 - threshold / jnp.where(norms > 0, norms, 1), 0)
        return kept[self.groups] * x


@pytree()
class Box(_Set):
    """lower <= x <= upper, numbers or vectors; either may be infinite."""

    separable: ClassVar[bool] = True
    compiled_as = "box"

    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.lower, Tracer) and not isinstance(self.upper, Tracer):
            lengths = {np.shape(self.lower), np.shape(self.upper)} - {()}
            if len(lengths) > 1 or np.any(self.lower > self.upper):
                raise ProblemError("Box: lower > upper or lengths differ: give lower <= upper")
            if np.any(self.lower == np.inf) or np.any(self.upper == -np.inf):
                raise ProblemError("Box: lower is inf or upper -inf: no number is in such a box")

    def terms(self) -> Terms:
        return Terms(lower=self.lower, upper=self.upper, cone=False)

    def prox(self, x: Array, t: Array) -> Array:
        from optax.projections import projection_box

        return jnp.asarray(projection_box(x, _as(x, self.lower), _as(x, self.upper)))


@pytree()
class NonNegative(_Set):
    separable: ClassVar[bool] = True
    compiled_as = "non-negative"

    def terms(self) -> Terms:
        return Terms(lower=0.0, upper=np.inf)

    def prox(self, x: Array, t: Array) -> Array:
        from optax.projections import projection_non_negative

        return jnp.asarray(projection_non_negative(x))


@pytree()
class Simplex(_Set):
    """x >= 0 and Σ x = radius"""

    radius: Any = 1.0

    def terms(self) -> Terms:
        every = Plane(1.0, self.radius, equal=True)
        return Terms(lower=0.0, upper=np.inf, planes=(every,))

    def prox(self, x: Array, t: Array) -> Array:
        return onto_simplex(x, _as(x, self.radius))


@pytree()
class L1Ball(_Set):
    """|x|₁ <= radius"""

    radius: Any

    def terms(self) -> Terms:
        return Terms(l1_radius=self.radius)

    def prox(self, x: Array, t: Array) -> Array:
        return onto_l1_ball(x, _as(x, self.radius))


@pytree()
class L2Ball(_Set):
    """|x| <= radius"""

    radius: Any

    def terms(self) -> Terms:
        return Terms(l2_radius=self.radius)

    def prox(self, x: Array, t: Array) -> Array:
        from optax.projections import projection_l2_ball

        return jnp.asarray(projection_l2_ball(x, _as(x, self.radius)))


@pytree()
class HalfSpace(_Set):
    """a·x <= b"""

    diagonal: ClassVar[bool] = True  # prox takes a step for each coordinate, though not separable

    a: Any
    b: Any

    def terms(self) -> Terms:
        return Terms(planes=(Plane(self.a, self.b, equal=False),))

    def prox(self, x: Array, t: Array) -> Array:
        a, b = _as(x, self.a), _as(x, self.b)
        along = a if jnp.ndim(t) == 0 else _as(x, t) * a
        return x - jnp.maximum((a * x).sum() - b, 0) / (a * along).sum() * along


def _as(x: Array, value: Any) -> Array:
    return jnp.asarray(value, x.dtype)


# held to the contract by mypy
PENALTIES: tuple[type[Penalty], ...] = (NoPenalty, L1, SquaredL2, ElasticNet, GroupL2)
CONSTRAINTS: tuple[type[Penalty], ...] = (Box, NonNegative, Simplex, L1Ball, L2Ball, HalfSpace)

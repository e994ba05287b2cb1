"""Penalties that add up at one node, and sets that intersect: one penalty again."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.errors import TracerBoolConversionError

from edgewise.backend.pytree import pytree
from edgewise.errors import ProblemError
from edgewise.problem.penalty_terms import Terms, terms_of
from edgewise.problem.projections import (
    onto_ball,
    onto_l1_ball,
    onto_plane,
    soften,
    splitting,
)

Prox = Callable[[Array, Array], Array]


class Addable:
    """What may stand in `L1(0.1) + Box(-1, 1)`, or `Box(-1, 1) & HalfSpace(a, b)`."""

    __array_ufunc__ = None  # an array leaves `array + penalty` to the penalty, which refuses it
    is_set = False  # whether it is zero on a set and infinite off it

    def __add__(self, other: Any) -> Any:
        return combined("+", self, other)

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, int | float) and other == 0:  # so `sum` of several begins
            return self
        return combined("+", other, self)

    def __and__(self, other: Any) -> Any:
        return combined("&", self, other)

    def __rand__(self, other: Any) -> Any:
        return combined("&", other, self)


def combined(sign: str, *given: Any) -> Any:
    """One penalty of two; raises ProblemError where one is none, or they have no point in common
    that bounds alone tell of."""
    text = f" {sign} ".join(map(str, given))
    for penalty in given:
        if isinstance(penalty, type) or not (
            hasattr(penalty, "value") and hasattr(penalty, "prox")
        ):
            raise ProblemError(
                f"{text}: {penalty!r} is no penalty: give an object with value(x), prox(x, t)"
            )
        if sign == "&" and isinstance(penalty, Addable) and not penalty.is_set:
            raise ProblemError(
                f"{text}: {penalty} is no set, and & is where sets intersect: write +"
            )
    parts: list[Any] = []
    for penalty in given:
        own = penalty.parts if isinstance(penalty, PenaltySum) else (penalty,)
        parts += [part for part in own if not getattr(part, "absent", False)]
    if len(parts) < 2:
        return parts[0] if parts else given[0]
    made = PenaltySum(tuple(map(as_pytree, parts)))
    try:
        bounds = made.terms()
        apart = bounds.lower is not None and bool(np.any(bounds.lower > bounds.upper))
    except (ValueError, TracerBoolConversionError):
        return made  # lengths differ, which is said where it meets a model; or nobody knows yet
    if apart:
        raise ProblemError(f"{text}: no point is within all bounds: widen one")
    return made


@pytree("value", "prox")
class Opaque:
    """A penalty that is no pytree; bound methods are equal if their objects are identical."""

    value: Callable[[Array], Array]
    prox: Callable[[Array, Array], Array]


def as_pytree(penalty: Any) -> Any:
    from jax.tree_util import all_leaves

    unknown_to_jax = all_leaves([penalty])
    return Opaque(penalty.value, penalty.prox) if unknown_to_jax else penalty


def takes_steps(penalty: Any) -> bool:
    """Whether its prox takes a step for each coordinate."""
    return any(getattr(penalty, declared, False) for declared in ("separable", "diagonal"))


@pytree()
class PenaltySum(Addable):
    """The sum of penalties, of sets their intersection: what + and & make of them.

    Its prox is exact where it is known in closed form: bounds, l1 and squared l2 together, with at
    most one half-space, simplex or budget; l1, x >= 0, groups and an l2 ball; l1 and an l1 ball;
    bounds and an l2 ball; anything with a squared l2. Others are split, in steps that end where
    they move by 1e-12 of the model's length.

    >>> import numpy as np
    >>> both = edgewise.L1(0.5) + edgewise.Box(-1, 1)
    >>> np.asarray(both.prox(np.array([3.0, 0.7, -0.2]), 1.0), float).round(6).tolist()
    [1.0, 0.2, 0.0]
    """

    parts: tuple[Any, ...]

    def terms(self) -> Terms:
        return reduce(Terms.plus, map(terms_of, self.parts))

    def __repr__(self) -> str:
        return (" & " if self.is_set else " + ").join(map(repr, self.parts))

    # --- what it is -----------------------------------------------------------------------------

    @property
    def is_set(self) -> bool:  # type: ignore[override]
        return all(getattr(part, "is_set", False) for part in self.parts)

    @property
    def quadratic(self) -> bool:
        return all(getattr(part, "quadratic", False) for part in self.parts)

    @property
    def separable(self) -> bool:
        return all(getattr(part, "separable", False) for part in self.parts)

    @property
    def diagonal(self) -> bool:
        terms = self.terms()
        balls = terms.l1_radius is not None or terms.l2_radius is not None
        return not terms.groups and not balls and all(map(takes_steps, terms.others))

    @property
    def ridge(self) -> Any:
        return sum(getattr(part, "ridge", 0) for part in self.parts)

    @property
    def compiled_as(self) -> str | None:
        """Of L1 and SquaredL2 alone."""
        return "elastic-net" if self.terms().plain else None

    l1 = property(lambda self: 0 if self.terms().l1 is None else self.terms().l1)
    l2 = property(lambda self: 0 if self.terms().l2 is None else self.terms().l2)

    # --- what it does ---------------------------------------------------------------------------

    def value(self, x: Array) -> Array:
        values = [part.value(x) for part in self.parts]
        return jnp.sum(jnp.stack(values), 0)

    def prox(self, x: Array, t: Any) -> Array:
        x = jnp.asarray(x)  # NumPy's float64 where JAX has float32
        terms, t = self.terms(), jnp.asarray(t, x.dtype)
        if terms.l2 is not None:  # |u - x|² / 2t + l2/2 |u|² is a square about another x
            shrink = 1 + t * jnp.asarray(terms.l2, x.dtype)
            x, t, terms = x / shrink, t / shrink, terms._replace(l2=None)
        own = closed_form(terms)
        if own is not None:
            return own(x, t)
        first, *others = blocks(terms)
        return splitting(first, others, x, t)


def closed_form(terms: Terms) -> Prox | None:
    """The prox, where there is a formula; no squared l2, which has been seen to."""
    bounded, round_ = terms.lower is not None, terms.l2_radius is not None
    many = len(terms.planes), terms.l1_radius is not None, len(terms.groups), len(terms.others)
    if many == (0, False, 0, 0) and not round_:
        return lambda x, t: within_bounds(terms, softened(terms, x, t))
    if many == (1, False, 0, 0) and not round_:
        return lambda x, t: on_plane(terms, x, t)
    if many == (0, False, 0, 1) and not round_ and terms.l1 is None:
        (own,) = terms.others
        if not bounded or getattr(own, "separable", False):
            # of a function of one number, the least within bounds is the nearest to the least
            return lambda x, t: within_bounds(terms, own.prox(x, t))
    if many[0] or many[3]:
        return None
    if not bounded or terms.cone:
        # l1 and x >= 0 are the same to a vector and to a longer one, so norms may come after them
        if many[1] and not many[2] and not round_:
            return lambda x, t: onto_l1_ball(
                within_bounds(terms, softened(terms, x, t)), of(x, terms.l1_radius)
            )
        if not many[1] and many[2] <= 1:
            return lambda x, t: radial(terms, x, t)
    if round_ and not many[1] and not many[2]:
        return lambda x, t: onto_ball(
            softened(terms, x, t), *(of(x, v) for v in (terms.l2_radius, terms.lower, terms.upper))
        )
    return None


def blocks(terms: Terms) -> list[Prox]:
    """Proxes of parts that add up to the whole, as few as there are formulas for."""
    head = Terms(l1=terms.l1, lower=terms.lower, upper=terms.upper, planes=terms.planes[:1])
    parts = [] if head.plain and head.l1 is None else [head]
    parts += [Terms(planes=(plane,)) for plane in terms.planes[len(head.planes) :]]
    if terms.l1_radius is not None:
        parts.append(Terms(l1_radius=terms.l1_radius))
    if terms.l2_radius is not None:
        parts.append(Terms(l2_radius=terms.l2_radius))
    parts += [Terms(groups=(h,)) for h in terms.groups] + [Terms(others=(h,)) for h in terms.others]
    made = [closed_form(part) for part in parts]
    return [prox for prox in made if prox is not None]


def of(x: Array, value: Any) -> Array:
    return jnp.asarray(value, x.dtype)


def softened(terms: Terms, x: Array, t: Array) -> Array:
    return x if terms.l1 is None else soften(x, t * of(x, terms.l1))


def within_bounds(terms: Terms, x: Array) -> Array:
    return x if terms.lower is None else jnp.clip(x, of(x, terms.lower), of(x, terms.upper))


def on_plane(terms: Terms, x: Array, t: Array) -> Array:
    (plane,) = terms.planes
    bounds = (-jnp.inf, jnp.inf) if terms.lower is None else (terms.lower, terms.upper)
    low, high = (of(x, v) for v in bounds)
    threshold = None if terms.l1 is None else t * of(x, terms.l1)
    a = jnp.broadcast_to(of(x, plane.a), x.shape)
    return onto_plane(x, t, a, of(x, plane.b), plane.equal, low, high, threshold)


def radial(terms: Terms, x: Array, t: Array) -> Array:
    x = within_bounds(terms, softened(terms, x, t))
    for group in terms.groups:
        x = group.prox(x, t)
    if terms.l2_radius is None:
        return x
    square = (x * x).sum()
    outside = square > of(x, terms.l2_radius) ** 2
    length = jnp.sqrt(jnp.where(outside, square, 1))
    return jnp.where(outside, of(x, terms.l2_radius) / length, 1) * x

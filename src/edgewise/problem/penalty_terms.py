"""What a penalty is made of: what sums, and those who look for a point in several sets, go by."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


class Plane(NamedTuple):
    """a·x <= b, or a·x = b."""

    a: Any
    b: Any
    equal: bool


class Terms(NamedTuple):
    """What a penalty is the sum of, for those who combine it with others, or look for a point that
    satisfies several. None where there is none: which are there is fixed when a program is made,
    their numbers are not."""

    l1: Any = None
    l2: Any = None
    lower: Any = None  # both, or neither
    upper: Any = None
    cone: bool = True  # whether the bounds, if any, are x >= 0
    planes: tuple[Plane, ...] = ()
    l1_radius: Any = None
    l2_radius: Any = None
    groups: tuple[Any, ...] = ()  # penalties that shrink groups of coordinates
    others: tuple[Any, ...] = ()  # penalties of which no more is known

    @property
    def plain(self) -> bool:
        """Whether it is l1 and a squared l2 at most."""
        limits = self.lower, self.l1_radius, self.l2_radius
        others = self.planes or self.groups or self.others
        return not others and all(limit is None for limit in limits)

    def plus(self, other: "Terms") -> "Terms":
        def join(how: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
            return b if a is None else a if b is None else how(a, b)

        return Terms(
            join(lambda a, b: a + b, self.l1, other.l1),
            join(lambda a, b: a + b, self.l2, other.l2),
            join(larger, self.lower, other.lower),
            join(smaller, self.upper, other.upper),
            self.cone and other.cone,
            self.planes + other.planes,
            join(smaller, self.l1_radius, other.l1_radius),
            join(smaller, self.l2_radius, other.l2_radius),
            self.groups + other.groups,
            self.others + other.others,
        )


def larger(a: Any, b: Any) -> Any:
    return -smaller(-a, -b)


def smaller(a: Any, b: Any) -> Any:
    return (jnp if isinstance(a, Tracer) or isinstance(b, Tracer) else np).minimum(a, b)


def terms_of(penalty: Any) -> Terms:
    """Of any penalty, one's own too."""
    if getattr(penalty, "absent", False):
        return Terms()
    known: Callable[[], Terms] | None = getattr(penalty, "terms", None)
    return known() if known is not None else Terms(others=(penalty,))

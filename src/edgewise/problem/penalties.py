"""Penalties h on one node's vector x, each with h(x) and its proximal map.

value(x) -> scalar          prox(x, t) = argmin_u h(u) + |u - x|² / 2t
"""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from edgewise.backend.pytree import pytree
from edgewise.errors import ProblemError
from edgewise.problem.contract import Penalty

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


class _Checked:
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


class _Set(_Checked):
    """The indicator of a set: 0 on it and infinite off it. Its prox is the projection."""

    def prox(self, x: Array, t: Array) -> Array:
        raise NotImplementedError

    def value(self, x: Array) -> Array:
        nearest = self.prox(x, jnp.ones((), x.dtype))
        slack = FEASIBLE * (1 + jnp.linalg.norm(nearest))
        return jnp.where(jnp.linalg.norm(x - nearest) <= slack, 0, jnp.inf).astype(x.dtype)


@pytree()
class NoPenalty(_Checked):
    compiled_as = "none"

    def value(self, x: Array) -> Array:
        return jnp.zeros((), x.dtype)

    def prox(self, x: Array, t: Array) -> Array:
        return x


@pytree()
class L1(_Checked):
    """lam |x|₁"""

    compiled_as = "l1"

    lam: Any

    def value(self, x: Array) -> Array:
        return _as(x, self.lam) * jnp.abs(x).sum()

    def prox(self, x: Array, t: Array) -> Array:
        threshold = _as(x, t) * _as(x, self.lam)
        return x - jnp.clip(x, -threshold, threshold)


@pytree()
class SquaredL2(_Checked):
    """lam/2 |x|²"""

    compiled_as = "squared-l2"

    lam: Any

    def value(self, x: Array) -> Array:
        return _as(x, self.lam) / 2 * (x * x).sum()

    def prox(self, x: Array, t: Array) -> Array:
        return x / (1 + _as(x, t) * _as(x, self.lam))


@pytree()
class ElasticNet(_Checked):
    """l1 |x|₁ + l2/2 |x|²"""

    compiled_as = "elastic-net"

    l1: Any
    l2: Any

    def value(self, x: Array) -> Array:
        return L1(self.l1).value(x) + SquaredL2(self.l2).value(x)

    def prox(self, x: Array, t: Array) -> Array:
        return SquaredL2(self.l2).prox(L1(self.l1).prox(x, t), t)


@pytree()
class GroupL2(_Checked):
    """lam Σ_g √|g| |x_g|; `groups` has one group id per coordinate, any integers."""

    lam: Any
    groups: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.groups, Tracer):
            consecutive = np.unique(self.groups, return_inverse=True)[1]
            object.__setattr__(self, "groups", consecutive.astype(np.int32))

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

    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.lower, Tracer) and not isinstance(self.upper, Tracer):
            lengths = {np.shape(self.lower), np.shape(self.upper)} - {()}
            if len(lengths) > 1 or np.any(self.lower > self.upper):
                raise ProblemError("Box: lower > upper or lengths differ: give lower <= upper")

    def prox(self, x: Array, t: Array) -> Array:
        from optax.projections import projection_box

        return jnp.asarray(projection_box(x, _as(x, self.lower), _as(x, self.upper)))


@pytree()
class NonNegative(_Set):
    def prox(self, x: Array, t: Array) -> Array:
        from optax.projections import projection_non_negative

        return jnp.asarray(projection_non_negative(x))


@pytree()
class Simplex(_Set):
    """x >= 0 and Σ x = radius"""

    radius: Any = 1.0

    def prox(self, x: Array, t: Array) -> Array:
        """Not by optax: in 0.2.8 its projection_simplex fails in float32 under x64, and its sum
        is off by as many roundings as there are coordinates."""
        radius = _as(x, self.radius)
        x = x - jax.lax.stop_gradient(x.max())
        partial_sums = jnp.cumsum(jax.lax.stop_gradient(jnp.sort(x)[::-1]))
        x = x - ((partial_sums - radius) / jnp.arange(1, x.size + 1, dtype=x.dtype)).max()
        support = x > 0
        # This makes the sum right to the last digits, and carries the derivative.
        surplus = jnp.where(support, x, 0).sum() - radius
        return jnp.maximum(x - surplus / support.sum().astype(x.dtype), 0)


@pytree()
class L1Ball(_Set):
    """|x|₁ <= radius"""

    radius: Any

    def prox(self, x: Array, t: Array) -> Array:
        outside = jnp.abs(x).sum() > _as(x, self.radius)
        return jnp.where(outside, jnp.sign(x) * Simplex(self.radius).prox(jnp.abs(x), t), x)


@pytree()
class L2Ball(_Set):
    """|x| <= radius"""

    radius: Any

    def prox(self, x: Array, t: Array) -> Array:
        from optax.projections import projection_l2_ball

        return jnp.asarray(projection_l2_ball(x, _as(x, self.radius)))


@pytree()
class HalfSpace(_Set):
    """a·x <= b"""

    a: Any
    b: Any

    def prox(self, x: Array, t: Array) -> Array:
        a, b = _as(x, self.a), _as(x, self.b)
        return x - jnp.maximum((a * x).sum() - b, 0) / (a * a).sum() * a


@pytree("value", "prox")
class Opaque:
    """A penalty that is no pytree; bound methods are equal if their objects are identical."""

    value: Callable[[Array], Array]
    prox: Callable[[Array, Array], Array]


@pytree("free")
class StackedPenalties:
    """All nodes' penalties: the leaves of each member, one per kind of penalty, lead with the
    node axis, and its mask says whose rows it decides."""

    members: tuple[Penalty, ...]  # vmapped
    masks: tuple[Array, ...]
    free: int

    def value(self, X: Array) -> Array:
        X = X[:, : X.shape[1] - self.free]
        values = [jax.vmap(lambda p, x: p.value(x))(m, X) for m in self.members]
        return jnp.select(self.masks, values) if len(values) > 1 else values[0]

    def prox(self, X: Array, t: Array) -> Array:
        X, untouched = jnp.split(X, [X.shape[1] - self.free], axis=1)
        points = [jax.vmap(lambda p, x, s: p.prox(x, s))(m, X, t[:, 0]) for m in self.members]
        masks = [mask[:, None] for mask in self.masks]
        chosen = jnp.select(masks, points) if len(points) > 1 else points[0]
        return jnp.concatenate([chosen, untouched], axis=1) if self.free else chosen


PENALTIES: tuple[type[Penalty], ...] = (  # held to the contract by mypy
    NoPenalty,
    L1,
    SquaredL2,
    ElasticNet,
    GroupL2,
    Box,
    NonNegative,
    Simplex,
    L1Ball,
    L2Ball,
    HalfSpace,
    Opaque,
    StackedPenalties,
)


def stack(penalties: Any, nodes: int, size: int, free: int = 0) -> StackedPenalties:
    """One block with value(X) -> (v,) and prox(X, t) -> (v, n), for X (v, n) and t (v, 1).

    `penalties` is one, or one per node: any objects with value(x) and prox(x, t), compiled in if
    they are no pytrees. The last `free` of the `size` coordinates are outside the penalty.
    """
    each = _listed(penalties)
    if each and each[0] is penalties:
        each = each * nodes
    if len(each) != nodes:
        raise ProblemError(f"{len(each)} penalties for {nodes} nodes: give one, or one per node")
    first_at: dict[int, int] = {}
    source = np.array([first_at.setdefault(id(p), at) for at, p in enumerate(each)])
    kinds: dict[Any, dict[int, list[Any]]] = {}
    for at in first_at.values():
        leaves, structure = jax.tree.flatten(_as_pytree(each[at]))
        shapes = [np.shape(leaf) for leaf in leaves]
        if isinstance(each[at], _Checked) and not {*shapes} <= {(), (size - free,)}:
            raise ProblemError(f"{each[at]} does not fit: give vectors of {size - free} entries")
        kinds.setdefault((structure, *shapes), {})[at] = leaves
    members, masks = [], []
    for (structure, *_), leaves_at in kinds.items():
        mask = np.isin(source, list(leaves_at))
        # Nodes of another kind get some parameters of this one; their result is not selected.
        row = np.where(mask, np.searchsorted(list(leaves_at), source), 0)
        stacked = [jnp.array(leaf)[row] for leaf in zip(*leaves_at.values(), strict=True)]
        members.append(jax.tree.unflatten(structure, stacked))
        masks.append(jnp.asarray(mask))
    return StackedPenalties(tuple(members), tuple(masks), free)


def same(penalties: Any) -> bool:
    """Whether all nodes have equal penalties: one object, or one class with equal parameters."""
    each: list[Any] = [jax.tree.flatten(_as_pytree(p)) for p in _listed(penalties)]
    return all(k == each[0][1] and all(map(np.array_equal, v, each[0][0])) for v, k in each)


def _listed(penalties: Any) -> list[Any]:
    several = isinstance(penalties, Iterable) and not hasattr(penalties, "prox")
    listed = list(penalties) if several else [penalties]
    for p in listed:
        if isinstance(p, type) or not (hasattr(p, "value") and hasattr(p, "prox")):
            raise ProblemError(f"{p!r} is no penalty: give an object with value(x), prox(x, t)")
    return listed


def _as_pytree(penalty: Any) -> Any:
    unknown_to_jax = jax.tree_util.all_leaves([penalty])
    return Opaque(penalty.value, penalty.prox) if unknown_to_jax else penalty


def _as(x: Array, value: Any) -> Array:
    return jnp.asarray(value, x.dtype)

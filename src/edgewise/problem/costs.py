"""Costs of a node that need no data, and nodes that differ in how many unknowns they have.

All nodes of a block have models of one length, the largest: a shorter one ends in zeros, which
nothing moves and no answer shows. Where sizes differ much, a block is of some nodes (`by_size`).
A node without data has a sample of weight zero.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array, lax

from edgewise.backend.pytree import pytree
from edgewise.data import frames
from edgewise.data.arrays import as_labels, as_matrix
from edgewise.data.shards import Shards
from edgewise.errors import DataError, ProblemError

BELOW_ZERO = 1e-9  # part of a matrix's norm that rounding may take an eigenvalue below zero


class Quadratic:
    """x'Qx/2 + q'x: Q a positive semidefinite matrix, its diagonal, or one number for all.

    >>> Quadratic([2.0, 0.0], [1.0, -1.0]).size
    2
    """

    def __init__(self, Q: Any, q: Any = 0.0) -> None:
        curved, slope = numbers("Quadratic: Q", Q), numbers("Quadratic: q", q)
        sizes = {*curved.shape, *slope.shape}
        if curved.ndim > 2 or slope.ndim > 1 or len(sizes) != 1:
            raise ProblemError(
                f"Quadratic: Q has shape {curved.shape} and q {slope.shape}: give a matrix (n, n), "
                "or its diagonal (n,), and a vector (n,); one of the two may be a number"
            )
        n = sizes.pop()
        if n == 0:
            raise ProblemError(f"{type(self).__name__} of no unknowns: give one or more")
        if curved.ndim == 2 and not np.allclose(curved, curved.T):
            raise ProblemError("Quadratic: Q is not symmetric: give (Q + Q.T) / 2")
        matrix = curved if curved.ndim == 2 else np.diag(np.broadcast_to(curved, n))
        bends = np.linalg.eigvalsh(matrix) if curved.ndim == 2 else np.sort(np.diag(matrix))
        if len(bends) and bends[0] < -BELOW_ZERO * max(abs(bends[-1]), abs(bends[0])):
            raise ProblemError(
                f"Quadratic: Q has an eigenvalue {bends[0]:.3g}, so that the cost is not convex: "
                "give a positive semidefinite Q"
            )
        self.Q, self.q = matrix, np.array(np.broadcast_to(slope, n))
        self.top = float(max(bends[-1], 0)) if len(bends) else 0.0
        self.size = int(n)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size} unknowns)"


class Linear(Quadratic):
    """q'x, a vector of prices."""

    def __init__(self, q: Any) -> None:
        slope = numbers("Linear: q", q)
        if slope.ndim != 1:
            raise ProblemError(f"Linear: q has shape {slope.shape}: give a vector, Linear([1, 2])")
        super().__init__(np.zeros(len(slope)), slope)


def numbers(name: str, value: Any) -> np.ndarray:
    try:
        given = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
        if given.dtype.kind in "cOSU":  # else text is read, and imaginary parts are lost
            raise ValueError("no real numbers")
        made = np.array(given, np.float64)
    except (TypeError, ValueError) as wrong:
        raise ProblemError(f"{name} is {value!r}: give real numbers") from wrong
    if not np.isfinite(made).all():
        raise ProblemError(f"{name} has entries that are not finite: give numbers")
    return made


class Costs(NamedTuple):
    """What a block's nodes have besides losses and penalties."""

    Q: Any  # (v, n, n)
    q: Any  # (v, n)
    lossy: Any  # (v, 1) one where there are data, so that the loss's ridge counts, else zero

    def slope(self, X: Array) -> Array:
        """(v, n) the gradient."""
        bent: Array = jnp.einsum("vij,vj->vi", self.Q, X, precision=lax.Precision.HIGHEST)
        return bent + self.q

    def value(self, X: Array) -> Array:
        """(v,)"""
        return (0.5 * X * (self.slope(X) + self.q)).sum(1)


class Described(NamedTuple):
    """Nodes of sizes of their own, as arrays of one size."""

    shards: Any
    sizes: np.ndarray  # (V,) n_i
    costs: Costs | None
    tops: np.ndarray | None  # (V,) the largest eigenvalue of each node's Q
    unlike: str = ""  # which node has columns of other names, where tables name theirs


def describe(shards: Any, cost: Any) -> Described:
    """What a problem is made of, where nodes have costs, no data, or unequal sizes."""
    listed = None
    if shards is None or isinstance(shards, list | tuple):
        listed = None if shards is None else list(shards)
    if cost is None and (listed is None or is_plain(listed)):
        return Described(shards, np.zeros(0, int), None, None)
    listed, unlike = named_alike(listed)
    parts = parts_of(shards, listed)
    costs = each_cost(cost, parts)
    sizes = np.array(
        [size_of(i, part, c) for i, (part, c) in enumerate(zip(parts, costs, strict=True))]
    )
    n = int(sizes.max())
    made = filled(parts, n)
    if all(c is None for c in costs) and all(part is not None for part in parts):
        return Described(made, sizes, None, None, unlike)
    Q, q = np.zeros((len(costs), n, n)), np.zeros((len(costs), n))
    for i, c in enumerate(costs):
        if c is not None:
            Q[i, : c.size, : c.size], q[i, : c.size] = c.Q, c.q
    lossy = np.array([[float(part is not None)] for part in parts])
    tops = np.array([0.0 if c is None else c.top for c in costs])
    return Described(made, sizes, Costs(Q, q, lossy), tops, unlike)


def is_plain(parts: list[Any]) -> bool:
    """Whether every node has data, as wide as all others': nothing to be filled up."""
    try:
        return len({np.shape(X)[1] for X, _ in parts}) <= 1
    except (TypeError, ValueError, IndexError):
        return not any(part is None for part in parts)  # what is wrong is said where it is read


def named_alike(listed: list[Any] | None) -> tuple[list[Any] | None, str]:
    """Tables whose columns have the same names with these in one order; else which node has others,
    as nodes may whose models need not be equal."""
    pairs = [part for part in listed or [] if part is not None]
    if listed is None or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
        return listed, ""
    tables = [None if part is None else frames.as_pandas(part[0]) for part in listed]
    unlike = frames.unlike(tables)
    if not unlike:
        _, tables = frames.in_one_order(tables)
    both = zip(tables, listed, strict=True)
    return [None if part is None else (X, part[1]) for X, part in both], unlike


def parts_of(shards: Any, listed: list[Any] | None) -> list[Any]:
    """(X_i, y_i) of each node, or None; an empty list where there are no shards at all."""
    if listed is None and shards is not None:
        if not isinstance(shards, Shards):
            raise ProblemError(
                "costs go with shards in memory: give a list with one (X_i, y_i) or None per node"
            )
        listed = list(shards)
    return [None if part is None else read(i, part) for i, part in enumerate(listed or [])]


def read(node: int, part: Any) -> tuple[Any, np.ndarray]:
    if not isinstance(part, list | tuple) or len(part) != 2:
        raise DataError(f"node {node} has no (X_i, y_i): give a pair, or None where it has no data")
    X, y = as_matrix(part[0]), as_labels(part[1])
    if not X.shape[0]:
        raise DataError(f"node {node} has no samples: give None instead, and a cost")
    return X, y


def each_cost(cost: Any, parts: list[Any]) -> list[Quadratic | None]:
    several = isinstance(cost, Iterable)
    if isinstance(cost, Mapping | str | np.ndarray) or (
        cost is not None and not several and not isinstance(cost, Quadratic)
    ):
        raise ProblemError(
            f"cost is {cost!r}: give Quadratic(Q, q) or Linear(q), or a list with one, or None, "
            "per node"
        )
    if cost is not None and not several and not parts:
        raise ProblemError("one cost and no data say not how many nodes there are: give a list")
    costs = list(cost) if several else [cost] * len(parts)
    for c in costs:
        if c is not None and not isinstance(c, Quadratic):
            raise ProblemError(f"a cost is {c!r}: give Quadratic(Q, q), Linear(q) or None")
    if parts and len(costs) != len(parts):
        raise ProblemError(f"{len(costs)} costs for {len(parts)} nodes: give one per node")
    if not costs:
        raise ProblemError("there are no nodes: give a cost, or data, for each")
    parts.extend([None] * (len(costs) - len(parts)))
    return costs


def size_of(node: int, part: Any, cost: Quadratic | None) -> int:
    widths = {
        *(() if part is None else (part[0].shape[1],)),
        *(() if cost is None else (cost.size,)),
    }
    if len(widths) > 1:
        raise ProblemError(
            f"node {node} has {part[0].shape[1]} features and a cost of {cost.size if cost else 0} "
            "unknowns: give both the same number"
        )
    if not widths or 0 in widths:
        raise ProblemError(
            f"node {node} has neither data nor a cost: give it Linear(zeros) at least"
        )
    return int(widths.pop())


def filled(parts: list[Any], n: int) -> Shards:
    """All nodes with n columns; a sample of zeros where a node has none."""
    known = [part for part in parts if part is not None]
    label = known[0][1][:1] if known else np.zeros(1)
    wide: list[tuple[Any, Any]] = []
    X: Any
    sparse = bool(known) and all(sp.issparse(X) for X, _ in known)
    for part in parts:
        X, y = (np.zeros((1, n)), label) if part is None else part
        if hasattr(X, "indptr"):
            X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n))
        elif X.shape[1] < n:
            X = np.pad(X, ((0, 0), (0, n - X.shape[1])))
        wide.append((sp.csr_array(X) if sparse else X, y))
    return Shards.from_parts(wide)


def without_data(scale: np.ndarray | None, lossy: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(N,) weights of samples, zero at nodes that have none of their own."""
    real = np.repeat(lossy[:, 0], counts)
    return real if scale is None else real * scale


@pytree("size")
class Sized:
    """A penalty on the first `size` of a longer model's coordinates; the others stay zero."""

    penalty: Any
    size: int

    absent = property(lambda self: getattr(self.penalty, "absent", False))
    quadratic = property(lambda self: getattr(self.penalty, "quadratic", False))
    separable = property(lambda self: getattr(self.penalty, "separable", False))
    diagonal = property(lambda self: getattr(self.penalty, "diagonal", False))
    ridge = property(lambda self: getattr(self.penalty, "ridge", 0))

    def value(self, x: Array) -> Array:
        made: Array = self.penalty.value(x[: self.size])
        return made

    def prox(self, x: Array, t: Any) -> Array:
        steps = t[: self.size] if jnp.ndim(t) else t
        own = self.penalty.prox(x[: self.size], steps)
        return jnp.concatenate([own, jnp.zeros_like(x[self.size :])])


def sized_penalties(penalty: Any, sizes: np.ndarray) -> list[Any]:
    """One per node, each on its own unknowns."""
    each = list(penalty) if isinstance(penalty, list | tuple) else [penalty] * len(sizes)
    if len(each) != len(sizes):
        return each  # which is said where they are stacked
    n = sizes.max()
    made: dict[tuple[int, int], Any] = {}
    for i, (h, size) in enumerate(zip(each, sizes, strict=True)):
        if isinstance(h, type) or not hasattr(h, "prox"):
            raise ProblemError(f"node {i}: {h!r} is no penalty: give L1(...), Box(...) or the like")
        parts = getattr(h, "parts", (h,))
        numbers = [v for part in parts if hasattr(part, "__dict__") for v in vars(part).values()]
        shapes = {np.shape(v) for v in numbers}
        if any(len(shape) == 1 and shape != (size,) for shape in shapes):
            raise ProblemError(f"node {i}: {h} does not fit: give vectors of {size} entries")
        made.setdefault((id(h), int(size)), h if size == n else Sized(h, int(size)))
    return [made[id(h), int(size)] for h, size in zip(each, sizes, strict=True)]

"""What holds between neighbours where their models need not be equal: couplings and prices.

On an edge between i and j, d = A x_i + B x_j - c. A coupling wants d = 0, or d <= 0, row by row; a
price puts phi(d) into the sum that is minimised.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from edgewise.errors import GraphError, ProblemError, UnknownName
from edgewise.graph.graph import Graph
from edgewise.problem.costs import numbers

SENSES = ("=", "<=")


class Rows(NamedTuple):
    """The rows of one edge. A dual of a row is within [low, high]; within a ball of radius high,
    together with the other rows that are `grouped`; and costs slack/2 times its square."""

    A: Any  # (m, n_i) of the first end, dense or sparse
    B: Any  # (m, n_j)
    c: np.ndarray  # (m,)
    low: np.ndarray  # (m,)
    high: np.ndarray  # (m,)
    slack: np.ndarray  # (m,)
    grouped: np.ndarray  # (m,) bool


class Term:
    """Anything that may stand between two neighbours."""

    def rows(self, edge: int, name: tuple[int, int], sizes: tuple[int, int]) -> Rows:
        """Of the edge with this number and these ends, whose models have these sizes."""
        raise NotImplementedError


class Coupling(Term):
    """A x_i + B x_j = c on the edge (i, j), a row per constraint.

    A, B    matrices, dense or sparse; A left out is the identity, B left out is -A
    c       a vector, or one number for all rows
    sense   "=" or "<=", for all rows or one per row

    For all edges at once A belongs to the end with the lower number, in a dictionary to the one
    that its key names first.

    >>> Coupling([[1.0, 0.0]], [[2.0]], c=3.0, sense="<=")
    Coupling(1 row, <=)
    """

    def __init__(self, A: Any = None, B: Any = None, c: Any = 0.0, sense: Any = "=") -> None:
        self.A, self.B = matrix("A", A), matrix("B", B)
        self.c = numbers("Coupling: c", c)
        self.senses = [sense] if isinstance(sense, str) else list(sense)
        for s in self.senses:
            if s not in SENSES:
                raise UnknownName("sense of a coupling", s, SENSES)
        if self.c.ndim > 1:
            raise ProblemError(f"Coupling: c has shape {self.c.shape}: give one number per row")

    def __repr__(self) -> str:
        m = None if self.A is None and self.B is None else self._count()
        rows = "identity" if m is None else f"{m} row{'s' * (m != 1)}"
        return f"Coupling({rows}, {' '.join(sorted({*self.senses}))})"

    def _count(self) -> int:
        given = self.B if self.A is None else self.A
        return int(given.shape[0])

    def rows(self, edge: int, name: tuple[int, int], sizes: tuple[int, int]) -> Rows:
        i, j = name
        A = sp.eye_array(sizes[0], format="csr") if self.A is None else self.A
        B = -A if self.B is None else self.B
        for which, end, given, size in (("A", i, A, sizes[0]), ("B", j, B, sizes[1])):
            if given.shape[1] != size:
                stands = (
                    ""
                    if getattr(self, which) is not None
                    else (
                        " (the identity, as none was given)"
                        if which == "A"
                        else " (-A, as none was given)"
                    )
                )
                raise ProblemError(
                    f"edge ({i}, {j}): {which}{stands} has {given.shape[1]} columns, and node "
                    f"{end} has {size} unknowns: give {which} one column for each"
                )
        m = A.shape[0]
        if B.shape[0] != m:
            raise ProblemError(
                f"edge ({i}, {j}): A, of node {i}, has {m} rows and B, of node {j}, has "
                f"{B.shape[0]}: give both a row per constraint"
            )
        for what, length in (("c", self.c.size), ("sense", len(self.senses))):
            if length not in (1, m):
                raise ProblemError(f"edge ({i}, {j}): {what} has {length} entries for {m} rows")
        c = np.array(np.broadcast_to(self.c, m))
        inequality = np.broadcast_to([s == "<=" for s in self.senses], m)
        low = np.where(inequality, 0.0, -np.inf)
        return Rows(A, B, c, low, np.full(m, np.inf), np.zeros(m), np.zeros(m, bool))


class Shared(Coupling):
    """Partial consensus: these coordinates of all models are equal, the others are each node's own.

    coordinates    numbers, a slice, or a mask
    """

    def __init__(self, coordinates: Any) -> None:
        super().__init__()
        self.coordinates = coordinates

    def __repr__(self) -> str:
        return f"Shared({self.coordinates!r})"

    def rows(self, edge: int, name: tuple[int, int], sizes: tuple[int, int]) -> Rows:
        A, B = (chosen(self.coordinates, name, k, sizes[k]) for k in (0, 1))
        m = A.shape[0]
        if m != B.shape[0]:
            raise ProblemError(
                f"edge ({name[0]}, {name[1]}): {m} coordinates of one end are shared, and "
                f"{B.shape[0]} of the other: name them by numbers that both have"
            )
        none = np.zeros(m)
        return Rows(A, -B, none, none - np.inf, none + np.inf, none, none > 0)


class Price(Term):
    """phi(x_i - x_j), a price for a difference instead of a ban on it."""

    grouped = True

    def __init__(self, weight: Any, on: Any = None) -> None:
        self.weight, self.on = positive(type(self).__name__, "weight", weight), on

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight!r})"

    def dual(self, weight: float) -> tuple[float, float]:
        """How large a dual may be, and the slack of its square."""
        raise NotImplementedError

    def rows(self, edge: int, name: tuple[int, int], sizes: tuple[int, int]) -> Rows:
        A, B, c, _, _, _, _ = Shared(slice(None) if self.on is None else self.on).rows(
            edge, name, sizes
        )
        weights = np.ravel(self.weight)
        if len(weights) > 1 and edge >= len(weights):
            raise ProblemError(f"{self} has {len(weights)} weights: give one, or one per edge")
        most, slack = self.dual(float(weights[edge if len(weights) > 1 else 0]))
        ones = np.ones(len(c))
        return Rows(A, B, c, -most * ones, most * ones, slack * ones, self.grouped * ones > 0)


class NetworkLasso(Price):
    """weight |x_i - x_j|: neighbours whose data allow it have one model, exactly. norm=2, the
    length of the difference, makes clusters of nodes; norm=1 takes coordinate by coordinate.

    Hallac, Leskovec, Boyd: "Network Lasso: Clustering and Optimization in Large Graphs", 2015.
    """

    def __init__(self, weight: Any, on: Any = None, norm: int = 2) -> None:
        super().__init__(weight, on)
        if norm not in (1, 2):
            raise UnknownName("norm of a NetworkLasso", norm, ["1", "2"])
        self.grouped = norm == 2

    def dual(self, weight: float) -> tuple[float, float]:
        return weight, 0.0


class NetworkRidge(Price):
    """weight |x_i - x_j|^2: models that vary smoothly over the graph, none equal."""

    grouped = False

    def dual(self, weight: float) -> tuple[float, float]:
        return np.inf, 1 / (2 * weight)


class NetworkHuber(Price):
    """weight times |d|^2 up to a length delta, 2 delta |d| - delta^2 beyond: smooth for what is
    near, and no more than linear for what is not."""

    def __init__(self, weight: Any, delta: float, on: Any = None) -> None:
        super().__init__(weight, on)
        self.delta = float(positive("NetworkHuber", "delta", delta))

    def dual(self, weight: float) -> tuple[float, float]:
        return 2 * weight * self.delta, 1 / (2 * weight)


# --- what users gave, edge by edge ----------------------------------------------------------------


def edge_rows(between: Any, graph: Graph, sizes: np.ndarray) -> list[Rows]:
    """The rows of every edge of the graph, A that of its lower end."""
    given = between
    if isinstance(between, Mapping):
        given = by_edge(between, graph)
    made = []
    for e, (i, j) in enumerate(graph.edges.tolist()):
        turned, terms = given[e] if isinstance(between, Mapping) else (False, listed(between))
        ends = (j, i) if turned else (i, j)
        rows = joined([t.rows(e, ends, (int(sizes[ends[0]]), int(sizes[ends[1]]))) for t in terms])
        made.append(rows._replace(A=rows.B, B=rows.A) if turned else rows)
        require_possible(made[-1], (i, j))
    return made


def by_edge(between: Mapping[Any, Any], graph: Graph) -> list[tuple[bool, list[Term]]]:
    number = {tuple(e): k for k, e in enumerate(graph.edges.tolist())}
    found: dict[int, tuple[bool, list[Term]]] = {}
    for key, value in between.items():
        try:
            i, j = (int(end) for end in key)
        except (TypeError, ValueError) as wrong:
            raise ProblemError(f"between has the key {key!r}: give edges, (i, j)") from wrong
        if (min(i, j), max(i, j)) not in number:
            raise GraphError(f"between ({i}, {j}): the graph has no such edge")
        e = number[min(i, j), max(i, j)]
        if e in found:
            raise ProblemError(f"between names the edge ({i}, {j}) twice: put both into one list")
        found[e] = (i > j, listed(value))
    for e, (i, j) in enumerate(graph.edges.tolist()):
        if e not in found:
            raise ProblemError(
                f"the graph's edge ({i}, {j}) has no coupling: say what holds between {i} and {j}, "
                "or leave the edge out of the graph"
            )
    return [found[e] for e in range(len(number))]


def listed(between: Any) -> list[Term]:
    terms = list(between) if isinstance(between, Iterable) else [between]
    for term in terms:
        if not isinstance(term, Term):
            raise ProblemError(
                f"between={term!r}: give Coupling(...), Shared(...), NetworkLasso(...), "
                "NetworkRidge(...) or NetworkHuber(...), or a dictionary of them by edge"
            )
    if not terms:
        raise ProblemError("between has an empty list: say what holds, or leave the edge out")
    if sum(isinstance(t, Price) and t.grouped for t in terms) > 1:
        raise ProblemError(
            "two prices of a length on one edge: give one NetworkLasso or NetworkHuber, or norm=1"
        )
    return terms


def joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    A, B = (sp.vstack([sp.csr_array(p[k]) for p in parts], format="csr") for k in (0, 1))
    return Rows(A, B, *(np.concatenate([p[k] for p in parts]) for k in range(2, len(Rows._fields))))


def require_possible(rows: Rows, edge: tuple[int, int]) -> None:
    """Refuse rows that no two models satisfy, whatever they are."""
    wanted = (rows.slack == 0) & (rows.high == np.inf)
    if not wanted.any():
        return
    A = np.hstack([dense(rows.A), dense(rows.B)])[wanted]
    c, equal = rows.c[wanted], rows.low[wanted] == -np.inf
    scale = 1e-9 * (1 + np.abs(c).max(initial=0))
    flat = ~A.any(1)
    bad = flat & np.where(equal, np.abs(c) > scale, c < -scale)
    if not bad.any() and equal.sum() > 1:
        nearest = np.linalg.lstsq(A[equal], c[equal], rcond=None)[0]
        missed = np.abs(A[equal] @ nearest - c[equal])
        bad[np.flatnonzero(equal)[missed > 1e3 * scale]] = True
    if bad.any():
        which = ", ".join(map(str, np.flatnonzero(wanted)[bad][:5]))
        raise ProblemError(
            f"edge {edge}: no two models satisfy its rows (row {which}, counted from 0): they "
            "contradict each other, or have no coefficients; change c, or leave rows out"
        )


def matrix(name: str, value: Any) -> Any:
    if value is None:
        return None
    if hasattr(value, "toarray"):
        numbers(f"Coupling: {name}", value.data)
        kept: Any = sp.csr_array(value)
        kept.sum_duplicates()
        return kept.astype(np.float64)
    made = numbers(f"Coupling: {name}", value)
    if made.ndim != 2:
        raise ProblemError(
            f"Coupling: {name} has shape {made.shape}: give a matrix, a row per constraint"
        )
    return made


def dense(A: Any) -> np.ndarray:
    return np.asarray(A.toarray() if hasattr(A, "toarray") else A)


def chosen(coordinates: Any, edge: tuple[int, int], end: int, size: int) -> Any:
    """Rows of the identity."""
    try:
        at = np.atleast_1d(np.arange(size)[coordinates])
    except (IndexError, TypeError) as wrong:
        raise ProblemError(
            f"edge ({edge[0]}, {edge[1]}): coordinates {coordinates!r} are not among the {size} of "
            f"node {edge[end]}: count from 0"
        ) from wrong
    return sp.csr_array((np.ones(len(at)), (np.arange(len(at)), at)), shape=(len(at), size))


def positive(owner: str, name: str, value: Any) -> np.ndarray:
    made = numbers(f"{owner}: {name}", value)
    if made.ndim > 1 or (made <= 0).any():
        raise ProblemError(f"{owner}: {name} is {value!r}: give a positive number")
    return made

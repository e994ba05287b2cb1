"""What must hold between neighbours where their models need not be equal.

On an edge between i and j, d = A x_i + B x_j - c. A coupling wants d = 0, or d <= 0, row by row; a
price (`prices`) puts phi(d) into the sum that is minimised.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from edgewise.errors import ProblemError
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

    def require_edges(self, edges: int) -> None:
        """Refuse what does not fit a graph of so many edges."""

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
        self.senses = senses(sense)
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
        self.coordinates = coordinates_of("Shared: coordinates", coordinates)

    def __repr__(self) -> str:
        return f"Shared({listing(self.coordinates)})"

    def rows(self, edge: int, name: tuple[int, int], sizes: tuple[int, int]) -> Rows:
        here, there = (chosen(self.coordinates, name, k, sizes[k]) for k in (0, 1))
        if not np.array_equal(here, there):  # of a slice, or counted from the end
            raise ProblemError(
                f"edge ({name[0]}, {name[1]}): {listing(self.coordinates)} are other coordinates "
                f"of node {name[0]}, with {sizes[0]} unknowns, than of node {name[1]}, with "
                f"{sizes[1]}: give numbers, counted from 0, that both have"
            )
        A, B = (identity_rows(here, size) for size in sizes)
        none = np.zeros(len(here))
        return Rows(A, -B, none, none - np.inf, none + np.inf, none, none > 0)


def matrix(name: str, value: Any) -> Any:
    if value is None:
        return None
    sparse = hasattr(value, "toarray")
    made: Any = value if sparse else numbers(f"Coupling: {name}", value)
    if made.ndim != 2 or 0 in made.shape:
        raise ProblemError(
            f"Coupling: {name} has shape {made.shape}: give a matrix, a row per constraint"
        )
    if sparse:
        made = sp.csr_array(value)
        made.sum_duplicates()
        numbers(f"Coupling: {name}", made.data)
        return made.astype(np.float64)
    return made


def dense(A: Any) -> np.ndarray:
    return np.asarray(A.toarray() if hasattr(A, "toarray") else A)


def senses(sense: Any) -> list[str]:
    if isinstance(sense, np.ndarray):
        sense = sense.tolist()
    listed = [sense] if isinstance(sense, str) else sense
    if not isinstance(listed, list | tuple) or not listed:
        raise ProblemError(f'Coupling: sense is {sense!r}: give "=" or "<=", or one per row')
    for s in listed:
        if not isinstance(s, str) or s not in SENSES:
            raise ProblemError(
                f'Coupling: sense is {s!r}: give "=" or "<="; for >= change the signs of A, B and c'
            )
    return list(listed)


def coordinates_of(name: str, value: Any) -> Any:
    """A slice, a mask, or numbers as an array: what NumPy would make of other things surprises."""
    if isinstance(value, slice):
        return value
    wanted = "give their numbers, counted from 0, a slice, or a mask"
    made = np.asarray(list(value) if isinstance(value, range | tuple) else value)
    single = isinstance(value, bool | np.bool_)
    if made.ndim > 1 or single or made.size == 0 or made.dtype.kind not in "iub":
        raise ProblemError(f"{name} is {value!r}: {wanted}")
    if made.dtype.kind == "b" and not made.any():
        raise ProblemError(f"{name} is {value!r}, a mask that chooses nothing: {wanted}")
    return np.atleast_1d(made)


def listing(coordinates: Any) -> str:
    """As a user writes them."""
    return repr(coordinates if isinstance(coordinates, slice) else coordinates.tolist())


def chosen(coordinates: Any, edge: tuple[int, int], end: int, size: int) -> np.ndarray:
    """Their numbers."""
    where = f"edge ({edge[0]}, {edge[1]}): coordinates {listing(coordinates)}"
    try:
        at = np.arange(size)[coordinates]
    except (IndexError, TypeError) as wrong:
        masked = isinstance(coordinates, np.ndarray) and coordinates.dtype.kind == "b"
        advice = "a mask has one entry per unknown; numbers do for any" if masked else "from 0 up"
        raise ProblemError(
            f"{where} are not among the {size} of node {edge[end]}: {advice}"
        ) from wrong
    if not at.size:
        raise ProblemError(f"{where} are none of the {size} of node {edge[end]}: give some")
    if len(np.unique(at)) < len(at):
        raise ProblemError(f"{where} name one twice: name each once")
    return np.asarray(at)


def identity_rows(at: np.ndarray, size: int) -> Any:
    return sp.csr_array((np.ones(len(at)), (np.arange(len(at)), at)), shape=(len(at), size))

"""The samples of all nodes in one flat allocation, node after node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from edgewise.data import frames
from edgewise.data.arrays import (
    LARGEST,
    Array,
    Matrix,
    aligned_empty,
    as_labels,
    as_matrix,
    is_sparse,
    missing_labels,
    unusable_rows,
)
from edgewise.errors import DataError

TERMS = ("offset", "weight")  # numbers per row that came with the data


@dataclass(frozen=True, eq=False)
class Shards:
    """Node i holds rows first[i] : first[i] + counts[i] of X and y.

    X is a C-contiguous float32 or float64 array, kept without a copy if it already is one (so do
    not change it afterwards), or a CSR array. Row r is row order[r] of the data set that was
    split; None says: as given. `lines` are the rows' lines in the file that they came from, and
    `columns` the names of X's columns, where they are known: a pandas frame brings its own.
    Labels are kept as they are, numbers or text. `scaling` is the `Standardization` that X has
    been through, and `preparation` the `Preparation` of the table that X is of, before: models
    remember both, and take data as they were. `offset` and `weight` are numbers per row that came
    with the data, as `Problem` takes them.
    """

    X: Matrix
    y: Array
    counts: NDArray[np.int64]
    order: NDArray[np.int64] | None = None
    columns: tuple[str, ...] | None = None
    lines: NDArray[np.int64] | None = None
    scaling: Any = None
    preparation: Any = None
    offset: NDArray[np.float64] | None = None
    weight: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", frames.as_pandas(self.X))
        if frames.is_frame(self.X):
            named = frames.names_of(self.X) if self.columns is None else self.columns
            lines = frames.lines_of(self.X) if self.lines is None else self.lines
            object.__setattr__(self, "columns", named)
            object.__setattr__(self, "lines", lines)
        given: dict[str, Any] = {
            "X": as_matrix(self.X),
            "y": as_labels(self.y),
            "counts": as_counts(self.counts),
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)
        rows = self.X.shape[0]
        if not rows == len(self.y) == self.counts.sum():
            raise DataError(
                f"X has {rows} rows, y has {len(self.y)} and the counts add up to "
                f"{self.counts.sum()}: give one label per row, and counts that cover every row once"
            )
        for name in ("order", "lines", *TERMS):
            one = getattr(self, name)
            if one is not None and len(one) != rows:
                raise DataError(
                    f"{name} has {len(one)} entries for {rows} rows: give one per row, or None"
                )
        if self.columns is not None:
            object.__setattr__(self, "columns", as_names(self.columns, self.features))
        self._refuse_unusable()

    @classmethod
    def from_parts(cls, parts: Iterable[tuple[Any, Any]]) -> Shards:
        """One (X_i, y_i) per node, in the order of the nodes."""
        try:
            given = [(frames.as_pandas(X), y) for X, y in parts]
        except (TypeError, ValueError) as wrong:
            raise DataError(
                "these are no shards: give a list with one (X_i, y_i) pair per node, or deal out "
                "one data set with edgewise.split(X, y, nodes=...)"
            ) from wrong
        if not given:
            raise DataError("there are no nodes: give at least one (X, y) part")
        columns, frames_or_arrays = frames.in_one_order([X for X, _ in given])
        lines = [frames.lines_of(X) for X, _ in given]
        pairs = [
            (as_matrix(X), as_labels(y)) for X, (_, y) in zip(frames_or_arrays, given, strict=True)
        ]
        matrices, labels = [X for X, _ in pairs], [y for _, y in pairs]
        for node, (X, y) in enumerate(pairs):
            if X.shape[1] != matrices[0].shape[1]:
                raise DataError(
                    f"node {node} has {X.shape[1]} features and node 0 has "
                    f"{matrices[0].shape[1]}: give every node the same features"
                )
            if X.shape[0] != len(y):
                raise DataError(
                    f"node {node} has {X.shape[0]} rows and {len(y)} labels: give one label per row"
                )
            if is_sparse(X) != is_sparse(matrices[0]):
                raise DataError(
                    f"node {node} and node 0 are one dense, one sparse: make all parts one kind"
                )
            if _is_text(y) != _is_text(labels[0]):
                raise DataError(
                    f"node {node} and node 0 have one text labels, one numbers: use one kind"
                )
        counts = np.array([len(y) for y in labels], dtype=np.int64)
        known = [one for one in lines if one is not None]
        return cls(
            _stack(matrices, int(counts.sum())),
            np.concatenate(labels),
            counts,
            columns=columns,
            lines=np.concatenate(known) if len(known) == len(lines) else None,
        )

    @classmethod
    def build(
        cls,
        counts: ArrayLike,
        features: int,
        fill: Callable[[int, Array, Array], None],
        dtype: DTypeLike = np.float64,
    ) -> Shards:
        """Allocate once, then have fill(i, X_i, y_i) write each node's samples in place."""
        sizes = as_counts(counts)
        X = aligned_empty((int(sizes.sum()), features), dtype)
        y = aligned_empty((int(sizes.sum()),), dtype)
        ends = np.cumsum(sizes)
        for node, (start, end) in enumerate(zip(ends - sizes, ends, strict=True)):
            fill(node, X[start:end], y[start:end])
        return cls(X, y, sizes)

    @property
    def nodes(self) -> int:
        return len(self.counts)

    @property
    def features(self) -> int:
        return int(self.X.shape[1])

    @property
    def samples(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def first(self) -> NDArray[np.int64]:
        return np.cumsum(self.counts) - self.counts

    def __len__(self) -> int:
        return self.nodes

    def __getitem__(self, node: int) -> tuple[Matrix, Array]:
        if not -self.nodes <= node < self.nodes:
            raise IndexError(f"node {node} of {self.nodes}: nodes count from 0")
        start = int(self.first[node])
        rows = slice(start, start + int(self.counts[node]))
        return self.X[rows], self.y[rows]

    def __iter__(self) -> Iterator[tuple[Matrix, Array]]:
        return (self[node] for node in range(self.nodes))

    def of(self, nodes: Sequence[int] | NDArray[np.int64]) -> Shards:
        """The shards of some of the nodes."""
        rows = rows_of(self, nodes)
        order = None if self.order is None else self.order[rows]
        lines = None if self.lines is None else self.lines[rows]
        terms = {name: a[rows] for name in TERMS if (a := getattr(self, name)) is not None}
        about = (self.columns, lines, self.scaling, self.preparation)
        return Shards(self.X[rows], self.y[rows], self.counts[nodes], order, *about, **terms)

    def _refuse_unusable(self) -> None:
        """NaN, infinities, what is too large to compute with, and labels that are none."""
        if isinstance(self.X, np.ndarray):
            rows = unusable_rows(self.X)
        else:
            entries = unusable_rows(self.X.data)
            rows = np.unique(np.searchsorted(self.X.indptr, entries, side="right") - 1)
        without = np.flatnonzero(missing_labels(self.y))
        if len(rows):
            row = self._earliest(rows)
            one: Any = self.X[row : row + 1]
            values = (one.toarray() if is_sparse(one) else one)[0]
            column = int(np.argmin(np.abs(values) < LARGEST))
            named = column if self.columns is None else f'"{self.columns[column]}"'
            value = values[column]
            what = "a NaN" if np.isnan(value) else "an infinity"
            todo = "drop that sample or fill in the value"
            if np.isfinite(value):
                what, todo = f"{value:.3g}", f"give numbers below {LARGEST:g}, in a larger unit"
            raise DataError(
                f"X has {what} in column {named}, {self.place(row)}{more(rows)}: {todo}"
            )
        if len(without):
            row = self._earliest(without)
            what = {"f": "a NaN or an infinity"}.get(self.y.dtype.kind, "no label")
            raise DataError(
                f"y has {what} in {self.place(row)}{more(without)}: drop that sample or fill in "
                "its label"
            )

    def _earliest(self, rows: NDArray[np.int64]) -> int:
        """Of some rows the first in the file or the data set, where people will look."""
        origin = self.lines if self.lines is not None else self.order
        return int(rows[0] if origin is None else rows[np.argmin(np.asarray(origin)[rows])])

    def place(self, row: int) -> str:
        """A row of X as people find it: by its line in a file, or in what was split."""
        node = int(np.searchsorted(self.first, row, side="right")) - 1
        held = f" (node {node}, its row {row - self.first[node]})" if self.nodes > 1 else ""
        if self.lines is not None:
            return f"line {self.lines[row]}{held}"
        at = f"row {row}" if self.order is None else f"row {self.order[row]} of the data set"
        return f"{at}{held}"


def more(rows: NDArray[np.int64]) -> str:
    return f" and in {len(rows) - 1} more" if len(rows) > 1 else ""


def rows_of(shards: Any, nodes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows that these nodes hold, node after node."""
    ends = shards.first + shards.counts
    return np.concatenate([np.arange(shards.first[i], ends[i]) for i in nodes])


def as_counts(counts: Any) -> NDArray[np.int64]:
    sizes = np.asarray(counts)
    if sizes.ndim != 1 or len(sizes) == 0 or sizes.dtype.kind not in "iu":
        raise DataError(
            f"counts is {sizes.dtype} of shape {sizes.shape}: give one whole number per node, "
            "and at least one node"
        )
    if sizes.min() < 1:
        node = int(np.argmax(sizes < 1))
        raise DataError(
            f"node {node} has {sizes[node]} samples: leave it out, or give it at least one"
        )
    return sizes.astype(np.int64)


def as_names(names: Iterable[Any], features: int) -> tuple[str, ...]:
    """One name per column, each of them once."""
    given = tuple(map(str, names))
    if len(given) != features:
        raise DataError(f"{len(given)} columns are named and X has {features}: name every one")
    twice = next((name for name in given if given.count(name) > 1), None)
    if twice is not None:
        raise DataError(f'two columns are called "{twice}": give every column a name of its own')
    return given


def _is_text(y: Array) -> bool:
    return y.dtype.kind in "US"


def _stack(matrices: list[Any], rows: int) -> Matrix:
    dtype = np.result_type(*(X.dtype for X in matrices))
    if is_sparse(matrices[0]):
        return as_matrix(sp.vstack(matrices, format="csr", dtype=dtype))
    X = aligned_empty((rows, matrices[0].shape[1]), dtype)
    return np.concatenate(matrices, out=X)

"""The samples of all nodes in one flat allocation, node after node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from edgewise.errors import DataError

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = "Array | sp.csr_array[Any]"

ALIGNMENT = 64  # what JAX asks of host memory that it is to use in place
BLOCK_BYTES = 8 << 20


@dataclass(frozen=True, eq=False)
class Shards:
    """Node i holds rows first[i] : first[i] + counts[i] of X and y.

    X is a C-contiguous float32 or float64 array, kept without a copy if it already is one (so do
    not change it afterwards), or a CSR array. Row r is row order[r] of the data set that was
    split; None says: as given.
    Labels are kept as they are, numbers or text.
    """

    X: Matrix
    y: Array
    counts: NDArray[np.int64]
    order: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
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
        if self.order is not None and len(self.order) != rows:
            raise DataError(
                f"order has {len(self.order)} entries for {rows} rows: give one per row, or None"
            )
        self._refuse_non_finite()

    @classmethod
    def from_parts(cls, parts: Iterable[tuple[Any, Any]]) -> Shards:
        """One (X_i, y_i) per node, in the order of the nodes."""
        try:
            given = [(X, y) for X, y in parts]
        except (TypeError, ValueError) as wrong:
            raise DataError(
                "these are no shards: give a list with one (X_i, y_i) pair per node, or deal out "
                "one data set with edgewise.split(X, y, nodes=...)"
            ) from wrong
        pairs = [(as_matrix(X), as_labels(y)) for X, y in given]
        if not pairs:
            raise DataError("there are no nodes: give at least one (X, y) part")
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
        return cls(_stack(matrices, int(counts.sum())), np.concatenate(labels), counts)

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
        return Shards(self.X[rows], self.y[rows], self.counts[nodes], order)

    def _refuse_non_finite(self) -> None:
        if isinstance(self.X, np.ndarray):
            row = _first_non_finite(self.X)
        else:
            row = _first_non_finite(self.X.data)
            if row is not None:
                row = int(np.searchsorted(self.X.indptr, row, side="right")) - 1
        what = "X"
        if row is None and self.y.dtype.kind == "f":
            row, what = _first_non_finite(self.y), "y"
        if row is not None:
            node = int(np.searchsorted(self.first, row, side="right")) - 1
            raise DataError(
                f"{what} has a NaN or an infinity in row {row} (node {node}, its row "
                f"{row - self.first[node]}): drop that sample or fill in the value"
            )


def rows_of(shards: Any, nodes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows that these nodes hold, node after node."""
    ends = shards.first + shards.counts
    return np.concatenate([np.arange(shards.first[i], ends[i]) for i in nodes])


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """np.empty, but at an address that JAX on a CPU can use without a copy."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(kind).reshape(shape)


def row_blocks(X: Array) -> Iterator[slice]:
    """Slices over the rows of X, each of about BLOCK_BYTES as float64."""
    step = max(1, BLOCK_BYTES // (8 * max(1, int(np.prod(X.shape[1:])))))
    return (slice(start, start + step) for start in range(0, len(X), step))


def is_sparse(X: Any) -> bool:
    return bool(sp.issparse(X))


def as_matrix(X: Any) -> Matrix:
    """X as C-contiguous floats or CSR; what already is so comes back without a copy."""
    if is_sparse(X):
        csr = X.tocsr()
        data = csr.data.astype(float_dtype(csr.dtype), copy=False)
        if csr.shape[1] == 0:
            raise DataError("X has no columns: give at least one feature")
        fits = max(csr.nnz, csr.shape[1]) <= np.iinfo(np.int32).max
        index = np.int32 if fits else np.int64
        indices, indptr = (a.astype(index, copy=False) for a in (csr.indices, csr.indptr))
        return sp.csr_array((data, indices, indptr), shape=csr.shape)
    dense = dense_view(X)
    dtype = float_dtype(dense.dtype)
    if dense.dtype == dtype and dense.flags.c_contiguous:
        return dense
    converted = aligned_empty(dense.shape, dtype)
    converted[...] = dense
    return converted


def dense_view(X: Any) -> Array:
    """X as a 2-D array of whatever it holds."""
    if isinstance(X, np.ma.MaskedArray):
        raise DataError("X is a masked array, its mask would be lost: fill or drop what it masks")
    try:
        dense = np.asarray(X)
    except ValueError as ragged:
        raise DataError("X is ragged: give every row the same number of features") from ragged
    if dense.ndim != 2 or dense.shape[1] == 0:
        raise DataError(
            f"X has shape {dense.shape}: give one row per sample and at least one column, "
            "X.reshape(-1, 1) for a single feature"
        )
    return dense


def float_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The float type that X of this type is held in."""
    if dtype in (np.float32, np.float64):
        return dtype.newbyteorder("=")
    if dtype.kind in "buif":
        return np.dtype(np.float64)
    raise DataError(f"X holds {dtype} values: encode every column as real numbers first")


def as_labels(y: Any) -> Array:
    """y as one number or one text per sample."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise DataError(f"y has shape {labels.shape}: give one label per sample, say y.ravel()")
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
        return labels.astype(str)  # how pandas hands over text
    if labels.dtype.kind not in "buifUS":
        raise DataError(
            f"y holds {labels.dtype} values: give real numbers or text, with no label missing"
        )
    return labels


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


def _is_text(y: Array) -> bool:
    return y.dtype.kind in "US"


def _stack(matrices: list[Any], rows: int) -> Matrix:
    dtype = np.result_type(*(X.dtype for X in matrices))
    if is_sparse(matrices[0]):
        return as_matrix(sp.vstack(matrices, format="csr", dtype=dtype))
    X = aligned_empty((rows, matrices[0].shape[1]), dtype)
    return np.concatenate(matrices, out=X)


def _first_non_finite(values: Array) -> int | None:
    """The first row of values with a NaN or an infinity in it."""
    for rows in row_blocks(values):
        block = values[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum()
        # A finite sum has finite terms only, and needs no temporary. Finite terms may overflow it.
        if not np.isfinite(total):
            bad = ~np.isfinite(block.reshape(len(block), -1)).all(axis=1)
            if bad.any():
                return int(rows.start + np.argmax(bad))
    return None

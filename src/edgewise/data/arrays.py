"""What is handed in as X and y, as arrays that JAX can use in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from edgewise.data import frames
from edgewise.errors import DataError

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = "Array | sp.csr_array[Any]"

ALIGNMENT = 64  # what JAX asks of host memory that it is to use in place
BLOCK_BYTES = 8 << 20
LARGEST = 1e100  # its square, times many rows and more squares, is still a number


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
    if frames.is_frame(X):
        X = frames.as_array(X)
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
    """y as one number or one text per sample; NaN where a number is missing."""
    if frames.is_frame(y) and y.shape[1] == 1:
        y = y.iloc[:, 0]
    # of pandas, which has kinds of its own
    labels = np.asarray(frames.as_series(y) if hasattr(y, "isna") and hasattr(y, "dtype") else y)
    if labels.ndim != 1:
        raise DataError(f"y has shape {labels.shape}: give one label per sample, say y.ravel()")
    if labels.dtype.kind == "O":
        labels = _of_objects(labels)
    if labels.dtype.kind not in "buifUS":
        raise DataError(f"y holds {labels.dtype} values: give real numbers or text")
    return labels


def _of_objects(labels: Array) -> Array:
    """How pandas hands over text, and what has gaps."""
    missing = np.fromiter(map(is_absent, labels), bool, len(labels))
    if all(isinstance(label, str) for label in labels[~missing]):
        if missing.any() and not missing.all():
            labels = np.where(missing, "", labels)  # no label, as an empty text is
        return labels.astype(str) if not missing.all() else np.full(len(labels), np.nan)
    try:
        return np.where(missing, np.nan, labels).astype(np.float64)
    except (TypeError, ValueError):
        return labels


def is_absent(value: Any) -> bool:
    """None, NaN, pandas.NA or pandas.NaT."""
    kind = type(value).__name__
    return value is None or kind in ("NAType", "NaTType") or ("float" in kind and value != value)


def missing_labels(y: Array) -> NDArray[np.bool_]:
    """Where there is no label: an empty text, a NaN or an infinity."""
    if y.dtype.kind in "US":
        return np.asarray(np.char.strip(y) == y.dtype.type())
    return ~np.isfinite(y) if y.dtype.kind == "f" else np.zeros(len(y), bool)


def unusable_rows(X: Array) -> NDArray[np.int64]:
    """The rows of X with a NaN, an infinity, or a number that cannot be squared."""
    found = []
    for rows in row_blocks(X):
        block = X[rows]
        flat = block.reshape(-1)
        with np.errstate(all="ignore"):
            squares = flat @ flat
        # A finite sum of squares has small terms only, and needs no temporary.
        if not squares < np.finfo(block.dtype).max / 1e3:
            sound = np.abs(block.reshape(len(block), -1)) < np.float64(LARGEST)
            found.append(rows.start + np.flatnonzero(~sound.all(axis=1)))
    return np.concatenate(found) if found else np.zeros(0, np.int64)

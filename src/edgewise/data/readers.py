"""LIBSVM text, read block by block into arrays allocated once, and npz files."""

from __future__ import annotations

import zipfile
from os import PathLike

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from edgewise.data.arrays import Array, Matrix, aligned_empty, as_labels, as_matrix, float_dtype
from edgewise.data.text import (
    UNREADABLE,
    Malformed,
    libsvm_blocks,
    malformed_libsvm,
    measure_libsvm,
    missing,
    parse_libsvm,
)
from edgewise.errors import DataError

DENSE_ABOVE = 0.5  # CSR takes 12 bytes per float64 entry where dense takes 8


def read_libsvm(
    path: str | PathLike[str],
    features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool | None = None,
) -> tuple[Matrix, Array]:
    """`label index:value ...` per line, indices from 1 and ascending; `#` and `qid:` are skipped.

    The file is read twice, to measure and to fill, so that nothing is ever held twice.
    """
    kind = float_dtype(np.dtype(dtype))
    rows, entries, largest = measure_libsvm(path)
    if rows == 0:
        raise DataError(f"{path} holds no samples: give a file with at least one line of data")
    if features is None and entries == 0:
        raise DataError(f"{path} holds labels only: give the number of columns as `features`")
    columns = max(1, largest) if features is None else features
    if columns < max(1, largest):
        raise DataError(
            f"features={features} is too few for {path}: give features={max(1, largest)} or more"
        )
    if dense is None:
        dense = entries > DENSE_ABOVE * rows * columns

    y = np.empty(rows)
    if dense:
        X = aligned_empty((rows, columns), kind)
        X.fill(0)
    else:
        wide = max(columns, entries) > np.iinfo(np.int32).max
        data = aligned_empty((entries,), kind)
        indices = aligned_empty((entries,), np.int64 if wide else np.int32)
        indptr = np.zeros(rows + 1, dtype=indices.dtype)
    row = entry = 0
    for line, block in libsvm_blocks(path):
        try:
            parsed = parse_libsvm(block)
        except Malformed:
            raise malformed_libsvm(path, line, block) from None
        here = slice(row, row + len(parsed.labels))
        y[here] = parsed.labels
        if dense:
            row_of = np.repeat(np.arange(here.start, here.stop), parsed.pairs)
            X[row_of, parsed.indices - 1] = parsed.values
        else:
            stored = slice(entry, entry + len(parsed.values))
            data[stored] = parsed.values
            indices[stored] = parsed.indices - 1
            indptr[here.start + 1 : here.stop + 1] = entry + np.cumsum(parsed.pairs)
        row, entry = here.stop, entry + len(parsed.values)
    return (X if dense else sp.csr_array((data, indices, indptr), shape=(rows, columns))), y


def read_npz(
    path: str | PathLike[str],
    features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool | None = None,
    labelled: bool = True,
) -> tuple[Matrix, Array]:
    """Arrays X and y, or y beside data, indices, indptr and shape of a CSR matrix; without y all
    labels are NaN unless they must be there."""
    kind = float_dtype(np.dtype(dtype))
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise missing(path) from None
    except (*UNREADABLE, zipfile.BadZipFile, ValueError) as error:
        raise DataError(
            f"{path} cannot be read ({error}): save it again with numpy.savez"
        ) from None
    if not labelled and arrays.keys() & {"X", "shape"}:
        rows = arrays["X"].shape[:1] if "X" in arrays else arrays["shape"][:1]
        arrays.setdefault("y", np.full(rows, np.nan))
    if {"X", "y"} <= arrays.keys():
        float_dtype(arrays["X"].dtype)
        X = as_matrix(arrays["X"].astype(kind, copy=False))
    elif {"data", "indices", "indptr", "shape", "y"} <= arrays.keys():
        float_dtype(arrays["data"].dtype)
        data = arrays["data"].astype(kind, copy=False)
        parts = (data, arrays["indices"], arrays["indptr"])
        X = as_matrix(sp.csr_array(parts, shape=tuple(arrays["shape"])))
    else:
        raise DataError(
            f"{path} holds {', '.join(arrays) or 'nothing'}: save arrays X and y, or y with the "
            "data, indices, indptr and shape of a CSR matrix"
        )
    if features is not None and features != X.shape[1]:
        raise DataError(f"{path} has {X.shape[1]} features, not {features}: leave `features` out")
    return as_wanted(X, dense), as_labels(arrays["y"])


def as_wanted(X: Matrix, dense: bool | None) -> Matrix:
    if isinstance(X, np.ndarray):
        return sp.csr_array(X) if dense is False else X
    if dense or (dense is None and X.nnz > DENSE_ABOVE * X.shape[0] * X.shape[1]):
        return X.toarray(out=aligned_empty(X.shape, X.dtype))
    return X

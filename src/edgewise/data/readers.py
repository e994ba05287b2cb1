"""Data files into (X, y), read block by block into arrays allocated once."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from edgewise.data.shards import Array, Matrix, aligned_empty, as_labels, as_matrix, float_dtype
from edgewise.data.text import (
    OPENERS,
    UNREADABLE,
    Malformed,
    libsvm_blocks,
    line_blocks,
    malformed_libsvm,
    measure_libsvm,
    missing,
    parse_libsvm,
)
from edgewise.errors import DataError

DENSE_ABOVE = 0.5  # CSR takes 12 bytes per float64 entry where dense takes 8


def load(
    path: str | PathLike[str],
    features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool | None = None,
    label: str = "last",
) -> tuple[Matrix, Array]:
    """Read X and y by the suffix: .npz, .csv, and everything else as LIBSVM text.

    .gz, .bz2 and .xz may follow the suffix. X is CSR where at most half of it is stored, unless
    `dense` says otherwise. `features` is the number of columns where the file cannot tell: LIBSVM
    leaves out trailing zeros. `label` names the label column of a CSV file.
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in OPENERS]
    match suffixes[-1:]:
        case [".npz"]:
            return read_npz(path, features, dtype, dense)
        case [".csv"]:
            return read_csv(path, features, dtype, dense, label)
        case _:
            return read_libsvm(path, features, dtype, dense)


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


def read_csv(
    path: str | PathLike[str],
    features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool | None = None,
    label: str = "last",
) -> tuple[Matrix, Array]:
    """Numbers separated by commas, with or without a header; the labels may be text.

    `label` is "last", "first", or the label column's name in the header. Read twice, like LIBSVM.
    """
    kind = float_dtype(np.dtype(dtype))
    layout = _measure_csv(path, label)
    if features is not None and features != layout.columns - 1:
        raise DataError(
            f"{path} has {layout.columns - 1} features, not {features}: leave `features` out"
        )
    codes: dict[str, int] = {}
    encode: dict[int | str, Callable[[str], int]] = {
        layout.label: lambda text: codes.setdefault(text, len(codes))
    }
    X = aligned_empty((layout.rows, layout.columns - 1), kind)
    y = np.empty(layout.rows)
    row, header = 0, layout.header
    for line, block in line_blocks(path):
        if header and header in block:
            block, header = block.replace(header, b"", 1), b""
        if not block.strip():
            continue
        try:
            table = np.loadtxt(
                io.StringIO(block.decode()),
                delimiter=",",
                comments=None,
                quotechar='"',
                ndmin=2,
                converters=encode if layout.text_labels else None,
            )
        except ValueError:
            raise _malformed_csv(path, line, block, layout) from None
        if table.shape[1] != layout.columns:
            raise _malformed_csv(path, line, block, layout)
        here = slice(row, row + len(table))
        X[here] = np.delete(table, layout.label, axis=1)
        y[here] = table[:, layout.label]
        row = here.stop
    labels = np.array(list(codes))[y.astype(np.int64)] if layout.text_labels else y
    return _as_wanted(X, dense), labels


def read_npz(
    path: str | PathLike[str],
    features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool | None = None,
) -> tuple[Matrix, Array]:
    """Arrays X and y, or y beside data, indices, indptr and shape of a CSR matrix."""
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
    return _as_wanted(X, dense), as_labels(arrays["y"])


def _as_wanted(X: Matrix, dense: bool | None) -> Matrix:
    if isinstance(X, np.ndarray):
        return sp.csr_array(X) if dense is False else X
    if dense or (dense is None and X.nnz > DENSE_ABOVE * X.shape[0] * X.shape[1]):
        return X.toarray(out=aligned_empty(X.shape, X.dtype))
    return X


class _CsvLayout(NamedTuple):
    rows: int
    columns: int
    label: int
    header: bytes  # the line as it is, empty where there is none
    text_labels: bool


def _measure_csv(path: str | PathLike[str], label: str) -> _CsvLayout:
    top: list[bytes] = []
    rows = 0
    for _, block in line_blocks(path):
        lines = [line for line in block.splitlines() if line.strip()]
        top += lines[: 2 - len(top)]
        rows += len(lines)
    if not top:
        raise DataError(f"{path} holds no samples: give a file with at least one line of data")
    fields = list(csv.reader(line.decode(errors="replace") for line in top))
    columns = len(fields[0])
    if columns < 2:
        raise DataError(f"{path} has one column: give features and a label, separated by commas")
    if label in ("first", "last"):
        at = 0 if label == "first" else columns - 1
        numeric = [_is_number(field) for field in fields[0]]
        has_header = not all(numeric[:at] + numeric[at + 1 :]) or (
            not numeric[at] and len(fields[-1]) == columns and _is_number(fields[-1][at])
        )
    elif label in fields[0]:
        at, has_header = fields[0].index(label), True
    else:
        raise DataError(
            f'{path} has no column {label!r}: give label="first", "last" or one of '
            f"{', '.join(fields[0])}"
        )
    if has_header and rows == 1:
        raise DataError(f"{path} has a header and no samples: give at least one line of data")
    sample = fields[1] if has_header else fields[0]
    text_labels = len(sample) == columns and not _is_number(sample[at])
    return _CsvLayout(rows - has_header, columns, at, top[0] if has_header else b"", text_labels)


def _malformed_csv(
    path: str | PathLike[str], line: int, block: bytes, layout: _CsvLayout
) -> DataError:
    for number, text in enumerate(block.decode(errors="replace").split("\n"), start=line):
        fields = next(csv.reader([text]), [])
        if fields and len(fields) != layout.columns:
            return DataError(
                f"{path}, line {number} has {len(fields)} columns and the first has "
                f"{layout.columns}: give every line the same"
            )
        for column, field in enumerate(fields):
            is_text_label = layout.text_labels and column == layout.label
            if not is_text_label and not _is_number(field):
                return DataError(
                    f"{path}, line {number}, column {column + 1}: {field!r} is not a number: "
                    "encode text as numbers and fill in what is missing"
                )
    return DataError(f"{path}, from line {line} on: not a table of numbers: check the quotes")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

"""Any data file into X and y, by its suffix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from edgewise.data.arrays import Array, Matrix, aligned_empty, float_dtype
from edgewise.data.arrow import ARROW, PARQUET
from edgewise.data.preparation import Preparation, prepare
from edgewise.data.readers import as_wanted, read_libsvm, read_npz
from edgewise.data.row_terms import RowTerms, TermColumns
from edgewise.data.shards import TERMS, as_names
from edgewise.data.sniffing import head_of
from edgewise.data.tables import TEXT, read_table
from edgewise.data.text import OPENERS
from edgewise.errors import DataError

LIBSVM = (".svm", ".libsvm", ".svmlight", ".t", ".tr", ".train", ".test", ".scale", ".binary")
EITHER = (".txt", ".dat", ".data")  # LIBSVM text or a table, by the first line
KNOWN = (".npz", *TEXT, *PARQUET, *ARROW, *LIBSVM, *EITHER)
READ = (
    "tables as .csv, .tsv, .parquet, .feather or .arrow, LIBSVM text as .svm or .libsvm, and .npz; "
    ".txt, .dat and .data as they look; text also with .gz, .bz2 or .xz behind"
)
ADVICE = {
    ".json": "pandas.read_json(path).to_csv(...) makes a table",
    ".jsonl": "pandas.read_json(path, lines=True).to_csv(...) makes a table",
    ".ndjson": "pandas.read_json(path, lines=True).to_csv(...) makes a table",
    ".xlsx": "save the sheet as CSV",
    ".xls": "save the sheet as CSV",
    ".ods": "save the sheet as CSV",
    ".npy": "numpy.savez(path, X=X, y=y) keeps labels beside the features",
    ".mat": "numpy.savez(path, X=X, y=y) of what scipy.io.loadmat gives",
    ".zip": "unpack it",
    ".tar": "unpack it",
    ".7z": "unpack it",
}
PAIRS = re.compile(rb"[^\s:,;]+(\s+qid:\S+)?(\s+\d+:\S*)+")
NO_TERMS = TermColumns()


class Samples(NamedTuple):
    """What a file holds."""

    X: Matrix
    y: Array
    columns: tuple[str, ...] | None = None
    lines: NDArray[np.int64] | None = None  # of the file, that each row began in
    preparation: Preparation | None = None
    terms: RowTerms = RowTerms()


def load(
    path: str | PathLike[str],
    features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool | None = None,
    label: str = "last",
    missing: str | None = None,
    encode: str | None = None,
    ignore: Sequence[str] = (),
) -> tuple[Matrix, Array]:
    """Read X and y by the suffix: tables (.csv, .tsv, .parquet, .feather, .arrow), .npz, and LIBSVM
    text (.svm, .libsvm, or no suffix).

    .gz, .bz2 and .xz may follow the suffix. X is CSR where at most half of it is stored, unless
    `dense` says otherwise. `features` is the number of columns where the file cannot tell: LIBSVM
    leaves out trailing zeros. `label`, `missing`, `encode` and `ignore` are of tables, as `prepare`
    takes them. To keep the columns' names, take `read_table` and `prepare`.
    """
    samples = read_samples(path, features, dtype, dense, label, missing, encode, ignore)
    return samples.X, samples.y


def read_csv(
    path: str | PathLike[str],
    features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool | None = None,
    label: str = "last",
) -> tuple[Matrix, Array]:
    """Numbers in columns, whatever the file is called; the labels may be text.

    `label` is "last", "first", or the label column's name in the header.
    """
    samples = _of_table(path, features, dtype, dense, label)
    return samples.X, samples.y


def read_samples(
    path: str | PathLike[str],
    features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool | None = None,
    label: str = "last",
    missing: str | None = None,
    encode: str | None = None,
    ignore: Sequence[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    na: Sequence[str] = (),
    labelled: bool = True,
    terms: TermColumns = NO_TERMS,
) -> Samples:
    """What `load` reads, with names, lines and what was done, as far as the file knows them.
    `labelled`: whether an npz must have labels; without them they are NaN. `terms`: a table's
    columns of offsets, exposures and weights; an npz may hold "offset" and "weight"."""
    kind = kind_of_file(path)
    if kind == "table":
        return _of_table(
            path,
            features,
            dtype,
            dense,
            label,
            missing,
            encode,
            ignore,
            separator,
            decimal,
            encoding,
            header,
            na,
            terms,
        )
    if missing or encode or ignore or na:
        raise DataError(
            f"{path} is {kind}: missing, encode, ignore and na go with tables (CSV, Parquet, Arrow)"
        )
    if terms.names:
        raise DataError(
            f"{path} is {kind}: columns of offsets, exposures and weights go with tables (CSV, "
            "Parquet, Arrow)"
        )
    if kind == "libsvm":
        return Samples(*read_libsvm(path, features, dtype, dense))
    X, y = read_npz(path, features, dtype, dense, labelled)
    with np.load(path, allow_pickle=False) as file:  # which `edgewise split` may have written
        names = as_names(file["columns"], X.shape[1]) if "columns" in file.files else None
        lines = file["lines"] if "lines" in file.files else None
        held = RowTerms(*(file[k] if k in file.files else None for k in TERMS))
    return Samples(X, y, names, lines, terms=held)


def kind_of_file(path: str | PathLike[str]) -> str:
    """table, npz or libsvm; raises DataError where Edgewise reads no such file."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in OPENERS]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".npz":
        return "npz"
    if suffix in TEXT + PARQUET + ARROW:
        return "table"
    if not suffix or suffix in LIBSVM:
        return "libsvm"
    if suffix in ADVICE:
        raise DataError(f"{path} is not read: {ADVICE[suffix]} (Edgewise reads {READ})")
    lines = [line.strip() for line in head_of(path)[0].split(b"\n")]
    first = next((line for line in lines if line and not line.startswith(b"#")), b"")
    pairs = PAIRS.match(first.split(b"#")[0])
    if pairs or (suffix in EITHER and len(first.split()) < 2 and not re.search(rb"[,;|]", first)):
        return "libsvm"
    if suffix in EITHER:
        return "table"
    raise DataError(f"{path} is not read, for its suffix {suffix}: Edgewise reads {READ}")


def _of_table(
    path: str | PathLike[str],
    features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool | None = None,
    label: str = "last",
    missing: str | None = None,
    encode: str | None = None,
    ignore: Sequence[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    na: Sequence[str] = (),
    terms: TermColumns = NO_TERMS,
) -> Samples:
    kind = float_dtype(np.dtype(dtype))
    named = {label, *ignore, *terms.names} - {"first", "last"}
    table = read_table(
        path,
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        header=header,
        names=named,
        na=na,
    )
    every = table.index
    table, of_rows = terms.taken_from(table, label)
    frame, y, preparation = prepare(table, label, missing, encode, ignore, na)
    names = {name: getattr(terms, name) for name in ("offset", "exposure", "trials")}
    preparation = replace(preparation, **names)
    of_rows = of_rows.at(every.get_indexer(frame.index))
    y = of_rows.rates(y, f"{path}: ")
    if features is not None and features != frame.shape[1]:
        raise DataError(
            f"{path} has {frame.shape[1]} features, not {features}: leave `features` out"
        )
    X = frame.to_numpy()
    if X.dtype != kind:
        X, given = aligned_empty(X.shape, kind), X
        X[...] = given
    lines = np.asarray(frame.index, np.int64) if frame.index.name == "line" else None
    return Samples(as_wanted(X, dense), y, preparation.names, lines, preparation, of_rows)

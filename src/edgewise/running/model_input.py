"""Features that a fitted model is asked about: columns by name, in the model's order."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from edgewise.data import frames
from edgewise.data.arrays import Matrix, is_sparse
from edgewise.data.preparation import Preparation
from edgewise.data.row_terms import TermColumns
from edgewise.errors import DataError

NAMED = 6  # columns in a message


def as_features(
    X: Any,
    columns: Sequence[str] | None,
    count: int,
    names: Sequence[str] | None = None,
) -> Matrix:
    """(N, count) numbers in the order of `columns`, which are the model's.

    A table with names, or an array with `names`, is brought into that order, and refused where it
    lacks a column or has one more. Without names on either side only the number of columns can be
    checked.
    """
    place = partial(frames.place, X) if frames.is_frame(X) else "row {} (rows count from 0)".format
    labels: Sequence[Any] | None = names
    if names is None:
        labels = labels_of(X, columns)
        names = None if labels is None else [str(label) for label in labels]
    if names is not None and labels is not None and columns is not None:
        require_same(names, columns)
        order = dict(zip(names, range(len(names)), strict=True))
        at = [order[name] for name in columns]
        X = X[:, at] if isinstance(X, np.ndarray) else X[[labels[j] for j in at]]
        names = columns
    elif columns is not None:
        warnings.warn(
            "the data have no column names and the model has: only their number was checked, so "
            f"they must come in the order {listed(columns)}",
            UserWarning,
            stacklevel=4,
        )
        names = columns
    matrix = as_numbers(X, names, place)
    if matrix.shape[1] != count:
        raise DataError(
            f"the data have {matrix.shape[1]} columns, the model has {count}: give those that it "
            "was fitted to"
        )
    refuse_missing(matrix, names, place)
    return matrix


def without_terms(
    X: Any, preparation: Preparation | None, offset: Any, exposure: Any
) -> tuple[Any, Any]:
    """X without the columns that are no features, and what they, or `offset` and the logarithm of
    `exposure`, add to margins."""
    own = TermColumns() if preparation is None else preparation.terms
    X, added = frames.as_pandas(X), None
    trials = None if preparation is None else preparation.trials
    if trials is not None and frames.is_frame(X) and trials in map(str, X.columns):
        X = X.drop(columns=frames.by_name(X, (trials,)))
    if offset is not None:
        added = np.asarray(offset, np.float64)
    if exposure is not None:
        each = np.asarray(exposure, np.float64)
        if not (each > 0).all():
            raise DataError("exposure must be positive: leave out what was not exposed")
        added = np.log(each) if added is None else added + np.log(each)
    if not own.names:
        return X, added
    held = [str(name) for name in X.columns] if frames.is_frame(X) else []
    there = TermColumns(*(name if name in held else None for name in own))
    if added is not None:
        return X.drop(columns=frames.by_name(X, tuple(there.names))) if there.names else X, added
    if there != own:
        raise DataError(
            f"the data lack {listed([n for n in own.names if n not in held])}, which the model was "
            "fitted with: give that column, or offset= or exposure= (exposure=1 for rates)"
        )
    X, terms = own.taken_from(X)
    return X, terms.offset


def is_raw(X: Any, preparation: Preparation, columns: Sequence[str] | None) -> bool:
    """Whether X is a table that the preparation is still to be done to; raises DataError where it
    has columns that the preparation does not know."""
    plain = not (preparation.levels or preparation.fills or preparation.indicated)
    if plain or not frames.is_frame(X):
        return False
    names = [str(label) for label in X.columns]
    if columns is not None and set(names) == set(columns):
        return set(names) == set(preparation.columns)  # it changes no names: it may fill in cells
    require_same(names, preparation.columns)
    for label, name in zip(X.columns, names, strict=True):
        gaps = np.flatnonzero(X[label].isna())
        if len(gaps) and name not in preparation.fills:
            raise missing_cell(f'column "{name}"', frames.place(X, int(gaps[0])), "missing")
    return True


def missing_cell(column: str, row: str, what: str) -> DataError:
    return DataError(f"{column}, {row} is {what}: fill it in, or leave the row out")


def labels_of(X: Any, columns: Sequence[str] | None) -> Sequence[Any] | None:
    """What a table calls its columns; None where it has no names. Numbers are
    none, as pandas makes them up, unless the model knows its columns by them."""
    labels = None if is_sparse(X) else getattr(X, "columns", None)
    if labels is None or len(labels) != X.shape[1]:
        return None
    named = any(isinstance(label, str) for label in labels)
    return list(labels) if named or {str(k) for k in labels} == set(columns or ()) else None


def require_same(names: Sequence[str], columns: Sequence[str]) -> None:
    """Raises DataError where the data have not just the model's columns, in whatever order."""
    have, known = set(names), set(columns)
    if len(have) < len(names):
        twice = sorted({name for name in names if list(names).count(name) > 1})
        raise DataError(f"the data have {listed(twice)} more than once: give each column once")
    lacking = [name for name in columns if name not in have]
    unknown = [name for name in names if name not in known]
    if lacking or unknown:
        said = [f"lack {listed(lacking)}"] if lacking else []
        said += [f"have {listed(unknown)}, which the model does not know"] if unknown else []
        raise DataError(f"the data {' and '.join(said)}: give the columns that it was fitted to")


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(f'"{name}"' for name in names[:NAMED]) + more


def as_numbers(X: Any, names: Sequence[str] | None, place: Callable[[int], str]) -> Matrix:
    if is_sparse(X):
        return X.tocsr()
    if frames.is_frame(X) and not all(dtype.kind in "buif" for dtype in X.dtypes):
        X = X.to_numpy(object)
    elif not isinstance(X, np.ndarray) and hasattr(X, "to_numpy"):
        X = X.to_numpy()
    try:
        dense = np.asarray(X)
    except ValueError as ragged:
        raise DataError("the data are ragged: give every row the same columns") from ragged
    if dense.ndim != 2:
        raise DataError(
            f"the data have shape {dense.shape}: give one row per sample, X.reshape(1, -1) for one"
        )
    return dense if dense.dtype.kind in "buif" else numbers_in(dense, names, place)


def numbers_in(
    X: np.ndarray, names: Sequence[str] | None, place: Callable[[int], str]
) -> np.ndarray:
    """From objects and text; what is empty, None or pandas' NA becomes NaN."""
    made = np.empty(X.shape)
    for i, j in np.ndindex(X.shape):
        value = X[i, j]
        try:
            made[i, j] = np.nan if is_missing(value) else float(value)
        except (TypeError, ValueError):
            raise DataError(
                f"{called(names, j)}, {place(i)} holds {value!r}: the model takes numbers"
            ) from None
    return made


def is_missing(value: Any) -> bool:
    """pandas' NA and NaT too, without pandas."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def refuse_missing(X: Matrix, names: Sequence[str] | None, place: Callable[[int], str]) -> None:
    if not isinstance(X, np.ndarray):
        bad = np.flatnonzero(~np.isfinite(X.data))
        if not len(bad):
            return
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        column, value = int(X.indices[bad[0]]), X.data[bad[0]]
    else:
        if np.isfinite(X).all():
            return
        row, column = (int(k) for k in np.argwhere(~np.isfinite(X))[0])
        value = X[row, column]
    what = "missing" if np.isnan(value) else "infinite"
    raise missing_cell(called(names, column), place(row), what)


def called(names: Sequence[str] | None, column: int) -> str:
    return f"column {column}" if names is None else f'column "{names[column]}"'

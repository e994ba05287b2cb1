"""pandas' frames as arrays: what a column holds, what it is called, and where a row comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from numbers import Number
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgewise.errors import DataError

Frame: TypeAlias = Any  # a pandas.DataFrame, which is not imported before somebody has one
Column: TypeAlias = Any

LINE = "line"  # what an index is called that counts the lines of a file
SAMPLE = 1000  # texts that are looked at to say whether a column holds dates
DATE = re.compile(
    r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d.*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})([T ]\d.*)?"
    r"|\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4}|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?"
    r"|([A-Za-z]{2,9},? )?(\d{1,2}\.? )?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[.]?"
    r"( \d{1,2})?,? \d{4}( \d.*)?|\d{4}-(0[1-9]|1[0-2]))\s*",
    re.IGNORECASE,
)
COMMA = re.compile(r"\s*[+-]?([\d.]*,\d+|\d{1,3}(,\d{3})+(\.\d+)?)\s*")
UNIT = re.compile(r"\s*([€$£¥] ?[+-]?\d[\d.,]*|[+-]?\d[\d.,]* ?(%|[^\W\d_]{1,6}|[€$£¥°]))\s*")
EARLIEST, LATEST, FEW_DAYS = 19000101, 21001231, 5
REMEDIES = {
    "date": "turn them into numbers, days since a day say, or leave the column out with "
    'ignore=["{name}"] (--ignore on the command line)',
    "text": 'give encode="onehot" (--encode onehot) for a column of zeros and ones per level, '
    'or leave it out with ignore=["{name}"] (--ignore)',
    "other": "turn it into columns of numbers first",
}
NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty"}
DATES = {"datetime64", "datetime", "date", "time", "timedelta64", "timedelta", "period"}
TEXTS = {"string", "mixed-integer", "mixed", "bytes", "categorical"}


def is_frame(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "columns")


def as_pandas(X: Any) -> Any:
    """A table of polars or Arrow as pandas' frame, so that columns keep their names; anything else
    as it is."""
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):  # polars', not yet computed
        X = X.collect()
    if is_frame(X) or not (hasattr(X, "to_pandas") and hasattr(X, "columns")):
        return X
    try:
        return X.to_pandas()
    except ImportError as lacking:  # polars goes by way of Arrow
        raise DataError(
            f"a {type(X).__module__.partition('.')[0]} table is read by way of Arrow, and "
            f"{lacking.name} is not installed: pip install 'edgewise[tables]'"
        ) from lacking


def names_of(X: Any) -> tuple[str, ...] | None:
    """The names of a frame's columns; None of what is no frame, or where pandas counted them."""
    if not is_frame(X) or list(X.columns) == list(range(len(X.columns))):
        return None
    return tuple(map(str, X.columns))


def in_one_order(parts: list[Any]) -> tuple[tuple[str, ...] | None, list[Any]]:
    """The names of the columns of all parts, each node's, and the parts with theirs in one order;
    raises DataError where nodes call them differently."""
    named = {node: names for node, X in enumerate(parts) if (names := names_of(X)) is not None}
    if not named:
        return None, parts
    wrong = unlike(parts)
    if wrong:
        raise DataError(f"{wrong}: give every node the same columns")
    columns = named[min(named)]
    return columns, [
        X if named.get(node, columns) == columns else X[by_name(X, columns)]
        for node, X in enumerate(parts)
    ]


def unlike(parts: list[Any]) -> str:
    """Which node has other columns than the first that names its own, and one of them."""
    named = {node: names for node, X in enumerate(parts) if (names := names_of(X)) is not None}
    for node, names in named.items():
        first = min(named)
        lacking, beside = (
            sorted({*a} - {*b}) for a, b in ((named[first], names), (names, named[first]))
        )
        if lacking or beside:
            what = f'no column "{lacking[0]}"' if lacking else f'a column "{beside[0]}" besides'
            return f"node {node} has {what}, unlike node {first}"
    return ""


def by_name(X: Frame, columns: tuple[str, ...]) -> list[Any]:
    """A frame's own names of these columns."""
    own = {str(name): name for name in X.columns}
    return [own[name] for name in columns]


def lines_of(X: Any) -> NDArray[np.int64] | None:
    """The file's line of each row of a frame, where it knows them."""
    known = is_frame(X) and X.index.name == LINE
    return np.asarray(X.index, np.int64) if known else None


def kind_of(column: Column) -> str:
    """number, text, date or other."""
    import pandas as pd
    from pandas.api import types

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return kind_of(dtype.categories.to_series())
    if types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype):
        return "other" if types.is_complex_dtype(dtype) else "number"
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "date"
    found = types.infer_dtype(column, skipna=True)
    if found in NUMBERS:
        return "number"
    if found in DATES or isinstance(dtype, pd.PeriodDtype):
        return "date"
    if found in TEXTS:
        given = list(column.dropna().head(SAMPLE))
        if not all(isinstance(value, str | bytes | Number) for value in given):
            return "other"  # lists, say
        dates = sum(bool(DATE.fullmatch(value)) for value in given if isinstance(value, str))
        return "date" if 2 * dates > len(given) else "text"
    return "other"


def is_truth(column: Column) -> bool:
    from pandas.api import types

    return bool(types.is_bool_dtype(column.dtype))


def as_floats(column: Column) -> NDArray[Any]:
    """A column of numbers, with NaN for what is missing."""
    import pandas as pd

    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "buif":
        return column.to_numpy()
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    numbers = pd.to_numeric(column).astype("Float64")
    return numbers.to_numpy(np.float64, na_value=np.nan)


def as_series(y: Any) -> Any:
    """Labels as NumPy has them, where they are of pandas' own kinds."""
    import pandas as pd

    column = y if isinstance(y, pd.Series) else pd.Series(y)
    return as_floats(column) if kind_of(column) == "number" else column.to_numpy(object)


def as_array(X: Frame) -> NDArray[Any]:
    """A frame of numbers; raises DataError by the name of a column that holds none."""
    if all(isinstance(dtype, np.dtype) and dtype.kind in "uif" for dtype in X.dtypes):
        return np.asarray(X)
    columns = []
    for at, name in enumerate(X.columns):
        column = X.iloc[:, at]
        kind = kind_of(column)
        if kind != "number":
            raise refused(X, column, name, kind, by="edgewise.data.prepare reads it; ")
        columns.append(as_floats(column))
    return np.stack(columns, axis=1, dtype=np.float64) if columns else np.empty((len(X), 0))


def refused(X: Frame, column: Column, name: Any, kind: str, by: str = "") -> DataError:
    """What is wrong with a column that is not numbers, and what to do."""
    given = column.dropna()
    shown = f"{str(given.iloc[0])[:40]!r}" if len(given) else "nothing"
    at = place(X, column.notna().to_numpy().argmax())
    remedy = REMEDIES[kind].format(name=name)
    if kind == "text" and has_commas(column):
        remedy = 'if commas are decimal marks here, give decimal="," (--decimal ,); if they part '
        remedy += "thousands, take them out"
    what = {"date": "dates", "text": "text", "other": "values that are no numbers"}[kind]
    return DataError(f'{source(X)}column "{name}" holds {what} ({shown} in {at}): {by}{remedy}')


def has_commas(column: Column) -> bool:
    """Whether texts are numbers but for a comma in them."""
    texts = [str(value) for value in column.dropna().head(SAMPLE)]
    return 2 * sum(bool(COMMA.fullmatch(text)) for text in texts) > len(texts)


def counts_days(column: Column) -> bool:
    """Whether whole numbers are dates, as 20240131 is: all of them, and several."""
    import pandas as pd

    values = as_floats(column).astype(np.float64, copy=False)
    there = values[~np.isnan(values)]
    if not len(there) or there.min() < EARLIEST or there.max() > LATEST or (there % 1).any():
        return False
    days = np.unique(there)
    if len(days) < FEW_DAYS:
        return False
    texts = pd.Series(days.astype(np.int64).astype(str))
    return bool(pd.to_datetime(texts, format="%Y%m%d", errors="coerce").notna().all())


def have_units(texts: Sequence[str]) -> bool:
    """Whether texts are numbers but for what they count: 5 kg, 3 %, $7."""
    return 2 * sum(bool(UNIT.fullmatch(text)) for text in texts) > len(texts)


def place(X: Frame, row: int) -> str:
    """Where a row comes from: a line of a file, or a row of a frame."""
    if X.index.name == LINE:
        return f"line {X.index[row]}"
    return f"row {X.index[row]!r}" if isinstance(X.index[row], str) else f"row {X.index[row]}"


def source(X: Frame) -> str:
    """The file that a frame was read from, to begin a message with."""
    path = X.attrs.get("source")
    return f"{path}: " if path else ""

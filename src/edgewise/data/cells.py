"""The cells of a table's columns: numbers, texts, labels, and where one cannot be used."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgewise.data import frames
from edgewise.data.arrays import Array, as_labels
from edgewise.data.frames import Column, Frame, place, source
from edgewise.data.sniffing import is_number
from edgewise.errors import DataError

SENTINELS = (-9, -99, -999, -9999, -99999, -999999)
MOST_LEVELS = 100  # of a column of text: names and numbers of cases have more
FEW_LEVELS = 10  # which are levels even where there are hardly more rows
LEAVE_OUT = "leave it out (ignore=, --ignore)"
LACKING = "(missing)"  # the level of a missing text, with missing="indicator"
MOSTLY = 0.5  # of a column's cells: with more numbers than that a text is a slip


def label_column(table: Frame, label: str) -> str:
    own = list(table.columns)
    if label in own:
        return label
    if label in ("last", "first"):
        return own[-1 if label == "last" else 0]
    raise DataError(
        f'{source(table)}there is no column {label!r}: give label="last", "first" or one of '
        f"{some(own)}"
    )


def read_labels(table: Frame, name: str) -> Array:
    """Numbers, truths, or classes as text."""
    kind = frames.kind_of(table[name])
    if kind in ("date", "other"):
        raise frames.refused(table, table[name], name, kind)
    if kind == "number":
        y = as_labels(table[name])
        return y if y.dtype.kind == "b" else y.astype(np.float64)
    strays, share = stray_texts(table[name])
    if len(strays) and share > MOSTLY:
        raise stray(table, name, strays)
    return as_labels(np.array([t if t is not None else "" for t in as_texts(table[name])], str))


def read_cells(table: Frame, name: str, encode: bool = False) -> Array:
    """Numbers, with NaN where one is missing, or texts, with None. Categories are texts where
    those are encoded, whatever they are called."""
    kind = frames.kind_of(table[name])
    if kind == "number" and frames.counts_days(table[name]):
        kind = "date"
    if kind in ("date", "other"):
        raise frames.refused(table, table[name], name, kind)
    if encode and table[name].dtype.name == "category":
        return as_texts(table[name])
    if kind == "text":
        _, share = stray_texts(table[name])
        if share <= MOSTLY and frames.has_commas(table[name]):
            raise frames.refused(table, table[name], name, "text")
        if share <= MOSTLY:
            return as_texts(table[name])
    return numbers(table, name)


def refuse_text(table: Frame) -> None:
    """By the first column of text; of a few texts among numbers `numbers` tells."""
    for name in table.columns:
        if frames.kind_of(table[name]) == "text" and stray_texts(table[name])[1] <= MOSTLY:
            raise frames.refused(table, table[name], name, "text")


def numbers(table: Frame, name: str) -> Array:
    """A column's numbers, NaN where one is missing; raises DataError by the cell that is none."""
    import pandas as pd

    column = table[name]
    kind = frames.kind_of(column)
    if kind in ("date", "other"):
        raise frames.refused(table, column, name, kind)
    if kind == "text":
        strays, _ = stray_texts(column)
        if len(strays):
            raise stray(table, name, strays)
        column = pd.to_numeric(column.astype(object))
    values = frames.as_floats(column).astype(np.float64, copy=False)
    endless = np.flatnonzero(np.isinf(values))
    if len(endless):
        raise DataError(
            f'{source(table)}column "{name}", {place(table, endless[0])}{others(endless)} is '
            "infinite, or larger than numbers of 64 bits can be (1.8e308): correct it"
        )
    return values


def words_of(na: Any) -> tuple[str, ...]:
    """What stands for a missing cell, one or several, as texts."""
    several = [na] if isinstance(na, str | int | float) else na
    return tuple(text for text in map(str, several) if text.strip())


def blanked(table: Frame, na: Sequence[str]) -> Frame:
    """The table without the cells that say in these words that they are missing, n.a. or -999."""
    if not na:
        return table
    texts, numbers = {text.strip() for text in na}, [float(t) for t in na if is_number(t, ".")]

    def marked(column: Column) -> Array:
        if frames.is_truth(column):
            return np.zeros(len(column), bool)
        if frames.kind_of(column) == "number":
            return np.isin(frames.as_floats(column), numbers)
        return np.array([str(value).strip() in texts for value in column], bool)

    marks = {name: marked(table[name]) for name in table.columns}
    made = table.assign(**{n: table[n].mask(mark) for n, mark in marks.items() if mark.any()})
    made.attrs = dict(table.attrs)
    return made


def suspicions(table: Frame, cells: Mapping[str, Array]) -> list[str]:
    """Numbers that often stand for a missing cell, where a column has nothing else below zero."""
    said = []
    for name, values in cells.items():
        below = np.empty(0) if values.dtype.kind == "O" else values[values < 0]
        if len(below) and below[0] in SENTINELS and (below == below[0]).all():
            said.append(
                f'{source(table)}column "{name}" has {below[0]:g} in {len(below)} '
                f"row{'' if len(below) == 1 else 's'} and nothing else below zero: if that stands "
                f"for a missing cell, give --na {below[0]:g} (na=)"
            )
    return said


def stray_texts(column: Column) -> tuple[Array, float]:
    """The rows with a text that is no number, and the share of numbers in what is there."""
    import pandas as pd

    there = column.notna().to_numpy()
    parsed = pd.to_numeric(column.astype(object), errors="coerce").notna().to_numpy()
    return np.flatnonzero(there & ~parsed), float(parsed.sum() / max(there.sum(), 1))


def stray(table: Frame, name: str, rows: Array) -> DataError:
    text = str(table[name].iloc[rows[0]])
    todo = (
        f"correct it; or, if it stands for a missing cell, give na=[{text[:40]!r}] (--na "
        f"{shlex.quote(text[:40])}) and missing= (--missing)"
    )
    if frames.COMMA.fullmatch(text):
        todo = "if commas are decimal marks here, give decimal=',' (--decimal ,)"
    return DataError(
        f'{source(table)}column "{name}", {place(table, rows[0])}{others(rows)}: {text[:40]!r} is '
        f"not a number as others of the column are: {todo}"
    )


def as_texts(column: Column) -> Array:
    """Texts without the spaces around them, None where one is missing."""
    there = column.notna().to_numpy()
    texts = np.full(len(column), None, object)
    for row, value in zip(np.flatnonzero(there), column[there], strict=True):
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # a level "1" is 1.0 in a column that has gaps
        text = (value.decode(errors="replace") if isinstance(value, bytes) else str(value)).strip()
        texts[row] = text or None
    return texts


def absent(cells: Array) -> Array:
    if cells.dtype.kind == "O":
        return np.array([cell is None for cell in cells], bool)
    return np.isnan(cells)


def missing_cells(table: Frame, gaps: Mapping[str, Array]) -> DataError:
    """Where the first is, and how many there are of which column."""
    first = min(gaps, key=lambda name: int(gaps[name].argmax()))
    row = int(gaps[first].argmax())
    return DataError(
        f'{source(table)}column "{first}", {place(table, row)}: the cell is empty '
        f"(missing in all: {per_column(gaps)}): give "
        'missing="drop", "mean", "median" or "indicator" (--missing on the command line)'
    )


def with_a_column(levels: Sequence[str]) -> Sequence[str]:
    """The levels that get a column each: of two the second, which says it all, and of one none."""
    return levels if len(levels) > 2 else levels[1:]


def levels_of(
    table: Frame, name: str, texts: Array, missing: str | None
) -> tuple[tuple[str, ...], str | None]:
    """The levels of a column of text, and what stands in for a missing one."""
    there = texts[~absent(texts)].astype(str)
    levels, often = np.unique(there, return_counts=True)
    known = levels.tolist()
    if not known:
        raise DataError(
            f'{source(table)}column "{name}" is empty: leave it out (ignore=, --ignore)'
        )
    if len(known) > MOST_LEVELS or (len(known) > FEW_LEVELS and 2 * len(known) > len(there)):
        todo = f"put its values into at most {MOST_LEVELS} groups"
        if frames.have_units(known):
            todo = "take the units away from its numbers"
        raise DataError(
            f'{source(table)}column "{name}" has {len(known)} different texts in {len(there)} rows '
            f"({some(known, 3)}), too many for levels: leave it out "
            f'(ignore=["{name}"], --ignore), or {todo}'
        )
    fill = None
    if missing == "indicator" and absent(texts).any():
        known, fill = [*known, LACKING], LACKING
    elif missing not in (None, "drop"):
        fill = str(levels[often.argmax()])
    return tuple(known), fill


def centre(table: Frame, name: str, values: Array, missing: str | None) -> float | None:
    """What stands in for a missing number."""
    if missing in (None, "drop"):
        return None
    there = values[~np.isnan(values)]
    if not len(there):
        raise DataError(
            f'{source(table)}column "{name}" is empty: leave it out (ignore=, --ignore)'
        )
    return float(np.median(there) if missing == "median" else there.mean())


# --- words ----------------------------------------------------------------------------------------


def per_column(gaps: Mapping[str, Array]) -> str:
    return some([f"{name} {gap.sum()}" for name, gap in gaps.items()])


def some(names: Sequence[Any], most: int = 8) -> str:
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def others(rows: Sequence[Any] | Array) -> str:
    return f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""


def shown(fill: float | str) -> str:
    return repr(fill) if isinstance(fill, str) else f"{fill:.6g}"

"""From a table as people have it to numbers: missing cells, text, and a record of what was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from edgewise.data import frames
from edgewise.data.arrays import Array, aligned_empty, missing_labels
from edgewise.data.cells import (
    absent,
    as_texts,
    blanked,
    centre,
    label_column,
    levels_of,
    missing_cells,
    numbers,
    others,
    per_column,
    read_cells,
    read_labels,
    refuse_text,
    shown,
    some,
    suspicions,
    with_a_column,
    words_of,
)
from edgewise.data.frames import Frame, place, source
from edgewise.data.row_terms import TermColumns
from edgewise.errors import DataError, UnknownName

MISSING = ("drop", "mean", "median", "indicator")
ENCODINGS = ("onehot",)


@dataclass(frozen=True)
class Preparation:
    """What was done to a table, so that the same can be done to another.

    columns    the table's columns that the features were made of, in order
    missing    what was done about missing cells, or None
    levels     of each column of text; two make one column of zeros and ones, more one each
    fills      what stands in for a missing cell of a column: a number or a level
    indicated  columns with another beside them that says where cells were missing
    label      the column of labels
    done       what was done, in sentences
    na         texts and numbers that stand for a missing cell, besides the usual ones
    offset     the column that was added to margins, and no feature
    exposure   the one whose logarithm was
    trials     the one that labels were divided by
    """

    columns: tuple[str, ...]
    missing: str | None
    levels: Mapping[str, tuple[str, ...]]
    fills: Mapping[str, float | str]
    indicated: tuple[str, ...]
    label: str | None
    done: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    offset: str | None = None
    exposure: str | None = None
    trials: str | None = None

    @property
    def terms(self) -> TermColumns:
        return TermColumns(self.offset, self.exposure)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of what `apply` makes."""
        return tuple(name for column in self.columns for name in self._names_of(column))

    def apply(self, table: Frame) -> Frame:
        """The features of a table with the same columns, in whatever order, and others besides.

        Missing cells are filled as they were at first; with `missing="drop"` rows that have any are
        left out, and the index says which are left. A level that was not there is refused.
        """
        table = frames.as_pandas(table)
        lacking = [name for name in self.columns if name not in map(str, table.columns)]
        if lacking:
            raise DataError(
                f'{source(table)}there is no column "{lacking[0]}"'
                f"{others(lacking)}: give the columns that the model was made with, "
                f"{', '.join(self.columns)}"
            )
        table = table[frames.by_name(table, self.columns)].set_axis(list(self.columns), axis=1)
        table = blanked(table, self.na)
        columns = {name: self._read(table, name) for name in self.columns}
        if self.missing == "drop":
            whole = ~np.any([absent(c) for c in columns.values()], axis=0)
            table, columns = table[whole], {name: c[whole] for name, c in columns.items()}
        return self._filled(table, columns)

    def to_dict(self) -> dict[str, Any]:
        """Numbers, texts, lists and dictionaries of them: what JSON holds."""
        plain: dict[str, Any] = {"format": "edgewise-preparation", "version": 1, **asdict(self)}
        plain["levels"] = {name: list(levels) for name, levels in self.levels.items()}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Preparation:
        if (saved.get("format"), saved.get("version")) != ("edgewise-preparation", 1):
            raise DataError("this is no preparation of a table, version 1: prepare the table again")
        later = {"na", "offset", "exposure", "trials"}  # than models that may be read
        names = [f.name for f in fields(cls)]
        given = {name: saved[name] for name in names if name in saved or name not in later}
        for name in {"columns", "indicated", "done", "na"} & given.keys():
            given[name] = tuple(given[name])
        given["levels"] = {name: tuple(levels) for name, levels in given["levels"].items()}
        return cls(**given)

    def _names_of(self, column: str) -> list[str]:
        names = [column]
        if column in self.levels:
            names = [f"{column}={level}" for level in with_a_column(self.levels[column])]
        return [*names, f"{column} is missing"] if column in self.indicated else names

    def _read(self, table: Frame, name: str) -> Array:
        """The cells of a column, numbers or texts, as the model knows it."""
        if name not in self.levels:
            return numbers(table, name)
        texts = as_texts(table[name])
        known = {*self.levels[name]}
        for row, text in enumerate(texts):
            if text is not None and text not in known:
                raise DataError(
                    f'{source(table)}column "{name}", {place(table, row)}: {text!r} is none of its '
                    f"{len(known)} levels: {some(sorted(known))}"
                )
        return texts

    def _filled(self, table: Frame, columns: Mapping[str, Array]) -> Frame:
        import pandas as pd

        made: list[Array] = []
        for name, cells in columns.items():
            gaps = absent(cells)
            if gaps.any():
                if name not in self.fills:
                    raise missing_cells(table, {name: gaps})
                cells = np.where(gaps, np.array(self.fills[name], cells.dtype), cells)
            if name in self.levels:
                own = with_a_column(self.levels[name])
                made += [(cells == level).astype(np.float64) for level in own]
            else:
                made.append(cells)
            if name in self.indicated:
                made.append(gaps.astype(np.float64))
        X = aligned_empty((len(table), len(made)), np.float64)
        for at, one in enumerate(made):
            X[:, at] = one
        return _with_attrs(pd.DataFrame(X, table.index, list(self.names), copy=False), table)


class Prepared(NamedTuple):
    """Features as a frame, labels, and what was done."""

    X: Frame
    y: Array
    preparation: Preparation


def prepare(
    table: Frame,
    label: str = "last",
    missing: str | None = None,
    encode: str | None = None,
    ignore: Sequence[str] = (),
    na: Sequence[str] = (),
) -> Prepared:
    """X, y and what was done to get there, of a pandas.DataFrame; `read_table` makes one of a file.

    label    the column of labels: its name, "last" or "first"
    missing  "drop" rows with a missing cell; fill it with the "mean" or the "median" of its column
             over all rows (of text: with the commonest level); "indicator": with the mean, and add
             a column that says where (of text: a level of its own). None refuses. Rows without a
             label are left out with any of these
    encode   "onehot": a column of zeros and ones for each level of a column of text, or one where
             there are two; levels are those of all rows. None refuses text
    ignore   columns to leave out
    na       what stands for a missing cell besides nothing at all: ["n.a.", "-999"]

    Means and levels are taken over all rows given, of whichever node: before `split` that is what
    an experiment may do. Nodes with tables of their own agree on one `Preparation` and `apply` it.
    """
    for name, value, known in (("missing", missing, MISSING), ("encode", encode, ENCODINGS)):
        if value is not None and value not in known:
            raise UnknownName(f"{name}=", value, known)
    table = frames.as_pandas(table)
    if not frames.is_frame(table):
        raise DataError(
            f"{type(table).__name__} is no table: give one with names, pandas.DataFrame(...) or "
            "what read_table gives"
        )
    own = [str(name) for name in table.columns]
    twice = next((name for name in own if own.count(name) > 1), None)
    if twice is not None:
        raise DataError(f'{source(table)}two columns are both called "{twice}": rename one')
    table = table.set_axis(own, axis=1)
    done = list(table.attrs.get("notes", ()))
    for name in ignore:
        if name not in own:
            raise DataError(
                f'{source(table)}there is no column "{name}" to ignore: columns are {some(own)}'
            )
    if ignore:
        table = table.drop(columns=list(ignore))
        done.append(f"columns left out: {', '.join(ignore)}")
    na = words_of(na)
    table = blanked(table, na)
    if na:
        done.append(f"cells taken as missing, besides empty ones: {some(na)}")
    if table.shape[1] < 2:
        raise DataError(
            f"{source(table)}{'one column' if table.shape[1] else 'no columns'}: give features and "
            "a label (is the separator right? --separator)"
        )
    if not len(table):
        raise DataError(f"{source(table)}the table has no rows: give one with samples")
    target = label_column(table, label)
    y = read_labels(table, target)
    without = missing_labels(y)
    if without.any():
        if missing is None:
            raise missing_cells(table, {target: without})
        table, y = table[~without], y[~without]
        done.append(f"rows left out, without a label: {without.sum()}")
        if not len(y):
            raise DataError(f'{source(table)}column "{target}" has no labels at all')
    features = table.drop(columns=target)
    if encode is None:
        refuse_text(features)
    cells = {name: read_cells(features, name, encode is not None) for name in features.columns}
    done += suspicions(features, cells)
    gaps = {name: gap for name, c in cells.items() if (gap := absent(c)).any()}
    if gaps and missing is None:
        raise missing_cells(features, gaps)
    if gaps and missing == "drop":
        whole = ~np.any(list(gaps.values()), axis=0)
        if not whole.any():
            most = max(gaps, key=lambda name: int(gaps[name].sum()))
            raise DataError(
                f'{source(table)}every row lacks something ("{most}" in {gaps[most].sum()} rows): '
                f'leave columns out (ignore=["{most}"], --ignore), or fill them'
            )
        done.append(
            f"rows left out, with missing cells: {(~whole).sum()} of {len(whole)} "
            f"({per_column(gaps)})"
        )
        features, y = features[whole], y[whole]
        cells = {name: c[whole] for name, c in cells.items()}
        gaps = {}
    fills: dict[str, float | str] = {}
    levels: dict[str, tuple[str, ...]] = {}
    fill: float | str | None
    for name, given in cells.items():
        if given.dtype.kind == "O":
            levels[name], fill = levels_of(features, name, given, missing)
        else:
            fill = centre(features, name, given, missing)
        if fill is not None:
            fills[name] = fill
    indicated = tuple(n for n in gaps if missing == "indicator" and n not in levels)
    preparation = Preparation(
        tuple(map(str, features.columns)), missing, levels, fills, indicated, target, na=na
    )
    if gaps:
        how = {n: f"{gap.sum()} with {shown(fills[n])}" for n, gap in gaps.items()}
        of = "median" if missing == "median" else "mean"
        done.append(
            f"missing cells filled (numbers: the column's {of} over all rows): "
            + ", ".join(f"{n} {text}" for n, text in how.items())
        )
    if indicated:
        done.append(f"columns that say where cells were missing: {some(indicated)}")
    if levels:
        done.append(
            "text columns as zeros and ones, levels over all rows: "
            + ", ".join(
                f"{n} ({len(known)} levels)" if len(known) > 1 else f"{n} (one: no column)"
                for n, known in levels.items()
            )
        )
    preparation = Preparation(**{**vars(preparation), "done": tuple(done)})
    return Prepared(preparation._filled(features, cells), y, preparation)


def _with_attrs(made: Frame, table: Frame) -> Frame:
    made.attrs = dict(table.attrs)
    return made

"""A schema as one peer's table suggests it, for people to complete and agree on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.data.arrays import missing_labels
from edgewise.data.cells import absent, label_column, levels_of, read_cells, read_labels
from edgewise.data.frames import Frame, source
from edgewise.errors import DataError
from edgewise.peers.config.schema import NUMBER, TEXT, Column, Schema

MOST_CLASSES = 20  # whole numbers that are taken for classes
LEAST_ROWS = 2  # of each of these, on average


def proposed(
    table: Frame, label: str | None = None, ignore: Sequence[str] = (), regression: bool = False
) -> tuple[Schema, list[str]]:
    """And what there is to decide on, in sentences."""
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    for name in ignore:
        if name not in table.columns:
            raise DataError(f'{source(table)}there is no column "{name}" to ignore')
    target = label_column(table, label or "last")
    y = read_labels(table, target)
    columns, open_questions = [], []
    for name in table.columns:
        if name == target or name in ignore:
            continue
        cells = read_cells(table, name)
        gaps = int(absent(cells).sum())
        if gaps:
            open_questions.append(
                f'column "{name}" has {gaps} empty cells: give it a fill, the same for all peers, '
                "or leave these rows out"
            )
        if cells.dtype.kind == "O":
            levels, _ = levels_of(table, name, cells, None)
            columns.append(Column(name, TEXT, levels=levels))
            open_questions.append(
                f'column "{name}": its levels are those of this table; add what others have'
            )
        else:
            columns.append(Column(name, NUMBER))
    classes = None if regression else classes_in(y[~missing_labels(y)])
    if classes is not None:
        alone = "there is one in this table: add the others" if len(classes) < 2 else ""
        open_questions.append(f'classes of "{target}": {alone or "those of this table"}')
    return Schema(tuple(columns), target, classes, tuple(ignore)), open_questions


def classes_in(y: np.ndarray) -> tuple[Any, ...] | None:
    """Texts, or few whole numbers, each of several rows."""
    values = np.unique(y)
    if y.dtype.kind in "US":
        return tuple(values.tolist())
    numbers = values.astype(np.float64)
    few = 2 <= len(values) <= MOST_CLASSES and LEAST_ROWS * len(values) <= len(y)
    return tuple(map(int, numbers)) if few and (numbers == np.round(numbers)).all() else None

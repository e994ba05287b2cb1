"""Columns of a table that are no features: offsets, exposures, weights, a number per row each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgewise.data.cells import missing_cells, numbers, others, some
from edgewise.data.frames import Frame, place, source
from edgewise.errors import DataError


class TermColumns(NamedTuple):
    """Their names; None where there is none."""

    offset: str | None = None  # added to margins
    exposure: str | None = None  # whose logarithm is added to them
    case_weight: str | None = None
    trials: str | None = None  # of which labels are the successes

    @property
    def names(self) -> list[str]:
        return [name for name in self if name is not None]

    def taken_from(self, table: Frame, label: str | None = None) -> tuple[Frame, RowTerms]:
        """The table without them, and what they say."""
        twice = [name for name in self.names if [*self.names, label].count(name) > 1]
        if twice:
            raise DataError(f'column "{twice[0]}" is given for two things: name another')
        own = [str(name) for name in table.columns]
        for name in self.names:
            if name not in own:
                raise DataError(
                    f'{source(table)}there is no column "{name}": columns are {some(own)}'
                )
        table = table.set_axis(own, axis=1)
        offset = None
        if self.offset is not None:
            offset = column_of(table, self.offset)
        if self.exposure is not None:
            each = np.log(column_of(table, self.exposure, "no exposure"))
            offset = each if offset is None else offset + each
        weight = None
        if self.case_weight is not None:
            weight = column_of(table, self.case_weight)
            refuse(table, self.case_weight, weight < 0, "a weight below zero")
        trials = None
        if self.trials is not None:
            trials = column_of(table, self.trials, "no trials")
            weight = trials if weight is None else weight * trials
        return table.drop(columns=self.names), RowTerms(offset, weight, trials)


class RowTerms(NamedTuple):
    """One number per row each, or None. Trials are in the weights too."""

    offset: NDArray[np.float64] | None = None
    weight: NDArray[np.float64] | None = None
    trials: NDArray[np.float64] | None = None

    def rates(self, successes: Any, where: str = "") -> Any:
        """Labels as parts of the trials."""
        if self.trials is None:
            return successes
        y = np.asarray(successes)
        if y.dtype.kind not in "buif":
            raise DataError(f"{where}successes of trials are numbers, and labels are text")
        more = np.flatnonzero(y > self.trials)
        if len(more):
            raise DataError(
                f"{where}{y[more[0]]:g} successes of {self.trials[more[0]]:g} trials"
                f"{others(more)}: give no more successes than trials"
            )
        return y / self.trials

    def at(self, rows: Any) -> RowTerms:
        return RowTerms(*(None if a is None else a[rows] for a in self))


def column_of(table: Frame, name: str, lacking: str = "") -> NDArray[np.float64]:
    """Of numbers, positive ones where there is a word for what other rows lack."""
    values: NDArray[np.float64] = numbers(table, name)
    gaps = np.isnan(values)
    if gaps.any():
        raise missing_cells(table, {name: gaps})
    if lacking:
        refuse(table, name, values <= 0, lacking)
    return values


def refuse(table: Frame, name: str, which: NDArray[np.bool_], what: str) -> None:
    rows = np.flatnonzero(which)
    if len(rows):
        raise DataError(
            f'{source(table)}column "{name}", {place(table, rows[0])}{others(rows)} has {what}: '
            "leave the row out"
        )

"""trace.csv: how a peer's run went, row by row, also over restarts."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewise.fileio import replacing
from edgewise.running.trace import COLUMNS, CSV_HEAD, Trace, csv_line, read_csv


class TraceWriter:
    """A trace that grows; `about` is what its table's `meta` says."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path, self.about = path, about
        self.rows: list[dict[str, float]] = []
        self.written = 0

    def begin(self, round: int) -> None:
        """Of a run that goes on from this round: later rows, of rounds that were lost, go."""
        self.rows = [row for row in rows_in(self.path) if row["rounds"] <= round] if round else []
        with replacing(self.path) as file:  # one that is killed here keeps the old one
            file.write((CSV_HEAD + "".join(map(csv_line, self.rows))).encode())
        self.written = len(self.rows)

    def add(self, **known: float) -> dict[str, float]:
        """The row, with NaN where nothing is known; one of a round that has a row is not added."""
        row = {column: float(known.get(column, math.nan)) for column in COLUMNS}
        if not self.rows or self.rows[-1]["rounds"] < row["rounds"]:
            self.rows.append(row)
        return row

    def flush(self) -> None:
        new = self.rows[self.written :]
        if new:
            with self.path.open("a") as file:
                file.write("".join(map(csv_line, new)))
            self.written += len(new)

    def last(self) -> dict[str, float]:
        """What is known of the last row."""
        row = self.rows[-1] if self.rows else {}
        return {column: value for column, value in row.items() if not math.isnan(value)}

    def table(self) -> Trace:
        return Trace({c: [row[c] for row in self.rows] for c in COLUMNS}, self.about)


def rows_in(path: Path) -> list[dict[str, float]]:
    """Of the run before: where its trace cannot be read, it begins anew."""
    try:
        return read_csv(path)
    except (OSError, ValueError):
        return []

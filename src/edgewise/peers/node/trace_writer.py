"""trace.csv: how a peer's run went, row by row, also over restarts, full disks and clean-ups."""

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from edgewise.fileio import replacing
from edgewise.running.trace import COLUMNS, CSV_HEAD, Trace, csv_line, read_csv


class TraceWriter:
    """A trace that grows; `about` is what its table's `meta` says."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path, self.about = path, about
        self.rows: list[dict[str, float]] = []
        self.written, self.begun = 0, False
        self.left = (0, 0)  # the file as it was left here: which one, and its bytes

    def begin(self, round: int) -> None:
        """Of a run that goes on from this round: later rows, of rounds that were lost, go."""
        self.begun = True
        self.rows = [row for row in rows_in(self.path) if row["rounds"] <= round] if round else []
        self.write_all(durable=True)

    def add(self, **known: float) -> dict[str, float]:
        """The row, with NaN where nothing is known; one of a round that has a row is not added."""
        row = {column: float(known.get(column, math.nan)) for column in COLUMNS}
        if not self.rows or self.rows[-1]["rounds"] < row["rounds"]:
            self.rows.append(row)
        return row

    def flush(self) -> None:
        """To the file; anew, and with its head, where somebody has deleted or changed that."""
        if not self.begun:  # the file is of the run that is to go on
            return
        if self.found() != self.left:
            self.write_all()
        elif self.written < len(self.rows):
            self.append()

    def append(self) -> None:
        """What of a line went before the disk was full is taken back: the next follows whole."""
        data = "".join(map(csv_line, self.rows[self.written :])).encode()
        try:
            with self.path.open("ab") as file:
                file.write(data)
        except OSError as problem:
            with suppress(OSError):
                os.truncate(self.path, self.left[1])
            raise OSError(problem.errno, problem.strerror, str(self.path)) from problem
        self.written, self.left = len(self.rows), (self.left[0], self.left[1] + len(data))

    def write_all(self, durable: bool = False) -> None:
        with replacing(self.path, durable=durable) as file:  # one killed here keeps the old one
            file.write((CSV_HEAD + "".join(map(csv_line, self.rows))).encode())
        self.written, self.left = len(self.rows), self.found()

    def found(self) -> tuple[int, int]:
        try:
            there = self.path.stat()
        except OSError:
            return 0, 0
        return there.st_ino, there.st_size

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

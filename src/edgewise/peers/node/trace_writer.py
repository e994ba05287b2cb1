"""trace.csv: how a peer's run went, row by row, also over restarts."""

import csv
from pathlib import Path

from edgewise.fileio import replacing

COLUMNS = ("rounds", "oracle_calls", "seconds", "residual", "objective", "bytes_sent")
Row = dict[str, float]


class Story:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        self.written = 0

    def begin(self, round: int) -> None:
        """Of a run that goes on from this round: later rows, of rounds that were lost, go."""
        self.rows = [row for row in read(self.path) if row["rounds"] <= round] if round else []
        with replacing(self.path) as file:  # one that is killed here keeps the old one
            file.write((",".join(COLUMNS) + "\n" + lines(self.rows)).encode())
        self.written = len(self.rows)

    def add(self, row: Row) -> None:
        if not self.rows or self.rows[-1]["rounds"] < row["rounds"]:
            self.rows.append(row)

    def flush(self) -> None:
        new = self.rows[self.written :]
        if new:
            with self.path.open("a") as file:
                file.write(lines(new))
            self.written += len(new)


def lines(rows: list[Row]) -> str:
    return "".join(",".join(f"{row[c]:.10g}" for c in COLUMNS) + "\n" for row in rows)


def read(path: Path) -> list[Row]:
    """What can be read of it: a peer that was killed may have left half a line."""
    if not path.exists():
        return []
    rows = []
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            try:
                rows.append({c: float(row[c]) for c in COLUMNS})
            except (KeyError, TypeError, ValueError):
                break
    return rows

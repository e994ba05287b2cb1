"""What happened in a run: a table with one row per recorded round."""

import csv
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.errors import InputError, UnknownName
from edgewise.fileio import replacing
from edgewise.plotting.axes import plot_column
from edgewise.plotting.displays import shown, trace_html

COLUMNS = (
    "rounds",
    "oracle_calls",
    "vectors_sent",
    "bytes_sent",
    "seconds",
    "objective_gap",
    "bregman",
    "consensus",
    "residual",
    "function_values",
    "objective",
    "violation",
)

# what reading another file may raise; AttributeError: an .npy, which is no archive
NOT_A_TRACE = (OSError, ValueError, KeyError, AttributeError, TypeError, zipfile.BadZipFile)


class Trace:
    """trace["bregman"] is an array; `meta` says what was run.

    rounds           communication rounds
    oracle_calls     sample gradients asked for, mean per node (K_i for a full pass; for sk-pd
                     gradient coordinates)
    vectors_sent     vectors that have gone over directed edges: a round delivers what was sent,
                     first messages included, then steps; of news (see adding-a-method.md) the
                     bodies that went
    bytes_sent       the same in bytes
    seconds          compute only: no compiling, no measuring
    objective_gap    sum_i f_i(x_i) + h_i(x_i) minus the optimum; negative where nodes disagree
    bregman          sum_i D_{f_i + h_i}(x_i, x*)
    consensus        root mean square distance of the nodes' models from their mean
    residual         distance from optimality, disagreement over edges included: zero only where
                     all nodes are at an optimum; needs no reference
    function_values  function values asked for, mean per node, where there is no gradient
    objective        sum_i f_i(x_i) + h_i(x_i), where there is a reference; with couplings always,
                     prices between neighbours included
    violation        how far couplings are from being met, over all edges: without any, how far
                     neighbours' models are from each other

    A peer's trace has the same columns, of that peer alone: oracle_calls, vectors_sent, bytes_sent,
    residual and objective are its own, seconds are by the clock. What no peer can know
    (objective_gap, bregman, consensus) is NaN, and so is any column that is not given.
    """

    def __init__(self, columns: Mapping[str, Any], meta: Mapping[str, Any] | None = None) -> None:
        unknown = np.full(len(columns["rounds"]), np.nan)
        self.columns = {k: np.asarray(columns.get(k, unknown), np.float64) for k in COLUMNS}
        self.meta = dict(meta or {})

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise UnknownName("trace column", name, self.columns)
        return self.columns[name]

    def __repr__(self) -> str:
        if not len(self):
            return "Trace(empty)"
        rounds, residual = self["rounds"][-1], self["residual"][-1]
        return f"Trace({len(self)} rows, {rounds:.0f} rounds, residual {residual:.2e})"

    @shown
    def _repr_html_(self) -> str:
        return trace_html(self)

    def __len__(self) -> int:
        return len(self.columns["rounds"])

    def to_pandas(self) -> Any:
        import pandas

        return pandas.DataFrame(self.columns)

    def save(self, path: str | Path) -> Path:
        """As .npz (no pickle) or, by its suffix, .csv."""
        path = Path(path)
        if path.suffix == ".csv":
            rows = np.stack(list(self.columns.values()), 1)
            head = ",".join(self.columns)
            with replacing(path) as file:
                np.savetxt(file, rows, delimiter=",", header=head, comments="", fmt="%.17g")
        else:
            path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
            with replacing(path) as file:
                np.savez(file, meta=np.array(json.dumps(self.meta)), **self.columns)  # type: ignore[arg-type]
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """One that `save` or a peer wrote; raises InputError where the file holds none."""
        if not Path(path).exists():
            raise InputError(f"there is no trace {path}: give a file that a trace was saved to")
        try:
            if Path(path).suffix == ".csv":
                rows = read_csv(Path(path))
                return cls({k: [row[k] for row in rows] for k in COLUMNS})
            with np.load(path, allow_pickle=False) as file:
                known = {k: file[k] for k in COLUMNS if k in file.files}
                return cls(known, json.loads(str(file["meta"])))
        except NOT_A_TRACE as problem:
            raise InputError(f"{path} is no trace ({problem}): save one with Trace.save") from None

    def plot(
        self, y: str = "bregman", x: str = "rounds", ax: Any = None, path: str | Path | None = None
    ) -> Any:
        """y against x, logarithmic, onto `ax` or a new figure; saved where `path` says."""
        return plot_column(self, y, x, ax, path, label=self.meta.get("method"))


# --- rows as CSV ----------------------------------------------------------------------------------

CSV_HEAD = ",".join(COLUMNS) + "\n"


def csv_line(row: Mapping[str, float]) -> str:
    """What is not known is left empty."""
    cells = (row.get(c, math.nan) for c in COLUMNS)
    return ",".join("" if math.isnan(cell) else f"{cell:.17g}" for cell in cells) + "\n"


def read_csv(path: Path) -> list[dict[str, float]]:
    """All whole rows, NaN where a column is missing or empty: whoever was killed as it wrote may
    have left half a line at the end. Raises ValueError where there is no such table."""
    text = path.read_text(errors="replace")
    lines = csv.reader(text[: text.rfind("\n") + 1].splitlines())
    head = next(lines, [])
    if "rounds" not in head:
        raise ValueError("it has no column of rounds")
    rows = []
    for cells in lines:
        try:
            row = {name: float(cell or "nan") for name, cell in zip(head, cells, strict=True)}
        except ValueError:
            break
        rows.append({c: row.get(c, math.nan) for c in COLUMNS})
    return rows

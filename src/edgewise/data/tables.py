"""Tables from files, as pandas' frames whose index says where each row came from."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from edgewise.data.arrow import ARROW, PARQUET, read_arrow
from edgewise.data.cells import words_of
from edgewise.data.frames import LINE, Frame
from edgewise.data.sniffing import READING, SPACES, Layout, fallback, sniff
from edgewise.data.text import OPENERS, UNREADABLE, missing
from edgewise.errors import DataError

TEXT = (".csv", ".tsv", ".tab", ".psv")
MISSING_TEXTS = ["?", "."]  # besides those that pandas knows, as NA, NaN, null and None


def read_table(
    path: str | PathLike[str],
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    names: Collection[str] = (),
    na: Collection[str] = (),
) -> Frame:
    """A pandas.DataFrame from a text file with columns, from Parquet or from Arrow (Feather).

    Of text, separator, decimal mark, encoding and header are found out where they are not given.
    The index, called "line", has the line of the file that each row began in, so that `split` and
    every message can name it; of Parquet and Arrow it counts rows from 0. Without a header columns
    are called "1", "2", ... `names` are of columns that the first line is then taken to name. What
    was not as usual is told in `.attrs["notes"]`. Cells that are empty, ?, ., NA, NaN, null or None
    are missing, and in text those that are one of `na`. .gz, .bz2 and .xz may follow the suffix.
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in OPENERS]
    if suffixes[-1:] and suffixes[-1] in PARQUET + ARROW:
        return read_arrow(path, suffixes[-1])
    layout, na = sniff(path, separator, decimal, encoding, header, names), words_of(na)
    try:
        return _of_text(path, layout, na)
    except UnicodeDecodeError as error:
        if encoding is not None or layout.encoding != "utf-8":
            raise DataError(
                f"{path} is not in the encoding {layout.encoding} ({error}): give another"
            ) from None
    with _open(path) as file:  # what is no UTF-8 comes late in the file
        return _of_text(path, layout._replace(encoding=fallback(file.read())), na)


def _of_text(path: str | PathLike[str], layout: Layout, na: Collection[str]) -> Frame:
    frame = _parse(path, layout, na)
    notes = []
    if layout.encoding in ("cp1252", "latin-1"):
        called = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}[layout.encoding]
        notes.append(f"{path} is not UTF-8: read as {called} (--encoding says otherwise)")
    if layout.decimal == ",":
        notes.append(f"{path}: commas are read as decimal marks (--decimal . says otherwise)")
    lines = _lines_of(path, layout, frame)
    empty = frame.isna().all(axis=1).to_numpy()
    _refuse_short_rows(path, layout, frame, lines, empty)
    if empty.any():
        frame, lines = frame[~empty], lines[~empty]
        notes.append(f"{path}: {_counted(int(empty.sum()), 'empty line')} left out")
    if not len(frame):
        held = "a header and no samples" if layout.header else "no samples"
        raise DataError(f"{path} has {held}: give at least one line of data")
    frame = _named(path, layout, frame, notes)
    frame.index = _index(lines, LINE)
    frame.attrs = {"source": str(path), "notes": tuple(notes)}
    return frame


def _parse(path: str | PathLike[str], layout: Layout, na: Collection[str]) -> Frame:
    import pandas as pd

    options: dict[str, Any] = {}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"  # which later versions always do
    try:
        with warnings.catch_warnings(), _text_after(path, layout) as text:
            warnings.simplefilter("ignore")
            frame: Frame = pd.read_csv(
                text,
                sep=layout.separator,
                header=None,
                names=range(_width(layout)),
                index_col=False,
                skip_blank_lines=False,
                skipinitialspace=True,
                na_values=[*MISSING_TEXTS, *na],
                decimal=layout.decimal,
                thousands=layout.thousands,
                low_memory=False,  # else a column may be part numbers, part text
                **options,
            )
            return frame
    except pd.errors.EmptyDataError:
        return pd.DataFrame({k: [] for k in range(_width(layout))})
    except pd.errors.ParserError as error:
        raise _malformed(path, layout, error) from None
    except FileNotFoundError:
        raise missing(path) from None
    except UnicodeDecodeError:
        raise
    except (*UNREADABLE, ValueError, csv.Error) as error:
        raise DataError(f"{path} cannot be read ({error}): fetch or unpack it again") from None


def _width(layout: Layout) -> int:
    return max(layout.columns, len(layout.header or ()))


# --- lines ----------------------------------------------------------------------------------------


def _open(path: str | PathLike[str]) -> IO[bytes]:
    opened: IO[bytes] = OPENERS.get(Path(path).suffix.lower(), open)(path, "rb")
    return opened


@contextmanager
def _text_after(path: str | PathLike[str], layout: Layout) -> Iterator[IO[str]]:
    """The text behind the header. pandas' own skiprows counts rows, of which one with a quote may
    take several lines."""
    with _open(path) as file, io.TextIOWrapper(file, layout.encoding, newline="") as text:
        for _ in range(layout.skip):
            text.readline()
        yield text


def _records(path: str | PathLike[str], layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of every row after the header, by Python's own reader: slow, and exact."""
    with _text_after(path, layout) as text:
        if layout.separator == SPACES:
            for number, line in enumerate(text, layout.skip + 1):
                yield number, line.split()
            return
        reader = csv.reader(text, delimiter=layout.separator, **READING)
        began = 0
        for row in reader:
            yield layout.skip + began + 1, row
            began = reader.line_num


def _lines_of(path: str | PathLike[str], layout: Layout, frame: Frame) -> np.ndarray:
    """The line that each row began in."""
    broken = any(
        frame[name].astype(str).str.contains(r"[\r\n]", na=False).any()
        for name in frame.columns
        if not isinstance(frame[name].dtype, np.dtype) or frame[name].dtype.kind == "O"
    )
    if broken:  # over several lines, in quotes
        return np.array([line for line, _ in _records(path, layout)], np.int64)[: len(frame)]
    return np.arange(layout.skip + 1, layout.skip + 1 + len(frame))


def _refuse_short_rows(
    path: str | PathLike[str], layout: Layout, frame: Frame, lines: np.ndarray, empty: np.ndarray
) -> None:
    """pandas fills up what is too short: it is looked at again whether the cells are there."""
    short = frame.iloc[:, -1].isna().to_numpy() & ~empty
    ended = layout.header is not None and len(layout.header) < layout.columns
    if not short.any() or _width(layout) == 1 or ended:
        return
    suspects, separators = set(lines[short].tolist()), _width(layout) - 1
    with _open(path) as file, io.TextIOWrapper(file, layout.encoding) as text:
        plain = layout.separator != SPACES and len(lines) == lines[-1] - lines[0] + 1
        if plain and not any(
            number in suspects and line.count(layout.separator) < separators
            for number, line in enumerate(text, 1)
        ):
            return
    for line, row in _records(path, layout):
        if line in suspects and 0 < len(row) < _width(layout):
            raise _uneven(path, layout, line, len(row))


def _malformed(path: str | PathLike[str], layout: Layout, error: Exception) -> DataError:
    if "EOF inside string" in str(error):
        line = 0
        for line, row in _records(path, layout):  # noqa: B007
            if any("\n" in cell for cell in row):
                break
        return DataError(f'{path}, line {line}: a quote (") is opened and never closed: close it')
    for line, row in _records(path, layout):
        if len(row) > _width(layout):
            return _uneven(path, layout, line, len(row))
    return DataError(f"{path} is no table ({error}): give its --separator (separator=)")


def _uneven(path: str | PathLike[str], layout: Layout, line: int, cells: int) -> DataError:
    first = "the header" if layout.header else "the first"
    usual = len(layout.header) if layout.header else layout.columns
    called = {SPACES: "white space", "\t": "tabs"}.get(layout.separator, f"{layout.separator!r}")
    return DataError(
        f"{path}, line {line} has {cells} columns and {first} has {usual}, separated by {called}: "
        "give every line the same, or the --separator (separator=)"
    )


# --- names ----------------------------------------------------------------------------------------


def _named(path: str | PathLike[str], layout: Layout, frame: Frame, notes: list[str]) -> Frame:
    """The frame with the header's names, without columns that have neither name nor cells."""
    counted = [str(at + 1) for at in range(frame.shape[1])]
    names = counted if layout.header is None else list(layout.header)
    if len(names) < frame.shape[1]:
        names += [""] * (frame.shape[1] - len(names))
        if frame.iloc[:, -1].notna().any():
            raise DataError(
                f"{path}: the header names {len(layout.header or ())} columns and lines have "
                f"{layout.columns}: name every column (R: write.csv, or col.names=NA)"
            )
    kept = []
    for at, name in enumerate(names):
        column = frame[at]
        nothing = layout.header is None or not name
        if nothing and at == len(names) - 1 and column.isna().all():
            continue  # every line ends in a separator
        if not name and at == 0 and _counts_rows(column):
            notes.append(f"{path}: the first column has no name and counts the rows: left out")
            continue
        if name and (twice := names.index(name)) < at:
            raise DataError(
                f'{path}: columns {twice + 1} and {at + 1} are both called "{name}": rename one'
            )
        kept.append(at)
    frame = frame[kept]
    frame.columns = [names[at] or counted[at] for at in kept]
    return frame


def _counts_rows(column: Any) -> bool:
    """As an index does that a frame was saved with."""
    if column.dtype.kind not in "iu" or not len(column):
        return False
    first = column.iloc[0]
    return first in (0, 1) and bool((np.diff(column) == 1).all())


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _index(values: np.ndarray, name: str) -> Any:
    import pandas as pd

    return pd.Index(values, name=name)

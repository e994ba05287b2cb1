"""How a text file holds a table: its encoding, separator, decimal mark and header, by its first
lines."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Collection, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from edgewise.data.text import OPENERS, UNREADABLE, missing
from edgewise.errors import DataError

HEAD_BYTES = 1 << 18
LINES = 1000  # of them, at most, are looked at
SEPARATORS = (",", ";", "\t", "|")
NAMED = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
SPACES = r"\s+"
MARKS = {  # the longer first: that of UTF-16 begins that of UTF-32
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# What stands for nothing; pandas takes these and some of Excel's own besides.
NOTHING = {"", "?", ".", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A"}
POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|Inf|INF)(inity)?")
COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)?,\d+([eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+")
EXCEL = re.compile(r'"?sep=(.)"?')


class Layout(NamedTuple):
    """How a text file holds a table."""

    encoding: str
    separator: str  # one character, or SPACES
    decimal: str
    thousands: str | None
    columns: int
    header: tuple[str, ...] | None
    skip: int  # lines before the first sample


def head_of(path: str | PathLike[str]) -> tuple[bytes, bool]:
    """The beginning of the unpacked file, and whether that is all there is."""
    try:
        with OPENERS.get(Path(path).suffix.lower(), open)(path, "rb") as file:
            head = file.read(HEAD_BYTES)
            return head, len(head) < HEAD_BYTES
    except FileNotFoundError:
        raise missing(path) from None
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read ({error}): fetch or unpack it again") from None


def sniff(
    path: str | PathLike[str],
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    names: Collection[str] = (),
) -> Layout:
    """What is given stands; what is not is found out. `names` are of columns that there must be:
    a first line that has one is a header."""
    head, whole = head_of(path)
    if encoding is None:
        encoding = encoding_of(path, head)
    lines = lines_in(path, head, whole, encoding)
    skip = 0
    while skip < len(lines) and not lines[skip].strip():
        skip += 1
    of_excel = EXCEL.fullmatch(lines[skip].strip()) if skip < len(lines) else None
    if of_excel:  # a line that Excel writes for itself
        separator, skip = separator or of_excel[1], skip + 1
    while skip + 1 < len(lines) and is_remark(lines[skip], lines[skip + 1]):
        skip += 1
    lines = lines[skip:]
    if not any(line.strip() for line in lines):
        raise DataError(f"{path} holds no samples: give a file with at least one line of data")
    if separator is None:
        separator = separator_of(lines)
    else:
        separator = NAMED.get(separator, separator)
        separator = SPACES if not separator.strip(" ") else separator
    if len(separator) != 1 and separator != SPACES:
        raise DataError(f"separator {separator!r}: give one character, or comma, tab, space, ...")
    rows = [row for row in rows_in(lines, separator) if any(cell.strip() for cell in row)]
    if not rows:
        raise DataError(f"{path} holds separators alone: give at least one line of data")
    body = [cell for row in rows[1:] for cell in row] if len(rows) > 1 else rows[0]
    if decimal is None:
        commas = any(COMMA.fullmatch(cell) for cell in body) and separator != ","
        points = any("." in cell and POINT.fullmatch(cell) for cell in body)
        decimal = "," if commas and not points else "."
    if decimal not in (".", ","):
        raise DataError(f"decimal {decimal!r}: give a point or a comma")
    thousands = "." if decimal == "," and any(map(THOUSANDS.fullmatch, body)) else None
    if header is None:
        told = {name for name in names if not is_number(name, decimal)} & {*rows[0]}
        header = bool(told) or has_header(rows, decimal)
    samples = rows[1:] if header and len(rows) > 1 else rows
    columns = Counter(map(len, samples)).most_common(1)[0][0]
    first = rows[0]
    if header and len(first) not in (columns, columns - 1):
        columns = len(first)  # what differs is said when it is read
    if header:
        skip += lines_of_row(lines, separator, first)
    known = tuple(cell.strip() for cell in first) if header else None
    return Layout(encoding, separator, decimal, thousands, columns, known, skip)


def encoding_of(path: str | PathLike[str], head: bytes) -> str:
    marked = next((name for mark, name in MARKS.items() if head.startswith(mark)), None)
    if marked is not None:
        return marked
    if b"\0" in head:
        raise DataError(
            f"{path} holds binary data: save it as CSV, Parquet or npz, or give its --encoding "
            "(encoding=) if it is text"
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return fallback(head)
    return "utf-8"


def fallback(text: bytes) -> str:
    """What bytes that are no UTF-8 are read as: Windows' Western European, where all mean
    something, else Latin-1, where all do."""
    try:
        text.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def lines_in(path: str | PathLike[str], head: bytes, whole: bool, encoding: str) -> list[str]:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except LookupError:
        raise DataError(f"encoding {encoding!r} is unknown: give utf-8, cp1252, ...") from None
    except UnicodeError as error:
        raise DataError(
            f"{path} is not in the encoding {encoding} ({error}): give another, or leave it out"
        ) from None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not whole and len(lines) > 1:
        lines.pop()  # cut off
    return lines[:LINES]


def is_remark(line: str, following: str) -> bool:
    """Whether a line at the top is no header of what follows, though it may begin as one."""
    unlike = any(line.count(s) != following.count(s) for s in SEPARATORS)
    return line.lstrip().startswith("#") and (unlike or following.lstrip().startswith("#"))


def rows_in(lines: Sequence[str], separator: str) -> list[list[str]]:
    if separator == SPACES:
        return [line.split() for line in lines]
    try:
        rows = csv.reader((line + "\n" for line in lines), delimiter=separator, **READING)
        return [[cell.strip() for cell in row] for row in rows]
    except csv.Error:
        return [line.split(separator) for line in lines]


READING: dict[str, Any] = {"skipinitialspace": True}


def lines_of_row(lines: Sequence[str], separator: str, first: list[str]) -> int:
    """Lines up to the first row and with it: a quoted name may be broken over several."""
    if separator == SPACES:
        return next(n for n, line in enumerate(lines, 1) if line.strip())
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator, **READING)
    return next((reader.line_num for row in reader if [cell.strip() for cell in row] == first), 1)


def separator_of(lines: Sequence[str]) -> str:
    """The one by which most lines have as many cells, most of them numbers; white space where none
    makes columns."""
    given = [line for line in lines if line.strip()]
    best, found = (0.0, 0.0, 0), None
    for separator in SEPARATORS:
        rows = [row for row in rows_in(given, separator) if row]
        width, often = Counter(map(len, rows)).most_common(1)[0]
        if width < 2:
            continue
        cells = [cell for row in rows[1:] or rows for cell in row]
        numbers = sum(is_number(c, ".") or (separator != "," and is_number(c, ",")) for c in cells)
        score = (round(often / len(rows), 1), round(numbers / len(cells), 2), width)
        if score > best:
            best, found = score, separator
    if found is not None:
        return found
    widths = {len(line.split()) for line in given}
    return SPACES if widths != {1} and max(widths) > 1 else ","


def has_header(rows: list[list[str]], decimal: str) -> bool:
    """Whether the first row names what is below: it has text over numbers; or, in a table of text
    alone, nothing that is in a column below."""
    first, body = rows[0], rows[1:]
    if all(is_number(cell, decimal) or cell in NOTHING for cell in first):
        return False
    if not body:
        return not any(is_number(cell, decimal) for cell in first)
    plain = True
    for at, cell in enumerate(first):
        below = [row[at] for row in body if at < len(row) and row[at] not in NOTHING]
        numeric = sum(is_number(value, decimal) for value in below)
        if below and 2 * numeric > len(below):
            if not is_number(cell, decimal) and cell not in NOTHING:
                return True
            plain = False
    recurs = any(
        cell in {row[at] for row in body if at < len(row)} for at, cell in enumerate(first)
    )
    return plain and not recurs and len({*first}) == len(first)


def is_number(cell: str, decimal: str) -> bool:
    return bool(POINT.fullmatch(cell) or (decimal == "," and COMMA.fullmatch(cell)))

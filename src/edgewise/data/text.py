"""Text files block by block, and LIBSVM text a block at a time."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
import warnings
import zlib
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgewise.errors import DataError

BLOCK_BYTES = 1 << 20
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
UNREADABLE = (OSError, EOFError, lzma.LZMAError, zlib.error)

NUMBER = rb"[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|nan|inf(?:inity)?)"
LIBSVM_LINE = re.compile(rb"\s*(?:%b(?:\s+\d+:%b)*)?\s*" % (NUMBER, NUMBER), re.IGNORECASE)
COMMENT = re.compile(rb"#[^\n]*")
QUERY = re.compile(rb"\bqid:\S+")

NEWLINE, SPACE, DIGIT_0, COLON = b"\n 0:"
BOUNDS = bytes(byte if byte in b"\n\t\v\f\r :" else 0 for byte in range(256))
MOST_DIGITS = 15  # any whole number of so many digits is exact as a float64


def line_blocks(path: str | PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Whole lines of the unpacked file, about BLOCK_BYTES at a time, and the first one's number."""
    line, rest = 1, b""
    try:
        with OPENERS.get(Path(path).suffix.lower(), open)(path, "rb") as file:
            while chunk := file.read(BLOCK_BYTES):
                if line == 1 and not rest:
                    chunk = chunk.removeprefix(codecs.BOM_UTF8)  # which spreadsheets write
                cut = chunk.rfind(b"\n") + 1
                if cut:
                    block, rest = rest + chunk[:cut], chunk[cut:]
                    yield line, block
                    line += block.count(b"\n")
                else:
                    rest += chunk
    except FileNotFoundError:
        raise missing(path) from None
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read ({error}): fetch or unpack it again") from None
    if rest:
        yield line, rest + b"\n"


def missing(path: str | PathLike[str]) -> DataError:
    return DataError(f"there is no file {path}: check the path, relative to {Path.cwd()}")


class Malformed(Exception):
    """Some line of a block; the slow path finds out which."""


class Rows(NamedTuple):
    labels: NDArray[np.float64]
    pairs: NDArray[np.int64]  # how many each row has
    indices: NDArray[np.int64]
    values: NDArray[np.float64]


def libsvm_blocks(path: str | PathLike[str]) -> Iterator[tuple[int, bytes]]:
    for line, block in line_blocks(path):
        if b"#" in block:
            block = COMMENT.sub(b"", block)
        if b"qid:" in block:
            block = QUERY.sub(b"", block)
        yield line, block


def measure_libsvm(path: str | PathLike[str]) -> tuple[int, int, int]:
    """Rows, entries, and the largest index if the lines are sound."""
    rows = entries = largest = 0
    for _, block in libsvm_blocks(path):
        rows += sum(map(bool, map(bytes.strip, block.split(b"\n"))))
        text = np.frombuffer(bytearray(b"\n" + block), dtype=np.uint8)
        colons = np.flatnonzero(text == COLON)
        if len(colons):
            entries += len(colons)
            before_line_end = np.searchsorted(colons, np.flatnonzero(text == NEWLINE)[1:]) - 1
            last, _ = _take_digits(text, np.unique(colons[np.maximum(before_line_end, 0)]))
            largest = max(largest, int(last.max()))
    return rows, entries, largest


def parse_libsvm(block: bytes) -> Rows:
    """All the numbers of a block at once."""
    bounds = np.frombuffer((b"\n" + block).translate(BOUNDS), dtype=np.uint8)
    inside = bounds == 0
    starts = np.flatnonzero(inside[1:] > inside[:-1]) + 1
    ends = np.flatnonzero(inside[1:] < inside[:-1]) + 1
    is_first = np.zeros(len(starts) + 1, dtype=bool)
    is_first[np.searchsorted(starts, np.flatnonzero(bounds == NEWLINE))] = True
    first = np.flatnonzero(is_first[:-1])
    if len(first) == 0:
        return Rows(np.empty(0), first, first, np.empty(0))

    is_value = bounds[starts - 1] == COLON
    ends_pair = is_value.copy()  # after these, and only these, a line may end
    ends_pair[first] = True
    sound = ends_pair[1:] != ends_pair[:-1]
    sound[first[1:] - 1] = ends_pair[first[1:] - 1]
    colons = starts[is_value] - 1
    stray_colons = np.count_nonzero(bounds == COLON) - len(colons) or not inside[colons - 1].all()
    if is_value[first].any() or not sound.all() or not ends_pair[-1] or stray_colons:
        raise Malformed

    # numpy needs some 200 ns for any number. Indices, and the many values that are a lone digit,
    # go faster as columns of digits, and are blanked out before numpy sees the text.
    text = np.frombuffer(bytearray(b"\n" + block.replace(b":", b" ")), dtype=np.uint8)
    length = ends - starts
    whole = ~ends_pair | (length == 1)
    numbers = np.empty(len(starts))
    numbers[whole], digits = _take_digits(text, ends[whole])
    if (digits != length[whole]).any():
        raise Malformed
    decimals = len(starts) - len(digits)
    if decimals:
        numbers[~whole] = _decimals(text.tobytes(), decimals)

    pairs = np.diff(first, append=len(starts)) // 2
    indices = numbers[~ends_pair].astype(np.int64)
    ascends = np.diff(indices, prepend=0) > 0
    row_starts = (np.cumsum(pairs) - pairs)[pairs > 0]
    ascends[row_starts] = indices[row_starts] > 0
    if not ascends.all():
        raise Malformed
    return Rows(numbers[first], pairs, indices, numbers[is_value])


def _take_digits(
    text: NDArray[np.uint8], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number whose digits lie just before each end, and how many; blanks them out in text."""
    number = np.zeros(len(ends), dtype=np.int64)
    digits = np.zeros(len(ends), dtype=np.int64)
    going = np.ones(len(ends), dtype=bool)
    for place in range(MOST_DIGITS):
        at = ends - (place + 1)
        digit = text.take(at, mode="clip") - DIGIT_0  # unsigned: a non-digit comes out above 9
        going &= digit < 10
        if not going.any():
            break
        number += (digit * going) * np.int64(10**place)
        digits += going
        text[at[going]] = SPACE
    return number, digits


def _decimals(text: bytes, count: int) -> NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # numpy < 2.4 only warns of bad text
        try:
            numbers = np.fromstring(text, sep=" ")
        except (ValueError, DeprecationWarning):
            raise Malformed from None
    if len(numbers) != count:
        raise Malformed
    return numbers


def malformed_libsvm(path: str | PathLike[str], line: int, block: bytes) -> DataError:
    lines = block.split(b"\n")
    for number, text in enumerate(lines, start=line):
        if not LIBSVM_LINE.fullmatch(text):
            shown = text[:60].decode(errors="replace")
            return DataError(
                f"{path}, line {number}: {shown!r} is not `label index:value ...`: correct the line"
            )
        previous = 0
        for index in map(int, re.findall(rb"(\d+):", text)):
            if index <= previous:
                return DataError(
                    f"{path}, line {number}: index {index} after {previous}: number the features "
                    "from 1, in ascending order"
                )
            previous = index
    return DataError(
        f"{path}, lines {line} to {line + len(lines) - 2}: a number here cannot be read: write "
        f"plain decimal numbers, and indices of at most {MOST_DIGITS} digits"
    )

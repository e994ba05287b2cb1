"""The one checkpoint format, of runs and of peers: a head and many arrays, as they lie in memory.

A peer writes one every few rounds, with hundreds of messages in it. NumPy's own format takes a
tenth of a millisecond for each array: more than the rounds themselves.

    OPENING   magic, bytes of the contents, CRC-32 of the contents
    contents  JSON: head; name, type, shape and CRC-32 of each array
    arrays    one after another, little-endian or as their type says
"""

import json
import os
import struct
import zlib
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.fileio import replacing

OPENING = struct.Struct("<8sQI")
MAGIC = b"EWCKPT01"
KINDS = "biuf"  # of NumPy: truth values and numbers, never objects


def write(
    path: Path, head: Mapping[str, Any], arrays: Mapping[str, Any], keep: Path | None = None
) -> None:
    """Whole and on the disk, or not at all. keep: where the one that was there goes."""
    contiguous = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    table = [
        [name, a.dtype.str, np.shape(arrays[name]), zlib.crc32(a.data)]
        for name, a in contiguous.items()
    ]
    for name, kind, *_ in table:
        if np.dtype(kind).kind not in KINDS:
            raise ValueError(f"{name} has type {kind}, which no checkpoint holds")
    contents = json.dumps([head, table]).encode()
    with replacing(path, keep=keep) as file:
        file.write(OPENING.pack(MAGIC, len(contents), zlib.crc32(contents)) + contents)
        for a in contiguous.values():
            file.write(a.data)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Head and all arrays; raises as `CheckpointFile` does."""
    with CheckpointFile(path) as file:
        return file.head, {name: file[name] for name in file.table}


class CheckpointFile:
    """A checkpoint to read from, one array at a time.

    Raises ValueError where something else, or less, or more than was written is there, and names
    the part whose bytes are not those that were written.
    """

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")
        try:
            self.head, self.table = self.contents()
        except BaseException:
            self.file.close()
            raise

    def __enter__(self) -> "CheckpointFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def contents(self) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
        size = os.fstat(self.file.fileno()).st_size
        opening = self.file.read(OPENING.size)
        if len(opening) < OPENING.size:
            raise ValueError(f"{size} bytes")
        magic, length, checksum = OPENING.unpack(opening)
        if magic != MAGIC or OPENING.size + length > size:
            raise ValueError("not a checkpoint")
        text = self.file.read(length)
        if zlib.crc32(text) != checksum:
            raise ValueError("its head is damaged")
        head, listed = json.loads(text)
        at, table = OPENING.size + length, {}
        for name, kind, shape, checksum in listed:
            dtype = np.dtype(kind)
            if dtype.kind not in KINDS:
                raise ValueError(f"{name} has type {kind}")
            table[name] = (dtype, tuple(shape), at, checksum)
            at += dtype.itemsize * prod(shape)
        if at != size:
            raise ValueError(f"{size} bytes instead of {at}")
        return head, table

    def __getitem__(self, name: str) -> np.ndarray:
        dtype, shape, at, checksum = self.table[name]
        self.file.seek(at)
        data = self.file.read(dtype.itemsize * prod(shape))
        if zlib.crc32(data) != checksum:
            raise ValueError(f"{name} is damaged")
        return np.frombuffer(data, dtype).reshape(shape)

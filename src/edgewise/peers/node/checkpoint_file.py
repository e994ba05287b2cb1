"""A checkpoint's file: a head and many arrays, as they lie in memory.

A peer writes one every few rounds, with hundreds of messages in it. NumPy's own format takes a
tenth of a millisecond for each array, and sums over all bytes: more than the rounds themselves.

    magic, length of the contents, contents (JSON: head; name, type and shape of each array), arrays
"""

import json
import struct
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.fileio import replacing

OPENING = struct.Struct("<8sQ")
MAGIC = b"EWSTATE1"
KINDS = "biuf"  # of NumPy: truth values and numbers, never objects


def write(path: Path, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    whole = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    table = [[name, a.dtype.str, np.shape(arrays[name])] for name, a in whole.items()]
    contents = json.dumps([head, table]).encode()
    with replacing(path) as file:
        file.write(OPENING.pack(MAGIC, len(contents)) + contents)
        for a in whole.values():
            file.write(a.data)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Raises ValueError where something else, or less, or more than was written is there."""
    data = path.read_bytes()
    if len(data) < OPENING.size:
        raise ValueError(f"{len(data)} bytes")
    magic, length = OPENING.unpack_from(data)
    at = OPENING.size + length
    if magic != MAGIC or at > len(data):
        raise ValueError("not a peer's state")
    head, table = json.loads(data[OPENING.size : at])
    arrays = {}
    for name, kind, shape in table:
        dtype = np.dtype(kind)
        if dtype.kind not in KINDS:
            raise ValueError(f"{name} has type {kind}")
        arrays[name] = np.frombuffer(data, dtype, prod(shape), at).reshape(shape)
        at += arrays[name].nbytes
    if at != len(data):
        raise ValueError(f"{len(data)} bytes instead of {at}")
    return head, arrays

"""Tables from Parquet and Arrow (Feather), by pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from edgewise.data.frames import Frame
from edgewise.data.text import missing
from edgewise.errors import DataError

PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow", ".ipc")


def read_arrow(path: str | PathLike[str], suffix: str) -> Frame:
    try:
        import pyarrow as pa
    except ImportError:
        raise DataError(
            f"{path}: Parquet and Arrow are read by pyarrow, which is not there: pip install "
            "'edgewise[tables]', or save the table as CSV"
        ) from None
    if not Path(path).is_file():
        raise missing(path)
    try:
        table = _reader_of(suffix)(path)
        frame = table.to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read ({error}): write it again") from None
    notes = []
    index = [name for name in frame.columns if str(name).startswith("__index_level_")]
    if index:  # pandas' own, which has no name
        frame = frame.drop(columns=index)
        notes.append(f"{path}: pandas' index is left out")
    twice = next((name for name in frame.columns if list(frame.columns).count(name) > 1), None)
    if twice is not None:
        raise DataError(f'{path}: two columns are both called "{twice}": rename one')
    if not len(frame):
        raise DataError(f"{path} has no samples: give at least one row")
    frame.attrs = {"source": str(path), "notes": tuple(notes)}
    return frame


def _reader_of(suffix: str) -> Callable[[Any], Any]:
    import pyarrow as pa

    if suffix in PARQUET:
        from pyarrow import parquet

        return parquet.read_table

    def read(path: Any) -> Any:
        with pa.memory_map(str(path)) as source:
            try:
                return pa.ipc.open_file(source).read_all()
            except pa.ArrowInvalid:
                source.seek(0)
                return pa.ipc.open_stream(source).read_all()

    return read

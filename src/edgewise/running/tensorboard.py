"""Runs, watched in TensorBoard as they go (the extra `edgewise[tensorboard]`)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.errors import InputError


class TensorBoard:
    """A callback for `solve`: every number of a trace's row, over communication rounds.

        with ew.TensorBoard("out/clinics") as board:
            ew.solve(problem, graph, callback=board)

    and `tensorboard --logdir out` shows it, next to every other run below that folder. A run that
    goes on from a checkpoint goes on in the same curves.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from tensorboard.summary import Writer
        except ImportError as error:
            raise InputError(
                "TensorBoard is not installed: pip install 'edgewise[tensorboard]'"
            ) from error
        self.open: Callable[[], Any] = lambda: Writer(str(folder))
        self.writer: Any = None  # opened with the first row: a run that cannot start leaves no file

    def __call__(self, row: Mapping[str, float]) -> None:
        self.writer = self.writer or self.open()
        for name, value in row.items():
            if name != "rounds" and np.isfinite(value):
                self.writer.add_scalar(name, value, int(row["rounds"]))
        self.writer.flush()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None

    def __enter__(self) -> "TensorBoard":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

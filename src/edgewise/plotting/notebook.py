"""What changes while a cell of a notebook runs."""

import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import Any

LEAST_APART = 0.2  # seconds between two pictures, at least


def in_notebook() -> bool:
    """Whether the output is of a notebook's cell; asks IPython only if somebody has started it."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class LiveOutput:
    """A piece of a cell's output that is written over."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.drawn = -LEAST_APART

    @property
    def due(self) -> bool:
        return time.monotonic() - self.drawn >= LEAST_APART

    def show(self, html: str, text: str) -> None:
        """`text`: where HTML cannot be shown. A run goes on where neither can."""
        self.drawn = time.monotonic()
        with suppress(Exception):
            display: Any = import_module("IPython.display").display
            data = {"text/html": html, "text/plain": text}
            if self.handle is None:
                self.handle = display(data, raw=True, display_id=True)
            else:
                self.handle.update(data, raw=True)

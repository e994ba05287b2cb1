"""A progress bar for runs that people watch."""

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

PATIENCE = 0.5  # seconds; shorter runs show nothing


class Progress:
    """Shown after a moment, on a terminal only (or never, or always)."""

    def __init__(
        self, rounds: int, title: str, wanted: bool | None, measure: str = "residual"
    ) -> None:
        self.console = Console(stderr=True)
        self.wanted = self.console.is_terminal if wanted is None else wanted
        self.rounds, self.title, self.measure = rounds, title, measure
        self.began = time.monotonic()
        self.bar: Bar | None = None

    def __enter__(self) -> "Progress":
        return self

    def update(self, done: int, residual: float) -> None:
        if self.bar is None:
            if not self.wanted or time.monotonic() - self.began < PATIENCE:
                return
            self.bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn(self.measure + " {task.fields[residual]:.1e}"),
                TimeRemainingColumn(),
                console=self.console,
                transient=self.console.is_terminal,
            )
            self.task = self.bar.add_task(self.title, total=self.rounds, residual=residual)
            self.bar.start()
        self.bar.update(self.task, completed=done, residual=residual, description=self.title)

    def portion(self, start: float, share: float) -> Callable[[float, float], None]:
        """To tell of a part of the whole, itself from 0 to 1."""
        return lambda part, measure: self.update(int((start + share * part) * self.rounds), measure)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

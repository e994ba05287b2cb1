"""How a run is getting on, for people who watch: a bar on a terminal, a bar or a curve in a
notebook."""

import time
from collections.abc import Callable
from html import escape
from types import TracebackType
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from edgewise.errors import MethodError
from edgewise.plotting.notebook import LiveOutput, in_notebook
from edgewise.plotting.svg import Line, curves

PATIENCE = 0.5  # seconds; shorter runs show nothing
LEAST_SEEN = 4  # looks, before anything is said of the time left

Wanted = bool | Literal["plot"] | None


class Progress:
    """Shown after a moment, on a terminal and in a notebook only (or never, or always).

    tol   where the run would stop; with it, or with a residual as the measure, the time that is
          left is told from the rate at which the residual falls
    """

    def __init__(
        self,
        rounds: int,
        title: str,
        wanted: Wanted,
        measure: str = "residual",
        tol: float | None = None,
    ) -> None:
        if wanted is not None and not isinstance(wanted, bool) and wanted != "plot":
            raise MethodError(f'progress={wanted!r}: give True, False, "plot" or None')
        self.console = Console(stderr=True)
        self.notebook = in_notebook()
        seen = self.console.is_terminal or self.notebook
        self.wanted = seen if wanted in (None, "plot") else bool(wanted)
        self.plots = wanted == "plot" and self.notebook
        self.rounds, self.title, self.measure, self.tol = rounds, title, measure, tol
        self.began = time.monotonic()
        self.history = History(rounds, tol)
        self.bar: Bar | None = None
        self.output: LiveOutput | None = None

    def __enter__(self) -> "Progress":
        return self

    def update(self, done: int, residual: float) -> None:
        if not self.wanted:
            return
        self.history.note(time.monotonic(), done, residual)
        if self.bar is None and self.output is None:
            if time.monotonic() - self.began < PATIENCE and not self.plots:
                return
            if self.notebook:
                self.output = LiveOutput()
            else:
                self.start_bar(residual)
        if self.output is not None:
            if self.output.due:
                self.output.show(self.html(), self.text())
        elif self.bar is not None:
            left = self.history.time_left()
            known = {"residual": residual, "left": left, "description": self.title}
            self.bar.update(self.task, completed=done, **known)  # type: ignore[arg-type]

    def start_bar(self, residual: float) -> None:
        of_rate = TextColumn("{task.fields[left]}")
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(self.measure + " {task.fields[residual]:.1e}"),
            of_rate if self.of_residual else TimeRemainingColumn(),
            console=self.console,
            transient=self.console.is_terminal,
        )
        fields: dict[str, Any] = {"residual": residual, "left": ""}
        self.task = self.bar.add_task(self.title, total=self.rounds, **fields)
        self.bar.start()

    @property
    def of_residual(self) -> bool:
        return self.measure == "residual"

    def text(self) -> str:
        done, value = self.history.done[-1], self.history.values[-1]
        left = self.history.time_left() if self.of_residual else ""
        parts = [f"{done:,} of {self.rounds:,}", f"{self.measure} {value:.1e}", left]
        return f"{self.title}: " + ", ".join(part for part in parts if part)

    def html(self) -> str:
        """A bar with the text, and where it was asked for the curve above."""
        bar = (
            f'<progress value="{self.history.done[-1]}" max="{max(self.rounds, 1)}" '
            'style="width:12em;vertical-align:middle"></progress>'
        )
        picture = ""
        if self.plots:
            x, y = np.array(self.history.done, float), np.array(self.history.values, float)
            picture = curves([Line(self.measure, x, y)], 480, 200, self.tol)
        return (
            '<div style="font-family:system-ui,sans-serif;font-size:13px">'
            f"{picture}<div>{bar} {escape(self.text())}</div></div>"
        )

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
        if self.output is not None and self.plots:  # the last rows too
            self.history.over = True
            self.output.show(self.html(), self.text())
        elif self.output is not None:  # as a terminal's bar, which goes when the run is over
            self.output.show("", "")


class History:
    """Rounds and residuals so far, and when they were seen."""

    def __init__(self, rounds: int, tol: float | None) -> None:
        self.rounds, self.tol = rounds, tol
        self.times: list[float] = []
        self.done: list[int] = []
        self.values: list[float] = []
        self.over = False

    def note(self, now: float, done: int, value: float) -> None:
        self.times.append(now)
        self.done.append(done)
        self.values.append(value)

    def time_left(self) -> str:
        """To tol or to the last round, whichever comes first, if the residual goes on as in the
        latter half of what was seen. Nothing where too little was."""
        # the first look is before anything is compiled
        recent = slice(max(1, len(self.times) // 2), None)
        times, done = np.array(self.times[recent]), np.array(self.done[recent], float)
        if self.over or len(times) < LEAST_SEEN or done[-1] <= done[0]:
            return ""
        a_round = (times[-1] - times[0]) / (done[-1] - done[0])
        left = max(self.rounds - done[-1], 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.array(self.values[recent]))
        if self.tol is None or not np.isfinite(logs).all():
            return f"{clock(a_round * left)} left at this rate"
        slope, at_zero = np.polyfit(done - done[-1], logs, 1)
        needed = (at_zero - np.log(self.tol)) / -slope if slope < 0 else np.inf
        if needed <= left:
            return f"{clock(a_round * max(needed, 0))} to {self.tol:.0e} at this rate"
        by_then = f"{np.exp(at_zero + slope * left):.0e}" if slope < 0 else "no less"
        return f"{clock(a_round * left)} left, residual {by_then} by then at this rate"


def clock(seconds: float) -> str:
    """0:07, 12:34, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

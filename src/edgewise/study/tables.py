"""Comparisons as tables."""

from collections.abc import Mapping, Sequence
from html import escape as escape_html
from typing import Any, NamedTuple, Protocol

import numpy as np
from rich.markup import escape
from rich.table import Table

from edgewise.plotting.axes import FAR, LABELS
from edgewise.plotting.displays import caption, card, html_table
from edgewise.plotting.studies import PART_OF_START
from edgewise.plotting.svg import Line, curves, swatch

SECONDS = "seconds"
BROKEN = "diverged"
CURVE_POINTS = 60  # of a small curve


class Costs(Protocol):
    """A comparison, as far as its tables go."""

    @property
    def runs(self) -> Mapping[str, Any]: ...
    @property
    def refused(self) -> Mapping[str, str]: ...
    @property
    def harmed(self) -> Mapping[str, str]: ...
    @property
    def accuracies(self) -> Sequence[float]: ...
    @property
    def unit(self) -> str: ...
    @property
    def budget(self) -> float: ...
    @property
    def faults(self) -> Any: ...
    def cost(self, method: str, accuracy: float, unit: str) -> np.ndarray: ...
    def best(self, accuracy: float, unit: str) -> str | None: ...
    def ended(self, method: str) -> np.ndarray: ...
    def diverged(self, method: str) -> bool: ...


class Cell(NamedTuple):
    text: str
    best: bool = False
    seconds: str = ""  # the median; nothing where the accuracy was not reached


class Row(NamedTuple):
    method: str  # with a star where faults keep it from the optimum
    cells: list[Cell]  # for each accuracy, then what was left at the end where there are faults
    key: str  # the method by its name


def comparison_table(comparison: Costs, unit: str) -> Table:
    """Median and quartiles of the cost to each accuracy, the best in bold, the cheapest first; the
    median of seconds below it."""
    title = f"{LABELS[unit]} to each accuracy"
    below = "" if unit == SECONDS else "; seconds of compute below"
    found = rows(comparison, unit)
    lines = f"{title}\nmedian (quartiles){below}"
    table = Table(title=lines, min_width=max(map(len, lines.splitlines())))
    for name in head(comparison):
        if name == "method":
            table.add_column(name, no_wrap=True)
        else:  # no header breaks within a word
            name = name.replace(" end", "\nend")
            width = max(map(len, name.splitlines()))
            table.add_column(name, justify="right", overflow="fold", min_width=width)
    for row in found:
        marked = [f"[bold]{cell.text}[/bold]" if cell.best else cell.text for cell in row.cells]
        if below:
            seconds = (f"\n[dim]{c.seconds} s[/dim]" if c.seconds else "" for c in row.cells)
            marked = [text + more for text, more in zip(marked, seconds, strict=True)]
        table.add_row(escape(row.method), *marked)
    table.caption = escape("\n".join(notes(comparison, found))) or None
    return table


def comparison_markdown(comparison: Costs, unit: str) -> str:
    lines = [head(comparison), ["---", *("--:" for _ in head(comparison)[1:])]]
    for row in rows(comparison, unit):
        star = row.method.removeprefix(row.key)
        costs = (f"**{cell.text}**" if cell.best else cell.text for cell in row.cells)
        lines.append([f"`{row.key}`{star}", *costs])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def comparison_html(comparison: Costs, unit: str) -> str:
    """The same table, and the medians as curves."""
    found = rows(comparison, unit)
    lines, told = [], []
    for place, row in enumerate(found):
        curve = median_curve(comparison.runs[row.key], unit)
        lines.append(Line(row.method, *curve))
        cells = [f"{swatch(place)} {escape_html(row.method)}"]
        for cell in row.cells:
            text = f"<b>{cell.text}</b>" if cell.best else cell.text
            below = f'<br/><span style="opacity:.7">{cell.seconds} s</span>' if cell.seconds else ""
            cells.append(text + below)
        told.append(cells)
    title = f"{LABELS[unit]} to each accuracy: median (quartiles); seconds of compute below"
    picture = curves(lines, 320, 160)
    if picture:
        picture += caption(f"{PART_OF_START}, over {LABELS[unit]}")
    note = "; ".join([title, *notes(comparison, found)])
    return card("Comparison", {}, html_table(head(comparison), told), picture, note=note)


def median_curve(runs: Sequence[Any], unit: str) -> tuple[np.ndarray, np.ndarray]:
    """Costs, and the median over runs of what was left by then."""
    costs = np.linspace(0, max(run.costs[unit][-1] for run in runs), CURVE_POINTS)
    left = [[run.value_at(unit, cost) for cost in costs] for run in runs]
    return costs, np.quantile(np.minimum(left, FAR), 0.5, axis=0, method="inverted_cdf")


def head(comparison: Costs) -> list[str]:
    end = [] if comparison.faults is None else ["at the end"]
    return ["method", *(f"{a:.0e}" for a in comparison.accuracies), *end]


def notes(comparison: Costs, found: Sequence[Row]) -> list[str]:
    """What signs in the table mean, and who is not in it."""
    texts, made = {cell.text for row in found for cell in row.cells}, []
    if "-" in texts:
        spent = short(comparison.budget, comparison.unit)
        made.append(f"-: not reached in {spent} {LABELS[comparison.unit]}")
    if BROKEN in texts:
        made.append(f"{BROKEN}: no nearer to the optimum at the end than at the start")
    if comparison.faults is not None:
        made.append("at the end: the divergence, as a part of the start's")
    for why in dict.fromkeys(map(general, comparison.harmed.values())):
        made.append(f"*: {why}")
    if comparison.refused:
        why_not = (f"{m} ({why})" for m, why in comparison.refused.items())
        made.append("not here: " + "; ".join(why_not))
    return made


def general(why: str) -> str:
    """Of a reason that begins with a method's class, the rest."""
    first, _, rest = why.partition(" ")
    return rest if rest.startswith("does not heal") else f"{first} {rest}"


def rows(comparison: Costs, unit: str) -> list[Row]:
    """Methods in the order of their cost to the finest accuracy, then the next, then of what they
    had left at the end."""
    levels = comparison.accuracies
    best = {a: comparison.best(a, unit) for a in levels}
    ended = {m: comparison.ended(m) for m in comparison.runs}

    def place(m: str) -> tuple[float, ...]:
        return *(comparison.cost(m, a, unit)[1] for a in reversed(levels)), ended[m][1]

    def cell(m: str, accuracy: float) -> Cell:
        costs, seconds = comparison.cost(m, accuracy, unit), comparison.cost(m, accuracy, SECONDS)
        text = quartiles_text(costs, unit)
        if text == "-" and comparison.diverged(m):
            text = BROKEN
        reached = np.isfinite(seconds[1])
        return Cell(text, m == best[accuracy], f"{seconds[1]:.2g}" if reached else "")

    def row(m: str) -> Row:
        star = " *" if m in comparison.harmed else ""
        cells = [cell(m, a) for a in levels]
        if comparison.faults is not None:
            cells.append(Cell(BROKEN if comparison.diverged(m) else f"{ended[m][1]:.0e}"))
        return Row(m + star, cells, m)

    return [row(m) for m in sorted(comparison.runs, key=place)]


def quartiles_text(quartiles: np.ndarray, unit: str) -> str:
    low, middle, high = (short(q, unit) for q in quartiles)
    if middle == "-":
        return "-"
    return middle if low == high else f"{middle} ({low} to {high})"


def short(number: float, unit: str) -> str:
    """Three digits, and k, M, G for thousands, millions, milliards."""
    if not np.isfinite(number):
        return "-"
    for letter, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 0.9995 * size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}" if unit == SECONDS else f"{number:.0f}"

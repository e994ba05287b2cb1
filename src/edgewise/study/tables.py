"""Comparisons as tables."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from rich.table import Table

from edgewise.plotting.axes import LABELS


class Costs(Protocol):
    """A comparison, as far as its tables go."""

    @property
    def runs(self) -> Mapping[str, Any]: ...
    @property
    def refused(self) -> Mapping[str, str]: ...
    @property
    def accuracies(self) -> Sequence[float]: ...
    @property
    def unit(self) -> str: ...
    @property
    def budget(self) -> float: ...
    def cost(self, method: str, accuracy: float, unit: str) -> np.ndarray: ...
    def best(self, accuracy: float, unit: str) -> str | None: ...


def comparison_table(comparison: Costs, unit: str) -> Table:
    """Median and quartiles of the cost to each accuracy, the best in bold, the cheapest first."""
    title = f"{LABELS[unit]} to each accuracy: median (quartiles)"
    table = Table(title=title, min_width=len(title))
    table.add_column("method")
    for accuracy in comparison.accuracies:
        table.add_column(f"{accuracy:.0e}", justify="right")
    for method, cells in rows(comparison, unit):
        marked = [f"[bold]{text}[/bold]" if best else text for text, best in cells]
        table.add_row(method, *marked)
    notes = []
    if any(text == "-" for _, found in rows(comparison, unit) for text, _ in found):
        spent = short(comparison.budget, comparison.unit)
        notes.append(f"-: not reached in {spent} {LABELS[comparison.unit]}")
    if comparison.refused:
        why = (f"{m} ({why})" for m, why in comparison.refused.items())
        notes.append("not here: " + "; ".join(why))
    table.caption = "\n".join(notes) or None
    return table


def comparison_markdown(comparison: Costs, unit: str) -> str:
    head = ["method", *(f"{a:.0e}" for a in comparison.accuracies)]
    lines = [head, ["---", *("--:" for _ in comparison.accuracies)]]
    for method, cells in rows(comparison, unit):
        lines.append([f"`{method}`", *(f"**{text}**" if best else text for text, best in cells)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def rows(comparison: Costs, unit: str) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Methods in the order of their cost to the finest accuracy, then the next; with whether a
    cost is the least of all."""
    levels = comparison.accuracies
    best = {a: comparison.best(a, unit) for a in levels}
    medians = {
        m: tuple(comparison.cost(m, a, unit)[1] for a in reversed(levels)) for m in comparison.runs
    }
    order = sorted(medians, key=medians.__getitem__)
    return [
        (
            m,
            [(quartiles_text(comparison.cost(m, a, unit), unit), m == best[a]) for a in levels],
        )
        for m in order
    ]


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
    return f"{number:.3g}" if unit == "seconds" else f"{number:.0f}"

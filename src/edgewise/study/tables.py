"""Comparisons as tables."""

from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from edgewise.running.trace import LABELS

if TYPE_CHECKING:
    from edgewise.study.compare import Comparison


def comparison_table(comparison: "Comparison", unit: str) -> Table:
    """Median and quartiles of the cost to each accuracy, the best in bold, the cheapest first."""
    title = f"{LABELS[unit]} to each accuracy: median (quartiles)"
    table = Table(title=title, min_width=len(title))
    table.add_column("method")
    for accuracy in comparison.accuracies:
        table.add_column(f"{accuracy:.0e}", justify="right")
    for method, cells in rows(comparison, unit):
        marked = [f"[bold]{text}[/bold]" if best else text for text, best in cells]
        table.add_row(method, *marked)
    told = []
    if any(text == "-" for _, found in rows(comparison, unit) for text, _ in found):
        spent = short(comparison.budget, comparison.unit)
        told.append(f"-: not reached in {spent} {LABELS[comparison.unit]}")
    if comparison.refused:
        why = (f"{m} ({why})" for m, why in comparison.refused.items())
        told.append("not here: " + "; ".join(why))
    table.caption = "\n".join(told) or None
    return table


def comparison_markdown(comparison: "Comparison", unit: str) -> str:
    head = ["method", *(f"{a:.0e}" for a in comparison.accuracies)]
    lines = [head, ["---", *("--:" for _ in comparison.accuracies)]]
    for method, cells in rows(comparison, unit):
        lines.append([f"`{method}`", *(f"**{text}**" if best else text for text, best in cells)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def rows(comparison: "Comparison", unit: str) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Methods in the order of their cost to the finest accuracy, then the next; with whether a
    cost is the least of all."""
    levels = comparison.accuracies
    best = {a: comparison.best(a, unit) for a in levels}
    medians = {
        m: tuple(comparison.cost(m, a, unit)[1] for a in reversed(levels)) for m in comparison.runs
    }
    order = sorted(medians, key=medians.__getitem__)
    return [
        (m, [(spelt(comparison.cost(m, a, unit), unit), m == best[a]) for a in levels])
        for m in order
    ]


def spelt(quartiles: np.ndarray, unit: str) -> str:
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

"""The tables of docs/performance.md that docs/data/libraries.json has the numbers of."""

from pathlib import Path
from typing import Any

BEGIN, END = "<!-- made by benchmarks/libraries.py -->", "<!-- end of libraries.py's -->"
LEVELS = ("1e-03", "1e-06")
TITLES = {
    "a9a": "Logistic loss with a ridge: a9a",
    "ridge": "Squared loss with a ridge: diabetes",
    "lasso": "Lasso: spambase",
}


def seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def called(row: str, run: dict[str, Any]) -> str:
    name = row
    if run.get("called", "") not in ("", row.removeprefix("edgewise ")):
        name = f"{row} ({run['called']})"
    return f"{name}, {run['steps']}" if run["steps"] else name


def ending(run: dict[str, Any]) -> str:
    if run["ended"] == "diverged" or run["gap"] is None:
        return "diverges"
    return f"{run['gap']:.0e} after {run['spent']:.0f} s"


def cells(row: str, found: dict[str, Any]) -> list[list[str]]:
    """One list of cells for a run: name, seconds and rounds to each level, what else."""
    if "reason" in found:
        return [[row, *["-"] * 4, found["reason"]]]
    made = []
    for run in found["rows"]:
        cell = [called(row, run)]
        for level in LEVELS:
            there = level in run["seconds"]
            cell.append(seconds(run["seconds"][level]) if there else "-")
            rounds = run["rounds"].get(level, 0)
            cell.append(f"{rounds:,.0f}" if rounds else "-")
        made.append([*cell, "" if LEVELS[-1] in run["seconds"] else ending(run)])
    return made


def lines(row: str, found: dict[str, Any]) -> list[str]:
    """As it is told while it runs."""
    return [f"{c[0]:48s} " + " ".join(f"{x:>9s}" for x in c[1:5]) + f"  {c[5]}"
            for c in cells(row, found)]  # fmt: skip


def table(name: str, kept: dict[str, Any]) -> str:
    p = kept["problem"]
    term = f"l1 {p['l1']:g}" if p["l1"] else f"ridge {p['ridge']:g}"
    condition = float(f"{p['condition']:.2g}")
    told = (
        f"**{TITLES[name]}**, {p['nodes']} nodes with {p['samples']} samples each, "
        f"{p['edges']} edges, {p['unknowns']} unknowns, {term}, condition number "
        f"{condition:,.0f}:"
    )
    head = ["", "s to 1e-3", "rounds", "s to 1e-6", "rounds", ""]
    out = [told, "", "| " + " | ".join(head) + " |", "|---|--:|--:|--:|--:|---|"]
    for row, found in kept["rows"].items():
        out += ["| " + " | ".join(cell) + " |" for cell in cells(row, found)]
    return "\n".join(out)


def tables(kept: dict[str, Any]) -> str:
    return "\n\n".join(table(name, kept[name]) for name in TITLES if name in kept)


def between(text: str, begin: str, end: str, made: str) -> str:
    """The page with that between two of its lines, if it has them."""
    if begin not in text:
        return text
    before, rest = text.split(begin, 1)
    return f"{before}{begin}\n\n{made}\n\n{end}{rest.split(end, 1)[1]}"


def write(page: Path, kept: dict[str, Any]) -> None:
    page.write_text(between(page.read_text(), BEGIN, END, tables(kept)))

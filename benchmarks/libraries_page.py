"""The tables of docs/performance.md that docs/data/libraries.json has the numbers of."""

from pathlib import Path
from typing import Any

BEGIN, END = "<!-- made by benchmarks/libraries.py -->", "<!-- end of libraries.py's -->"
LEVELS = ("1e-03", "1e-06")
LIBRARIES = ("scikit-learn", "edgewise", "decent-bench", "nda", "tvopt")
SHORT = {
    "a9a": "a9a, logistic, ridge",
    "ridge": "diabetes, squared, ridge",
    "lasso": "spambase, lasso",
}
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
    for row in sorted(kept["rows"], key=order):
        found = kept["rows"][row]
        out += ["| " + " | ".join(cell) + " |" for cell in cells(row, found)]
    return "\n".join(out)


def order(row: str) -> int:
    """Floor, ours, theirs; within a library as they were run."""
    return [row.startswith(library) for library in LIBRARIES].index(True)


def best(found: dict[str, Any]) -> dict[str, Any] | None:
    """Of the runs of a row: there first, or else nearest."""
    runs = found.get("rows", [])
    there = [run for run in runs if LEVELS[-1] in run["seconds"]]
    if there:
        return min(there, key=lambda run: run["seconds"][LEVELS[-1]])
    near = [run for run in runs if run["ended"] != "diverged" and run["gap"] is not None]
    return min(near, key=lambda run: run["gap"]) if near else None


def short(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    run = best(found)
    if run is None:
        return "diverges" if "rows" in found else found["reason"]
    if LEVELS[-1] not in run["seconds"]:
        return f"- ({run['gap']:.0e})"
    rounds = run["rounds"][LEVELS[-1]]
    told = seconds(run["seconds"][LEVELS[-1]])
    return f"{told} ({rounds:,.0f})" if rounds else told


def summary(kept: dict[str, Any]) -> str:
    """One row a method, one column a problem."""
    problems = [name for name in TITLES if name in kept]
    names = dict.fromkeys(row for name in problems for row in kept[name]["rows"])
    out = ["| | " + " | ".join(SHORT[name] for name in problems) + " |"]
    out.append("|---|" + "--:|" * len(problems))
    for row in sorted(names, key=order):
        found = [kept[name]["rows"].get(row) for name in problems]
        runs = [run for each in found if each for run in each.get("rows", [])]
        untuned = runs and all(run["steps"] == "untuned" for run in runs)
        out.append(
            f"| {row}{', untuned' * bool(untuned)} | " + " | ".join(map(short, found)) + " |"
        )
    return "\n".join(out)


def tables(kept: dict[str, Any]) -> str:
    whole = "\n\n".join(table(name, kept[name]) for name in TITLES if name in kept)
    folded = f"<summary>All runs, with the documented steps too</summary>\n\n{whole}"
    return f'{summary(kept)}\n\n<details markdown="1">\n{folded}\n\n</details>'


def between(text: str, begin: str, end: str, made: str) -> str:
    """The page with that between two of its lines, if it has them."""
    if begin not in text:
        return text
    before, rest = text.split(begin, 1)
    return f"{before}{begin}\n\n{made}\n\n{end}{rest.split(end, 1)[1]}"


def write(page: Path, kept: dict[str, Any]) -> None:
    page.write_text(between(page.read_text(), BEGIN, END, tables(kept)))

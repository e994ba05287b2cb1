"""The table of docs/performance.md that docs/data/wire.json has the numbers of."""

from pathlib import Path
from typing import Any

from libraries_page import between

BEGIN, END = "<!-- made by benchmarks/wire.py -->", "<!-- end of wire.py's -->"


def cell(run: dict[str, Any]) -> str:
    if run["residual"] > 1:
        return "diverges"
    if not run["reached"]:
        return f"- ({run['residual']:.0e})"
    return f"{run['megabytes']:.3g} ({run['rounds']:,})"


def table(kept: dict[str, Any]) -> str:
    sent = list(next(iter(next(iter(kept.values())).values())))
    out = ["| problem | method | " + " | ".join(sent) + " |", "|---|---|" + "--:|" * len(sent)]
    for problem, methods in kept.items():
        for method, runs in methods.items():
            called = next(iter(runs.values()))["method"]
            name = method if called == method else f"{method} ({called})"
            out.append(f"| {problem} | {name} | " + " | ".join(map(cell, runs.values())) + " |")
    return "\n".join(out)


def write(page: Path, kept: dict[str, Any]) -> None:
    page.write_text(between(page.read_text(), BEGIN, END, table(kept)))

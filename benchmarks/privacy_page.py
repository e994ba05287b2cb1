"""The tables of docs/privacy.md that docs/data/leakage.json has the numbers of."""

from pathlib import Path
from typing import Any

from libraries_page import between

BEGIN, END = "<!-- made by benchmarks/leakage.py -->", "<!-- end of leakage.py's -->"
LOCAL = "local steps"
COLUMNS = {
    "rows, one neighbour": "one",
    "rows, all neighbours": "all",
    "rows, coalition": "three",
    "members, messages": "messages",
    "members, model": "model",
    "share, one neighbour": "one",
    "share, all neighbours": "all",
}


def cell(name: str, run: dict[str, Any]) -> str:
    found = run[name]
    if found is None or found["got"] is None:
        return "-"
    if name.startswith("rows"):
        return f"{100 * found['got']:.0f} %"
    if name.startswith("members"):
        return f"{found['got']:.2f} ± {found['error']:.2f}"
    return f"{found['got']:.2f}"


def table(name: str, ways: dict[str, Any]) -> str:
    heads = (
        "| " + name + " | rows: one | all | three | members: messages | model | share: one | all "
        "| rounds | kB a peer |"
    )
    lines = [heads, "|---|" + 9 * "--:|"]
    for way, run in ways.items():
        cells = [cell(column, run) for column in COLUMNS]
        rounds = "-" if run["rounds"] is None else f"{run['rounds']:,}"
        cells += [rounds, f"{run['kilobytes']:,.0f}" if run["rounds"] else "-"]
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def local_table(kept: dict[str, Any]) -> str:
    of = next(iter(kept.values()))["of"]
    lines = [f"| steps a round, draws known | rows of {of} | median likeness |", "|---|--:|--:|"]
    for steps, run in kept.items():
        lines.append(f"| {steps} | {100 * run['recovered']:.0f} % | {run['median']:.2f} |")
    return "\n".join(lines)


def write(page: Path, kept: dict[str, Any]) -> None:
    sets = {name: ways for name, ways in kept.items() if name != LOCAL}
    tables = "\n\n".join(table(name, ways) for name, ways in sets.items())
    if LOCAL in kept:
        tables += "\n\n" + local_table(kept[LOCAL])
    page.write_text(between(page.read_text(), BEGIN, END, tables))

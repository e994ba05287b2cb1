"""The table of docs/privacy.md that docs/data/liars.json has the numbers of."""

from pathlib import Path
from typing import Any

from libraries_page import between

BEGIN, END = "<!-- made by benchmarks/liars.py -->", "<!-- end of liars.py's -->"
COLUMNS = (
    *("auto", "saga-pd", "lt-saga-pd", "radius auto", "radius 0.1"),
    *("trimmed gossip", "star, median", "star, Krum"),
)


def cell(found: list[Any] | None) -> str:
    if found is None:
        return ""
    error, right = found
    if error is None:
        return f"- ({100 * right:.0f})"
    return f"{error:.2g} ({100 * right:.0f})" if error >= 1e-3 else f"<0.001 ({100 * right:.0f})"


def table(kept: dict[str, Any]) -> str:
    out = ["| data dealt | liars | attack | " + " | ".join(COLUMNS) + " |"]
    out.append("|---|---|---|" + "--:|" * len(COLUMNS))
    for split, found in kept.items():
        for row in found["rows"]:
            cells = " | ".join(cell(row.get(name)) for name in COLUMNS)
            out.append(f"| {split} | {row['liars']} | {row['attack']} | {cells} |")
    return "\n".join(out)


def write(page: Path, kept: dict[str, Any]) -> None:
    page.write_text(between(page.read_text(), BEGIN, END, table(kept)))

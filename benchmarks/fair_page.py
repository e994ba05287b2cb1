"""docs/comparison.md from what benchmarks/fair.py has measured."""

import json
import math
from pathlib import Path

from edgewise.study.tables import quartiles_text

ROOT = Path(__file__).parents[1]
NOTES = "## What we make of it"
LEVELS = ("1e-3", "1e-6", "1e-9")
HEADS = {"oracle_calls": "calls", "rounds": "rounds", "bytes_sent": "bytes"}
INTRO = """# Every method, on the same footing

What it cost each method to bring the Bregman divergence (the paper's measure,
$\\sum_i D_{{f_i + h_i}}(x_i, x^\\star)$) down to $10^{{-3}}$, $10^{{-6}}$ and $10^{{-9}}$ of what
it was at the start: oracle calls, rounds, bytes. Medians of {seeds} seeds, quartiles in brackets;
best in bold, whoever it is. Made by

```
python benchmarks/fair.py
```

which took {minutes:.0f} minutes of one core or so.

**One rule for all.** Every method's own step parameters ($\\eta$; and $\\rho$, $\\beta$ or $\\mu$
where it has them) were found by [`ew.tune`](tuning.md): a grid of six values each around what the
method's rule says, moved where the best is at its edge, all cells with the same budget and seed 0;
then runs with seeds of their own. Calls are from runs tuned and stopped by a budget of {passes}
passes over a node's data; rounds and bytes from runs tuned and stopped by a budget of bytes,
{rounds} rounds of one vector along every edge (so half as many for a method that sends two). A dash
means that the budget did not do. Batches are 1, and all else is as the names stand for it
([methods](methods/README.md)).

**The problems.** {nodes} nodes; samples are spread by label (Dirichlet, $\\alpha = 1$), so that
nodes differ in what they have and in how much, but for the lasso, whose samples are spread evenly.
Graphs: a ring, and a random one with {edges} edges. Problems with a penalty are run by the methods
that take one; the l2 ones have their ridge in the loss, so that all can take part. Left out:
`s-diging`, which is `gt-saga`; `sk-pd` and `sk-pd-fd`, whose oracle is another; `asvr-pd-paper`,
which has its own steps.
"""


def write_page(folder: Path, settings: list, told: dict, ours: tuple, facts: dict) -> Path:
    found = {
        s: json.loads((folder / f"{s[0]}-{s[1]}.json").read_text())
        for s in settings
        if (folder / f"{s[0]}-{s[1]}.json").exists()
    }
    path = ROOT / "docs" / "comparison.md"
    minutes = sum(f["minutes"] for f in found.values())
    parts = [INTRO.format(minutes=minutes, **facts).strip(), summary(found, ours)]
    parts += kept_notes(path)
    for (problem, graph), result in found.items():
        parts.append(f"## {problem}, {graph}\n\n{told[problem]}; {result['data']}.")
        parts.append(big_table(result))
    path.write_text("\n\n".join(parts) + "\n")
    print(f"wrote {path.relative_to(ROOT)}: {len(found)} of {len(settings)} settings")
    return path


def kept_notes(path: Path) -> list[str]:
    """What people wrote about the last table: theirs to change when the numbers do."""
    page = path.read_text() if path.exists() else ""
    _, found, rest = page.partition(NOTES)
    return [found + rest.split("\n## ")[0].rstrip()] if found else []


def median(result: dict, unit: str, method: str, level: int) -> float:
    return result["costs"][unit][method][level][1]


def ranked(result: dict, unit: str, level: int) -> list[str]:
    """Methods that got there, the cheapest first."""
    methods = [m for m in result["costs"][unit] if math.isfinite(median(result, unit, m, level))]
    return sorted(methods, key=lambda m: median(result, unit, m, level))


def summary(found: dict, ours: tuple) -> str:
    """Who was best at 1e-6, and how far the best of ours and of the others are apart."""
    lines = [
        "## Who was best, to 1e-6",
        "",
        "The best primal-dual method and the best other one, and what the other took over ours:",
        "above 1 ours was cheaper.",
        "",
        "| setting | fewest calls | ours | other | ratio | fewest bytes | ours | other | ratio |",
        "|---|---|---|---|--:|---|---|---|--:|",
    ]
    for (problem, graph), result in found.items():
        cells = []
        for unit in ("oracle_calls", "bytes_sent"):
            order = ranked(result, unit, 1)
            own = next((m for m in order if m in ours), None)
            other = next((m for m in order if m not in ours), None)
            ratio = "-"
            if own and other:
                ratio = f"{median(result, unit, other, 1) / median(result, unit, own, 1):.2f}"
            first = f"**{order[0]}**" if order else "-"
            cells += [first, own or "-", other or "-", ratio]
        lines.append(f"| {problem}, {graph} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def short_reasons(reasons: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    """The classes' messages, without their names and advice, each once."""
    short: dict[str, list[str]] = {}
    for why, who in reasons.items():
        text = why.split(":")[0].split(" ", 1)[1]
        short.setdefault(text, []).extend(who)
    return list(short.items())


def big_table(result: dict) -> str:
    """All methods, all units, all accuracies, in the order of their bytes to 1e-6."""
    units = list(HEADS)
    best = {(u, k): next(iter(ranked(result, u, k)), None) for u in units for k in range(3)}
    head = ["method", *(f"{HEADS[u]} {a}" for u in units for a in LEVELS)]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * 9 + "|"]
    methods = list(result["costs"]["bytes_sent"])
    methods.sort(key=lambda m: [median(result, "bytes_sent", m, k) for k in (1, 2, 0)])
    for method in methods:
        cells = []
        for unit in units:
            for k in range(3):
                text = quartiles_text(result["costs"][unit][method][k], unit)
                cells.append(f"**{text}**" if best[unit, k] == method else text)
        lines.append("| " + " | ".join([f"`{method}`", *cells]) + " |")
    reasons: dict[str, list[str]] = {}
    for method, why in result["refused"].items():
        reasons.setdefault(why, []).append(f"`{method}`")
    lines += [f"\nNot here: {', '.join(who)} ({why})." for why, who in short_reasons(reasons)]
    return "\n".join(lines)

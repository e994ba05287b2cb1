"""docs/comparison.md from what benchmarks/fair.py has measured."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np

from edgewise.study.tables import quartiles_text, short

ROOT = Path(__file__).parents[1]
NOTES = "## What we make of it"
LEVELS = ("1e-3", "1e-6", "1e-9")
MIDDLE = 1  # the level that summaries are of
HEADS = {"oracle_calls": "calls", "rounds": "rounds", "bytes_sent": "bytes"}
CALLS = 1.3  # times tuned saga-pd's, that the untuned default is to take at most
OURS = ("lt-saga-pd", "lt-svr-pd-es", "lt-pd")
DEFAULT = "auto, untuned"
OURS += ("pd", "spd", "saga-pd", "svr-pd", "svr-pd-es", "lsvr-pd", "asvr-pd")
DEFAULT = "auto, untuned"
INTRO = """# Every method, on the same footing

What it cost each method to bring the Bregman divergence (the paper's measure,
$\\sum_i D_{{f_i + h_i}}(x_i, x^\\star)$) down to $10^{{-3}}$, $10^{{-6}}$ and $10^{{-9}}$ of what
it was at the start: oracle calls, rounds, bytes. Medians of {seeds} seeds, quartiles in brackets;
best in bold, whoever it is. Made by

```
python benchmarks/fair.py --jobs 16
```

which took {minutes:.0f} minutes of one core, spread over as many as there are.

**One rule for all.** Every method's own step parameters ($\\eta$; and $\\rho$, $\\beta$ or $\\mu$
where it has them) were found by [`ew.tune`](tuning.md): a grid of six
values each around what the method's rule says, moved where the best is at its edge, all cells with
the same budget and seed 0; then runs with seeds of their own. Calls are from runs tuned and stopped
by a budget of {passes} passes over a node's data; rounds from runs tuned and stopped by {rounds:,}
rounds; bytes by those of {rounds:,} rounds of one vector along every edge. A dash means that the
budget did not do. Batches are 1, and all else is as the names stand for it
([methods](methods/README.md)).

**Untuned.** Beside them are three with nothing tuned, within the same budgets: `auto`, which is
what `solve` takes where no method is named{chosen}; `pdmm`; and `saga-pd`. They are never in bold,
and no best of theirs counts.

**The problems.** {nodes} nodes; samples are spread by label (Dirichlet, $\\alpha = 1$), so that
nodes differ in what they have and in how much, but for the lasso, whose samples are spread evenly.
Graphs: a ring, and a random one with {edges} edges. Problems with a penalty are run by the methods
that take one; the l2 ones have their ridge in the loss, so that all can take part. Left out:
`s-diging`, which is `gt-saga`; `sk-pd` and `sk-pd-fd`, whose oracle is another; `asvr-pd-paper`,
which has its own steps; `push-saga` and `push-diging`, for links that go one way. A Hessian of a
sample counts as a call, as its gradient does.
"""


class Setting:
    """What was measured in one setting."""

    def __init__(self, folder: Path, name: str, labels: list[str]) -> None:
        self.name = name
        self.problem, self.graph = name.split(":")
        self.parts = {}
        for label in labels:
            path = folder / name.replace(":", "-") / f"{label.replace(', ', '-')}.json"
            if path.exists():
                self.parts[label] = json.loads(path.read_text())
        self.runs = {m: p for m, p in self.parts.items() if not p["refused"]}

    def median(self, unit: str, label: str, level: int = MIDDLE) -> float:
        """Infinite where the budget did not do, or the method was refused."""
        return self.runs[label]["costs"][unit][level][1] if label in self.runs else math.inf

    def ranked(self, unit: str, level: int = MIDDLE, among: tuple[str, ...] = ()) -> list[str]:
        """Tuned methods that got there, the cheapest first."""
        tuned = [m for m in among or self.runs if "untuned" not in m]
        there = [m for m in tuned if math.isfinite(self.median(unit, m, level))]
        return sorted(there, key=lambda m: self.median(unit, m, level))


def write_page(folder: Path, names: list, labels: list, told: dict, facts: dict) -> Path:
    found = [s for s in (Setting(folder, n, labels) for n in names) if s.runs]
    path = ROOT / "docs" / "comparison.md"
    parts = [p for s in found for p in s.parts.values()]
    minutes = sum(p["seconds"] for p in parts) / 60
    chosen = " and ".join(sorted({f"`{p['chosen']}`" for p in parts} - {"``"}))
    chosen = f" (here {chosen} throughout)" if chosen else ""
    pieces = [INTRO.format(minutes=minutes, chosen=chosen, **facts).strip()]
    pieces += [best_table(found), untuned_table(found), in_numbers(found), *kept_notes(path)]
    for s in found:
        data = next(iter(s.parts.values()))["data"]
        pieces.append(f"## {s.problem}, {s.graph}\n\n{told[s.problem]}; {data}.")
        pieces.append(big_table(s))
    path.write_text("\n\n".join(pieces) + "\n")
    missing = [f"{s.name} {m}" for s in found for m in labels if m not in s.parts]
    print(f"wrote {path.relative_to(ROOT)}: {len(found)} of {len(names)} settings", *missing)
    return path


def kept_notes(path: Path) -> list[str]:
    """What people wrote about the last tables: theirs to change when the numbers do."""
    page = path.read_text() if path.exists() else ""
    _, found, rest = page.partition(NOTES)
    return [found + rest.split("\n## ")[0].rstrip()] if found else []


# --- summaries -------------------------------------------------------------------------------


def rows(lines: list[list[str]], numbers: int) -> list[str]:
    """A table, its head first; the last columns are numbers."""
    rule = (len(lines[0]) - numbers) * ["---"] + numbers * ["--:"]
    return ["| " + " | ".join(cells) + " |" for cells in (lines[0], rule, *lines[1:])]


def best_table(found: list[Setting]) -> str:
    """The best of ours and of the others, and how far they are apart."""
    table = [["setting", *(w for u in HEADS.values() for w in (f"{u}: ours", "other", "ratio"))]]
    for s in found:
        cells = []
        for unit in HEADS:
            own = next(iter(s.ranked(unit, among=OURS)), None)
            other = next((m for m in s.ranked(unit) if m not in OURS), None)
            first = next(iter(s.ranked(unit)), None)
            cells += ["-" if m is None else f"**{m}**" if m == first else m for m in (own, other)]
            both = own and other
            cells.append(f"{s.median(unit, other) / s.median(unit, own):.2f}" if both else "-")
        table.append([f"{s.problem}, {s.graph}", *cells])
    lines = [
        "## Who was best, to 1e-6",
        "",
        "The best primal-dual method and the best other one, tuned, the better in bold, and what",
        "the other took over ours: above 1 ours was cheaper.",
        "",
    ]
    return "\n".join(lines + rows(table, 0))


def untuned_table(found: list[Setting]) -> str:
    """The default as it comes against the tuned methods that it is held to."""
    columns = (
        ("rounds", DEFAULT, "pdmm", "pdmm, untuned"),
        ("oracle_calls", DEFAULT, "saga-pd", "saga-pd, untuned"),
        ("bytes_sent", DEFAULT, "pdmm", "saga-pd"),
    )
    heads = [f"{HEADS[u]}: {m.replace(', ', ' ')}" for u, *who in columns for m in who]
    heads = [h if "untuned" in h else f"{h} tuned" for h in heads]
    table = [["setting", *(h.replace("auto untuned", "auto") for h in heads)]]
    each = {(u, m): [s.median(u, m) for s in found] for u, *who in columns for m in who}
    for k, s in enumerate(found):
        cells = [short(values[k], u) for (u, _), values in each.items()]
        table.append([f"{s.problem}, {s.graph}", *cells])
    middle = {at: float(np.median(values)) for at, values in each.items()}
    table.append(["median", *(short(v, u) for (u, _), v in middle.items())])
    rounds, calls = middle["rounds", DEFAULT], middle["oracle_calls", DEFAULT]
    few = math.isfinite(rounds) and rounds <= middle["rounds", "pdmm"]
    cheap = math.isfinite(calls) and calls <= CALLS * middle["oracle_calls", "saga-pd"]
    lines = ["## The default, untuned, to 1e-6", "", *rows(table, len(table[0]) - 1), ""]
    verdict = (
        "What we want of it: median rounds at most those of tuned `pdmm`, which "
        f"{'holds' if few else 'does not hold'};\nand median calls at most {CALLS} times those of "
        f"tuned `saga-pd`, which {'holds' if cheap else 'does not hold'}."
    )
    return "\n".join([*lines, verdict])


def in_numbers(found: list[Setting]) -> str:
    """What sentences about the tables need, counted."""
    lines = ["## In numbers, to 1e-6", ""]
    for unit, head in HEADS.items():
        first = Counter(s.ranked(unit)[0] for s in found if s.ranked(unit))
        told = ", ".join(f"`{m}` {k}" for m, k in first.most_common())
        lines.append(f"- Fewest {head}, settings out of {len(found)}: {told}.")
    fronts = Counter(m for s in found for m in front(s))
    told = ", ".join(f"`{m}` {k}" for m, k in fronts.most_common())
    lines.append(f"- Beaten by no other in calls and bytes at once, settings: {told}.")
    pairs = [("oracle_calls", m, "saga-pd") for m in (DEFAULT, "lt-saga-pd", "edge", "gt-saga")]
    pairs += [("rounds", m, "pdmm") for m in (DEFAULT, "lt-saga-pd", "pd", "nids")]
    pairs += [("rounds", "extra", "saga-pd")]
    pairs += [("bytes_sent", m, "pdmm") for m in (DEFAULT, "lt-saga-pd", "pd")]
    for unit, method, other in pairs:
        ratios = [s.median(unit, method) / s.median(unit, other) for s in found if method in s.runs]
        there = sorted(r for r in ratios if math.isfinite(r) and r > 0)
        if there:
            each = f"{there[0]:.2f} to {there[-1]:.2f}, median {np.median(there):.2f}"
            lines.append(
                f"- `{method}` over `{other}` in {HEADS[unit]}: {each}, in the {len(there)} of "
                f"{len(ratios)} settings that both got there."
            )
    for method, name in (("saga-pd", "eta"), ("pdmm", "rho")):
        unit = "oracle_calls" if method == "saga-pd" else "rounds"
        tuned = Counter(
            s.runs[method]["factors"][unit][name] for s in found if method in s.runs
        ).items()
        told = ", ".join(f"{f:g} ({k})" for f, k in sorted(tuned))
        lines.append(f"- Best {name} of `{method}` over its rule's, by {HEADS[unit]}: {told}.")
    return "\n".join(lines)


def front(s: Setting) -> list[str]:
    """Tuned methods that no other beats in calls and in bytes at once."""
    there = dict.fromkeys(s.ranked("oracle_calls") + s.ranked("bytes_sent"))
    cost = {m: (s.median("oracle_calls", m), s.median("bytes_sent", m)) for m in there}

    def beaten(a: tuple[float, float]) -> bool:
        return any(b != a and b[0] <= a[0] and b[1] <= a[1] for b in cost.values())

    return [m for m, a in cost.items() if not beaten(a)]


# --- one setting -----------------------------------------------------------------------------


def big_table(s: Setting) -> str:
    """All methods, all units, all accuracies, in the order of their rounds to 1e-6."""
    best = {(u, k): next(iter(s.ranked(u, k)), None) for u in HEADS for k in range(3)}
    table = [["method", *(f"{HEADS[u]} {a}" for u in HEADS for a in LEVELS)]]
    order = (("rounds", 1), ("rounds", 2), ("rounds", 0), ("oracle_calls", 1), ("oracle_calls", 0))
    for label in sorted(s.runs, key=lambda m: [s.median(u, m, k) for u, k in order]):
        cells = []
        for (unit, k), first in best.items():
            text = quartiles_text(s.runs[label]["costs"][unit][k], unit)
            cells.append(f"**{text}**" if first == label else text)
        method, _, untuned = label.partition(", ")
        table.append([f"`{method}`" + (f", {untuned}" if untuned else ""), *cells])
    reasons: dict[str, list[str]] = {}
    for label, each in s.parts.items():
        if each["refused"]:
            why = each["refused"].split(":")[0].split(" ", 1)[1]  # without name and advice
            reasons.setdefault(why, []).append(f"`{label}`")
    told = [f"\nNot here: {', '.join(who)} ({why})." for why, who in reasons.items()]
    return "\n".join(rows(table, 9) + told)

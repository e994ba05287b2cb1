"""docs/reproduction.md from what `edgewise reproduce --all` left, at both scales.

    edgewise reproduce --all && edgewise reproduce --all --scale paper
    python tools/reproduction_page.py out/reproduce

What follows "## What we make of it" in the page is kept: it is written by hand.
"""

import csv
import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
ROWS = 60  # of a run, in the tables that are kept
NOTES = "## What we make of it"
INTRO = """# The paper, figure by figure

Every experiment of Rajawat and Kumar, "A Primal-Dual Framework for Decentralized Stochastic
Optimization", run again, and every claim of its Section 5 held against what came out. Made by

```
edgewise reproduce --all                  # small: a minute or two each
edgewise reproduce --all --scale paper    # the paper's sizes
```

which leave a CSV, a PNG, a PDF and a page to click through for each, in `out/reproduce`.

**Three settings.** *As printed*: the steps of the paper's Table 3, and those its text gives for
Network-DANE and GT-SVR; where it gives none (S-DIGing, EDGE, D2, EXTRA, DGD), ours by rule.
*Tuned*: every method's own steps by [`ew.tune`](tuning.md), one grid and one budget for all, found
at the small scale as multiples of what the rule says. *Automatic*: our rules alone. As printed,
sampled methods run for the printed number of rounds; all others, and all in the other settings,
until they have spent the oracle calls that SVR-PD spends in those.

**Data.** {data}. Labels, row norms and sizes are the paper's.
At the small scale samples, rounds, epochs and $L/\\tau$ are a fifth, features a twentieth; the
graph is the same.
"""


def main(out: Path) -> None:
    scales = {scale: found(out / scale) for scale in ("paper", "small")}
    names = list(dict.fromkeys(n for each in scales.values() for n in each))
    first = next(iter((scales["paper"] or scales["small"]).values()))
    parts = [INTRO.format(data=first["about"].get("data", "Rows like epsilon's").capitalize())]
    parts.append(verdicts(names, scales))
    parts.append(kept_notes())
    for name in names:
        parts.append(section(name, scales, out))
    PAGE.write_text("\n\n".join(p.strip() for p in parts) + "\n")
    print(f"wrote {PAGE.relative_to(ROOT)}: {len(names)} experiments")


def found(folder: Path) -> dict[str, Any]:
    order = ["oracle", "small-data", "large-data", "ring", "unregularised"]
    order += ["runtime-2000", "runtime-8000", "complexity", "sketched", "pdmm"]
    paths = {name: folder / name / f"{name}.json" for name in order}
    return {name: json.loads(p.read_text()) for name, p in paths.items() if p.exists()}


def verdicts(names: list[str], scales: dict[str, Any]) -> str:
    rows = ["## Verdicts", "", "| claim | paper's scale | small scale |", "|---|---|---|"]
    for name in names:
        both = [scales[s].get(name, {}).get("verdicts", []) for s in ("paper", "small")]
        for k in range(max(map(len, both))):
            said = [v[k]["verdict"] if k < len(v) else "not run" for v in both]
            claim = next(v[k]["claim"] for v in both if k < len(v))
            rows.append(f"| [{name}](#{name}): {claim} | {said[0]} | {said[1]} |")
    return "\n".join(rows)


def kept_notes() -> str:
    text = PAGE.read_text() if PAGE.exists() else ""
    if NOTES not in text:
        return NOTES
    return NOTES + text.split(NOTES)[1].split("\n## ")[0]


def section(name: str, scales: dict[str, Any], out: Path) -> str:
    lines = [f"## {name}"]
    about = next(scales[s][name]["about"] for s in ("paper", "small") if name in scales[s])
    lines.append(f"{about['experiment'].split('(')[1].rstrip(')')}. {sizes(name, scales)}")
    for scale, label in (("paper", "paper's scale"), ("small", "small scale")):
        picture = out / scale / name / f"{name}.png"
        if picture.exists():
            shown = f"reproduction_{name}_{scale}.png"
            # lines on white need few colours: a quarter of the size
            Image.open(picture).convert("RGB").quantize(64).save(
                ROOT / "docs" / "images" / shown, optimize=True
            )
            lines.append(f"![{name} at the {label}](images/{shown})")
    table = out / "paper" / name / f"{name}.csv"
    if table.exists():
        folder = ROOT / "docs" / "data"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.csv").write_text(thinned(table.read_text()))
        lines.append(f"Its numbers at the paper's scale: [{name}.csv](data/{name}.csv).")
    lines.append(numbers(name, scales))
    return "\n\n".join(lines)


def thinned(table: str) -> str:
    """At most so many rows a run, the first and the last among them."""
    head, *rows = table.splitlines()
    kept = [head]
    for _, run in groupby(rows, key=lambda row: next(csv.reader([row]))[:2]):
        lines = list(run)
        last = len(lines) - 1
        kept += [lines[k] for k in sorted({round(last * j / (ROWS - 1)) for j in range(ROWS)})]
    return "\n".join(kept) + "\n"


def sizes(name: str, scales: dict[str, Any]) -> str:
    told = []
    for scale in ("paper", "small"):
        if name in scales[scale]:
            about = scales[scale][name]["about"]
            keys = ("nodes", "edges", "features", "samples a node", "ridge", "precision")
            given = ", ".join(f"{k} {about[k]}" for k in keys if about.get(k) is not None)
            seconds = about["wall seconds of this call"]
            took = f"{seconds:.0f} s, " if seconds else ""
            told.append(f"{scale.capitalize()} scale: {given}; {took}{about['machine']}.")
    return " ".join(told)


def numbers(name: str, scales: dict[str, Any]) -> str:
    rows = ["| claim | scale | measured |", "|---|---|---|"]
    for scale in ("paper", "small"):
        for v in scales[scale].get(name, {}).get("verdicts", []):
            measured = v["numbers"].replace("; ", "<br>").replace("|", "\\|")
            rows.append(f"| {v['claim']} | {scale} | {measured} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/reproduce"))

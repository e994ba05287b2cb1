"""docs/reproduction.md from what `edgewise reproduce --all` left, at both scales.

    edgewise reproduce --all && edgewise reproduce --all --scale paper
    python tools/reproduction_page.py out/reproduce

What an earlier run came to stays in the page where a figure was not run anew: verdicts are kept
in docs/data/verdicts, pictures in docs/images. Without a folder the page is made of these alone.
What follows "## What we make of it" is kept, too: it is written by hand.
"""

import csv
import html
import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
KEPT = ROOT / "docs" / "data" / "verdicts"
ROWS = 60  # of a run, in the tables that are kept
NOTES = "## What we make of it"
INTRO = """# The paper, figure by figure

Every experiment of Rajawat and Kumar, "A Primal-Dual Framework for Decentralized Stochastic
Optimization", run again, and every claim of its Section 5 held against what came out. Made by

```
edgewise reproduce --all                  # small: some minutes each
edgewise reproduce --all --scale paper    # the paper's sizes
```

which leave a CSV, a PNG, a PDF and a page to click through for each, in `out/reproduce`.

**Three settings.** *As printed*: the steps of the paper's Table 3, and those its text gives for
Network-DANE and GT-SVR; where it gives none (S-DIGing, EDGE, D2, EXTRA, DGD), ours by rule. All
methods run for the printed number of iterations, and the ridge is in every sample's loss, as the
algorithms are printed. *Tuned*: every method's own steps by [`ew.tune`](tuning.md), one grid and
one budget for all, found at the small scale as multiples of what the rule says. *Automatic*: our
rules alone. In these two a run ends when it has had the printed iterations and spent the oracle
calls that SVR-PD spends in them. Methods that take whole gradients end earlier, in all settings,
where they are at 1e-13 of the start, or at 1e13.

**Three answers.** *yes*, *no*, and *?*, undecided: what was run cannot tell. A claim about which
method is faster is asked at eight levels, from 1e-2 to 1e-9 of the divergence at the start, with
{seeds} seeds at the small scale. A run has come to a level where it stays at or below it from then
on, and what that took is known up to the distance of two looks. A level has an answer if more than
half of the seeds give it and none gives the other. A claim is answered if all levels with an answer
have the same one. Claims that begin with *ours* are not in the paper.

**Data.** {data}. Labels, row norms and sizes are the paper's.
At the small scale samples, rounds, epochs and $L/\\tau$ are a fifth, features a twentieth; the
graph is the same.
"""
FIGURES = ("oracle", "small-data", "large-data", "ring", "unregularised")
FIGURES += ("runtime-2000", "runtime-8000")
ORDER = (*FIGURES, "complexity", "growth", "sketched", "pdmm")
SCALES = ("paper", "small")
SETTINGS = ("as printed", "tuned", "automatic")
SHORT = {True: "**yes**", False: "no", None: "?"}
NOT_RUN = "-"


def main(out: Path) -> None:
    for scale in SCALES:
        keep(out / scale, KEPT / scale)
    scales = {scale: found(KEPT / scale) for scale in SCALES}
    names = [name for name in ORDER if any(name in each for each in scales.values())]
    first = next(iter((scales["small"] or scales["paper"]).values()))["about"]
    seeds = len(str(first.get("seeds", "1")).split(","))
    said = str(first.get("data", "Rows like epsilon's")).capitalize()
    parts = [INTRO.format(data=said, seeds=seeds), verdicts(names, scales)]
    parts.append(kept_notes())
    for name in names:
        parts.append(section(name, scales, out))
    PAGE.write_text("\n\n".join(p.strip() for p in parts) + "\n")
    print(f"wrote {PAGE.relative_to(ROOT)}: {len(names)} experiments")


def keep(made: Path, kept: Path) -> None:
    kept.mkdir(parents=True, exist_ok=True)
    for name in ORDER:
        path = made / name / f"{name}.json"
        if path.exists():
            whole = json.loads(path.read_text())
            said = {"about": whole["about"], "verdicts": whole["verdicts"]}
            (kept / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")


def found(folder: Path) -> dict[str, Any]:
    paths = {name: folder / f"{name}.json" for name in ORDER}
    return {name: json.loads(p.read_text()) for name, p in paths.items() if p.exists()}


def verdicts(names: list[str], scales: dict[str, Any]) -> str:
    """A line a claim: the figures' by setting, then those on theory."""
    rows = [
        "## Verdicts",
        "",
        "Under every figure is what was measured, and why a claim is undecided. S: the small "
        "scale, P: the paper's.",
        "",
        "| claim | S, as printed | S, tuned | S, automatic "
        "| P, as printed | P, tuned | P, automatic |",
        "|---|:-:|:-:|:-:|:-:|:-:|:-:|",
    ]
    for name in (n for n in names if n in FIGURES):
        for claim, small, paper in both_scales(name, scales):
            cells = [SHORT[v[s]] if v else NOT_RUN for v in (small, paper) for s in SETTINGS]
            rows.append(f"| [{name}](#{name}): {claim} | {' | '.join(cells)} |")
    rows += ["", "On theory:", "", "| claim | small scale | paper's scale |", "|---|:-:|:-:|"]
    for name in (n for n in names if n not in FIGURES):
        for claim, *found in both_scales(name, scales):
            cells = [
                ", ".join(dict.fromkeys(SHORT[h] for h in v.values())) or NOT_RUN for v in found
            ]
            rows.append(f"| [{name}](#{name}): {claim} | {' | '.join(cells)} |")
    return "\n".join(rows)


def both_scales(name: str, scales: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Each claim with whether it holds, by setting, at the small and the paper's scale."""
    held = [
        {v["claim"]: v["holds"] for v in scales[s].get(name, {}).get("verdicts", [])}
        for s in ("small", "paper")
    ]
    claims = dict.fromkeys(claim for each in held for claim in each)
    return [(claim, held[0].get(claim, {}), held[1].get(claim, {})) for claim in claims]


def kept_notes() -> str:
    text = PAGE.read_text() if PAGE.exists() else ""
    if NOTES not in text:
        return NOTES
    return NOTES + text.split(NOTES)[1].split("\n## ")[0]


def section(name: str, scales: dict[str, Any], out: Path) -> str:
    lines = [f"## {name}"]
    about = next(scales[s][name]["about"] for s in ("paper", "small") if name in scales[s])
    lines.append(f"{about['experiment'].split('(')[1].rstrip(')')}. {sizes(name, scales)}")
    for scale, label in (("small", "small scale"), ("paper", "paper's scale")):
        picture = out / scale / name / f"{name}.png"
        shown = f"reproduction_{name}_{scale}.png"
        if picture.exists():
            # lines on white need few colours: a third of the size, and each method keeps its own
            few = Image.open(picture).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE)
            few.save(ROOT / "docs" / "images" / shown, optimize=True)
        if name in scales[scale] and (ROOT / "docs" / "images" / shown).exists():
            lines.append(f"![{name} at the {label}](images/{shown})")
    table, kept = out / "paper" / name / f"{name}.csv", ROOT / "docs" / "data" / f"{name}.csv"
    if table.exists():
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(thinned(table.read_text()))
    if kept.exists():
        lines.append(f"Its numbers at the paper's scale: [{name}.csv](data/{name}.csv).")
    lines.append(numbers(name, scales))
    return "\n\n".join(lines)


def thinned(table: str) -> str:
    """At most so many rows a run, the first and the last among them."""
    head, *rows = table.splitlines()
    runs = 3 if ",run," in head else 2
    kept = [head]
    for _, run in groupby(rows, key=lambda row: next(csv.reader([row]))[:runs]):
        lines = list(run)
        last = len(lines) - 1
        kept += [lines[k] for k in sorted({round(last * j / (ROWS - 1)) for j in range(ROWS)})]
    return "\n".join(kept) + "\n"


def sizes(name: str, scales: dict[str, Any]) -> str:
    told = []
    for scale in ("paper", "small"):
        if name in scales[scale]:
            about = scales[scale][name]["about"]
            if "told" in about:
                told.append(about["told"])
                continue
            keys = ("nodes", "edges", "features", "samples a node", "ridge", "precision")
            given = ", ".join(f"{k} {about[k]}" for k in keys if about.get(k) is not None)
            seconds = about["wall seconds of this call"]
            took = f"{seconds:.0f} s, " if seconds else ""
            told.append(f"{scale.capitalize()} scale: {given}; {took}{about['machine']}.")
    return " ".join(told)


def numbers(name: str, scales: dict[str, Any]) -> str:
    """Folded, and in HTML, which both GitHub and MkDocs leave as it is."""
    rows = ["<details>", "<summary>What was measured</summary>", "<table>"]
    rows.append("<tr><th>claim</th><th>scale</th><th>measured</th></tr>")
    for scale in ("small", "paper"):
        for v in scales[scale].get(name, {}).get("verdicts", []):
            measured = html.escape(v["numbers"], quote=False).replace("; ", "<br>")
            claim = html.escape(v["claim"], quote=False)
            rows.append(f"<tr><td>{claim}</td><td>{scale}</td><td>{measured}</td></tr>")
    return "\n".join([*rows, "</table>", "</details>"])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/reproduce"))

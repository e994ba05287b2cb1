"""Verdicts and pictures anew from the tables in docs/data, for runs that are too long to repeat.

    python tools/judge_again.py out/reproduce "what the page says of these runs"

writes NAME.json and NAME.png into out/reproduce/paper/NAME where that has none; then
tools/reproduction_page.py takes them as it takes those of `edgewise reproduce`.
"""

import csv
import json
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from edgewise.experiments import FIGURES
from edgewise.experiments.claims import Setting
from edgewise.experiments.experiment import Verdict
from edgewise.experiments.figure import SETTINGS, Figure
from edgewise.experiments.lineup import LINEUP
from edgewise.experiments.output import draw, verdict_as_json
from edgewise.experiments.passages import Curves
from edgewise.experiments.runtime import Runtime, dots
from edgewise.plotting.page import PageRun
from edgewise.running.trace import Trace

TABLES = Path(__file__).resolve().parents[1] / "docs" / "data"


def main(out: Path, told: str) -> None:
    for name, figure in FIGURES.items():
        folder = out / "paper" / name
        if not (TABLES / f"{name}.csv").exists() or (folder / f"{name}.json").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        runs = runs_of(name)
        about = {"experiment": f"{name} ({figure.source} of the paper)", "told": told}
        verdicts = [verdict_as_json(v) for v in judged(figure)]
        (folder / f"{name}.json").write_text(json.dumps({"about": about, "verdicts": verdicts}))
        shown, picture = [r for r in runs if r.method in LINEUP], folder / f"{name}.png"
        dots(shown, picture) if isinstance(figure, Runtime) else draw(shown, figure.title, picture)
        print(f"judged {name} again, by {len(runs)} runs")


def runs_of(name: str) -> list[PageRun]:
    with (TABLES / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = []
    for (setting, method, _), several in groupby(
        rows, key=lambda row: (row["setting"], row["method"], row.get("run", "1"))
    ):
        table: list[dict[str, Any]] = list(several)
        numbers = {c: [float(r[c]) for r in table] for c in table[0] if c in WANTED}
        found.append(PageRun(method, Trace(numbers), setting))
    return found


WANTED = ("rounds", "oracle_calls", "bytes_sent", "seconds", "bregman")


def seeds_of(name: str, setting: str, methods: Sequence[str] | None = None) -> list[Curves]:
    """As many as the method with most of them has."""
    each: dict[str, list[Any]] = {}
    for run in runs_of(name):
        if run.setting == setting and (methods is None or run.method in methods):
            each.setdefault(run.method, []).append(run.trace)
    most = max(map(len, each.values()))
    return [Curves({m: t[min(k, len(t) - 1)] for m, t in each.items()}) for k in range(most)]


def judged(figure: Figure) -> list[Verdict]:
    verdicts = []
    for claim in figure.claims:
        holds, numbers = {}, []
        for setting in SETTINGS:

            def beside(name: str, methods: Sequence[str], setting: str = setting) -> list[Curves]:
                return seeds_of(name, setting, methods)

            said = claim.judge(Setting(seeds_of(figure.name, setting), beside))
            holds[setting] = said.holds
            numbers.append(f"{setting}: {said.numbers}")
        verdicts.append(Verdict(claim.says, holds, "; ".join(numbers)))
    return verdicts


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

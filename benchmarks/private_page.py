"""The tables of docs/privacy.md that docs/data/private.json has the numbers of."""

from pathlib import Path
from typing import Any

from libraries_page import between

MODELS = "<!-- made by benchmarks/private.py: models -->", "<!-- end of private.py's models -->"
DISTANCES = "<!-- made by benchmarks/private.py: distances -->", "<!-- end of its distances -->"


def cell(run: dict[str, float]) -> str:
    return f"{100 * run['accuracy']:.1f} ± {100 * run['spread']:.1f} ({run['gap']:.3f})"


def distances(kept: dict[str, Any]) -> str:
    far = max(len(found) for found in kept.values())
    out = [
        "| edges away | " + " | ".join(map(str, range(1, far + 1))) + " |",
        "|---|" + "--:|" * far,
    ]
    for name, found in kept.items():
        cells = [f"{found[str(d)]:.2f}" if str(d) in found else "" for d in range(1, far + 1)]
        out.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(out)


def models(kept: dict[str, Any]) -> str:
    first = next(iter(kept.values()))["models"]
    epsilons = list(next(iter(first.values())))
    out = [
        "| data | model | " + " | ".join(f"epsilon {e}" for e in epsilons) + " | no noise |",
        "|---|---|" + "--:|" * (len(epsilons) + 1),
    ]
    for name, found in kept.items():
        about = f"{name}, {found['samples']:,} x {found['unknowns']}"
        plain = f"{100 * found['no noise']:.1f}"
        for model, runs in found["models"].items():
            cells = " | ".join(cell(runs[e]) for e in epsilons)
            out.append(f"| {about} | {model} | {cells} | {plain} |")
    return "\n".join(out)


def write(page: Path, kept: dict[str, Any]) -> None:
    text = between(page.read_text(), *MODELS, models(kept["models"]))
    page.write_text(between(text, *DISTANCES, distances(kept["distances"])))

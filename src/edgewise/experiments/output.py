"""What an experiment leaves behind: CSV, PNG, PDF, a page, its verdicts, and how it was made."""

import csv
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from edgewise import __version__
from edgewise.experiments.experiment import BEYOND, Experiment, Job, Outcome, Verdict
from edgewise.experiments.looks import LOWEST, draw_method, look
from edgewise.fileio import write_json
from edgewise.plotting.axes import LABELS
from edgewise.plotting.page import PageRun, write_page

COLUMNS = (
    "rounds",
    "oracle_calls",
    "bytes_sent",
    "seconds",
    "objective_gap",
    "bregman",
    "consensus",
    "residual",
)
X_AXES = ("oracle_calls", "rounds")


def write(experiment: Experiment, job: Job, outcome: Outcome, seconds: float) -> dict[str, Path]:
    """Everything, into the job's folder; where each file is."""
    at = {kind: job.folder / f"{experiment.name}.{kind}" for kind in ("csv", "png", "pdf", "html")}
    about = facts(experiment, job, outcome, seconds)
    write_csv(at["csv"], outcome.runs)
    for kind in ("png", "pdf"):
        (outcome.draw or (lambda path: draw(outcome.runs, experiment.title, path)))(at[kind])
    firsts = [several[0] for several in grouped(outcome.runs).values()]
    write_page(at["html"], firsts, experiment.title, about=about, graph=outcome.graph)
    at["json"] = job.folder / f"{experiment.name}.json"
    verdicts = [verdict_as_json(verdict) for verdict in outcome.verdicts]
    table = {"table": outcome.table} if outcome.table else {}
    write_json(at["json"], {"about": about, "verdicts": verdicts, **table})
    return at


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "claim": verdict.claim,
        "verdict": str(verdict),
        "holds": verdict.holds,
        "numbers": verdict.numbers,
    }


def facts(experiment: Experiment, job: Job, outcome: Outcome, seconds: float) -> dict[str, Any]:
    """Versions, seeds, parameters, machine."""
    device = jax.devices()[0]
    return {
        "experiment": f"{experiment.name} ({where(experiment)})",
        "scale": job.scale.name,
        **outcome.about,
        "nodes": outcome.graph.nodes if outcome.graph else None,
        "edges": outcome.graph.edge_count if outcome.graph else None,
        "edgewise": __version__,
        "jax": version("jax"),
        "numpy": version("numpy"),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {device.device_kind}",
        "wall seconds of this call": round(seconds, 1),
    }


def where(experiment: Experiment) -> str:
    return BEYOND if experiment.source == BEYOND else f"{experiment.source} of the paper"


def write_csv(path: Path, runs: Sequence[PageRun]) -> None:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["setting", "method", "run", *COLUMNS])
        for (setting, method), several in grouped(runs).items():
            for k, run in enumerate(several, 1):
                for row in zip(*(run.trace[c] for c in COLUMNS), strict=True):
                    table.writerow([setting, method, k, *(f"{v:.5g}" for v in row)])


def grouped(runs: Sequence[PageRun]) -> dict[tuple[str, str], list[PageRun]]:
    """Those of one setting and method, with one seed each."""
    groups: dict[tuple[str, str], list[PageRun]] = {}
    for run in runs:
        groups.setdefault((run.setting, run.method), []).append(run)
    return groups


def draw(runs: Sequence[PageRun], title: str, path: Path) -> None:
    """A row of panels per setting: the divergence against calls, and against rounds. The axes are
    logarithmic, so that a method of few costly rounds and one of many cheap ones can be seen."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    settings = list(dict.fromkeys(run.setting for run in runs))
    methods = list(dict.fromkeys(run.method for run in runs))
    size = (11, 1.2 + 3.2 * len(settings))
    figure, grid = plt.subplots(
        len(settings),
        2,
        figsize=size,
        sharey="row",
        sharex="col",
        squeeze=False,
        layout="constrained",
    )
    for panels, setting in zip(grid, settings, strict=True):
        for ax, x in zip(panels, X_AXES, strict=True):
            for method in methods:
                here = [r.trace for r in runs if (r.setting, r.method) == (setting, method)]
                draw_method(ax, method, here, x)
            ax.set(xscale="log", yscale="log", xlabel=LABELS[x])
            ax.tick_params(labelbottom=True)
            ax.grid(alpha=0.3)
        first = float(runs[0].trace["bregman"][0])
        lowest = panels[0].get_ylim()[0]
        panels[0].set(ylabel=LABELS["bregman"], ylim=(max(lowest, LOWEST * first), 5 * first))
        panels[0].set_title(setting, loc="left", fontweight="bold")
    handles = [Line2D([], [], label=m, **look(m)) for m in methods]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(6, len(methods)))
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    plt.close(figure)

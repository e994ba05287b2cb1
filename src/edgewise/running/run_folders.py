"""Runs as folders, without pickle.

run.toml        the configuration that gives the run again
result.json     what it came to, in numbers
trace.npz, .csv every recorded round
model.npz       x, X, duals, and the classes where there are some
model.json      the model in the units of the data: `edgewise.load_model(folder)`
plot.png        the peers and how they came to agree
checkpoint.bin  the state, to go on from
log.txt         what was said, and when
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import InputError, ProblemError
from edgewise.fileio import make_folder, read_toml, replacing, write_json
from edgewise.graph.graph import Graph
from edgewise.plotting.runs import plot_peers
from edgewise.problem.problem import Problem
from edgewise.running.fitted_model import MODEL
from edgewise.running.result import Result
from edgewise.running.trace import Trace

CONFIG, RESULT, CHECKPOINT = "run.toml", "result.json", "checkpoint.bin"
OR_ELSE = "give --out a folder where you may write, or --no-save"


class Saved(NamedTuple):
    """A run's folder, read; result and trace are None where it has not ended."""

    folder: Path
    config: dict[str, Any]
    result: dict[str, Any] | None
    trace: Trace | None


def new_folder(wanted: str | Path | None, name: str) -> Path:
    """The folder wanted, or out/NAME-TIMESTAMP; never one that holds a run."""
    if wanted is not None:
        folder = Path(wanted)
        if folder.is_file():
            raise InputError(f"--out {folder} is a file: give a folder's name")
        if (folder / CONFIG).exists():
            raise InputError(f"{folder} holds a run already: give another folder, or --resume it")
        make_folder(folder, OR_ELSE, exist_ok=True)
        return folder
    stamp = Path("out") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, again = stamp, 1
    while True:
        try:
            make_folder(folder, OR_ELSE)
            return folder
        except FileExistsError:
            again += 1
            folder = stamp.with_name(f"{stamp.name}-{again}")


def save_result(
    folder: Path,
    problem: Problem,
    graph: Graph,
    result: Result,
    summary: Mapping[str, Any],
    labels: np.ndarray | None = None,
) -> None:
    """Everything of a solve but its configuration and its log; `labels` are the peers' means, where
    not all samples are here."""
    result.trace.save(folder / "trace.npz")
    result.trace.save(folder / "trace.csv")
    arrays = {"x": result.x, "X": result.X, "duals": result.duals}
    if problem.classes is not None:
        arrays["classes"] = np.asarray(problem.classes)
    with replacing(folder / "model.npz") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    try:
        result.save(folder)
    except ProblemError:  # it diverged, or only its own loss knows what it predicts
        (folder / MODEL).unlink(missing_ok=True)  # of what was resumed
    write_json(folder / RESULT, summary)
    labels = mean_labels(problem) if labels is None else labels
    plot_peers(
        graph,
        result.trace,
        folder / "plot.png",
        counts=problem.counts,
        labels=labels,
        called=f"share of {problem.classes[1]!s}" if two_classes(problem) else "mean label",
        title=f"one model, by {summary['method']}",
    )


def mean_labels(problem: Problem) -> np.ndarray:
    """(V,) of each node; of two classes the second's share."""
    own = [problem.labels[problem.own(i)] for i in range(problem.nodes)]
    return np.array([np.mean(y > 0) if two_classes(problem) else np.mean(y) for y in own])


def two_classes(problem: Problem) -> bool:
    return problem.classes is not None and problem.loss.outputs == 1


def load_run(folder: str | Path) -> Saved:
    folder = Path(folder)
    config = read_config(folder)
    if not (folder / RESULT).exists():
        return Saved(folder, config, None, None)
    try:
        result = json.loads((folder / RESULT).read_text())
        trace = Trace.load(folder / "trace.npz") if (folder / "trace.npz").exists() else None
    except (OSError, ValueError, KeyError) as problem:
        raise InputError(f"{folder} cannot be read ({problem}): run it again") from None
    return Saved(folder, config, result, trace)


def load_arrays(folder: str | Path) -> dict[str, np.ndarray]:
    """x, X, duals and classes of a run."""
    try:
        with np.load(Path(folder) / "model.npz", allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError) as problem:
        raise InputError(
            f"{folder} has no model ({problem}): give the folder of a run that has ended"
        ) from None


# --- configurations -------------------------------------------------------------------------------


def read_config(folder: str | Path) -> dict[str, Any]:
    path = Path(folder) / CONFIG
    if not path.exists():
        raise InputError(f"{folder} is no run, it has no {CONFIG}: give a folder that a run wrote")
    return {"command": "solve"} | read_toml(path)


# --- models ---------------------------------------------------------------------------------------


def weights_of(problem: Problem, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(C, p) weights and (C,) intercepts; C is 1 for two classes and for numbers."""
    C, free = problem.loss.outputs, problem.free
    W = x[: x.size - free].reshape(C, -1)
    return W, x[x.size - free :] if free else np.zeros(C)

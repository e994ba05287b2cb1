"""Runs as folders, without pickle.

run.toml        the configuration that gives the run again
result.json     what it came to, in numbers
trace.npz, .csv every recorded round
model.npz       x, X, duals, and the classes where there are some
model.json      the model as scikit-learn has it: `load_model(folder)`
plot.png        the peers and how they came to agree
checkpoint.bin  the state, to go on from
log.txt         what was said, and when
"""

import json
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import InputError
from edgewise.graph.graph import Graph
from edgewise.plotting.pictures import mean_labels, picture
from edgewise.problem.losses import Huber, Logistic, Multinomial, SmoothedHinge, Squared
from edgewise.problem.problem import Problem
from edgewise.running.result import Result
from edgewise.running.trace import Trace

CONFIG, RESULT, MODEL, CHECKPOINT = "run.toml", "result.json", "model.json", "checkpoint.bin"
ESTIMATORS = {
    Logistic: "LogisticRegression",
    Multinomial: "LogisticRegression",
    SmoothedHinge: "LinearSVC",
    Squared: "LinearRegression",
    Huber: "LinearRegression",
}


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
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    stamp = Path("out") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, again = stamp, 1
    while True:
        try:
            folder.mkdir(parents=True)
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
    preprocessing: Mapping[str, Any] | None = None,
    labels: np.ndarray | None = None,
) -> None:
    """Everything of a solve but its configuration and its log; `labels` are the peers' means, where
    not all samples are here."""
    result.trace.save(folder / "trace.npz")
    result.trace.save(folder / "trace.csv")
    arrays = {"x": result.x, "X": result.X, "duals": result.duals}
    if problem.classes is not None:
        arrays["classes"] = np.asarray(problem.classes)
    np.savez(folder / "model.npz", **arrays)  # type: ignore[arg-type]
    if type(problem.loss) in ESTIMATORS:
        model = as_estimator(problem, result.x) | {"preprocessing": dict(preprocessing or {})}
        (folder / MODEL).write_text(json.dumps(model) + "\n")
    write_json(folder / RESULT, summary)
    labels = mean_labels(problem) if labels is None else labels
    picture(problem, graph, result.trace, folder / "plot.png", f"by {summary['method']}", labels)


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


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n")


# --- configurations -------------------------------------------------------------------------------


def read_config(folder: str | Path) -> dict[str, Any]:
    path = Path(folder) / CONFIG
    if not path.exists():
        raise InputError(f"{folder} is no run, it has no {CONFIG}: give a folder that a run wrote")
    return {"command": "solve"} | read_toml(path)


def read_toml(path: str | Path) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}: give a TOML file with options") from None
    except (OSError, ValueError) as problem:
        raise InputError(f"{path} is no TOML file ({problem})") from None


def write_toml(path: Path, values: Mapping[str, Any]) -> None:
    """Texts, numbers, truths, and lists of them."""
    path.write_text("".join(f"{key} = {toml(value)}\n" for key, value in values.items()))


def toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):  # JSON's escapes are TOML's, but for this one
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


# --- models ---------------------------------------------------------------------------------------


def weights_of(problem: Problem, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(C, p) weights and (C,) intercepts; C is 1 for two classes and for numbers."""
    C, free = problem.loss.outputs, problem.free
    W = x[: x.size - free].reshape(C, -1)
    return W, x[x.size - free :] if free else np.zeros(C)


def as_estimator(problem: Problem, x: np.ndarray) -> dict[str, Any]:
    """What scikit-learn calls the model's parts."""
    name = ESTIMATORS[type(problem.loss)]
    W, b = weights_of(problem, x)
    if len(W) == 2:  # scikit-learn has one row for two classes
        W, b = W[1:] - W[:1], b[1:] - b[:1]
    parts: dict[str, Any] = {"coef_": W.tolist(), "intercept_": b.tolist()}
    if problem.classes is None:
        parts = {"coef_": W[0].tolist(), "intercept_": float(b[0])}
    else:
        parts["classes_"] = np.asarray(problem.classes).tolist()
    return {"format": "edgewise-model", "version": 1, "estimator": name, **parts}


def load_model(path: str | Path) -> Any:
    """A run's model as a fitted scikit-learn estimator, after the scaling that the run did.

    `path` is a run's folder or its model.json. What comes back predicts; to fit it again is to
    start anew.
    """
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler
    from sklearn.svm import LinearSVC

    path = Path(path)
    path = path / MODEL if path.is_dir() else path
    try:
        said = json.loads(path.read_text())
        kinds = {k.__name__: k for k in (LinearRegression, LogisticRegression, LinearSVC)}
        estimator = kinds[said["estimator"]]()
        for name in ("coef_", "intercept_", "classes_"):
            if name in said:
                value = said[name]
                setattr(estimator, name, value if isinstance(value, float) else np.array(value))
        steps: list[Any] = []
        before = said.get("preprocessing", {})
        estimator.n_features_in_ = np.shape(said["coef_"])[-1]
        if "scale" in before:
            centre = before["mean"] is not None
            scaler = StandardScaler(with_mean=centre)
            scaler.mean_ = np.array(before["mean"]) if centre else None
            scaler.scale_ = np.array(before["scale"])
            scaler.var_ = scaler.scale_**2
            scaler.n_features_in_ = estimator.n_features_in_
            steps.append(scaler)
        if before.get("normalize"):
            steps.append(Normalizer())
    except FileNotFoundError:
        raise InputError(f"there is no model {path}: give a run that has ended") from None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(f"{path} is no model ({problem!r}): run it again") from None
    return make_pipeline(*steps, estimator) if steps else estimator

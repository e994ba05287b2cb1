"""Seconds and rounds to an answer, beside other libraries' methods, on three shared problems.

    python benchmarks/libraries.py                      all; about an hour on one core
    python benchmarks/libraries.py --problem lasso      one problem; may be given again
    python benchmarks/libraries.py --row edgewise       rows with this in their name; likewise
    python benchmarks/libraries.py --nda FOLDER         a clone of the repository, for nda's rows
    python benchmarks/libraries.py --python PYTHON      a Python 3.13, for decent-bench's
    python benchmarks/libraries.py --again              with the steps found before, much sooner
    python benchmarks/libraries.py --page               the table in docs/performance.md again

Others run in an environment of their own, out/libraries, which this makes from PyPI where there is
a Python 3.13, with what LIBRARIES names; nda is on no registry, so give --nda a clone of
github.com/liboyue/Network-Distributed-Algorithm. Rows that cannot run are said to be skipped, with
the reason. Whatever is measured replaces the row in docs/data/libraries.json, so that a run can be
done in pieces. Data come from --data (LIBSVM text, plain or packed); libraries_race.py has the
rules of the race, libraries_theirs.py what runs the others.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from libraries_race import LEVELS, SHARE, Race, Shared, load, middle, one_core, rounded, search

if __name__ == "__main__":
    one_core()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before NumPy's threads
    os.environ["EDGEWISE_NUMPY"] = "0"  # compiling does not count here, so all rounds are compiled

import jax
import libraries_page
import numpy as np
from libraries_problems import PROBLEMS, make, ours
from ordinary import BESIDE, Absent
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

from edgewise.engines.native import simulator
from edgewise.methods.auto import choose
from edgewise.running.solve import rows_apart

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "libraries"
KEPT = ROOT / "docs" / "data" / "libraries.json"
LIBRARIES = ("decent-bench==0.3.0", "tvopt==0.2.7", "scikit-learn", "cvxpy", "colorlog")
UNTUNED = ("auto", "lt-saga-pd", "saga-pd")
TUNED = {"a9a": ("gt-saga", "network-svrg", "nids"), "ridge": ("gt-saga", "network-svrg", "nids")}
TUNED["lasso"] = ("pg-extra", "nids")
TRIES = 15  # of scikit-learn's fits


# --- our rows ------------------------------------------------------------------------------------


def our_run(problem: Shared, name: str, eta: Any, limit: float) -> dict[str, Any]:
    """Rounds alone: what is compiled, and what a first stretch needs beside, is `starting`."""
    given, graph = ours(problem)
    race, begun = Race(problem, limit), time.process_time()
    method, chosen, _ = choose(name, given, graph, eta, None)
    with jax.enable_x64(True):
        engine = simulator(given, graph, method, 0, np.dtype("float64"))
        every = rows_apart(engine.method)
        carry = engine.start(engine.origin(), None)
        engine.advance(carry, 0, every)
        np.asarray(engine.view(engine.start(engine.origin(), None))[0])
        starting = time.process_time() - begun
        race.begin()
        race.spent += engine.starting_seconds
        carry, done = engine.start(engine.origin(), None), 0
        while not race.ended:
            carry, _ = engine.advance(carry, done, every)
            done += every
            models, at = engine.view(carry)[0], done
            race.iteration(lambda models=models: np.asarray(models), at)
    return race.result() | {"starting": starting, "called": chosen}


def our_rows(
    problem: Shared, limit: float, name: str, kept: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    def run(eta: Any) -> dict[str, Any]:
        return middle(lambda: our_run(problem, name, eta, limit))

    if name in UNTUNED:
        return [run(None) | {"steps": "untuned", "values": {}}]
    if kept:
        return [kept[0] | run(kept[0]["values"]["eta"])]

    def short(steps: dict[str, float], allowed: float) -> dict[str, Any]:
        return our_run(problem, name, steps["eta"], allowed)

    values, _, runs = search(short, {"eta": 1 / problem.smoothness()}, limit / SHARE)
    return [run(values["eta"]) | {"steps": "tuned", "values": values, "runs": runs}]


# --- scikit-learn, all data in one place ---------------------------------------------------------


def estimators(problem: Shared) -> dict[str, Callable[[int], Any]]:
    N = problem.y.size
    if problem.loss == "logistic":
        fixed = {"C": 1 / (problem.ridge * N), "fit_intercept": False, "tol": 1e-14}
        return {
            solver: lambda most, solver=solver: LogisticRegression(
                solver=solver, max_iter=most, random_state=0, **fixed
            )
            for solver in ("lbfgs", "saga")
        }
    if problem.l1:
        fixed = {"alpha": problem.l1, "fit_intercept": False, "tol": 1e-14}
        return {"coordinate descent": lambda most: Lasso(max_iter=most, **fixed)}
    alpha = problem.ridge * N
    return {"cholesky": lambda most: Ridge(alpha, fit_intercept=False, solver="cholesky")}


def centralised(problem: Shared, name: str) -> list[dict[str, Any]]:
    """The shortest fit that gets there, found by doubling and halving, each begun anew."""
    build = estimators(problem)[name]
    X, y = problem.X.reshape(-1, problem.X.shape[2]), problem.y.reshape(-1)
    race = Race(problem, np.inf)

    def fit(iterations: int) -> tuple[float, float]:
        model = build(iterations)
        start = time.process_time()
        model.fit(X, y)
        return time.process_time() - start, race.worst(np.atleast_2d(model.coef_))

    fit(1)  # what is imported at the first call
    seconds, gap = {}, np.inf
    for level in LEVELS:
        enough = 1
        while fit(enough)[1] > level:
            enough *= 2
        few = enough // 2
        while enough - few > 1:
            middle = (few + enough) // 2
            few, enough = (few, middle) if fit(middle)[1] <= level else (middle, enough)
        spent, gap = min(fit(enough) for _ in range(TRIES))
        seconds[f"{level:.0e}"] = spent
    told = {"seconds": seconds, "rounds": dict.fromkeys(seconds, 0), "gap": gap}
    return [told | {"ended": "reached", "steps": "", "values": {}}]


# --- theirs --------------------------------------------------------------------------------------


def python_313(given: str | None) -> str | None:
    """One that runs: a shim of pyenv's may be there and not."""
    homes = [Path.home() / ".pyenv", Path(os.environ.get("PYENV_ROOT", "/nowhere"))]
    found = [str(p) for home in homes for p in home.glob("versions/3.1[3-9]*/bin/python")]
    asks = "import sys; sys.exit(sys.version_info < (3, 13))"
    for python in filter(None, [given, "python3.13", "python3", *found]):
        try:
            if subprocess.run([python, "-c", asks], capture_output=True).returncode == 0:
                return python
        except OSError:
            continue
    return None


def environment(given: str | None) -> Path | str:
    """The Python of an environment that has the others; or why there is none."""
    python = OUT / "venv" / "bin" / "python"
    stamp = OUT / "venv" / ".ready"
    if not stamp.exists():
        base = python_313(given)
        if base is None:
            return "no Python 3.13 or newer here; give --python"
        subprocess.run([base, "-m", "venv", OUT / "venv"], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", *LIBRARIES]
        if subprocess.run(pip).returncode:
            return f"pip could not install {' '.join(LIBRARIES)}"
        stamp.touch()
    return python


def their_rows(
    problem: Shared, row: str, o: argparse.Namespace, kept: list[dict[str, Any]]
) -> dict[str, Any]:
    if row.startswith("nda") and o.nda is None:
        return {"reason": "nda is on no registry; give --nda a clone of it"}
    python = environment(o.python)
    if isinstance(python, str):
        return {"reason": python}
    script = Path(__file__).with_name("libraries_theirs.py")
    command = [python, script, OUT / f"{problem.name}.npz", row, "--seconds", str(o.seconds)]
    command += ["--nda", o.nda.resolve()] if o.nda else []
    command += ["--again", json.dumps(kept)] if kept else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"reason": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


# --- all of it -----------------------------------------------------------------------------------


def names_of(problem: Shared) -> list[str]:
    from libraries_theirs import METHODS

    floor = [f"scikit-learn {name}" for name in estimators(problem)]
    return [*floor, *(f"edgewise {n}" for n in (*UNTUNED, *TUNED[problem.name])), *METHODS]


def measure(
    problem: Shared, row: str, o: argparse.Namespace, kept: list[dict[str, Any]]
) -> dict[str, Any]:
    library, name = row.split(" ", 1)
    if library == "scikit-learn":
        return {"rows": centralised(problem, name)}
    if library == "edgewise":
        return {"rows": our_rows(problem, o.seconds, name, kept)}
    return their_rows(problem, row, o, kept)


def described(problem: Shared) -> dict[str, Any]:
    V, K, n = problem.X.shape
    edges = len(problem.edges)
    told = {"nodes": V, "samples": K, "unknowns": n, "edges": edges, "loss": problem.loss}
    told |= {"ridge": problem.ridge, "l1": problem.l1, "smoothness": problem.smoothness()}
    return told | {"condition": problem.condition()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=BESIDE, help="folder with the data")
    add("--problem", action="append", choices=PROBLEMS, help="default: all three")
    add("--row", action="append", help="part of a row's name; default: all")
    add("--seconds", type=float, default=4.0, help="that a run may take")
    add("--nda", type=Path, help="a clone of Network-Distributed-Algorithm")
    add("--python", help="a Python 3.13")
    add("--again", action="store_true", help="with the steps that were found before")
    add("--page", action="store_true", help="nothing but the table, from what is kept")
    o = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    OUT.mkdir(parents=True, exist_ok=True)
    for name in () if o.page else o.problem or PROBLEMS:
        path = OUT / f"{name}.npz"
        try:
            problem = load(path) if path.exists() else make(name, o.data)
        except Absent as reason:
            print(f"{name}: skipped: {reason}")
            continue
        problem.save(OUT)
        for row in names_of(problem):
            if o.row and not any(part in row for part in o.row):
                continue
            kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
            old = kept.get(name, {"rows": {}})["rows"].get(row, {}).get("rows", [])
            found = measure(problem, row, o, old if o.again else [])
            about = kept.setdefault(name, {"rows": {}}) | {"problem": rounded(described(problem))}
            about["rows"][row] = rounded(found)
            kept[name] = about
            KEPT.write_text(json.dumps(kept, indent=1) + "\n")
            print("\n".join(libraries_page.lines(row, found)), flush=True)
    if KEPT.exists():
        libraries_page.write(ROOT / "docs" / "performance.md", json.loads(KEPT.read_text()))


if __name__ == "__main__":
    sys.exit(main())

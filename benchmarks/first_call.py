"""How long the first call takes: in fresh processes, with empty caches, and with kept ones.

    python benchmarks/first_call.py                what is in CASES, each in processes of its own
    python benchmarks/first_call.py --repeat 3     the least of so many
    python benchmarks/first_call.py --numpy off    everything compiled, as if nothing were small

CPU seconds are those of the process, user and system, with its threads; a busy machine changes
them less than seconds of a clock. `import` has what the call imports before anything else runs.
"call" is from the call to the result, of the call alone: "again" the second one in the process.
The ratios, of CPU seconds in one run, are what to compare between machines.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

MEASURE = """
import json, sys, time

def seconds(f):
    wall, cpu = time.perf_counter(), time.process_time()
    made = f()
    return made, [time.perf_counter() - wall, time.process_time() - cpu]

programs = []
{setup}
found = {{"programs": None, "import": ready}}
if call is not None:
    import jax
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, *_, **__: programs.append(name) if "backend_compile" in name else None
    )
    _, found["call"] = seconds(call)
    found["programs"] = len(programs)
    _, found["again"] = seconds(call)
print(json.dumps(found))
"""
SYNTHETIC = """
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal(({samples}, {features}))
y = np.where(X @ rng.standard_normal({features}) + rng.standard_normal({samples}) > 0, 1, -1)
"""
SOLVE = """
def names():
    import edgewise as ew
    return ew.solve, ew.Problem, ew.Graph, ew.Logistic, ew.split, ew
(solve, *_, ew), ready = seconds(names)
{data}
def call():
    problem = ew.Problem(ew.split(X, y, nodes=10), ew.Logistic(ridge=1e-3))
    return solve(problem, ew.Graph.ring(10), "{method}", tol={tol}, rounds=300)
"""
ESTIMATOR = """
def names():
    from edgewise.sklearn import DecentralizedLogisticRegression
    return DecentralizedLogisticRegression
Estimator, ready = seconds(names)
{data}
def call():
    return Estimator().fit(X, y)
"""
WORDS = """
_, ready = seconds(lambda: __import__("edgewise"))
call = None
"""
LIKE_BREAST_CANCER = SYNTHETIC.format(samples=569, features=30)


def solving(method: str, tol: float = 1e-6, data: str = LIKE_BREAST_CANCER) -> str:
    return SOLVE.format(method=method, tol=tol, data=data)


IMPORTED, SOLVED = "import edgewise", "solve, auto, 569 x 30"
FITTED, HELPED = "DecentralizedLogisticRegression", "edgewise --help"
CASES = {
    IMPORTED: WORDS,
    SOLVED: solving("auto"),
    "solve, saga-pd, 300 rounds": solving("saga-pd", 1e-12),
    "solve, pd, 300 rounds": solving("pd", 1e-12),
    FITTED: ESTIMATOR.format(data=LIKE_BREAST_CANCER),
}
COMMANDS = {
    HELPED: ["--help"],
    "edgewise solve breast_cancer": ["solve", "breast_cancer", "--standardize", "--tol", "1e-6"],
}


def environment(cache: Path, by_numpy: bool) -> dict[str, str]:
    """The caller's, with caches of its own: of programs, and of what Numba compiles."""
    own = {
        "EDGEWISE_CACHE": str(cache / "edgewise"),
        "NUMBA_CACHE_DIR": str(cache / "numba"),
        "EDGEWISE_NUMPY": "1" if by_numpy else "0",
    }
    kept = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    return kept | own


def in_process(setup: str, known: dict[str, str]) -> dict[str, list[float]]:
    program = MEASURE.format(setup=setup)
    done = subprocess.run(
        [sys.executable, "-c", program], env=known, capture_output=True, text=True, check=True
    )
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def commanded(words: list[str], known: dict[str, str], folder: Path) -> dict[str, list[float]]:
    """Of a whole process, from its start to its end."""
    program = [
        "import os, resource, runpy, subprocess, sys, time, json",
        "start = time.perf_counter()",
        f"subprocess.run([sys.executable, '-m', 'edgewise', *{words!r}], capture_output=True)",
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)",
        "cpu = used.ru_utime + used.ru_stime",
        "print(json.dumps({'call': [time.perf_counter() - start, cpu]}))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(program)],
        env=known, capture_output=True, text=True, check=True, cwd=folder,
    )  # fmt: skip
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def measured(
    by_numpy: bool,
    repeat: int,
    names: Iterable[str] = (*CASES, *COMMANDS),
    states: Iterable[str] = ("fresh", "kept"),
) -> dict[str, dict[str, list[float]]]:
    """{case: {"fresh": [wall, cpu], "kept": ..., "again": ..., "import": ..., "programs": n}}"""
    rows: dict[str, dict[str, list[float]]] = {}
    cases: dict[str, Any] = {name: (CASES | COMMANDS)[name] for name in names}
    for name, how in track(
        cases.items(), "measuring", console=Console(stderr=True), transient=True
    ):
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as folder:
                known = environment(Path(folder), by_numpy)
                for state in states:
                    if isinstance(how, str):
                        found = in_process(how, known)
                    else:
                        found = commanded(how, known, Path(folder))
                    named = {state if k == "call" else k: v for k, v in found.items()}
                    if state == "kept":
                        named.pop("programs", None)
                    row = rows.setdefault(name, {})
                    for column, value in named.items():
                        if value is not None:
                            row[column] = min(row.get(column, value), value, key=last)
    return rows


def last(value: list[float] | float) -> float:
    """CPU seconds; or a count."""
    return value[-1] if isinstance(value, list) else value


def ratios(rows: dict[str, dict[str, list[float]]]) -> dict[str, float]:
    """Cost over cost, for benchmarks/guard.py. The yardstick is what importing JAX and the names of
    `solve` takes, which is there in every process."""
    yard = last(rows[SOLVED]["import"])
    return {
        "import edgewise / import of solve": last(rows[IMPORTED]["import"]) / yard,
        "first solve / import of solve": last(rows[SOLVED]["fresh"]) / yard,
        "first fit / import of solve": last(rows[FITTED]["fresh"]) / yard,
        "edgewise --help / import of solve": last(rows[HELPED]["fresh"]) / yard,
    }


def guarded() -> dict[str, float]:
    return ratios(measured(True, 1, (IMPORTED, SOLVED, FITTED, HELPED), ("fresh",)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--numpy", choices=("on", "off"), default="on")
    options = parser.parse_args()
    rows = measured(options.numpy == "on", options.repeat)
    columns = "import", "fresh", "kept", "again"
    table = Table("CPU s (wall s)", *columns, "programs compiled")
    for name, row in rows.items():
        cells = [f"{row[c][1]:.2f} ({row[c][0]:.2f})" if c in row else "" for c in columns]
        table.add_row(name, *cells, str(row.get("programs", "")))
    console = Console()
    console.print(table)
    for name, ratio in ratios(rows).items():
        console.print(f"{name}: {ratio:.3g}")


if __name__ == "__main__":
    main()

"""What else must hold of the default: sections of benchmarks/defaults.py.

against_tuned  the twelve settings of fair.py: rounds against pdmm's, calls against saga-pd's, both
               with their steps found by the rule and the budgets of fair.py
demo           rounds and megabytes of the demo
fit            CPU seconds of DecentralizedLogisticRegression().fit, in a process of its own
faults         the table of docs/faults.md
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import fair
import faults as fault_table
import numpy as np
from side_by_side import forget_programs, processes

import edgewise as ew

ACCURACY = 1e-6  # of the divergence at the start, as in docs/comparison.md
CALLS = 1.3  # times the calls of tuned saga-pd, at most
DEMO_ROUNDS, DEMO_MEGABYTES = 300, 8
BEFORE = {"breast_cancer": 0.94, "digits": 34.0, "text": 85.0}  # CPU seconds of fit by pdmm
PART, TIGHT = 0.1, 1e-6  # of these, at most; and how near the coefficients have to be

# --- against tuned methods -------------------------------------------------------------------


def against_tuned(o: argparse.Namespace) -> None:
    """Medians over the twelve settings; infinite where the budget did not do. What tuning found is
    kept in --out, so that another method can be held against it."""
    kept = o.out / ("tuned-quick.json" if o.quick else "tuned.json")
    known = json.loads(kept.read_text()) if kept.exists() else {}
    names = [f"{problem}:{graph}" for problem in fair.PROBLEMS for graph in fair.GRAPHS]
    names = [n for n in names if not o.only or any(part in n for part in o.only)]
    found: dict[str, list[list[float]]] = {m: [] for m in o.method}
    print("to 1e-6 of the first divergence: tuned pdmm, tuned saga-pd, and nothing tuned")
    with processes(o.jobs) as pool:
        todo = [pool.submit(in_setting, name, known.get(name), o) for name in names]
        for name, future in zip(names, todo, strict=True):
            theirs, each = future.result()
            known[name] = theirs
            kept.write_text(json.dumps(known, indent=1))
            told = f"{name}: pdmm {theirs[0]:,.0f} rounds, saga-pd {theirs[1]:,.0f} calls"
            for method, ours in each.items():
                found[method].append([*theirs, *ours])
                told += f"; {method} {ours[0]:,.0f} rounds, {ours[1]:,.0f} calls"
            print(told, flush=True)
    for method, every in found.items():
        theirs_r, theirs_c, ours_r, ours_c = np.median(np.array(every), 0)
        print(
            f"{method}: median rounds {ours_r:,.0f}, tuned pdmm {theirs_r:,.0f}: "
            f"{verdict(ours_r <= theirs_r)}; median calls {ours_c:,.0f}, tuned saga-pd "
            f"{theirs_c:,.0f}, {CALLS} times that at most: {verdict(ours_c <= CALLS * theirs_c)}"
        )


def in_setting(
    name: str, known: list[float] | None, o: argparse.Namespace
) -> tuple[list[float], dict[str, list[float]]]:
    """Rounds of tuned pdmm and calls of tuned saga-pd, then rounds and calls of each method."""
    problem, _, graph, _ = fair.setting_of(name, o.data if o.data.is_dir() else None)
    theirs = known or [
        *costs(problem, graph, "pdmm", ("rounds",), o),
        *costs(problem, graph, "saga-pd", ("oracle_calls",), o),
    ]
    both = ("rounds", "oracle_calls")
    each = {m: costs(problem, graph, m, both, o, tune=False) for m in o.method}
    forget_programs()
    return theirs, each


def costs(
    problem: ew.Problem,
    graph: ew.Graph,
    method: str,
    units: tuple[str, ...],
    o: argparse.Namespace,
    tune: bool = True,
) -> list[float]:
    """The medians over fair.py's seeds, within its budget of rounds, or of calls where only those
    are asked for."""
    budgets = {"rounds": fair.ROUNDS, "oracle_calls": fair.PASSES * problem.counts.mean()}
    budget = budgets[units[0]] / (10 if o.quick else 1)
    found = ew.compare(
        *(problem, graph, [method], budget, units[0]),
        tune=tune,
        seeds=fair.SEEDS,
        reference=ew.reference(problem),
        show=False,
    )
    if method in found.refused:
        return [float("inf")] * len(units)
    return [float(found.cost(method, ACCURACY, unit)[1]) for unit in units]


def verdict(holds: bool) -> str:
    return "holds" if holds else "DOES NOT HOLD"


# --- the demo --------------------------------------------------------------------------------


def demo(o: argparse.Namespace) -> None:
    """`make demo` by each method, looked at every ten rounds."""
    script = Path(__file__).parents[1] / "examples" / "demo.py"
    program = [sys.executable, str(script), "--json", "--no-save", "--record-every", "10"]
    for method in o.method:
        done = subprocess.run(
            [*program, "--method", method],
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            told = json.loads(done.stdout)
        except ValueError:
            print(f"the demo with {method} failed: {done.stderr[-200:]}")
            continue
        rounds, megabytes = told["rounds"], told["bytes_sent"] / 1e6
        holds = told["converged"] and rounds <= DEMO_ROUNDS and megabytes <= DEMO_MEGABYTES
        print(
            f"the demo, {method}: {rounds:,.0f} rounds, {megabytes:.2f} MB "
            f"(at most {DEMO_ROUNDS} and {DEMO_MEGABYTES}): {verdict(holds)}"
        )


# --- the estimators --------------------------------------------------------------------------

FIT = """
import sys, time, warnings
sys.path.insert(0, {here!r})
import numpy as np
from sklearn.linear_model import LogisticRegression
from edgewise.sklearn import DecentralizedLogisticRegression
from ordinary import load
from pathlib import Path
warnings.simplefilter("ignore")
name, method = {name!r}, {method!r}
X, y = load(name, Path("."))
model = DecentralizedLogisticRegression(**(dict(method=method) if method else {{}}))
began = time.process_time()
model.fit(X, y)
first = time.process_time() - began
began = time.process_time()
model.fit(X, y)
again = time.process_time() - began
solver = "newton-cg" if name == "text" else "newton-cholesky"
star = LogisticRegression(C=1.0, solver=solver, tol=1e-11, max_iter=1000).fit(X, y)
apart = np.abs(model.coef_ - star.coef_) / np.maximum(1, np.abs(star.coef_))
print(first, again, apart.max(), model.n_iter_)
"""


def fit(o: argparse.Namespace) -> None:
    """CPU seconds of all threads: of a process's second fit, which is what the seconds before were
    of; of its first, with programs kept on disk; and with none kept."""
    print(f"fit: at most {PART} of the seconds before, coefficients to {TIGHT:.0e}")
    for method in o.method if o.given else [""]:
        for name, before in BEFORE.items():
            if o.only and not any(part in name for part in o.only):
                continue
            with tempfile.TemporaryDirectory() as kept:
                cold = fitted(name, method, kept)
                warm = fitted(name, method, kept)
            told = f"{name}, {method or 'the default'}: "
            if isinstance(warm, str) or isinstance(cold, str):
                print(told + str(cold if isinstance(cold, str) else warm), flush=True)
                continue
            holds = warm[1] <= PART * before and warm[2] <= TIGHT
            print(
                f"{told}{warm[1]:.2f} s, the first of a process {warm[0]:.2f} s, and {cold[0]:.2f} "
                f"s where nothing is kept (before: {before} s), {warm[3]:.0f} rounds, off by "
                f"{warm[2]:.0e}: {verdict(holds)}",
                flush=True,
            )


def fitted(name: str, method: str, cache: str) -> list[float] | str:
    program = FIT.format(here=str(Path(__file__).parent), name=name, method=method)
    environment = {**os.environ, "EDGEWISE_CACHE": cache, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1][:200]}"
    return [float(word) for word in done.stdout.split()]


# --- faults ----------------------------------------------------------------------------------


def faults(o: argparse.Namespace) -> None:
    """The rows of docs/faults.md, with the l1 penalty, by each method."""
    floor = f"<{fault_table.ROUNDING:.0e}"
    rounds = o.rounds if o.rounds % 400 == 0 else 400 * (o.rounds // 400 + 1)
    names = [n for n in fault_table.cases(rounds) if not o.only or any(p in n for p in o.only)]
    with processes(o.jobs) as pool:
        for method in o.method:
            todo = [pool.submit(fault_table.outcome, n, method, rounds) for n in names]
            missed = []
            for name, future in zip(names, todo, strict=True):
                cell, arrived = future.result()
                print(
                    f"{name}, {method}: {cell} after {rounds} rounds; "
                    f"below {fault_table.NEAR:.0e} for good {arrived} rounds after the last event",
                    flush=True,
                )
                if cell != floor and "no feedback" not in name:
                    missed.append(name)
            print(f"faults, {method}: {verdict(not missed)}" + "".join(f"; {m}" for m in missed))

"""How far the default gets on ordinary problems, with nothing tuned.

    python benchmarks/defaults.py --data FOLDER          all settings, by the default method
    python benchmarks/defaults.py --quick                thirteen of them
    python benchmarks/defaults.py --method pdmm --method saga-pd     these instead, side by side
    python benchmarks/defaults.py --only large           the settings that have this in their name
    python benchmarks/defaults.py --jobs 16              so many settings side by side
    python benchmarks/defaults.py --against-tuned        against pdmm and saga-pd with steps tuned
    python benchmarks/defaults.py --demo --fit --faults  the demo, the estimators, the fault table

A setting is run until the run's own residual is 1e-6. Columns: rounds, oracle calls a node,
megabytes, seconds (of the rounds alone) and the largest difference of any node's model from
scikit-learn's coefficients, relative to max(1, |coefficient|). Settings are in ordinary.py, the
answers they are held to in optima.py. Data come from --data (LIBSVM text, plain or packed); a
setting whose data are not there is skipped, and said to be. Each has --limit seconds of wall
clock, compiling included, and a process that is ended where it takes twice that; both are said.
Results go to --out: defaults.csv, defaults.md and a trace a run, under curves/.
"""

import argparse
import csv
import multiprocessing
import queue
import resource
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from defaults_table import MOST, TOL, Row, line, markdown, summary
from side_by_side import core_of, forget_programs, stay_on

ROOT = Path(__file__).parents[1]
EVERY = 10  # rounds between two looks
GRACE = 60  # seconds beyond twice the limit before a run's process is ended


# --- one run ---------------------------------------------------------------------------------


def difference(models: np.ndarray, case: Any) -> float:
    """The largest, over nodes and coefficients. Where every class has an intercept, all may be
    shifted alike: their mean is left out. Where optima are many, they agree in the margins."""
    optimum, problem = case.optimum * case.units, case.problem
    apart = models * case.units - optimum
    if problem.intercept and problem.loss.outputs > 1:
        apart[:, -problem.free :] -= apart[:, -problem.free :].mean(1, keepdims=True)
    if case.rows is not None:
        apart, optimum = apart @ case.rows.T, case.rows @ optimum
    return float((np.abs(apart) / np.maximum(1, np.abs(optimum))).max())


def failure(rounds: np.ndarray, residual: np.ndarray, tol: float) -> str:
    """How a residual that did not arrive went: away, nowhere, or too slowly."""
    if not np.isfinite(residual[-1]) or residual[-1] > 10 * residual[0]:
        return "diverges"
    least = np.minimum.accumulate(residual)
    half = len(least) // 2
    fall = np.log(least[half] / least[-1])
    if fall < np.log(2):
        return f"stalls at {least[-1]:.0e}"
    needs = rounds[-1] + np.log(least[-1] / tol) / fall * (rounds[-1] - rounds[half])
    return f"slow: {needs:,.0f} rounds at this rate"


def judge(setting: Any, method: str, o: argparse.Namespace) -> Row:
    import ordinary

    import edgewise as ew

    row = Row(setting.name, method)
    try:
        case = ordinary.make(setting, o.data, TOL)
    except ordinary.Absent as reason:
        return row._replace(outcome=f"skipped: {reason}")
    began = time.monotonic()
    try:
        result = ew.solve(
            case.problem,
            case.graph,
            method,
            rounds=o.rounds,
            record_every=EVERY,
            tol=case.tol,
            reference=False,
            progress=False,
            callback=lambda _: time.monotonic() - began > o.limit,
        )
    except ew.errors.MethodError as reason:
        return row._replace(outcome=f"refused: {reason}")
    trace = result.trace
    last = {c: float(trace[c][-1]) for c in ("rounds", "oracle_calls", "bytes_sent", "seconds")}
    if result.converged:
        outcome = "reached"
    else:
        outcome = failure(trace["rounds"], trace["residual"], case.tol)
        if "callback" in result.message:
            outcome += f"; stopped after {o.limit:.0f} s"
    trace.save(o.out / "curves" / f"{setting.name}.{method}.csv".replace(":", "."))
    return row._replace(
        outcome=outcome,
        rounds=last["rounds"],
        calls=last["oracle_calls"],
        megabytes=last["bytes_sent"] / 1e6,
        seconds=last["seconds"],
        residual=float(trace["residual"][-1]) / (case.tol / TOL),
        difference=difference(result.X, case),
        wall=time.monotonic() - began,
        chosen=str(trace.meta["method"]),
    )


# --- all runs --------------------------------------------------------------------------------


def work(calls: Any, o: argparse.Namespace, core: int | None) -> None:
    """The process that runs settings, one after the other, until it is told None."""
    if core is not None:
        stay_on(core)
    import ordinary

    most = int(o.memory * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    warnings.simplefilter("ignore")
    while (task := calls.recv()) is not None:
        try:
            calls.send(judge(ordinary.SETTINGS[task[0]], task[1], o))
        except Exception as error:
            calls.send(Row(*task, outcome=f"{type(error).__name__}: {str(error)[:100]}"))
        forget_programs()


class Worker:
    """A process to run settings in, begun anew where one hangs or dies."""

    def __init__(self, o: argparse.Namespace, core: int | None) -> None:
        self.o, self.core, self.process = o, core, None
        self.context = multiprocessing.get_context("spawn")

    def run(self, name: str, method: str) -> Row:
        if self.process is None:
            self.here, there = self.context.Pipe()
            given = (there, self.o, self.core)
            self.process = self.context.Process(target=work, args=given, daemon=True)
            self.process.start()
            there.close()
        hard = 2 * self.o.limit + GRACE
        try:
            self.here.send((name, method))
            if self.here.poll(hard):
                return self.here.recv()
            reason = f"no answer in {hard:.0f} s: ended"
        except (EOFError, BrokenPipeError):
            self.process.join(5)
            reason = f"the process died ({self.process.exitcode}): memory above {self.o.memory} GB?"
        self.process.kill()
        self.process = None
        return Row(name, method, reason)

    def close(self) -> None:
        if self.process is not None:
            self.here.send(None)
            self.process.join(10)


def chosen_settings(o: argparse.Namespace) -> list[str]:
    import ordinary

    names = [n for n in ordinary.SETTINGS if not o.quick or n in ordinary.QUICK]
    return [n for n in names if not o.only or any(part in n for part in o.only)]


def run_settings(o: argparse.Namespace) -> list[Row]:
    """--jobs of them side by side, told in their order."""
    (o.out / "curves").mkdir(parents=True, exist_ok=True)
    tasks = [(name, method) for name in chosen_settings(o) for method in o.method]
    workers = [Worker(o, core_of(k) if o.jobs > 1 else None) for k in range(o.jobs)]
    idle: queue.Queue[Worker] = queue.Queue()
    for worker in workers:
        idle.put(worker)

    def run(task: tuple[str, str]) -> Row:
        worker = idle.get()
        try:
            return worker.run(*task)
        finally:
            idle.put(worker)

    rows: list[Row] = []
    with open(o.out / "defaults.csv", "w", newline="") as file, ThreadPoolExecutor(o.jobs) as pool:
        table = csv.writer(file)
        table.writerow(Row._fields)
        for row in pool.map(run, tasks):
            rows.append(row)
            table.writerow(row)
            file.flush()
            print(line(row), flush=True)
    for worker in workers:
        worker.close()
    (o.out / "defaults.md").write_text(markdown(rows))
    print("\n" + "\n".join(summary(rows, m) for m in o.method))
    return rows


def default_method() -> str:
    """What `solve` takes where it is given none."""
    import inspect

    import edgewise as ew

    return str(inspect.signature(ew.solve).parameters["method"].default)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    add("--data", type=Path, default=beside, help="folder with the data")
    add("--out", type=Path, default=ROOT / "out" / "defaults", help="folder for results")
    add("--method", action="append", help="a method; may be given again (solve's default)")
    add("--only", action="append", default=[], help="part of a setting's name; may be given again")
    add("--quick", action="store_true", help="thirteen settings")
    add("--rounds", type=int, default=MOST, help="rounds a run may take")
    add("--limit", type=float, default=120.0, help="seconds of wall clock a run may take")
    add("--memory", type=float, default=8.0, help="GB that a run's process may take")
    add("--jobs", type=int, default=1, help="processes side by side, one core each")
    for section in ("against-tuned", "demo", "fit", "faults"):
        add(f"--{section}", action="store_true", help="this section instead")
    o = parser.parse_args()
    o.given = o.method is not None
    o.method = o.method or [default_method()]
    o.out.mkdir(parents=True, exist_ok=True)
    sections = [s for s in ("against_tuned", "demo", "fit", "faults") if getattr(o, s)]
    if not sections:
        run_settings(o)
        return
    import defaults_targets

    for section in sections:
        getattr(defaults_targets, section)(o)


if __name__ == "__main__":
    main()

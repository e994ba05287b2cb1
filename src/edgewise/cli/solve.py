"""edgewise solve"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.table import Table

import edgewise as ew
from edgewise import __version__, runs
from edgewise.cli import parts
from edgewise.cli.config import effective
from edgewise.cli.job import Job, make_job
from edgewise.cli.options import SolveOptions
from edgewise.cli.shell import (
    INTERRUPTED,
    NOT_CONVERGED,
    noticing_interrupts,
    output,
    plain,
    print_json,
)
from edgewise.errors import EdgewiseError, InputError
from edgewise.trace import COLUMNS

log = logging.getLogger("edgewise")

# Twenty hospitals, unevenly stocked: some see mostly benign cases, one has a single patient.
DEMO = {
    "data": "breast_cancer",
    "scale": True,
    "normalize": True,  # no single patient rules the step
    "nodes": 20,
    "how": "label",
    "ridge": 1e-3,
    "penalty": ["l1:2e-3"],
    "weights": "sample",
    "intercept": True,
    "rounds": 60_000,
    "record_every": 500,
    "tol": 1e-7,
}
MOST_SCORED = 10**10  # multiplications spent on the score of every peer


def solve(o: SolveOptions) -> None:
    """Fit a model over a graph, and keep the run in a folder.

    Without DATA it runs the demo: 20 hospitals, unevenly stocked, fit one sparse model.
    """
    if o.resume is not None and (o.out is not None or not o.save):
        raise InputError("--resume goes on in the run's own folder: leave --out, --no-save out")
    if o.tensorboard and not o.save:
        raise InputError("--tensorboard writes into the run's folder: leave --no-save out")
    job = make_job(o)
    problem, graph = job.problem, job.graph
    method, faults = parts.method(o.method, o.set), parts.faults(o)
    X0 = None if o.x0 is None else runs.load_arrays(o.x0)["X"]
    duals = None if o.duals is None else runs.load_arrays(o.duals)["duals"]
    folder = Path(o.resume) if o.resume else None
    if folder is None and o.save:
        folder = runs.new_folder(o.out, o.method)
    console = output(o)
    began = time.monotonic()
    with (
        keeping(folder, effective("solve", o)),
        noticing_interrupts() as interrupted,
        ew.TensorBoard(folder) if folder and o.tensorboard else nullcontext() as board,
    ):
        console.print(describe(job), highlight=False)
        result = ew.solve(
            problem,
            graph,
            method,
            rounds=o.rounds,
            seed=o.seed,
            eta=parts.steps(o.eta),
            rho=parts.steps(o.rho),
            record_every=o.record_every,
            tol=o.tol,
            checkpoint=o.checkpoint or (folder / runs.CHECKPOINT if folder else None),
            oracle_budget=o.oracle_budget,
            X0=X0,
            duals=duals,
            reference=o.reference,
            faults=faults,
            devices=o.devices,
            dtype=o.dtype,
            progress=o.progress,
            callback=board,
        )
        log.info(result.message)
        summary = summarise(o, job, result, faults) | {"wall_seconds": time.monotonic() - began}
        if folder is not None:
            summary["folder"] = str(folder)
            runs.save_result(folder, problem, graph, result, plain(summary), job.preprocessing)
        console.print(f"[bold]{o.method}[/]: {result.message}", highlight=False)
        console.print(table(summary))
        if not result.converged and not o.scale and uneven(problem.shards.X):
            console.print("the columns differ in scale more than tenfold: try --scale")
        if folder is not None:
            console.print(f"saved in {folder}", highlight=False, soft_wrap=True)
        if o.json:
            print_json(summary)
    if not result.converged:
        raise typer.Exit(INTERRUPTED if interrupted() else NOT_CONVERGED)


def describe(job: Job) -> str:
    counts = job.problem.counts
    least, most = counts.min(), counts.max()
    held = f"{least}" if least == most else f"{least} to {most}"
    return (
        f"{job.problem.shards.samples} samples at {job.problem.nodes} peers ({held} each), "
        f"{job.problem.size} unknowns, {job.graph.edge_count} edges"
    )


@contextmanager
def keeping(folder: Path | None, config: dict[str, Any]) -> Iterator[None]:
    """The configuration, written first, so that a run that is cut short can go on; and a log.

    Where the run cannot be as it was asked for, the folder is left as it was found.
    """
    if folder is None:
        yield
        return
    at, diary = folder / runs.CONFIG, folder / "log.txt"
    before = at.read_text() if at.exists() else None
    runs.write_toml(at, config)
    handler = logging.FileHandler(diary)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.info("edgewise %s", config)
    began = time.monotonic()
    try:
        yield
        log.info("%.1f seconds in all", time.monotonic() - began)
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        handler.close()
        if isinstance(sys.exception(), EdgewiseError):
            if before is not None:
                at.write_text(before)
            else:
                at.unlink()
                diary.unlink()
                with suppress(OSError):  # it holds something else
                    folder.rmdir()


def summarise(
    o: SolveOptions, job: Job, result: ew.Result, faults: ew.Faults | None
) -> dict[str, Any]:
    """What the run came to, for tables and scripts."""
    problem, x = job.problem, result.x
    weights = x[: x.size - problem.free]
    summary: dict[str, Any] = {
        "command": "solve",
        "version": __version__,
        "method": o.method,
        "converged": result.converged,
        "message": result.message,
        "nodes": problem.nodes,
        "edges": job.graph.edge_count,
        "samples": problem.shards.samples,
        "unknowns": problem.size,
        **{name: float(result.trace[name][-1]) for name in COLUMNS},
        "weights": weights.size,
        "weights_used": int(np.count_nonzero(result.X[0, : weights.size])),
        "score_kind": "R²" if problem.classes is None else "accuracy",
        "score": score(problem, x),
    }
    if problem.shards.samples * problem.size * problem.nodes < MOST_SCORED:
        summary["score_worst_peer"] = min(score(problem, own) for own in result.X)
    whole = faults is None or len(faults.changes) == 1  # all are there all the time
    if o.reference and whole:
        star = ew.reference(problem)
        summary["score_reference"] = score(problem, star.x)
        summary["distance"] = float(np.linalg.norm(x - star.x))
    return summary


def score(problem: ew.Problem, x: np.ndarray) -> float:
    """On the training data: the part of labels that are right, or R² where they are numbers."""
    if not np.isfinite(x).all():
        return float("nan")
    W, b = runs.weights_of(problem, x)
    z = np.asarray(problem.shards.X @ W.T) + b
    if problem.classes is None:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return float(1 - np.mean((z[:, 0] - problem.labels) ** 2) / np.var(problem.labels))
    said = z.argmax(1) if len(W) > 1 else np.where(z[:, 0] > 0, 1, -1)
    return float(np.mean(said == problem.labels))


def table(s: dict[str, Any]) -> Table:
    shown, kind = Table(show_header=False), f"training {s['score_kind']}"
    rows = [
        ("converged", "yes" if s["converged"] else "no"),
        ("objective gap to the centralised answer", small(s["objective_gap"])),
        ("distance from the centralised model", small(s.get("distance"))),
        ("optimality residual", small(s["residual"])),
        ("disagreement between peers", small(s["consensus"])),
        ("communication rounds", f"{s['rounds']:,.0f}"),
        ("oracle calls per peer", f"{s['oracle_calls']:,.0f}"),
        ("bytes sent, all edges", f"{s['bytes_sent']:,.0f}"),
        ("seconds of compute, in all", f"{s['seconds']:.2f}, {s['wall_seconds']:.2f}"),
        ("weights used", f"{s['weights_used']} of {s['weights']}"),
        (f"{kind}, centralised", share(s.get("score_reference"))),
        (kind, share(s["score"])),
        (f"{kind}, worst of the peers", share(s.get("score_worst_peer"))),
    ]
    for name, text in rows:
        if text:
            shown.add_row(name, text)
    return shown


def uneven(X: Any) -> bool:
    """Whether columns that are not constant differ in scale more than tenfold."""
    if not isinstance(X, np.ndarray):
        return False
    spread = X.std(0)
    spread = spread[spread > 0]
    return len(spread) > 0 and bool(spread.max() > 10 * spread.min())


def small(number: float | None) -> str:
    return "" if number is None or not np.isfinite(number) else f"{number:.2e}"


def share(number: float | None) -> str:
    return "" if number is None or not np.isfinite(number) else f"{number:.4g}"

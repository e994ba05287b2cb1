"""edgewise solve"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import typer

import edgewise as ew
from edgewise.cli import parts
from edgewise.cli.config import effective
from edgewise.cli.inputs import Job, make_job
from edgewise.cli.launch import Crew
from edgewise.cli.options import SolveOptions
from edgewise.cli.shell import (
    INTERRUPTED,
    NOT_CONVERGED,
    noticing_interrupts,
    output,
    plain,
    print_json,
)
from edgewise.cli.summary import summarise, table, uneven
from edgewise.errors import EdgewiseError, InputError
from edgewise.plotting.pictures import mean_labels
from edgewise.running import run_folders as runs

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


def solve(o: SolveOptions) -> None:
    """Fit a model over a graph, and keep the run in a folder.

    Without DATA it runs the demo: 20 hospitals, unevenly stocked, fit one sparse model.
    """
    if o.resume is not None and (o.out is not None or not o.save):
        raise InputError("--resume goes on in the run's own folder: leave --out, --no-save out")
    if o.tensorboard and not o.save:
        raise InputError("--tensorboard writes into the run's folder: leave --no-save out")
    crew = Crew(parts.engine(o))
    with crew.together():
        solve_by(crew, o)


def solve_by(crew: Crew, o: SolveOptions) -> None:
    job = make_job(o)
    problem, graph = job.problem, job.graph
    method, faults = parts.method(o.method, o.set), parts.faults(o)
    X0 = None if o.x0 is None else runs.load_arrays(o.x0)["X"]
    duals = None if o.duals is None else runs.load_arrays(o.duals)["duals"]
    folder = Path(o.resume) if o.resume else None
    if folder is None and o.save:
        folder = crew.once(lambda: runs.new_folder(o.out, o.method))
    console = output(o, crew.speaks)
    began = time.monotonic()
    with (
        keeping(folder if crew.speaks else None, effective("solve", o)),
        noticing_interrupts() as interrupted,
        ew.TensorBoard(folder)
        if folder and o.tensorboard and crew.speaks
        else nullcontext() as board,
    ):
        console.print(describe(job, crew), highlight=False)
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
            engine=crew.engine,
            dtype=o.dtype,
            progress=o.progress,
            callback=board,
        )
        log.info(result.message)
        held = crew.held(problem, graph)
        labels = crew.of_all(problem, graph, mean_labels(held))
        summary = summarise(o, job, result, faults, crew)
        summary["wall_seconds"] = time.monotonic() - began
        if folder is not None:
            summary["folder"] = str(folder)
        if folder is not None and crew.speaks:
            said = plain(summary)
            runs.save_result(folder, problem, graph, result, said, job.preprocessing, labels)
        console.print(f"[bold]{o.method}[/]: {result.message}", highlight=False)
        console.print(table(summary))
        if not result.converged and not o.scale and uneven(held.shards.X):
            console.print("the columns differ in scale more than tenfold: try --scale")
        if folder is not None:
            console.print(f"saved in {folder}", highlight=False, soft_wrap=True)
        if o.json and crew.speaks:
            print_json(summary)
    if not result.converged:
        raise typer.Exit(INTERRUPTED if interrupted() else NOT_CONVERGED)


def describe(job: Job, crew: Crew | None = None) -> str:
    counts = job.problem.counts
    least, most = counts.min(), counts.max()
    held = f"{least}" if least == most else f"{least} to {most}"
    return (
        f"{job.problem.shards.samples} samples at {job.problem.nodes} peers ({held} each), "
        f"{job.problem.size} unknowns, {job.graph.edge_count} edges"
        + (f", over {crew.engine.ranks} ranks" if crew and crew.engine else "")
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

"""edgewise solve"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import edgewise as ew
from edgewise import spec
from edgewise.cli.config import changes, effective_config
from edgewise.cli.estimates import print_summary, require_summary
from edgewise.cli.inputs import Inputs, make_engine, make_faults, make_inputs
from edgewise.cli.launch import Ranks
from edgewise.cli.options import SolveOptions
from edgewise.cli.shell import exit_unless, noticing_interrupts, output, plain, print_end
from edgewise.cli.summary import summarise, table
from edgewise.differential_privacy.private_method import CHOSEN, CHOSEN_NOTE
from edgewise.errors import CheckpointError, EdgewiseError, InputError
from edgewise.fileio import write_text, write_toml
from edgewise.methods.auto import choose
from edgewise.methods.catalogue import AUTO
from edgewise.running import run_folders

log = logging.getLogger("edgewise")


def solve(o: SolveOptions) -> None:
    if o.resume is not None and (o.out is not None or not o.save):
        raise InputError("--resume goes on in the run's own folder: leave --out, --no-save out")
    if o.resume is not None:
        require_checkpoint(Path(o.resume), o.checkpoint)
    if o.tensorboard and not o.save:
        raise InputError("--tensorboard writes into the run's folder: leave --no-save out")
    ranks = Ranks(make_engine(o))
    with ranks.together():
        solve_by(ranks, o)


def require_checkpoint(folder: Path, given: str | None) -> None:
    """Raises InputError where rounds were run and cannot be gone on from: a run that starts from
    nothing would take the place of what there is."""
    checkpoint = Path(given) if given else folder / run_folders.CHECKPOINT
    if (folder / run_folders.RESULT).exists() and not checkpoint.exists():
        raise InputError(
            f"{checkpoint} is not there, so {folder} cannot go on (older versions wrote others, "
            f"which are not read): run it again with --config {folder / run_folders.CONFIG}"
        )


def solve_by(ranks: Ranks, o: SolveOptions) -> None:
    inputs = make_inputs(o, ranks.engine)
    problem, graph = inputs.problem, inputs.graph
    require_summary(o, problem, ranks)
    method, faults = spec.method(o.method, o.set), make_faults(o)
    eta, rho, note = spec.steps(o.eta), spec.steps(o.rho), ""
    privacy = privacy_of(o)
    if o.method == AUTO and privacy is not None:
        o, note = replace(o, method=CHOSEN), CHOSEN_NOTE
    elif o.method == AUTO:  # by its name from here on: in the folder, and for --resume
        _, name, note = choose(method, problem, graph, eta, rho)
        o = replace(o, method=name)
    X0 = None if o.x0 is None else run_folders.load_arrays(o.x0)["X"]
    duals = None if o.duals is None else run_folders.load_arrays(o.duals)["duals"]
    folder = Path(o.resume) if o.resume else None
    if folder is None and o.save:
        folder = ranks.once(lambda: run_folders.new_folder(o.out, o.method))
    kept = folder if privacy is None else None  # a private run is not gone on with
    console = output(o, ranks.speaks)
    began = time.monotonic()
    with (
        logging_to(folder if ranks.speaks else None, effective_config("solve", o)),
        noticing_interrupts() as interrupted,
        ew.TensorBoard(folder)
        if folder and o.tensorboard and ranks.speaks
        else nullcontext() as board,
    ):
        console.print(describe(inputs, ranks), highlight=False)
        if inputs.sums is not None:
            console.print(describe_sums(inputs.sums), highlight=False)
        if note:
            console.print(note, highlight=False)
        result = ew.solve(
            problem,
            graph,
            method,
            rounds=o.rounds,
            seed=o.seed,
            eta=eta,
            rho=rho,
            record_every=o.record_every,
            tol=o.tol,
            checkpoint=o.checkpoint or (kept / run_folders.CHECKPOINT if kept else None),
            oracle_budget=o.oracle_budget,
            X0=X0,
            duals=duals,
            reference=o.reference,
            faults=faults,
            devices=o.devices,
            engine=ranks.engine,
            dtype=o.dtype,
            progress=o.progress,
            callback=board,
            privacy=privacy,
        )
        log.info(result.message)
        held = ranks.held(problem, graph)
        labels = ranks.of_all(problem, graph, run_folders.mean_labels(held))
        summary = summarise(o, inputs, result, faults, ranks)
        summary["wall_seconds"] = time.monotonic() - began
        if folder is not None:
            summary["folder"] = str(folder)
        if folder is not None and ranks.speaks:
            run_folders.save_result(folder, problem, graph, result, plain(summary), labels)
        console.print(f"[bold]{o.method}[/]: {summary['message']}", highlight=False)
        console.print(table(summary))
        if o.summary and np.isfinite(result.x).all():
            summary["estimates"] = print_summary(o, result, folder, console).to_dict()
        if ranks.speaks:
            print_end(o, console, folder, summary)
    done = result.converged if privacy is None else bool(np.isfinite(result.x).all())
    exit_unless(done, not result.converged and interrupted())


def privacy_of(o: SolveOptions) -> ew.DP | None:
    needed = {"--dp-delta": o.dp_delta, "--dp-clip": o.dp_clip}
    if o.dp_epsilon is None:
        for name, value in (*needed.items(), ("--dp-row-norm", o.dp_row_norm)):
            if value is not None:
                raise InputError(f"{name} goes with --dp-epsilon: give that too")
        return None
    for name, value in needed.items():
        if value is None:
            raise InputError(f"--dp-epsilon goes with {name}: give that too")
    for given, name in ((o.resume, "--resume"), (o.summary, "--summary")):
        if given:
            raise InputError(
                f"{name} does not go with --dp-epsilon, which would not cover it: leave it out"
            )
    assert o.dp_delta is not None
    assert o.dp_clip is not None
    return ew.DP(o.dp_epsilon, o.dp_delta, o.dp_clip, o.dp_row_norm, o.dp_rounds)


def describe(inputs: Inputs, ranks: Ranks | None = None) -> str:
    counts = inputs.problem.counts
    least, most = counts.min(), counts.max()
    held = f"{least}" if least == most else f"{least} to {most}"
    return (
        "".join(f"{what}\n" for what in inputs.done)
        + f"{inputs.problem.shards.samples} samples at {inputs.problem.nodes} peers ({held} each), "
        f"{inputs.problem.size} unknowns, {inputs.graph.edge_count} edges"
        + (f", over {ranks.engine.ranks} ranks" if ranks and ranks.engine else "")
    )


def describe_sums(sums: ew.Standardization) -> str:
    sent = f"{sums.rounds} rounds of sums over the network, {sums.bytes_sent:,.0f} bytes"
    return f"standardised by {sent}" + ("" if sums.reached else ", short of their accuracy")


@contextmanager
def logging_to(folder: Path | None, config: dict[str, Any]) -> Iterator[None]:
    """The configuration, written first, so that a run that is cut short can go on; and a log.

    Where the run cannot be as it was asked for, the folder is left as it was found.
    """
    if folder is None:
        yield
        return
    at, diary = folder / run_folders.CONFIG, folder / "log.txt"
    before = at.read_text() if at.exists() else None
    write_toml(at, config)
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
    except CheckpointError as refused:
        told = changes(before, config) if before is not None else []
        raise CheckpointError(f"{refused} ({'; '.join(told)})" if told else f"{refused}") from None
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        handler.close()
        if isinstance(sys.exception(), EdgewiseError):
            if before is not None:
                write_text(at, before)
            else:
                at.unlink()
                diary.unlink()
                with suppress(OSError):  # it holds something else
                    folder.rmdir()

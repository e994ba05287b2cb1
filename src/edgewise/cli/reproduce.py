"""edgewise reproduce"""

import os
import time
from pathlib import Path
from typing import Any

import jax
from rich import box
from rich.table import Table

from edgewise.cli.options import ReproduceOptions
from edgewise.cli.shell import output, print_json
from edgewise.errors import InputError, UnknownName
from edgewise.experiments import EXPERIMENTS
from edgewise.experiments import output as written
from edgewise.experiments.experiment import BEYOND, SCALES, Job, Outcome

MOST_JOBS = 8


def reproduce(o: ReproduceOptions) -> None:
    console = output(o)
    if o.list or not (o.experiments or o.all):
        for listing in listings():
            console.print(listing)
        if o.json:
            print_json(
                {e.name: {"title": e.title, "source": e.source} for e in EXPERIMENTS.values()}
            )
        return
    names = list(EXPERIMENTS) if o.all else list(o.experiments or [])
    for name in names:
        if name not in EXPERIMENTS:
            raise UnknownName("experiment", name, EXPERIMENTS)
    results = {}
    for name in names:
        job = job_of(o, name)
        began = time.monotonic()
        outcome = EXPERIMENTS[name].run(job)
        seconds = time.monotonic() - began
        job.folder.mkdir(parents=True, exist_ok=True)
        files = written.write(EXPERIMENTS[name], job, outcome, seconds)
        if outcome.table:
            console.print(rows_of(outcome))
        console.print(verdicts(EXPERIMENTS[name].title, outcome))
        console.print(f"{seconds:.0f} s; {files['html']}", highlight=False, soft_wrap=True)
        results[name] = {
            "verdicts": [written.verdict_as_json(v) for v in outcome.verdicts],
            "files": {kind: str(path) for kind, path in files.items()},
            "seconds": seconds,
        }
    if o.json:
        print_json({"command": "reproduce", "scale": o.scale, "experiments": results})


def listings() -> list[Table]:
    """Those of the paper with where they are in it, and those beyond it."""
    paper = Table("name", "what", "in the paper", box=box.SIMPLE_HEAD)
    beyond = Table("name", "what", title=BEYOND, title_justify="left", box=box.SIMPLE_HEAD)
    for e in EXPERIMENTS.values():
        if e.source == BEYOND:
            beyond.add_row(e.name, e.title)
        else:
            paper.add_row(e.name, e.title, e.source)
    return [paper, beyond]


def rows_of(outcome: Outcome) -> Table:
    table = Table(*outcome.table[0], box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for row in outcome.table:
        table.add_row(*map(str, row.values()))
    return table


def job_of(o: ReproduceOptions, name: str) -> Job:
    for scale in (o.scale, o.tune_at):
        if scale not in SCALES:
            raise UnknownName("scale", scale, SCALES)
    if o.jobs is not None and o.jobs < 1:
        raise InputError(f"--jobs {o.jobs}: give 1 or more")
    cores = os.cpu_count() or 1
    several = cores if jax.default_backend() == "cpu" else cores // 2  # compiling is most of it
    return Job(
        scale=SCALES[o.scale],
        folder=Path(o.out) / o.scale / name,
        data=o.data,
        seed=o.seed,
        jobs=o.jobs or max(1, min(several, MOST_JOBS)),
        tune_at=o.tune_at,
        progress=o.progress,
        tunings=Path(o.out),
    )


def verdicts(title: str, outcome: Outcome) -> Table:
    table = Table("claim", "verdict", "measured", title=title, show_lines=True)
    colours: dict[str, Any] = {"holds": "green", "does not hold": "red"}
    for v in outcome.verdicts:
        colour = colours.get(str(v), "yellow")
        table.add_row(v.claim, f"[{colour}]{v}[/]", v.numbers.replace("; ", "\n"))
    return table

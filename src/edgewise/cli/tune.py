"""edgewise tune"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import edgewise as ew
from edgewise import __version__, spec
from edgewise.cli.config import effective_config
from edgewise.cli.inputs import make_engine, make_faults, make_inputs, numbers
from edgewise.cli.launch import Ranks
from edgewise.cli.options import TuneOptions
from edgewise.cli.shell import exit_unless, noticing_interrupts, output, plain, print_end
from edgewise.cli.solve import describe, logging_to
from edgewise.errors import MethodError
from edgewise.fileio import replacing, write_json, write_toml
from edgewise.methods.auto import choose
from edgewise.methods.catalogue import AUTO
from edgewise.plotting.axes import close
from edgewise.running import run_folders


def tune(o: TuneOptions) -> None:
    ranks = Ranks(make_engine(o))
    with ranks.together():
        tune_by(ranks, o)


def tune_by(ranks: Ranks, o: TuneOptions) -> None:
    inputs, console = make_inputs(o), output(o, ranks.speaks)
    method, factors = spec.method(o.method, o.set), numbers("factors", o.factors)
    note = ""
    if o.method == AUTO:  # by its name from here on, for `solve --config best.toml` too
        _, name, note = choose(method, inputs.problem, inputs.graph, tunable=True)
        o, method = replace(o, method=name), name
    folder, faults, config = None, make_faults(o), effective_config("tune", o)
    if o.save:
        folder = ranks.once(lambda: run_folders.new_folder(o.out, f"tune-{o.method}"))
    with (
        logging_to(folder if ranks.speaks else None, config),
        noticing_interrupts() as interrupted,
    ):
        console.print(describe(inputs, ranks), highlight=False)
        if note:
            console.print(note, highlight=False)
        found = ew.tune(
            inputs.problem,
            inputs.graph,
            method,
            o.budget,
            o.per,
            target=o.target,
            factors=factors,
            seed=o.seed,
            faults=faults,
            engine=ranks.engine,
            dtype=o.dtype,
            progress=o.progress,
        )
        summary: dict[str, Any] = {
            "command": "tune",
            "version": __version__,
            "method": o.method,
            "message": found.message,
            "factors": found.factors,
            "steps": {name: shortest(value) for name, value in found.steps.items()},
            "diverged": found.diverged,
            "cells": len(found.surface["cost"]),
        }
        console.print(found.message)
        if folder is not None:
            summary["folder"] = str(folder)
        if folder is not None and ranks.speaks:
            write_json(folder / run_folders.RESULT, plain(summary))
            write_toml(folder / "best.toml", best(config, found.steps))
            save_table(folder / "surface.csv", found.surface)
            close(found.plot(path=folder / "plot.png"))
        if ranks.speaks:
            print_end(o, console, folder, summary)
    exit_unless(found.diverged < summary["cells"], interrupted())


def best(config: dict[str, Any], steps: dict[str, np.ndarray]) -> dict[str, Any]:
    """The configuration of a solve with these steps."""
    typed = {k: ",".join(map(repr, np.ravel(shortest(v)).tolist())) for k, v in steps.items()}
    of_solve = {k: v for k, v in typed.items() if k in ("eta", "rho")}
    other = [f"{k}={v}" for k, v in typed.items() if k not in of_solve]
    settings = [*config.get("set", []), *other]
    return config | {"command": "solve"} | of_solve | ({"set": settings} if settings else {})


def shortest(value: Any) -> Any:
    """One number for all where they are the same."""
    numbers = np.asarray(value, np.float64)
    if numbers.size == 0:
        raise MethodError("a method without steps cannot be tuned")
    return float(numbers.flat[0]) if (numbers == numbers.flat[0]).all() else numbers


def save_table(path: Path, columns: dict[str, np.ndarray]) -> None:
    rows, names = np.stack(list(columns.values()), 1), ",".join(columns)
    with replacing(path) as file:
        np.savetxt(file, rows, delimiter=",", header=names, comments="", fmt="%.17g")

"""edgewise compare and edgewise tune"""

from typing import Any

import numpy as np
import typer

import edgewise as ew
from edgewise import __version__
from edgewise.cli import parts
from edgewise.cli.config import effective
from edgewise.cli.inputs import make_job
from edgewise.cli.options import CompareOptions, TuneOptions
from edgewise.cli.shell import (
    INTERRUPTED,
    NOT_CONVERGED,
    noticing_interrupts,
    output,
    plain,
    print_json,
)
from edgewise.cli.solve import describe, keeping
from edgewise.errors import MethodError
from edgewise.running import run_folders as runs
from edgewise.study.compare import ALL_UNITS
from edgewise.study.tune import PASSES

QUARTILE_NAMES = ("lower", "median", "upper")


def compare(o: CompareOptions) -> None:
    """Run several methods and say what each accuracy cost them.

    Steps are found by one rule for all, with a seed that the runs do not see.
    """
    job, console = make_job(o), output(o)
    every = (
        list(ew.list_methods()) if o.methods == "all" else [m.strip() for m in o.methods.split(",")]
    )
    accuracies = parts.listed("accuracies", o.accuracies)
    budget = PASSES * float(job.problem.counts.mean()) if o.budget is None else o.budget
    folder = runs.new_folder(o.out, "compare") if o.save else None
    with keeping(folder, effective("compare", o)), noticing_interrupts() as interrupted:
        console.print(describe(job), highlight=False)
        found = ew.compare(
            job.problem,
            job.graph,
            every,
            budget,
            o.per,
            tune=o.tune,
            accuracies=accuracies,
            seeds=o.seeds,
            dtype=o.dtype,
            progress=o.progress,
            show=False,
        )
        levels = [found.best(a) for a in found.accuracies]
        summary: dict[str, Any] = {
            "command": "compare",
            "version": __version__,
            "budget": budget,
            "unit": o.per,
            "best": {f"{a:g}": m for a, m in zip(found.accuracies, levels, strict=True)},
            "costs": costs(found),
            "factors": {m: t.factors for m, t in found.tunings.items()},
            "refused": found.refused,
        }
        console.print(found.table(o.unit))
        if folder is not None:
            summary["folder"] = str(folder)
            runs.write_json(folder / runs.RESULT, plain(summary))
            if found.runs:
                close(found.plot(path=folder / "plot.png").flat[0])
            console.print(f"saved in {folder}", highlight=False, soft_wrap=True)
        if o.json:
            print_json(summary)
    if interrupted():
        raise typer.Exit(INTERRUPTED)
    if not any(levels):
        raise typer.Exit(NOT_CONVERGED)


def costs(found: ew.Comparison) -> list[dict[str, Any]]:
    """A row per method, accuracy and unit: quartiles over seeds, null where the budget ran out."""
    return [
        {"method": m, "accuracy": a, "unit": u, **dict(zip(QUARTILE_NAMES, q, strict=True))}
        for m in found.runs
        for a in found.accuracies
        for u in ALL_UNITS
        for q in [found.cost(m, a, u)]
    ]


def tune(o: TuneOptions) -> None:
    """Try a grid of steps for a method and say which was best.

    best.toml in the run's folder is a configuration for `edgewise solve` with these steps.
    """
    job, console = make_job(o), output(o)
    method, factors = parts.method(o.method, o.set), parts.listed("factors", o.factors)
    folder = runs.new_folder(o.out, f"tune-{o.method}") if o.save else None
    config = effective("tune", o)
    with keeping(folder, config), noticing_interrupts() as interrupted:
        console.print(describe(job), highlight=False)
        found = ew.tune(
            job.problem,
            job.graph,
            method,
            o.budget,
            o.per,
            target=o.target,
            factors=factors,
            seed=o.seed,
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
            runs.write_json(folder / runs.RESULT, plain(summary))
            runs.write_toml(folder / "best.toml", best(config, found.steps))
            save_table(folder / "surface.csv", found.surface)
            close(found.plot(path=folder / "plot.png"))
            console.print(f"saved in {folder}", highlight=False, soft_wrap=True)
        if o.json:
            print_json(summary)
    if interrupted():
        raise typer.Exit(INTERRUPTED)
    if found.diverged == summary["cells"]:
        raise typer.Exit(NOT_CONVERGED)


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


def save_table(path: Any, columns: dict[str, np.ndarray]) -> None:
    rows, names = np.stack(list(columns.values()), 1), ",".join(columns)
    np.savetxt(path, rows, delimiter=",", header=names, comments="", fmt="%.17g")


def close(ax: Any) -> None:
    import matplotlib.pyplot as plt

    plt.close(ax.figure)

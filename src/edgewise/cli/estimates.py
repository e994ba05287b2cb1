"""`--summary`: standard errors beside a fit."""

from pathlib import Path

from rich.console import Console

import edgewise as ew
from edgewise.cli.launch import Ranks
from edgewise.cli.options import SolveOptions
from edgewise.cli.summary import as_options
from edgewise.data.disclosure import require_samples
from edgewise.errors import InputError
from edgewise.inference.covariance import known_kind
from edgewise.inference.estimation import require_inference


def require_summary(o: SolveOptions, problem: ew.Problem, ranks: Ranks) -> None:
    """Raises InputError before the fit, where there would be no summary after it."""
    if not o.summary:
        return
    if ranks.engine is not None:
        raise InputError("--summary is made in one process: leave --engine mpi out")
    try:
        known_kind(o.covariance)
        require_inference(problem, o.debias)
        require_samples(problem.samples_of_nodes, o.least_count, "matrix")
    except InputError as refused:
        raise in_options(refused) from None


def print_summary(
    o: SolveOptions, result: ew.Result, folder: Path | None, console: Console
) -> ew.Inference:
    try:
        made = result.summary(o.covariance, debias=o.debias, least_count=o.least_count)
    except InputError as refused:
        raise in_options(refused) from None
    console.print(made.text(), highlight=False, markup=False, soft_wrap=True)
    if folder is not None:
        made.save(folder)
    return made


def in_options(refused: InputError) -> InputError:
    return InputError(as_options(f"--summary: {refused}"))

"""edgewise compare"""

from typing import Any

import edgewise as ew
from edgewise import __version__
from edgewise.cli.config import effective_config
from edgewise.cli.inputs import make_engine, make_faults, make_inputs, numbers
from edgewise.cli.launch import Ranks
from edgewise.cli.options import CompareOptions
from edgewise.cli.shell import exit_unless, noticing_interrupts, output, plain, print_end
from edgewise.cli.solve import describe, logging_to
from edgewise.fileio import write_json
from edgewise.plotting.axes import close
from edgewise.running import run_folders
from edgewise.study.compare import ALL_UNITS
from edgewise.study.tune import PASSES

QUARTILE_NAMES = ("lower", "median", "upper")


def compare(o: CompareOptions) -> None:
    ranks = Ranks(make_engine(o))
    with ranks.together():
        compare_by(ranks, o)


def compare_by(ranks: Ranks, o: CompareOptions) -> None:
    inputs, console = make_inputs(o), output(o, ranks.speaks)
    every = (
        list(ew.list_methods()) if o.methods == "all" else [m.strip() for m in o.methods.split(",")]
    )
    accuracies, faults = numbers("accuracies", o.accuracies), make_faults(o)
    budget = PASSES * float(inputs.problem.counts.mean()) if o.budget is None else o.budget
    folder = ranks.once(lambda: run_folders.new_folder(o.out, "compare")) if o.save else None
    with (
        logging_to(folder if ranks.speaks else None, effective_config("compare", o)),
        noticing_interrupts() as interrupted,
    ):
        console.print(describe(inputs, ranks), highlight=False)
        found = ew.compare(
            inputs.problem,
            inputs.graph,
            every,
            budget,
            o.per,
            tune=o.tune,
            accuracies=accuracies,
            seeds=o.seeds,
            faults=faults,
            engine=ranks.engine,
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
            "ended": {m: found.ended(m)[1] for m in found.runs},
            "factors": {m: t.factors for m, t in found.tunings.items()},
            "refused": found.refused,
            "harmed": found.harmed,
        }
        console.print(found.table(o.unit))
        if folder is not None:
            summary["folder"] = str(folder)
        if folder is not None and ranks.speaks:
            write_json(folder / run_folders.RESULT, plain(summary))
            if found.runs:
                close(found.plot(path=folder / "plot.png").flat[0])
        if ranks.speaks:
            print_end(o, console, folder, summary)
    exit_unless(any(levels), interrupted())


def costs(found: ew.Comparison) -> list[dict[str, Any]]:
    """A row per method, accuracy and unit: quartiles over seeds, null where the budget ran out."""
    return [
        {"method": m, "accuracy": a, "unit": u, **dict(zip(QUARTILE_NAMES, q, strict=True))}
        for m in found.runs
        for a in found.accuracies
        for u in ALL_UNITS
        for q in [found.cost(m, a, u)]
    ]

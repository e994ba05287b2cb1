"""edgewise report"""

from rich.table import Table

from edgewise import runs
from edgewise.cli.options import ReportOptions
from edgewise.cli.shell import output, print_json
from edgewise.errors import InputError, UnknownName
from edgewise.trace import COLUMNS

NUMBERS = ("rounds", "oracle_calls", "bytes_sent", "bregman", "residual")


def report(o: ReportOptions) -> None:
    """A table of saved runs, and a plot of them together."""
    for column in (o.x, o.y):
        if column not in COLUMNS:
            raise UnknownName("trace column", column, COLUMNS)
    saved = [runs.load_run(folder) for folder in o.runs or []]
    others = [run for run in saved if run.config["command"] != "solve"]
    solves = [run for run in saved if run not in others]
    if not solves:
        raise InputError("no runs of `edgewise solve` are given: name their folders, as out/*")
    rows = [summarise(run) for run in solves]
    table = Table(title="runs")
    for name in ("run", "method", "converged", *NUMBERS):
        table.add_column(
            name.replace("_", " "), justify="right" if name in NUMBERS else "left", overflow="fold"
        )
    for row in rows:
        numbers = [spelt(name, row.get(name)) for name in NUMBERS]
        table.add_row(str(row["run"]), str(row["method"]), state(row["converged"]), *numbers)
    console = output(o)
    console.print(table)
    for run in others:
        console.print(f"{run.folder} is of `{run.config['command']}`: left out")
    plot = runs.plot_runs(solves, o.x, o.y, o.out)
    console.print(f"plot: {plot}", highlight=False, soft_wrap=True)
    if o.json:
        print_json({"command": "report", "runs": rows, "plot": str(plot)})


def summarise(run: runs.Saved) -> dict[str, object]:
    said = run.result or {}
    head = {"run": str(run.folder), "method": run.config.get("method"), "converged": None}
    return head | {k: said[k] for k in ("converged", "message", *NUMBERS) if k in said}


def state(converged: object) -> str:
    return "unfinished" if converged is None else "yes" if converged else "no"


def spelt(name: str, number: object) -> str:
    if not isinstance(number, int | float):
        return ""
    form = {"bregman": ".1e", "residual": ".1e"}.get(name, ",.0f")
    return f"{number:{form}}"

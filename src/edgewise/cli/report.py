"""edgewise report"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import edgewise as ew
from edgewise.cli.coefficients import model_of, table_of_coefficients
from edgewise.cli.inputs import make_graph
from edgewise.cli.option_groups import FaultOptions, ProblemOptions
from edgewise.cli.options import ReportOptions, SolveOptions
from edgewise.cli.shell import output, print_json
from edgewise.errors import EdgewiseError, InputError, UnknownName
from edgewise.plotting.page import PageRun, write_page
from edgewise.plotting.runs import plot_runs
from edgewise.running import run_folders as runs
from edgewise.running.run_folders import Saved
from edgewise.running.trace import COLUMNS, Trace
from edgewise.study.tables import short

NUMBERS = ("rounds", "oracle_calls", "bytes_sent", "seconds", "bregman", "residual")
LEAST_NAME = 12  # columns for a run's name, which may break anywhere
STATES = {"": "", "yes": "converged: ", "no": "not converged: ", "unfinished": "unfinished"}
TRACES = (".npz", ".csv")
PAGES = (".html",)
PLOTS = (".png", ".pdf", ".svg")
DEFAULTS = {f.name: f.default for f in fields(SolveOptions)}
# A seed alone makes no other setting: runs that differ in it are repetitions.
OF_A_SETTING = {f.name for group in (ProblemOptions, FaultOptions) for f in fields(group)}
OF_A_SETTING -= {"seed", "fault_seed"}
NAMED_ANYWAY = ("command", "method")
ALWAYS_SHOWN = ("version", "data", "shards", "nodes", "graph", "loss", "seed")


def report(o: ReportOptions) -> None:
    for column in (o.x, o.y):
        if column not in COLUMNS:
            raise UnknownName("trace column", column, COLUMNS)
    kind = "page" if Path(o.out).suffix in PAGES else "plot"
    if kind == "plot" and Path(o.out).suffix not in PLOTS:
        raise InputError(f"--out {o.out}: give a name that ends in {', '.join(PAGES + PLOTS)}")
    saved, others_there = [], []
    for name in o.runs or []:
        if is_run(Path(name)) or len(o.runs or []) == 1:
            saved.append(load(name))
        else:
            others_there.append(name)
    others = [run for run in saved if run.config["command"] not in ("solve", "trace")]
    solves = [run for run in saved if run not in others]
    if not solves:
        raise InputError(
            "no runs of `edgewise solve` or peers are given: name their folders, as out/*"
        )
    for column in (o.x, o.y):
        require_known(solves, column)
    rows = [summarise(run) for run in solves]
    console = output(o)
    console.print(table_of(solves, rows, console))
    model = model_of(solves[0]) if len(solves) == 1 else None
    weights = None if model is None else table_of_coefficients(model)
    if weights is not None:
        console.print(weights)
    if others_there:
        console.print(f"no runs, left out: {', '.join(others_there)}", highlight=False)
    for run in others:
        console.print(f"{run.folder} is of `{run.config['command']}`: left out")
    path = (draw_page if kind == "page" else draw_plot)(solves, o.x, o.y, o.out)
    console.print(f"{kind}: {path}", highlight=False, soft_wrap=True)
    if o.json:
        named = {} if model is None else {"coefficients": model.coefficients}
        print_json({"command": "report", "runs": rows, **named, kind: str(path)})


def is_run(path: Path) -> bool:
    known = (path / runs.CONFIG).exists() or path.suffix in TRACES or is_peer(path)
    return known or not path.exists()


def is_peer(path: Path) -> bool:
    """Whether it is the folder that `edgewise node` keeps."""
    return all((path / name).exists() for name in ("status.json", "trace.csv"))


def load(name: str) -> Saved:
    """The folder of a run or a peer, or a trace alone, which knows of no more than its numbers."""
    path = Path(name)
    if is_peer(path):
        config = {"command": "trace", "method": str(path)}
        return load_trace(path / "trace.csv")._replace(folder=path, config=config)
    if path.suffix not in TRACES or path.is_dir():
        if not (path / runs.CONFIG).exists():
            raise InputError(
                f"{path} is no run: give the folder of a run or of a peer, or a trace, .npz or .csv"
            )
        return runs.load_run(path)
    return load_trace(path)


def load_trace(path: Path) -> Saved:
    trace = Trace.load(path)
    method = trace.meta.get("method", str(path.with_suffix("")))
    last = {column: float(trace[column][-1]) for column in COLUMNS} if len(trace) else {}
    return Saved(path, {"command": "trace", "method": method}, last, trace)


def require_known(saved: Sequence[Saved], column: str) -> None:
    """Raises InputError where there would be nothing to draw."""
    traces = [run.trace for run in saved if run.trace is not None]
    if traces and not any(np.isfinite(trace[column]).any() for trace in traces):
        raise InputError(
            f"none of these knows its {column}: a peer cannot, and a run needs a reference; give "
            "--y residual"
        )


def summarise(run: Saved) -> dict[str, object]:
    result = run.result or {}
    head = {"run": str(run.folder), "method": run.config.get("method"), "converged": None}
    return head | {k: result[k] for k in ("converged", "message", *NUMBERS) if k in result}


def table_of(
    solves: Sequence[Saved], rows: Sequence[Mapping[str, object]], console: Console
) -> Table:
    """A row per run; where the terminal is too narrow for one, a line of text per run."""
    table = Table(title="runs", box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    table.add_column("run", overflow="fold", min_width=LEAST_NAME)
    numbers = [[number_text(name, row.get(name)) for name in NUMBERS] for row in rows]
    for name, texts in zip(("converged", *NUMBERS), [[], *zip(*numbers, strict=True)], strict=True):
        width = max(map(len, (*name.split("_"), *texts)))  # so that no header breaks in a word
        justify: Any = "left" if name == "converged" else "right"
        table.add_column(name.replace("_", "\n"), justify=justify, min_width=width, no_wrap=True)
    for run, row, texts in zip(solves, rows, numbers, strict=True):
        table.add_row(name_of(row), state(run), *texts)
    narrowest = sum((column.min_width or 0) + 2 for column in table.columns)  # a gap and an edge
    if narrowest <= console.width:
        return table
    told = Table(title="runs", box=None, show_header=False, padding=(0, 0, 1, 0))
    for run, row, texts in zip(solves, rows, numbers, strict=True):
        known = (
            f"{name.replace('_', ' ')}\xa0{text}"
            for name, text in zip(NUMBERS, texts, strict=True)
            if text
        )
        told.add_row(f"{name_of(row)}\n{STATES[state(run)]}{', '.join(known)}")
    return told


def name_of(row: Mapping[str, object]) -> str:
    """Markup: the method, and the folder below it."""
    method, folder = escape(str(row["method"])), escape(str(row["run"]))
    return f"[bold]{method}[/]\n[dim]{folder}[/]" if method != folder else folder


def state(run: Saved) -> str:
    if run.result is None:
        return "unfinished"
    converged = run.result.get("converged")
    return "" if converged is None else "yes" if converged else "no"


def number_text(name: str, number: object) -> str:
    if not isinstance(number, int | float) or not np.isfinite(number):
        return ""
    return f"{number:.1e}" if name in ("bregman", "residual") else short(number, name)


def draw_plot(solves: list[Saved], x: str, y: str, path: str | Path) -> Path:
    named = [(f"{run.config.get('method', '')} ({run.folder.name})", run.trace) for run in solves]
    return plot_runs([(name, trace) for name, trace in named if trace is not None], x, y, path)


# --- the page -------------------------------------------------------------------------------------


def draw_page(solves: list[Saved], x: str, y: str, path: str | Path) -> Path:
    """What differs between runs tells them apart, what they share is said once."""
    ended = [run for run in solves if run.trace is not None]
    if not ended:
        raise InputError("none of the runs has ended: there is nothing to draw")
    shared, differing = compared([r.config for r in ended if r.config["command"] == "solve"])
    of_setting = [k for k in differing if k in OF_A_SETTING]
    of_run = [k for k in differing if k not in OF_A_SETTING]
    panels = [setting(run, of_setting) for run in ended]
    drawn = [
        PageRun(name, run.trace, panel, described(run.config, of_run))
        for name, run, panel in zip(labels(ended, of_run, panels), ended, panels, strict=True)
        if run.trace is not None
    ]
    title = f"Runs of {', '.join(dict.fromkeys(str(run.config['method']) for run in ended))}"
    return write_page(path, drawn, title, about=shared, graph=common_graph(ended), x=x, y=y)


def labels(ended: Sequence[Saved], of_run: Sequence[str], panels: Sequence[str]) -> list[str]:
    """The method, with what tells it from its other runs: parameters, else the folder's name."""
    names = []
    for run in ended:
        method = run.config["method"]
        alike = [other.config for other in ended if other.config["method"] == method]
        own = [k for k in of_run if differs(k, alike) and k in run.config]
        names.append(", ".join([str(method), *(worded(k, run.config) for k in own)]))
    places = list(zip(names, panels, strict=True))
    folders = [run.folder.name for run in ended]
    for k, (name, run) in enumerate(zip(names, ended, strict=True)):
        if places.count(places[k]) > 1:
            short = folders.count(run.folder.name) == 1
            names[k] = f"{name} ({run.folder.name if short else run.folder})"
    return names


def differs(key: str, configs: Sequence[Mapping[str, Any]]) -> bool:
    return len({repr(c.get(key, DEFAULTS.get(key))) for c in configs}) > 1


def compared(configs: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """What is the same in all, as far as it is worth saying; and the names of what is not."""
    keys = [k for k in dict.fromkeys(k for c in configs for k in c) if k not in NAMED_ANYWAY]
    differing = [k for k in keys if differs(k, configs)]
    shared = {k: configs[0].get(k, DEFAULTS.get(k)) for k in keys if k not in differing}
    shown = [k for k, v in shared.items() if k in ALWAYS_SHOWN or v != DEFAULTS.get(k)]
    return described(shared, shown), differing


def described(config: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    names = {"version": "edgewise"}
    return {names.get(k, k.replace("_", " ")): shortened(config[k]) for k in keys if k in config}


def setting(run: Saved, keys: Sequence[str]) -> str:
    return (
        ", ".join(worded(k, run.config) for k in keys) if run.config["command"] == "solve" else ""
    )


def worded(key: str, config: Mapping[str, Any]) -> str:
    value, name = config.get(key, DEFAULTS.get(key)), key.replace("_", " ")
    if value is None or value is False:
        return f"no {name}"
    return name if value is True else f"{name} {shortened(value)}"


def shortened(value: Any) -> Any:
    """Files by their names: where they lay is nobody's business but the runs'."""
    if isinstance(value, list):
        return ", ".join(str(shortened(part)) for part in value)
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def common_graph(solves: Sequence[Saved]) -> ew.Graph | None:
    """The graph that all runs were on, made again by their configurations."""
    graphs = [graph_of(run) for run in solves]
    first = graphs[0]
    if first is None:
        return None
    same = [g for g in graphs if g is not None and g.nodes == first.nodes]
    alike = len(same) == len(graphs) and all(np.array_equal(g.edges, first.edges) for g in same)
    return first if alike else None


def graph_of(run: Saved) -> ew.Graph | None:
    try:
        options = SolveOptions(**{k: v for k, v in run.config.items() if k in DEFAULTS})
        nodes, edges = (int((run.result or {})[k]) for k in ("nodes", "edges"))
        graph = make_graph(options, nodes)
    except (EdgewiseError, OSError, KeyError, TypeError):  # a trace, or a graph's file that is gone
        return None
    return graph if graph.edge_count == edges else None

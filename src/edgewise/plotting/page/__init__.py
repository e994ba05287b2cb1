"""Runs as one HTML file to click through: it holds all it needs and fetches nothing."""

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.errors import InputError, UnknownName
from edgewise.fileio import write_text
from edgewise.plotting.axes import FAR, LABELS, DrawableTrace
from edgewise.plotting.graphs import DrawableGraph, positions

X_AXES = ("oracle_calls", "rounds", "bytes_sent", "seconds")
Y_AXES = ("bregman", "objective_gap", "residual", "consensus")
POINTS = 400  # of a curve; more than a screen shows
DIGITS = 6
LEVELS = (1e-3, 1e-6, 1e-9)  # of what is drawn, that the table has the seconds to
MOST_NODES = 500  # that are worth drawing


@dataclass(frozen=True)
class PageRun:
    """One curve, and one row of the table.

    method      what it is called and coloured by, in every panel
    trace       what happened
    setting     the panel it belongs to
    parameters  what the table says of it: eta, rho, batch, seed, ...
    """

    method: str
    trace: DrawableTrace
    setting: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


def write_page(
    path: str | Path,
    runs: Sequence[PageRun],
    title: str,
    *,
    about: Mapping[str, Any] | None = None,
    graph: DrawableGraph | None = None,
    y: str = "bregman",
    x: str = "oracle_calls",
) -> Path:
    """Write the page and say where.

    about  facts for a small table: versions, machine, seeds, data
    graph  is drawn up to 500 nodes
    x, y   the axes that it opens with; the reader may switch. Where no run has y, another is taken
    """
    for name, known in ((x, X_AXES), (y, Y_AXES)):
        if name not in known:
            raise UnknownName("axis of a page", name, known)
    pieces = {
        "title": html.escape(title),
        "style": read("page.css"),
        "plotly": plotly_source(),
        "data": as_script(page_data(runs, title, about or {}, graph, x, y)),
        "script": read("page.js"),
    }
    page = re.sub(r"\{\{(\w+)\}\}", lambda gap: pieces[gap[1]], read("page.html"))
    path = Path(path)
    write_text(path, page)
    return path


def plotly_source() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise InputError("the page needs plotly: pip install 'edgewise[report]'") from error
    return str(get_plotlyjs())


def read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def as_script(data: Any) -> str:
    """JSON in which nothing can end the script element that holds it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# --- what the script is given ---------------------------------------------------------------------


def page_data(
    runs: Sequence[PageRun],
    title: str,
    about: Mapping[str, Any],
    graph: DrawableGraph | None,
    x: str,
    y: str,
) -> dict[str, Any]:
    measured = [name for name in Y_AXES if any(drawn(run.trace, name).any() for run in runs)]
    if not measured:
        raise InputError("there is nothing to draw: give runs whose traces have numbers")
    return {
        "title": title,
        "labels": {name: LABELS[name] for name in (*X_AXES, *measured)},
        "xs": X_AXES,
        "ys": measured,
        "levels": LEVELS,
        "x": x,
        "y": y if y in measured else measured[0],
        "methods": list(dict.fromkeys(run.method for run in runs)),
        "settings": list(dict.fromkeys(run.setting for run in runs)),
        "runs": [run_data(run, measured) for run in runs],
        "about": [[str(name), as_text(value)] for name, value in about.items()],
        "network": None if graph is None else network_data(graph),
    }


def run_data(run: PageRun, measured: Sequence[str]) -> dict[str, Any]:
    trace = run.trace
    rows = np.unique(np.linspace(0, max(len(trace) - 1, 0), POINTS).round().astype(int))
    rows = rows[: len(trace)]
    columns = {name: trace[name] for name in X_AXES}
    columns |= {name: np.where(drawn(trace, name), heights(trace, name), np.nan) for name in Y_AXES}
    last = {name: trace[name] for name in X_AXES} | {n: heights(trace, n) for n in measured}
    return {
        "method": run.method,
        "setting": run.setting,
        "parameters": ", ".join(f"{k} {as_text(v)}" for k, v in run.parameters.items()),
        "columns": {
            name: [number(v, DIGITS) for v in columns[name][rows]] for name in (*X_AXES, *measured)
        },
        "last": {name: number(c[-1], 15) if len(c) else None for name, c in last.items()},
        "times": {n: [number(seconds_to(trace, n, a), DIGITS) for a in LEVELS] for n in measured},
    }


def seconds_to(trace: DrawableTrace, name: str, level: float) -> float:
    """Until the column was at the level for the first time; NaN where it never was."""
    there = np.flatnonzero(heights(trace, name) <= level)
    return float(trace["seconds"][there[0]]) if len(there) else float("nan")


def heights(trace: DrawableTrace, name: str) -> np.ndarray:
    """The objective gap is negative where nodes disagree: its size is what counts."""
    return np.abs(trace[name])


def drawn(trace: DrawableTrace, name: str) -> np.ndarray:
    """Where an axis has room for the number: not for those of runs that diverged."""
    return heights(trace, name) < FAR  # which NaN is not


def number(value: float, digits: int) -> float | int | None:
    """Short in JSON, which has no NaN."""
    if not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def as_text(value: Any) -> str:
    """Numbers in four digits; of many, the least and the largest."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer | str):
        return str(value)
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, np.ndarray) and value.size > 4 and value.dtype.kind in "fiu":
        low, high = as_text(value.min()), as_text(value.max())
        return f"{low} to {high}" if low != high else low
    if isinstance(value, np.ndarray | list | tuple):
        return ", ".join(as_text(part) for part in np.ravel(value).tolist())
    return str(value)


def network_data(graph: DrawableGraph) -> dict[str, Any]:
    size = {"nodes": graph.nodes, "edges": len(graph.edges)}
    if graph.nodes > MOST_NODES:
        return size
    return size | {
        "at": positions(graph).round(4).tolist(),
        "links": graph.edges.tolist(),
        "degrees": graph.degrees.tolist(),
    }

"""How things show in a notebook: small pieces of HTML that hold all they need."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from html import escape
from typing import Any, Protocol, TypeVar

import numpy as np

from edgewise.plotting.axes import LABELS, DrawableTrace
from edgewise.plotting.graphs import DrawableGraph
from edgewise.plotting.svg import Line, bars, curves, drawing, swatch

T = TypeVar("T")
LONGEST = 90  # letters of a value
CELL = "padding:.1em .8em .1em 0;text-align:left;vertical-align:top;border:0;background:none"
NAME = f"{CELL};opacity:.7;white-space:nowrap"
TABLE = "border-collapse:collapse;margin:0;color:inherit;font-size:inherit;max-width:30em"
SHOWN = ("rounds", "oracle_calls", "bytes_sent", "seconds")


def shown(make: Callable[[T], str]) -> Callable[[T], str]:
    """Of a `_repr_html_`: whatever happens in it, there is something to see."""

    @wraps(make)
    def safely(self: T) -> str:
        try:
            return make(self)
        except Exception:
            return f"<pre>{escape(object.__repr__(self))}</pre>"

    return safely


def card(title: str, facts: Mapping[str, Any], *pictures: str, note: str = "") -> str:
    """A heading, a line below it, facts and pictures side by side. Pictures are HTML."""
    rows = "".join(
        f'<tr style="background:none"><th style="{NAME}">{escape(name)}</th>'
        f'<td style="{CELL}">{escape(shortened(value))}</td></tr>'
        for name, value in facts.items()
        if value not in ("", None)
    )
    below = f'<div style="opacity:.8;margin:.1em 0 .3em">{escape(note)}</div>' if note else ""
    parts = [f'<table style="{TABLE}">{rows}</table>' if rows else "", *pictures]
    beside = "".join(f"<div>{part}</div>" for part in parts if part)
    return (
        f'<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.4">'
        f"<b>{escape(title)}</b>{below}"
        f'<div style="display:flex;flex-wrap:wrap;gap:.5em 1.5em;align-items:center">{beside}</div>'
        "</div>"
    )


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Of cells that are HTML."""

    def line(tag: str, cells: Sequence[str]) -> str:
        made = (f'<{tag} style="{CELL}">{cell}</{tag}>' for cell in cells)
        return f'<tr style="background:none">{"".join(made)}</tr>'

    body = "".join(line("td", row) for row in rows)
    return (
        f'<table style="{TABLE};max-width:none;font-variant-numeric:tabular-nums">'
        f"<thead>{line('th', head)}</thead><tbody>{body}</tbody></table>"
    )


def caption(html: str) -> str:
    """Below a picture."""
    return f'<div style="font-size:11px;opacity:.8">{html}</div>'


def shortened(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def amount(number: float) -> str:
    """Six digits at most, and none after the point of large numbers; nothing of what is no
    number."""
    if not np.isfinite(number):
        return ""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


# --- runs -----------------------------------------------------------------------------------------


class ShownResult(Protocol):
    """A result, as far as it shows."""

    @property
    def trace(self) -> DrawableTrace: ...
    @property
    def message(self) -> str: ...


class ShownRun(ShownResult, Protocol):
    @property
    def converged(self) -> bool: ...
    @property
    def graph(self) -> DrawableGraph: ...
    @property
    def apart(self) -> np.ndarray: ...
    @property
    def method_note(self) -> str: ...


def spent(trace: DrawableTrace) -> dict[str, str]:
    """What the last row says."""
    if not len(trace):
        return {}
    facts = {LABELS[name]: amount(trace[name][-1]) for name in SHOWN}
    for name in (
        ("residual", "bregman") if agreeing(trace) else ("residual", "violation", "objective")
    ):
        if np.isfinite(trace[name][-1]):
            facts[LABELS[name]] = f"{trace[name][-1]:.3g}"
    return facts


def agreeing(trace: DrawableTrace) -> bool:
    """Whether nodes' models are to be equal, as far as the trace can tell."""
    return bool(np.isfinite(trace["consensus"]).any() or not np.isfinite(trace["violation"]).any())


def progress_curves(trace: DrawableTrace) -> str:
    """Residual and divergence, or violation, over rounds; each called below in its colour."""
    columns = ["residual", "bregman" if agreeing(trace) else "violation"]
    known = [name for name in columns if (trace[name] > 0).any()]
    picture = curves([Line(LABELS[name], trace["rounds"], trace[name]) for name in known])
    if not picture:
        return ""
    names = " ".join(f"{swatch(k)} {LABELS[name]}" for k, name in enumerate(known))
    return picture + caption(f"{names}, over rounds")


def result_html(result: ShownRun, title: str = "Result", apart: str = "from the mean") -> str:
    """Converged or not, what it took, how it went, and the network it went on."""
    last = result.apart[-1] if len(result.apart) else np.full(result.graph.nodes, np.nan)
    facts = {"method": method_of(result), "converged": "yes" if result.converged else "no"}
    notes = [f"{distance:.1e} {apart}" for distance in last]
    network = drawing(result.graph, notes)
    note = result.message
    return card(
        title, facts | spent(result.trace), progress_curves(result.trace), network, note=note
    )


def method_of(result: ShownRun) -> str:
    return result.method_note or str(getattr(result.trace, "meta", {}).get("method", ""))


def peer_html(result: ShownResult) -> str:
    return card(
        "PeerResult", spent(result.trace), progress_curves(result.trace), note=result.message
    )


def trace_html(trace: DrawableTrace) -> str:
    facts = {"rows": str(len(trace)), "method": getattr(trace, "meta", {}).get("method", "")}
    return card("Trace", facts | spent(trace), progress_curves(trace))


# --- networks and problems ------------------------------------------------------------------------


def graph_html(graph: DrawableGraph) -> str:
    facts = {
        "nodes": f"{graph.nodes:,}",
        "edges": f"{len(graph.edges):,}",
        "neighbours of a node": span(graph.degrees),
        "connected": "yes" if graph.connected else "no",
    }
    return card("Graph", facts, drawing(graph, size=150))


def problem_html(problem: Any) -> str:
    """Of a `Problem`."""
    counts, sizes = problem.samples_of_nodes, problem.sizes
    every = problem.penalty if isinstance(problem.penalty, list | tuple) else [problem.penalty]
    facts = {
        "nodes": f"{problem.nodes:,}",
        "samples": f"{counts.sum():,}, {span(counts)} a node",
        "unknowns": span(sizes),
        "loss": repr(problem.loss),
        "penalty": ", ".join(dict.fromkeys(map(repr, every))) if problem.penalised else "none",
        "intercept": "yes" if problem.intercept else "no",
        "classes": "" if problem.classes is None else ", ".join(map(str, problem.classes)),
    }
    if problem.stream is not None:
        facts["samples"] = "a stream without end"
    picture = bars(counts, "samples")
    return card("Problem", facts, picture and picture + caption("samples of each node"))


def span(numbers: np.ndarray) -> str:
    low, high = int(numbers.min()), int(numbers.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"

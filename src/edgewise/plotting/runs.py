"""Pictures of runs: the nodes on their graph, and how they come to agree."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from edgewise.errors import InputError
from edgewise.plotting.axes import DrawableTrace, close, new_axes, plot_column, plot_progress, save
from edgewise.plotting.graphs import DrawableGraph, plot_graph

APART = "log10 of a node's distance from the mean"
UNMET = "log10 of how far a node's couplings are from being met"


class DrawableResult(Protocol):
    """A result, as far as it is drawn."""

    @property
    def graph(self) -> DrawableGraph: ...
    @property
    def trace(self) -> DrawableTrace: ...
    @property
    def apart(self) -> np.ndarray: ...
    @property
    def message(self) -> str: ...


def log_apart(result: DrawableResult) -> np.ndarray:
    return np.log10(np.clip(result.apart, 1e-16, None))


def plot_result(result: DrawableResult, path: str | Path | None) -> Any:
    """Left where each node stands at the end, right how the run went. Returns both axes."""
    left, right = new_axes(path, ncols=2, figsize=(10, 4))
    plot_graph(result.graph, log_apart(result)[-1], left, label=APART)
    plot_progress(result.trace, right)
    left.figure.suptitle(result.message, fontsize="small")
    save(left, path)
    return left, right


class DrawableCouplings(DrawableResult, Protocol):
    @property
    def multipliers(self) -> dict[tuple[int, int], np.ndarray]: ...


def plot_coupled(result: DrawableCouplings, path: str | Path | None) -> Any:
    """As `plot_result`; an edge is the wider, the larger its multipliers are."""
    left, right = new_axes(path, ncols=2, figsize=(10, 4))
    pulls = np.array([np.linalg.norm(result.multipliers[i, j]) for i, j in result.graph.edges])
    widths = 0.5 + 5 * pulls / max(pulls.max(initial=0), 1e-300)
    plot_graph(result.graph, log_apart(result)[-1], left, label=UNMET, widths=widths)
    left.set_title("edges: width is the size of their multipliers", fontsize="small")
    plot_progress(result.trace, right)
    left.figure.suptitle(result.message, fontsize="small")
    save(left, path)
    return left, right


def plot_peers(
    graph: DrawableGraph,
    trace: DrawableTrace,
    path: Path,
    *,
    counts: np.ndarray,
    labels: np.ndarray,
    called: str,
    title: str,
) -> Path:
    """Left what each node holds: `counts` samples of these mean `labels`, which are `called` so;
    right how the run went."""
    left, right = new_axes(path, ncols=2, figsize=(10, 4))
    sizes = 20 + 280 * counts / counts.max()
    plot_graph(graph, labels, left, sizes=sizes, label=called, cmap="coolwarm_r")
    left.set_title("peers: size is samples, colour their labels")
    plot_progress(trace, right)
    right.set_title(title)
    save(left, path)
    close(left)
    return path


def plot_runs(runs: Iterable[tuple[str, DrawableTrace]], x: str, y: str, path: str | Path) -> Path:
    """The traces of several runs, each with its name, in one picture."""
    path = Path(path)
    ax = new_axes(path, figsize=(6, 4))
    for name, trace in runs:
        plot_column(trace, y, x, ax, label=name)
    ax.legend(fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    save(ax, path)
    close(ax)
    return path


def animate_result(result: DrawableResult, path: Path, frames: int) -> Path:
    from matplotlib.animation import FuncAnimation, PillowWriter

    if path.suffix not in (".gif", ".html"):
        raise InputError(f"{path.name}: an animation is a .gif or an .html file")
    ax = new_axes(path, figsize=(5, 4))
    heights = log_apart(result)
    low, high = np.nanmin(heights), np.nanmax(heights)
    rows = np.unique(np.linspace(0, len(heights) - 1, max(frames, 2)).astype(int))
    plot_graph(result.graph, heights[0], ax, label=APART, low=low, high=high)
    nodes = ax.collections[-1]

    def draw(row: int) -> list[Any]:
        nodes.set_array(heights[row])
        ax.set_title(f"round {result.trace['rounds'][row]:,.0f}")
        return [nodes]

    film = FuncAnimation(ax.figure, draw, frames=list(rows), interval=100)
    if path.suffix == ".gif":
        film.save(path, writer=PillowWriter(fps=10))
    else:
        path.write_text(film.to_jshtml())
    return path

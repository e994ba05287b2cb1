"""Pictures of graphs, runs, tunings and comparisons."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import InputError
from edgewise.running.trace import LABELS

if TYPE_CHECKING:
    from edgewise.graph.graph import Graph
    from edgewise.running.result import Result
    from edgewise.study.compare import Comparison
    from edgewise.study.tune import Tuning


def new_axes(path: str | Path | None, **size: Any) -> Any:
    import matplotlib

    if path is not None:
        matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **size)[1]


def plot_graph(
    graph: "Graph",
    values: Any = None,
    ax: Any = None,
    path: str | Path | None = None,
    *,
    sizes: Any = 120,
    label: str = "",
    cmap: str = "viridis",
    low: float | None = None,
    high: float | None = None,
) -> Any:
    """Nodes where springs along the edges would put them, coloured by `values` from `low` to
    `high`, of these `sizes`; on `ax` or a new figure."""
    import networkx as nx

    ax = new_axes(path, figsize=(5, 4)) if ax is None else ax
    network = graph.to_networkx()
    layout = nx.kamada_kawai_layout(network) if graph.nodes <= 300 else nx.spring_layout(network)
    nx.draw_networkx_edges(network, layout, ax=ax, alpha=0.4)
    colour: Any = {} if values is None else {"cmap": cmap, "vmin": low, "vmax": high}
    drawn = nx.draw_networkx_nodes(
        network,
        layout,
        ax=ax,
        node_size=sizes,
        node_color="tab:blue" if values is None else np.asarray(values),
        edgecolors="0.3",
        **colour,
    )
    if values is not None and label:
        ax.figure.colorbar(drawn, ax=ax, label=label, shrink=0.8)
    ax.axis("off")
    if path is not None:
        ax.figure.savefig(path, dpi=150)
    return ax


APART = "log10 of a node's distance from the mean"


def log_apart(result: "Result") -> np.ndarray:
    return np.log10(np.clip(result.apart, 1e-16, None))


def plot_result(result: "Result", path: str | Path | None) -> Any:
    """Left where each node stands at the end, right how the run went. Returns both axes."""
    left, right = new_axes(path, ncols=2, figsize=(10, 4))
    plot_graph(result.graph, log_apart(result)[-1], left, label=APART)
    for name in ("residual", "bregman", "consensus"):
        if np.isfinite(result.trace[name]).any():
            result.trace.plot(name, ax=right)
            right.lines[-1].set_label(LABELS[name])
    right.set_ylabel("")
    right.legend()
    figure = left.figure
    figure.suptitle(result.message, fontsize="small")
    if path is not None:
        figure.savefig(path, dpi=150)
    return left, right


def animate_result(result: "Result", path: Path, frames: int) -> Path:
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


def plot_surface(tuning: "Tuning", ax: Any, path: str | Path | None) -> Any:
    """Divergence over one factor as a line, over two as a map; a cross on the best."""
    ax = new_axes(path, figsize=(5, 4)) if ax is None else ax
    names = list(tuning.factors)
    height = tuning.surface["divergence"]
    log = np.log10(np.clip(np.where(height > 1, np.nan, height), 1e-16, None))
    best = list(tuning.factors.values())
    if len(names) == 1:
        at = tuning.surface[names[0]]
        ax.loglog(at, 10**log, "o-")
        ax.axvline(best[0], color="black", linestyle=":")
        ax.set_ylabel("divergence, as a part of the start's")
    else:
        a, b = (np.log2(tuning.surface[k]) for k in names[:2])
        rows, columns = np.unique(b), np.unique(a)
        grid = np.full((len(rows), len(columns)), np.nan)
        grid[np.searchsorted(rows, b), np.searchsorted(columns, a)] = log
        image = ax.pcolormesh(columns, rows, grid, shading="nearest", cmap="viridis_r")
        ax.figure.colorbar(image, ax=ax, label="log10 of divergence; blank: diverged or not tried")
        ax.plot(*np.log2(best[:2]), "x", color="red", markersize=10, markeredgewidth=2)
        ax.set_xticks(columns, [f"{2**c:.3g}" for c in columns])
        ax.set_yticks(rows, [f"{2**r:.3g}" for r in rows])
        ax.set_ylabel(f"{names[1]}, times its rule")
    ax.set_xlabel(f"{names[0]}, times its rule")
    ax.set_title(tuning.message, fontsize="small", wrap=True)
    if path is not None:
        ax.figure.savefig(path, dpi=150)
    return ax


def plot_comparison(comparison: "Comparison", units: list[str], path: str | Path | None) -> Any:
    """Medians as lines, quartiles as bands; a panel per unit. Returns the axes."""
    columns = 2 if len(units) > 1 else 1
    lines = -(-len(units) // columns)
    size = {"figsize": (5.5 * columns, 4 * lines), "squeeze": False}
    axes = new_axes(path, nrows=lines, ncols=columns, **size)
    for ax, unit in zip(axes.flat, units, strict=False):
        for method, curves in comparison.runs.items():
            most = max(c.costs[unit][-1] for c in curves)
            least = max(min(c.costs[unit][0] for c in curves), most / 1000)
            at = np.geomspace(least, most, 100)
            each = [[c.value_at(unit, cost) for cost in at] for c in curves]
            low, middle, high = np.quantile(
                np.minimum(each, 1e3), [0.25, 0.5, 0.75], axis=0, method="inverted_cdf"
            )
            (line,) = ax.loglog(at, middle, label=method)
            ax.fill_between(at, low, high, color=line.get_color(), alpha=0.2)
        ax.set_ylim(comparison.accuracies[-1] / 10, 10)
        ax.set_xlabel(LABELS[unit])
        ax.set_ylabel("divergence, as a part of the start's")
        ax.grid(alpha=0.3)
    axes.flat[0].legend(fontsize="x-small")
    if path is not None:
        axes.flat[0].figure.savefig(path, dpi=150)
    return axes

"""Graphs as pictures."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from edgewise.plotting.axes import new_axes, save

MOST_BY_DISTANCE = 100  # nodes; beyond, a layout by path lengths takes seconds
MOST_BY_SPRINGS = 1000  # beyond, nothing of a layout can be seen


class DrawableGraph(Protocol):
    """A graph, as far as it is drawn."""

    @property
    def nodes(self) -> int: ...
    @property
    def edges(self) -> np.ndarray: ...
    @property
    def degrees(self) -> np.ndarray: ...
    @property
    def connected(self) -> bool: ...
    def to_networkx(self) -> Any: ...


def positions(graph: DrawableGraph) -> np.ndarray:
    """(nodes, 2) in the plane, the same every time."""
    import networkx as nx

    network = graph.to_networkx()
    if graph.nodes <= MOST_BY_DISTANCE and graph.connected:
        layout = nx.kamada_kawai_layout(network)
    elif graph.nodes <= MOST_BY_SPRINGS:
        layout = nx.spring_layout(network, seed=0)
    else:
        layout = nx.circular_layout(network)
    return np.array([layout[node] for node in range(graph.nodes)])


def plot_graph(
    graph: DrawableGraph,
    values: Any = None,
    ax: Any = None,
    path: str | Path | None = None,
    *,
    sizes: Any = 120,
    label: str = "",
    cmap: str = "viridis",
    low: float | None = None,
    high: float | None = None,
    widths: Any = None,
) -> Any:
    """Nodes where springs along the edges would put them, coloured by `values` from `low` to
    `high`, of these `sizes`, edges of these `widths`; on `ax` or a new figure."""
    from matplotlib.collections import LineCollection

    ax = new_axes(path, figsize=(5, 4)) if ax is None else ax
    at = positions(graph)
    lines = LineCollection(
        list(at[graph.edges]), colors="black", alpha=0.4, zorder=1, linewidths=widths
    )
    ax.add_collection(lines)
    colour: Any = {} if values is None else {"cmap": cmap, "vmin": low, "vmax": high}
    drawn = ax.scatter(
        *at.T,
        s=sizes,
        c="tab:blue" if values is None else np.asarray(values),
        edgecolors="0.3",
        zorder=2,
        **colour,
    )
    if values is not None and label:
        ax.figure.colorbar(drawn, ax=ax, label=label, shrink=0.8)
    ax.axis("off")
    save(ax, path)
    return ax

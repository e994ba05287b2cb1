"""Pictures of runs: the peers and how they come to agree, and several runs in one."""

from pathlib import Path
from typing import Any

import numpy as np

from edgewise.graph.graph import Graph
from edgewise.problem.problem import Problem
from edgewise.running.trace import LABELS, Trace

FAR = 1e30
CLEAR = 100  # nodes up to which springs lay out a graph quickly


def mean_labels(problem: Problem) -> np.ndarray:
    """(V,) of each peer; of two classes the second's share."""
    own = [problem.labels[problem.own(i)] for i in range(problem.nodes)]
    return np.array([np.mean(y > 0) if two_classes(problem) else np.mean(y) for y in own])


def two_classes(problem: Any) -> bool:
    return problem.classes is not None and problem.loss.outputs == 1


def picture(
    problem: Any, graph: Graph, trace: Trace, path: Path, how: str, labels: np.ndarray
) -> Path:
    """The peers with what they hold, and how they come to agree."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt
    import networkx as nx

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    network = graph.to_networkx()
    few = graph.nodes <= CLEAR
    layout = nx.kamada_kawai_layout(network) if few else nx.circular_layout(network)
    drawn = nx.draw_networkx_nodes(
        network,
        layout,
        ax=left,
        node_size=20 + 280 * problem.counts / problem.counts.max(),
        node_color=labels,
        cmap="coolwarm_r",
        edgecolors="0.3",
    )
    nx.draw_networkx_edges(network, layout, ax=left, alpha=0.4)
    left.set_title("peers: size is samples, colour their labels")
    left.axis("off")
    share = f"share of {problem.classes[1]!s}" if two_classes(problem) else "mean label"
    figure.colorbar(drawn, ax=left, label=share, shrink=0.8)
    shown = drawable(trace)
    for name in ("residual", "bregman", "consensus"):
        if np.isfinite(shown[name]).any():
            shown.plot(name, ax=right)
            right.lines[-1].set_label(LABELS[name])
    right.set_ylabel("")
    right.set_title(f"one model, {how}")
    right.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def drawable(trace: Trace) -> Trace:
    """Without the numbers that an axis has no room for: of runs that diverged."""
    columns = {k: np.where(np.abs(v) < FAR, v, np.nan) for k, v in trace.columns.items()}
    return Trace(columns, trace.meta)


def plot_runs(runs: list[Any], x: str, y: str, path: str | Path) -> Path:
    """The traces of several runs in one picture."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for run in runs:
        if run.trace is not None:
            drawable(run.trace).plot(y, x, ax)
            ax.lines[-1].set_label(f"{run.config.get('method', '')} ({run.folder.name})")
    ax.legend(fontsize="small")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path

"""Axes: new ones, what they are called, and one column of a trace on them."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np

LABELS = {  # of a trace's columns
    "rounds": "communication rounds",
    "oracle_calls": "oracle calls per node",
    "vectors_sent": "vectors sent, all edges",
    "bytes_sent": "bytes sent, all edges",
    "seconds": "seconds of compute",
    "objective_gap": "objective gap",
    "bregman": "Bregman divergence",
    "consensus": "disagreement between nodes",
    "residual": "optimality residual",
    "function_values": "function values per node",
    "objective": "objective",
    "violation": "violation, over edges",
}
FAR = 1e30  # a number that an axis has no room for, of a run that diverged


class DrawableTrace(Protocol):
    """A trace, as far as it is drawn."""

    def __getitem__(self, name: str, /) -> np.ndarray: ...
    def __len__(self) -> int: ...


def new_axes(path: str | Path | None, **size: Any) -> Any:
    """Of a new figure; where it is only saved, no display is needed."""
    import matplotlib

    if path is not None:
        matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **size)[1]


def save(ax: Any, path: str | Path | None) -> None:
    if path is not None:
        ax.figure.savefig(path, dpi=150)


def close(ax: Any) -> None:
    import matplotlib.pyplot as plt

    plt.close(ax.figure)


def plot_column(
    trace: DrawableTrace, y: str, x: str, ax: Any, path: str | Path | None = None, label: Any = None
) -> Any:
    """y against x, logarithmic, onto `ax` or a new figure; saved where `path` says."""
    ax = new_axes(path, figsize=(6, 4)) if ax is None else ax
    heights = np.abs(trace[y])
    ax.semilogy(trace[x], np.where((heights > 0) & (heights < FAR), heights, np.nan), label=label)
    ax.set_xlabel(LABELS[x])
    ax.set_ylabel(LABELS[y])
    ax.grid(alpha=0.3)
    save(ax, path)
    return ax


def plot_progress(trace: DrawableTrace, ax: Any) -> None:
    """Residual, divergence and disagreement over the rounds, those that were measured; where models
    need not agree, how far couplings are from being met."""
    agree = np.isfinite(trace["consensus"]).any()
    for name in ("residual", "bregman", "consensus" if agree else "violation"):
        if np.isfinite(trace[name]).any():
            plot_column(trace, name, "rounds", ax, label=LABELS[name])
    ax.set_ylabel("")
    ax.legend()

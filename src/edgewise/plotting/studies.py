"""Pictures of tunings and comparisons."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from edgewise.plotting.axes import LABELS, new_axes, save

POINTS = 200  # of a curve
PART_OF_START = "divergence, as a part of the start's"


class DrawableTuning(Protocol):
    """A tuning, as far as it is drawn."""

    @property
    def factors(self) -> Mapping[str, float]: ...
    @property
    def surface(self) -> Mapping[str, np.ndarray]: ...
    @property
    def message(self) -> str: ...


class DrawableCurve(Protocol):
    @property
    def costs(self) -> Mapping[str, np.ndarray]: ...
    def value_at(self, unit: str, cost: float, /) -> float: ...


class DrawableComparison(Protocol):
    """A comparison, as far as it is drawn."""

    @property
    def runs(self) -> Mapping[str, Sequence[DrawableCurve]]: ...
    @property
    def accuracies(self) -> Sequence[float]: ...


def plot_surface(tuning: DrawableTuning, ax: Any, path: str | Path | None) -> Any:
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
        ax.set_ylabel(PART_OF_START)
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
    save(ax, path)
    return ax


def plot_comparison(
    comparison: DrawableComparison, units: list[str], path: str | Path | None, log_x: bool = False
) -> Any:
    """Medians as lines, quartiles as bands; a panel per unit. Returns the axes.

    Costs are drawn to scale, where linear convergence is a straight line, or as logarithms.
    """
    columns = 2 if len(units) > 1 else 1
    lines = -(-len(units) // columns)
    size = {"figsize": (5.5 * columns, 4 * lines), "squeeze": False}
    axes = new_axes(path, nrows=lines, ncols=columns, **size)
    for ax, unit in zip(axes.flat, units, strict=False):
        for method, curves in comparison.runs.items():
            most = max(c.costs[unit][-1] for c in curves)
            least = min(c.costs[unit][0] for c in curves)
            at = np.linspace(least, most, POINTS)
            if log_x:
                at = np.geomspace(max(least, most / 1000), most, POINTS)
            each = [[c.value_at(unit, cost) for cost in at] for c in curves]
            low, middle, high = np.quantile(
                np.minimum(each, 1e3), [0.25, 0.5, 0.75], axis=0, method="inverted_cdf"
            )
            (line,) = ax.semilogy(at, middle, label=method)
            ax.fill_between(at, low, high, color=line.get_color(), alpha=0.2)
        ax.set_ylim(comparison.accuracies[-1] / 10, 10)
        ax.set_xscale("log" if log_x else "linear")
        ax.set_xlabel(LABELS[unit])
        ax.set_ylabel(PART_OF_START)
        ax.grid(alpha=0.3)
    axes.flat[0].legend(fontsize="x-small")
    save(axes.flat[0], path)
    return axes

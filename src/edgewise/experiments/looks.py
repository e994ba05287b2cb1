"""How each method looks, in every picture: one colour, dash and marker.

The paper's own are solid lines with full markers, the others dashed ones with open markers. Markers
stand at other places on each line, so that lines that coincide can be told.
"""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from edgewise.plotting.axes import DrawableTrace

LOOKS: dict[str, tuple[str, Any, str]] = {  # colour, dash, marker
    "SVR-PD": ("#0072b2", "-", "o"),
    "SVR-PD, early stopping": ("#56b4e9", "-", "D"),
    "SAGA-PD": ("#d55e00", "-", "^"),
    "LSVR-PD": ("#009e73", "-", "s"),
    "ASVR-PD": ("#cc79a7", "-", "v"),
    "S-DIGing": ("#e69f00", "--", "^"),
    "EDGE": ("#8c564b", "--", "P"),
    "Network-DANE": ("#000000", "--", "X"),
    "GT-SVR": ("#117733", "--", "s"),
    "D2": ("#7f7f7f", "--", "d"),
    "EXTRA": ("#882255", "--", "*"),
    "DGD": ("#bcbd22", "--", "p"),
    "PD": ("#0072b2", "-", "o"),
    "PDMM": ("#e69f00", "--", "s"),
    "quadratic PDMM": ("#d55e00", "--", "x"),
    "coordinates": ("#0072b2", "-", "o"),
    "function values": ("#e69f00", "--", "^"),
    "function values 0.001 apart": ("#009e73", "--", "s"),
}
MARKERS = 5  # on a line
HIGHEST = 1e6  # that is drawn, as a part of the divergence at the start
LOWEST = 1e-13


def look(method: str) -> dict[str, Any]:
    colour, dash, marker = LOOKS.get(method) or other(method)
    face = colour if dash == "-" else "white"
    size = 7 if marker in "*PX" else 5
    return {
        "color": colour,
        "linestyle": dash,
        "linewidth": 1.3,
        "marker": marker,
        "markersize": size,
        "markerfacecolor": face,
    }


def other(method: str) -> tuple[str, str, str]:
    """Of a method that is none of the paper's: always the same for a name."""
    k = crc32(method.encode())
    return f"C{k % 10}", "-.", "<>hH8"[k // 10 % 5]


def draw_method(ax: Any, method: str, runs: Sequence[DrawableTrace], x: str) -> None:
    """The median over the runs, and a band from the lowest to the highest."""
    shown = min(len(run) for run in runs)
    across = np.median([run[x][:shown] for run in runs], 0)
    first = float(runs[0]["bregman"][0])
    heights = np.array([run["bregman"][:shown] for run in runs])
    heights = np.clip(np.nan_to_num(heights, nan=np.inf), LOWEST * first, None)
    heights = np.where(heights < HIGHEST * first, heights, np.nan)
    keep = (across > 0) & ~np.isnan(heights).any(0)
    across, heights = across[keep], heights[:, keep]
    if len(across) == 0:
        return
    order = list(LOOKS).index(method) if method in LOOKS else crc32(method.encode()) % 100
    ax.plot(across, np.median(heights, 0), markevery=places(across, order), **look(method))
    if len(runs) > 1:
        low, high = heights.min(0), heights.max(0)
        ax.fill_between(across, low, high, color=look(method)["color"], alpha=0.2, linewidth=0)


def places(across: np.ndarray, order: int) -> list[int]:
    """Looks that are evenly spread over a logarithmic axis, shifted by method."""
    at = np.log(across)
    wanted = at[0] + (at[-1] - at[0]) * (np.arange(MARKERS) + (order * 0.37) % 1) / MARKERS
    return sorted({int(np.abs(at - w).argmin()) for w in wanted})

"""Small pictures as inline SVG, which take the text's colour, so that they suit light pages and
dark ones, and no time to draw."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from edgewise.plotting.axes import FAR
from edgewise.plotting.graphs import DrawableGraph

COLOURS = ("#1f83c4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#9a6b4f", "#7f7f7f")
POINTS = 200  # of a curve
MOST_NODES = 50  # that are worth drawing
MOST_LINKS = 600
MOST_BARS = 60
STEPS = 30  # of a layout


class Line(NamedTuple):
    name: str
    x: np.ndarray
    y: np.ndarray


def colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def swatch(place: int) -> str:
    """HTML: what a line of `curves` is drawn in."""
    return f'<span style="color:{colour(place)}">&#9473;</span>'


def curves(
    lines: Sequence[Line], width: int = 260, height: int = 90, goal: float | None = None
) -> str:
    """Heights as logarithms, against costs to scale; a dashed line at the goal. Nothing where there
    is nothing to draw."""
    drawn = []
    for line in lines:
        fits = (line.y > 0) & (line.y < FAR) & np.isfinite(line.x)
        x, y = line.x[fits], np.log10(line.y[fits])
        rows = np.unique(np.linspace(0, max(len(x) - 1, 0), POINTS).astype(int))[: len(x)]
        drawn.append((x[rows], y[rows]))
    if not sum(len(x) for x, _ in drawn):
        return ""
    every_x, every_y = (np.concatenate(of) for of in zip(*drawn, strict=True))
    low, high = every_y.min(), every_y.max()
    if goal is not None:
        low, high = min(low, np.log10(goal)), max(high, np.log10(goal))
    right = every_x.max() or 1.0
    left_edge, top, room_x, room_y = 44, 8, width - 52, height - 24

    def at(x: np.ndarray, y: np.ndarray) -> list[str]:
        across = left_edge + room_x * x / right
        down = top + room_y * (high - y) / max(high - low, 1e-9)
        return [f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True)]

    def label(x: float, y: float, anchor: str, text: str) -> str:
        return (
            f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="10" fill="currentColor" '
            f'fill-opacity=".7">{text}</text>'
        )

    pieces = [
        f'<path d="M{left_edge},{top}V{top + room_y}H{width - 8}" fill="none" '
        'stroke="currentColor" stroke-opacity=".4"/>',
        label(left_edge - 4, top + 4, "end", f"{10**high:.0e}"),
        label(left_edge - 4, top + room_y + 3, "end", f"{10**low:.0e}"),
        label(left_edge, height - 4, "middle", "0"),
        label(width - 8, height - 4, "end", f"{right:,.4g}"),
    ]
    if goal is not None:
        (start,), (end,) = (at(np.array([x]), np.array([np.log10(goal)])) for x in (0.0, right))
        pieces.append(
            f'<path d="M{start}L{end}" stroke="currentColor" stroke-opacity=".5" '
            'stroke-dasharray="4 3" fill="none"/>'
        )
    for place, (line, (x, y)) in enumerate(zip(lines, drawn, strict=True)):
        if len(x) == 1:
            (spot,) = (point.split(",") for point in at(x, y))
            shape = f'<circle cx="{spot[0]}" cy="{spot[1]}" r="2.5" fill="{colour(place)}">'
            pieces.append(f"{shape}<title>{escape(line.name)}</title></circle>")
        elif len(x):
            pieces.append(
                f'<polyline points="{" ".join(at(x, y))}" fill="none" stroke="{colour(place)}" '
                f'stroke-width="1.5"><title>{escape(line.name)}</title></polyline>'
            )
    return frame(width, height, pieces)


def bars(numbers: np.ndarray, name: str, width: int = 260, height: int = 44) -> str:
    """A bar each, from zero. Nothing where there are too many to be seen."""
    if not 0 < len(numbers) <= MOST_BARS or not numbers.max() > 0:
        return ""
    step, tall = width / len(numbers), (height - 4) * numbers / numbers.max()
    pieces = [
        f'<rect x="{k * step:.1f}" y="{height - t:.1f}" width="{max(0.8 * step, 1):.1f}" '
        f'height="{t:.1f}" fill="{COLOURS[0]}"><title>node {k}: {n:,.0f} {escape(name)}</title>'
        "</rect>"
        for k, (n, t) in enumerate(zip(numbers.tolist(), tall.tolist(), strict=True))
    ]
    return frame(width, height, pieces)


def drawing(graph: DrawableGraph, notes: Sequence[str] | None = None, size: int = 130) -> str:
    """Nodes and edges, each node with a note to be read when it is pointed at. Nothing where there
    are too many."""
    if graph.nodes > MOST_NODES or len(graph.edges) > MOST_LINKS:
        return ""
    at = quick_positions(graph.nodes, graph.edges)
    at = 8 + (size - 16) * (at - at.min(0)) / max(np.ptp(at, 0).max(), 1e-9)
    links = "".join(f"M{p[0]:.1f},{p[1]:.1f}L{q[0]:.1f},{q[1]:.1f}" for p, q in at[graph.edges])
    radius = 5 if graph.nodes <= 20 else 3.5
    told = notes or [f"degree {d}" for d in graph.degrees]
    pieces = [f'<path d="{links}" stroke="currentColor" stroke-opacity=".4" fill="none"/>']
    pieces += [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{COLOURS[0]}">'
        f"<title>node {k}: {escape(told[k])}</title></circle>"
        for k, (x, y) in enumerate(at)
    ]
    return frame(size, size, pieces)


def frame(width: int, height: int, pieces: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">{"".join(pieces)}</svg>'
    )


def quick_positions(nodes: int, edges: np.ndarray) -> np.ndarray:
    """(nodes, 2) places whose distances are as near to path lengths as can be: stress majorisation
    (Gansner, Koren, North 2004) in NumPy alone, as networkx takes half a second to import."""
    D = path_lengths(nodes, edges)
    inner = D**2 - (D**2).mean(0)
    values, vectors = np.linalg.eigh(-0.5 * (inner - inner.mean(1, keepdims=True)))
    at = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    angles = 2 * np.pi * np.arange(nodes) / max(nodes, 1)
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    at = circle if nodes < 3 else at + 0.05 * circle  # so that no two are in one place
    W = 1 / np.where(D > 0, D, 1.0) ** 2
    np.fill_diagonal(W, 0)
    inverse = np.linalg.pinv(np.diag(W.sum(1)) - W)
    for _ in range(STEPS):
        apart = np.linalg.norm(at[:, None] - at[None], axis=2)
        B = -W * D / np.maximum(apart, 1e-9)
        B[np.diag_indices(nodes)] = 0
        np.fill_diagonal(B, -B.sum(1))
        at = inverse @ (B @ at)
    return at


def path_lengths(nodes: int, edges: np.ndarray) -> np.ndarray:
    """(nodes, nodes) edges on the shortest way; between parts of a graph one more than any."""
    near = np.eye(nodes, dtype=bool)
    near[edges[:, 0], edges[:, 1]] = near[edges[:, 1], edges[:, 0]] = True
    lengths, reached = np.full((nodes, nodes), -1.0), np.eye(nodes, dtype=bool)
    lengths[reached] = 0
    for steps in range(1, nodes):
        further = (reached.astype(np.float32) @ near) > 0
        new = further & ~reached
        if not new.any():
            break
        lengths[new], reached = steps, further
    return np.where(lengths < 0, lengths.max(initial=0) + 1, lengths)

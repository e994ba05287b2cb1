"""Thirty clocks that are set by each other, though no message says what time it is.

A sensor's clock is wrong by an offset, and drifts. Two sensors in reach of each other can only
measure how far apart their clocks are, with noise. Every sensor keeps what it measured. It has its
own clock as unknowns, and a guess at each neighbour's; a coupling asks that a guess equals what the
neighbour itself says. Sensor 0 is right by definition. The answer is the least-squares fit of all
measurements in the network, which no sensor ever sees.

    python examples/clocks.py --plot clocks.png
"""

import argparse
from collections.abc import Sequence

import networkx as nx
import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew

SENSORS, REACH = 30, 0.3
OFFSET, DRIFT, NOISE = 50.0, 10.0, 1.0  # ms; a drift is the ms gained over the whole watch
TIMES = np.linspace(0, 1, 5)  # of a watch, when two sensors compare their clocks


def sensors(seed: int) -> tuple[ew.Graph, np.ndarray]:
    """Sensors strewn on a square, in reach of some others; and where they are."""
    for attempt in range(100):
        place = np.random.default_rng([seed, attempt]).random((SENSORS, 2))
        far = np.linalg.norm(place[:, None] - place, axis=-1)
        graph = ew.Graph.from_edges(np.argwhere(np.triu(far < REACH, 1)), SENSORS)
        if graph.connected:
            return graph, place
    raise SystemExit("no connected network: take another seed")


def measure(graph: ew.Graph, clocks: np.ndarray, rng: np.random.Generator) -> dict:
    """{(i, j): how far clock i was ahead of clock j, at each of TIMES, as i saw it}."""
    seen = {}
    for pair in graph.edges.tolist():
        for i, j in (pair, pair[::-1]):
            ahead = (clocks[i] - clocks[j]) @ [np.ones_like(TIMES), TIMES]
            seen[i, j] = ahead + NOISE * rng.standard_normal(len(TIMES))
    return seen


def build(graph: ew.Graph, seen: dict) -> tuple[ew.Problem, dict[tuple[int, int], ew.Coupling]]:
    """x_i: its offset and drift, then its guess at those of each neighbour."""
    watch = np.column_stack([np.ones_like(TIMES), TIMES])
    order = [graph.neighbours(i).tolist() for i in range(graph.nodes)]
    costs, rules = [], []
    for i, others in enumerate(order):
        n = 2 + 2 * len(others)
        Q, q = np.zeros((n, n)), np.zeros(n)
        for k, j in enumerate(others):
            row = np.zeros((len(TIMES), n))
            row[:, :2], row[:, 2 + 2 * k : 4 + 2 * k] = watch, -watch
            Q, q = Q + row.T @ row, q - row.T @ seen[i, j]
        costs.append(ew.Quadratic(Q, q))  # |row x - seen|² / 2, but for a constant
        free = np.full(n, np.inf)
        if i == 0:
            free[:2] = 0  # its clock is the time
        rules.append(ew.Box(-free, free))
    between = {}
    for i, j in graph.edges.tolist():
        A, B = np.zeros((4, 2 + 2 * len(order[i]))), np.zeros((4, 2 + 2 * len(order[j])))
        at, back = 2 + 2 * order[i].index(j), 2 + 2 * order[j].index(i)
        A[[0, 1], [at, at + 1]], B[[0, 1], [0, 1]] = 1, -1  # i's guess at j is j's own
        A[[2, 3], [0, 1]], B[[2, 3], [back, back + 1]] = 1, -1  # and the other way round
        between[i, j] = ew.Coupling(A, B)
    return ew.Problem(cost=costs, penalty=rules), between


def least_squares(graph: ew.Graph, seen: dict) -> np.ndarray:
    """All measurements in one place, by numpy."""
    rows, ahead = [], []
    for (i, j), values in seen.items():
        for time, value in zip(TIMES, values, strict=True):
            row = np.zeros((graph.nodes, 2))
            row[i], row[j] = (1, time), (-1, -time)
            rows.append(row[1:].ravel())  # without clock 0, which is right
            ahead.append(value)
    fit = np.linalg.lstsq(np.array(rows), np.array(ahead), rcond=None)[0]
    return np.vstack([[0, 0], fit.reshape(-1, 2)])


def down_a_tree(graph: ew.Graph, seen: dict) -> np.ndarray:
    """What is often done: from sensor 0 outwards, each takes the time from the one before."""
    clocks = np.zeros((graph.nodes, 2))
    for before, i in nx.bfs_edges(graph.to_networkx(), 0):
        ahead = (seen[i, before] - seen[before, i]) / 2
        drift, offset = np.polyfit(TIMES, ahead, 1)
        clocks[i] = clocks[before] + [offset, drift]
    return clocks


def error(clocks: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Each sensor's root mean square error over the watch, in ms."""
    off = (clocks - truth) @ [np.ones_like(TIMES), TIMES]
    return np.sqrt((off**2).mean(1))


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description="Clocks set by each other.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    options = parser.parse_args(arguments)

    rng = np.random.default_rng(options.seed)
    graph, place = sensors(options.seed)
    truth = rng.standard_normal((SENSORS, 2)) * [OFFSET, DRIFT]
    truth[0] = 0
    seen = measure(graph, truth, rng)
    problem, between = build(graph, seen)
    result = ew.solve(problem, graph, between=between, tol=1e-9, rounds=50_000)
    assert result.converged, result.message
    clocks = {
        "as they are": np.zeros((SENSORS, 2)),
        "down a tree": down_a_tree(graph, seen),
        "set by each other": np.array([x[:2] for x in result.X]),
        "least squares (numpy)": least_squares(graph, seen),
    }
    errors = {name: error(one, truth) for name, one in clocks.items()}
    table = Table("clocks", "median error, ms", "worst, ms")
    for name, e in errors.items():
        table.add_row(name, f"{np.median(e[1:]):.3f}", f"{e.max():.3f}")
    Console().print(table)
    off = float(abs(clocks["set by each other"] - clocks["least squares (numpy)"]).max())
    rounds = result.trace["rounds"][-1]
    print(f"{rounds:.0f} rounds; no clock is more than {off:.0e} ms from numpy's least squares")
    if options.plot:
        draw(graph, place, errors, options.plot)
        print(f"plot: {options.plot}")
    return {"off": off, "rounds": rounds, **{name: e.max() for name, e in errors.items()}}


def draw(graph: ew.Graph, place: np.ndarray, errors: dict[str, np.ndarray], path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    top = errors["down a tree"].max()
    for ax, name in zip(axes, ("down a tree", "set by each other"), strict=True):
        for i, j in graph.edges:
            ax.plot(*place[[i, j]].T, color="0.85", linewidth=1, zorder=1)
        style = {"cmap": "viridis_r", "vmin": 0, "vmax": top, "edgecolors": "black"}
        shown = ax.scatter(*place.T, c=errors[name], s=110, zorder=2, linewidths=0.6, **style)
        ax.annotate("0", place[0], ha="center", va="center", zorder=3, fontsize="small")
        ax.set_title(f"{name}: worst {errors[name].max():.2f} ms", fontsize="medium")
        ax.set_axis_off()
    figure.colorbar(shown, ax=axes, label="error of the clock, ms")
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()

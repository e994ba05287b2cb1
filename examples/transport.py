"""Cars through a town whose junctions plan by themselves.

Every junction is a node. It knows how many cars start or end there, and the flows on its own roads,
one for each way. What comes in must go out: that is its own constraint. The two ends of a road must
agree on its flows: that couples them. A car takes a road's time; if roads jam, it takes longer the
more cars there are, and traffic spreads.

    python examples/transport.py --plot transport.png
"""

import argparse
from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew

ROWS, COLUMNS = 5, 6
CAPACITY = 3  # thousand cars an hour, each way
JAM = 2.0  # minutes that a thousand cars an hour add to a road


def town(seed: int) -> tuple[nx.Graph, np.ndarray, np.ndarray]:
    """A grid with some diagonals; each road's minutes, by its row in graph.edges; cars that start
    at each junction, in thousands an hour, below zero where they end."""
    rng = np.random.default_rng(seed)
    streets = nx.grid_2d_graph(ROWS, COLUMNS)
    for i in range(ROWS - 1):
        for j in range(COLUMNS - 1):
            if rng.random() < 0.25:
                streets.add_edge((i, j), (i + 1, j + 1))
    cars = np.zeros(ROWS * COLUMNS)
    cars[rng.choice(len(cars), 6, replace=False)] = [4, 3, 2, -2, -3, -4]
    graph = nx.convert_node_labels_to_integers(streets, ordering="sorted", label_attribute="at")
    return graph, rng.integers(3, 13, graph.number_of_edges()), cars


def build(
    graph: ew.Graph, minutes: np.ndarray, cars: np.ndarray, jam: float
) -> tuple[ew.Problem, dict[tuple[int, int], ew.Coupling]]:
    """x_i: the flow out into each of i's roads, then the flow in from each."""
    roads: list[dict[int, float]] = [{} for _ in range(graph.nodes)]
    for (i, j), time in zip(graph.edges.tolist(), minutes, strict=True):
        roads[i][j] = roads[j][i] = float(time)
    costs, rules = [], []
    for i, own in enumerate(roads):
        time = np.array([*own.values()] * 2)
        costs.append(ew.Quadratic(np.full(len(time), jam), time / 2))  # each end pays half
        way = np.repeat([1.0, -1.0], len(own))
        rules.append(ew.Budget(way, cars[i], 0, CAPACITY))
    between = {}
    for i, j in graph.edges.tolist():
        A, B = np.zeros((2, 2 * len(roads[i]))), np.zeros((2, 2 * len(roads[j])))
        here, there = list(roads[i]).index(j), list(roads[j]).index(i)
        A[0, here], B[0, len(roads[j]) + there] = 1, -1  # out of i is into j
        A[1, len(roads[i]) + here], B[1, there] = 1, -1
        between[i, j] = ew.Coupling(A, B)
    return ew.Problem(cost=costs, penalty=rules), between


def by_networkx(graph: ew.Graph, minutes: np.ndarray, cars: np.ndarray) -> float:
    """The least time in total where roads do not jam: network simplex, exact in whole numbers."""
    directed = nx.DiGraph()
    for i, number in enumerate(cars):
        directed.add_node(i, demand=-int(number))
    for (i, j), time in zip(graph.edges.tolist(), minutes, strict=True):
        directed.add_edge(i, j, weight=int(time), capacity=CAPACITY)
        directed.add_edge(j, i, weight=int(time), capacity=CAPACITY)
    return float(nx.min_cost_flow_cost(directed))


def by_cvxpy(
    graph: ew.Graph, minutes: np.ndarray, cars: np.ndarray, jam: float
) -> tuple[float, np.ndarray]:
    """The least time in total, and the net flow on each road."""
    try:
        import cvxpy as cp
    except ImportError:
        raise SystemExit("this example compares with CVXPY: pip install cvxpy") from None
    incidence = np.zeros((graph.nodes, graph.edge_count))
    incidence[graph.edges[:, 0], range(graph.edge_count)] = 1
    incidence[graph.edges[:, 1], range(graph.edge_count)] = -1
    net = cp.Variable(graph.edge_count)  # nobody drives both ways: time is |net| times minutes
    time = minutes @ cp.abs(net) + jam * cp.sum_squares(net)
    problem = cp.Problem(cp.Minimize(time), [incidence @ net == cars, cp.abs(net) <= CAPACITY])
    precise = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    problem.solve(solver=cp.CLARABEL, **precise)
    return float(problem.value), net.value


def main(arguments: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    parser = argparse.ArgumentParser(description="Cheapest flows, junction by junction.")
    parser.add_argument("--seed", type=int, default=0, help="of the town")
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    options = parser.parse_args(arguments)

    streets, minutes, cars = town(options.seed)
    graph = ew.Graph.from_networkx(streets)
    table = Table("roads", "rounds", "MB sent", "total time", "compared with", "its time", "off by")
    found: dict[str, dict[str, Any]] = {}
    for name, jam in {"never jam": 0.0, "jam": JAM}.items():
        problem, between = build(graph, minutes, cars, jam)
        result = ew.solve(problem, graph, between=between, tol=1e-7, rounds=50_000)
        assert result.converged, result.message
        first = {i: list(graph.neighbours(i)) for i in range(graph.nodes)}
        out = [result.X[i][first[i].index(j)] for i, j in graph.edges]
        back = [result.X[j][first[j].index(i)] for i, j in graph.edges]
        net = np.array(out) - np.array(back)
        exact, exact_net = by_cvxpy(graph, minutes, cars, jam)
        if not jam:
            exact = by_networkx(graph, minutes, cars)
        found[name] = {"time": result.objective, "exact": exact, "net": net, "exact_net": exact_net}
        table.add_row(
            name,
            f"{result.trace['rounds'][-1]:.0f}",
            f"{result.trace['bytes_sent'][-1] / 1e6:.1f}",
            f"{result.objective:.5f}",
            "CVXPY" if jam else "networkx",
            f"{exact:.5f}",
            f"{abs(result.objective - exact):.0e}",
        )
    Console(width=110).print(table)
    off = abs(found["jam"]["net"] - found["jam"]["exact_net"]).max()
    used = {name: int((abs(one["net"]) > 1e-3).sum()) for name, one in found.items()}
    print(f"cars use {used['never jam']} roads if roads never jam, {used['jam']} if they do")
    print(f"no flow is off by more than {off:.0e} where roads jam")
    if options.plot:
        draw(streets, cars, found, options.plot)
        print(f"plot: {options.plot}")
    return found


def draw(streets: nx.Graph, cars: np.ndarray, found: dict[str, dict[str, Any]], path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    place = {i: (at[1], -at[0]) for i, at in streets.nodes(data="at")}
    roads = ew.Graph.from_networkx(streets).edges.tolist()
    for ax, (name, one) in zip(axes, found.items(), strict=True):
        for (i, j), net in zip(roads, one["net"], strict=True):
            a, b = np.array(place[i]), np.array(place[j])
            ax.plot(*np.array([a, b]).T, color="0.85", linewidth=1, zorder=1)
            if abs(net) > 1e-3:
                a, b = (a, b) if net > 0 else (b, a)
                full = abs(net) > CAPACITY - 1e-3
                arrow = {
                    "arrowstyle": "-|>",
                    "linewidth": 1.2 + 1.5 * abs(net),
                    "color": "C3" if full else "C0",
                    "shrinkA": 5,
                    "shrinkB": 5,
                }
                ax.annotate("", b, a, arrowprops=arrow, zorder=2)
        at = np.array([place[i] for i in range(len(cars))])
        ax.scatter(*at.T, s=12, color="0.5", zorder=3)
        for sign, colour, label in ((1, "C2", "cars start"), (-1, "C1", "cars end")):
            some = sign * cars > 0
            ax.scatter(*at[some].T, s=260, color=colour, edgecolors="black", zorder=4, label=label)
            for place_, number in zip(at[some], abs(cars[some]), strict=True):
                ax.annotate(f"{number:.0f}", place_, ha="center", va="center", zorder=5)
        ax.set_title(f"roads {name}: {one['time']:.1f} thousand minutes an hour", fontsize="medium")
        ax.set_axis_off()
    axes[0].plot([], [], color="C0", linewidth=3, label="traffic")
    axes[0].plot([], [], color="C3", linewidth=3, label="road that is full")
    axes[0].plot([], [], color="0.85", label="road without traffic")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=5, fontsize="small", markerscale=0.6)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()

"""House prices by region: every region has its own model, and neighbours pull each other together.

A region has too few sales to fit a model well, and one model for all is wrong. The network lasso
fits a linear model per region and puts a price on the difference of neighbours' models, |x_i - x_j|
and not its square: differences become exactly zero, and regions fall into clusters with one model
each. The larger the weight, the fewer the clusters. Sales set aside choose the weight: the largest
whose error is within 3 % of the least.

Without --data the houses are made up, from three districts. With --data they are California's, in
regions of near-by blocks: a file in LIBSVM's format, `cadata`, that does not come with Edgewise.

    python examples/house_prices.py --plot house_prices.png
"""

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans
from sklearn.neighbors import kneighbors_graph

import edgewise as ew

NEIGHBOURS = 4
WEIGHTS = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6)
SAME = 1e-3  # models whose coefficients differ by less are one
Part = list[tuple[np.ndarray, np.ndarray]]  # (X_i, y_i) of each region


class Houses(NamedTuple):
    place: np.ndarray  # (regions, 2)
    fit: Part
    check: Part  # to choose the weight
    held_out: Part
    district: np.ndarray | None  # the true cluster of each region, where it is known


def made_up(seed: int, regions: int = 36) -> Houses:
    """Prices are linear in income, rooms and age, by one of three models, plus noise."""
    rng = np.random.default_rng(seed)
    place = rng.random((regions, 2))
    turn = np.arctan2(*(place - 0.5).T) % (2 * np.pi)
    district = (3 * turn / (2 * np.pi)).astype(int)
    models = np.array([[2.0, 0.5, -0.5, 3.0], [1.0, 1.5, 0.5, 1.0], [0.3, 0.8, -1.0, 5.0]])
    parts: list[Part] = []
    for sales in (6, 5, 50):
        part = []
        for d in district:
            X = np.column_stack([rng.standard_normal((sales, 3)), np.ones(sales)])
            part.append((X, X @ models[d] + 0.5 * rng.standard_normal(sales)))
        parts.append(part)
    return Houses(place, *parts, district)


def california(path: str, seed: int, regions: int = 100) -> Houses:
    """Blocks in regions by k-means. Of each a tenth is to fit, a twentieth to check."""
    X, y = ew.data.load(path, dense=True)
    income, age, rooms, bedrooms, people, homes, north, east = X.T
    place = np.column_stack([east * np.cos(np.deg2rad(37)), north])
    groups = KMeans(regions, n_init=1, random_state=seed).fit(place)
    columns = [income, age, np.log(rooms / homes), np.log(bedrooms / homes), np.log(people / homes)]
    features = np.column_stack([(c - c.mean()) / c.std() for c in columns] + [np.ones(len(y))])
    rng = np.random.default_rng(seed)
    parts: tuple[Part, Part, Part] = ([], [], [])
    for i in range(regions):
        rows = rng.permutation(np.flatnonzero(groups.labels_ == i))
        ends = np.ceil([0.1 * len(rows), 0.15 * len(rows)]).astype(int)
        for part, some in zip(parts, np.split(rows, ends), strict=True):
            part.append((features[some], y[some] / 1e5))
    return Houses(groups.cluster_centers_, *parts, None)


def near(place: np.ndarray) -> ew.Graph:
    """Each region with its nearest others."""
    links = kneighbors_graph(place, NEIGHBOURS).tocoo()
    return ew.Graph.from_edges(np.column_stack([links.row, links.col]), len(place))


def clusters(models: np.ndarray, graph: ew.Graph) -> np.ndarray:
    """The cluster of each region: neighbours with one model are in the same."""
    i, j = graph.edges.T
    same = abs(models[i] - models[j]).max(1) < SAME
    shape = (graph.nodes, graph.nodes)
    return connected_components(coo_array((same[same], (i[same], j[same])), shape=shape))[1]


def error(models: np.ndarray, part: Part) -> float:
    """Root mean square, over all houses."""
    squares = [(X @ x - y) ** 2 for x, (X, y) in zip(models, part, strict=True)]
    return float(np.sqrt(np.concatenate(squares).mean()))


def by_cvxpy(part: Part, graph: ew.Graph, weight: float) -> float:
    """The least objective, with all data in one place."""
    try:
        import cvxpy as cp
    except ImportError:
        raise SystemExit("this example compares with CVXPY: pip install cvxpy") from None
    total = sum(len(y) for _, y in part)
    models = cp.Variable((graph.nodes, part[0][0].shape[1]))
    loss, rest = 0, 0.0
    for i, (X, y) in enumerate(part):
        Q, R = np.linalg.qr(X)  # |X x - y|² = |R x - Q'y|² + what no x can change
        loss += cp.sum_squares(R @ models[i] - Q.T @ y)
        rest += y @ y - (Q.T @ y) @ (Q.T @ y)
    apart = cp.sum(cp.norm(models[graph.edges[:, 0]] - models[graph.edges[:, 1]], axis=1))
    problem = cp.Problem(cp.Minimize(graph.nodes / total / 2 * (loss + rest) + weight * apart))
    precise = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    problem.solve(solver=cp.CLARABEL, **precise)
    return float(problem.value)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description="House prices by the network lasso.")
    parser.add_argument("--data", metavar="FILE", help="California's houses, in LIBSVM's format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    options = parser.parse_args(arguments)

    houses = california(options.data, options.seed) if options.data else made_up(options.seed)
    graph = near(houses.place)
    problem = ew.Problem(houses.fit, ew.Squared(), weights="sample")
    table = Table("models", "rounds", "objective", "off by", "clusters", "to check", "held out")

    def add(name: str, models: np.ndarray, rounds: str = "", objective: str = "", off: str = ""):
        count = len(set(clusters(models, graph)))
        errors = error(models, houses.check), error(models, houses.held_out)
        table.add_row(name, rounds, objective, off, f"{count}", *(f"{e:.3f}" for e in errors))
        return {"models": models, "clusters": count, "check": errors[0], "held out": errors[1]}

    alone = np.array([np.linalg.lstsq(X, y, rcond=None)[0] for X, y in houses.fit])
    pooled = (np.concatenate(arrays) for arrays in zip(*houses.fit, strict=True))
    one = np.tile(np.linalg.lstsq(*pooled, rcond=None)[0], (graph.nodes, 1))
    found = {"a region alone": add("a region alone", alone)}
    path = {}
    for weight in WEIGHTS:
        between = ew.NetworkLasso(weight)
        result = ew.solve(problem, graph, between=between, tol=1e-7, rounds=50_000)
        assert result.converged, result.message
        exact = by_cvxpy(houses.fit, graph, weight)
        off = abs(result.objective - exact) / exact
        path[weight] = add(
            f"network lasso, {weight:g}",
            np.array(result.X),
            f"{result.trace['rounds'][-1]:.0f}",
            f"{result.objective:.7f}",
            f"{off:.0e}",
        )
        path[weight]["off"] = off
    found["one for all"] = add("one for all", one)
    Console(width=110).print(table)
    least = min(one["check"] for one in path.values())
    best = max(weight for weight, one in path.items() if one["check"] <= 1.03 * least)
    print(f"chosen: weight {best:g}, error {path[best]['held out']:.3f} on houses held out")
    if houses.district is not None:
        truth, got = houses.district, clusters(path[best]["models"], graph)
        mixed = sum(len(set(truth[got == cluster])) > 1 for cluster in set(got))
        print(f"{path[best]['clusters']} clusters; {mixed} of them mix the three true districts")
        found["mixed"] = mixed
    if options.plot:
        draw(houses, graph, found, path, best, options.plot)
        print(f"plot: {options.plot}")
    return {**found, "path": path, "best": best}


def draw(houses: Houses, graph: ew.Graph, found: dict, path: dict, best: float, file: str) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    of = clusters(path[best]["models"], graph)
    large = [c for c in np.argsort(-np.bincount(of)) if (of == c).sum() > 1][:9]
    for i, j in graph.edges:
        cut = of[i] != of[j]
        style = {"color": "0.75", "linestyle": ":"} if cut else {"color": "0.4"}
        left.plot(*houses.place[[i, j]].T, linewidth=1, zorder=1, **style)
    colours = np.array([f"C{large.index(c)}" if c in large else "white" for c in of])
    for shape, district in zip("osD", range(3), strict=True):
        some = np.full(len(of), district == 0)
        if houses.district is not None:
            some = houses.district == district
        at = houses.place[some].T
        left.scatter(*at, c=colours[some], marker=shape, s=70, edgecolors="black", zorder=2)
    alike = "" if houses.district is None else ", shape: true district"
    left.set_title(f"weight {best:g}: colour: one model (white: on its own){alike}", fontsize=9)
    left.set_axis_off()
    weights = list(path)
    right.plot(weights, [path[w]["held out"] for w in weights], "o-", label="network lasso")
    for name, colour in (("a region alone", "C1"), ("one for all", "C2")):
        value = found[name]["held out"]
        right.axhline(value, color=colour, label=f"{name}: {value:.2f}")
    for w in weights:
        right.annotate(
            f"{path[w]['clusters']}",
            (w, path[w]["held out"]),
            (0, 7),
            textcoords="offset points",
            ha="center",
        )
    right.axvline(best, color="0.7", linestyle=":", zorder=0)
    right.set(xscale="log", xlabel="weight", ylabel="error on houses held out")
    highest = max(found["one for all"]["held out"], *(path[w]["held out"] for w in weights))
    right.set_ylim(0, 1.1 * highest)
    right.set_title("numbers: how many clusters", fontsize=9)
    right.legend(fontsize="small")
    figure.savefig(file, dpi=100)


if __name__ == "__main__":
    main()

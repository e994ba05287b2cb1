"""Couplings: rounds with weights that are matched on the way, against one weight for all edges.

    python benchmarks/couplings.py           a table, some 10 minutes
    python benchmarks/couplings.py --quick   a problem of each kind

The weights' constants (methods/edge_matching.py) were chosen on the tests' problems and on the
examples with seed 0. None of these is here: problems are drawn anew, or are the examples with other
seeds. "best fixed" is the best of a grid of eleven weights, a factor of four apart, by pdmm or
d-admm: nobody knows it ahead. "typical" is the median of the five around it. A run counts until its
residual is 1e-6 or below; one that has not got there after 5,000 rounds is not there.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

import edgewise as ew

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import house_prices
import transport

TOL, MOST, EVERY = 1e-6, 5000, 10
GRID = 4.0 ** np.arange(-5, 6)
NEAR = 2  # places of the grid
FIXED = ("pdmm", "d-admm")  # whole reflections, and half ones, where weights stay
Setting = tuple[ew.Problem, ew.Graph, Any]


def rows(seed: int, data: bool) -> Setting:
    """Nodes of two to six unknowns; rows of both senses that a known point obeys."""
    rng = np.random.default_rng(seed)
    graph = ew.Graph.random(20, 40, seed=seed)
    sizes = rng.integers(2, 7, 20)
    known = [rng.standard_normal(n) for n in sizes]
    between = {}
    for i, j in graph.edges.tolist():
        m = int(rng.integers(1, 3))
        A, B = rng.standard_normal((m, sizes[i])), rng.standard_normal((m, sizes[j]))
        c = A @ known[i] + B @ known[j]
        sense = "=" if rng.random() < 0.3 else "<="
        between[i, j] = ew.Coupling(A, B, c if sense == "=" else c + 0.2 * rng.random(m), sense)
    if not data:
        costs = [ew.Quadratic(10 ** rng.uniform(-1, 1, n), rng.standard_normal(n)) for n in sizes]
        return ew.Problem(cost=costs, penalty=ew.L1(0.05)), graph, between
    shards = [
        (X := rng.standard_normal((30, n)), np.sign(X[:, 0] + rng.standard_normal(30)))
        for n in sizes
    ]
    return ew.Problem(shards, ew.Logistic(ridge=0.01)), graph, between


def lasso(seed: int) -> Setting:
    houses = house_prices.made_up(seed)
    graph = house_prices.near(houses.place)
    return ew.Problem(houses.fit, ew.Squared()), graph, ew.NetworkLasso(0.2)


def shared(seed: int) -> Setting:
    """Mixed models: half of the coordinates are everybody's."""
    rng = np.random.default_rng(seed)
    graph, shards = ew.Graph.ring(12), []
    common = rng.standard_normal(5)
    for _ in range(12):
        X = rng.standard_normal((25, 10)) * 10 ** rng.uniform(-1, 1, 10)
        own = np.r_[common, rng.standard_normal(5)]
        shards.append((X, X @ own + 0.1 * rng.standard_normal(25)))
    return ew.Problem(shards, ew.Squared(ridge=1e-3)), graph, ew.Shared(slice(0, 5))


def town(seed: int, jam: float) -> Setting:
    streets, minutes, cars = transport.town(seed)
    graph = ew.Graph.from_networkx(streets)
    problem, between = transport.build(graph, minutes, cars, jam)
    return problem, graph, between


SETTINGS = {
    "rows, costs, 1": lambda: rows(11, False),
    "rows, costs, 2": lambda: rows(12, False),
    "rows, logistic, 1": lambda: rows(21, True),
    "rows, logistic, 2": lambda: rows(22, True),
    "network lasso, 1": lambda: lasso(31),
    "network lasso, 2": lambda: lasso(32),
    "shared, ring, 1": lambda: shared(41),
    "shared, ring, 2": lambda: shared(42),
    "transport, jams, 1": lambda: town(51, 2.0),
    "transport, jams, 2": lambda: town(52, 2.0),
    "transport, linear, 1": lambda: town(53, 0.0),
    "transport, linear, 2": lambda: town(54, 0.0),
}


def rounds(setting: Setting, **options: Any) -> float:
    """Until the residual stays small; inf where it does not get there."""
    problem, graph, between = setting
    trace = ew.solve(
        problem,
        graph,
        between=between,
        tol=TOL,
        rounds=MOST,
        record_every=EVERY,
        reference=False,
        **options,
    ).trace
    return float(trace["rounds"][-1]) if trace["residual"][-1] <= TOL else np.inf


def said(number: float) -> str:
    return f"{number:,.0f}" if np.isfinite(number) else f"not in {MOST:,}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a problem of each kind")
    names = [n for n in SETTINGS if not parser.parse_args().quick or n.endswith("1")]
    found = []
    for name in track(names, "solving", transient=True):
        setting = SETTINGS[name]()
        fixed = np.array(
            [min(rounds(setting, method=m, rho=float(rho)) for m in FIXED) for rho in GRID]
        )
        best = int(np.argmin(fixed))
        near = np.median(fixed[max(best - NEAR, 0) : best + NEAR + 1])
        lossy = rounds(setting, faults=ew.Faults(drop=0.2))
        found.append((name, rounds(setting), lossy, fixed[best], GRID[best], near))
    print("| problem | matched | with 20 % lost | best fixed (rho) | typical fixed |")
    print("|---|---|---|---|---|")
    for name, auto, lossy, best_of, rho, near in found:
        fixed = f"{said(best_of)} ({rho:.3g}) | {said(near)}"
        print(f"| {name} | {said(auto)} | {said(lossy)} | {fixed} |")
    ratios = [auto / best_of for _, auto, _, best_of, _, _ in found if np.isfinite(best_of)]
    print(f"\nmatched / best fixed: median {np.median(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()

"""Has anything become slower? A few ratios, against those that were committed.

    python benchmarks/guard.py           measure and compare (what `make bench` does)
    python benchmarks/guard.py --save    measure and make these the ones to compare with

Times differ from machine to machine and from hour to hour; ratios of two things measured in turn
differ less. Every ratio is cost over cost, so more is worse; each is the median of a few. One that
exceeds the committed one by more than half is said to be slower: run it again before believing it.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import first_call
import numpy as np
import scipy.sparse as sp
from iteration import RIDGE, build, floor
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits
from transcriptions import SEGA, seconds_per_round

import edgewise as ew

COMMITTED = Path(__file__).with_name("ratios.json")
SLOWER = 1.5
REPEAT = 3


def per_round(problem: ew.Problem, graph: ew.Graph, method: object, rounds: int, **more) -> float:
    """Seconds, of the best of three stretches after the first."""
    result = ew.solve(
        problem, graph, method, rounds=4 * rounds, record_every=rounds, reference=False, **more
    )
    return float(np.diff(result.trace["seconds"])[1:].min() / rounds)


def paper() -> dict[str, float]:
    """V = 50, E = 250, n = 2000; fewer samples than the paper's, as they do not matter here."""
    problem, graph = build(50, 250, 400, 2000)
    edge = ew.PrimalDual(ew.SAGA(), form="edge")
    saga, svr = (per_round(problem, graph, name, 300) for name in ("saga-pd", "svr-pd"))
    bound, literal = floor(problem), seconds_per_round(problem, graph, 10)
    X = problem.shards.X
    start = time.perf_counter()
    for _ in range(3):
        X.T @ (X @ np.ones(X.shape[1]))
    two_passes = (time.perf_counter() - start) / 3
    lossy = per_round(problem, graph, edge, 100, faults=ew.Faults(drop=0.05))
    by_edge = per_round(problem, graph, edge, 200)
    return {
        "saga-pd / memory floor": saga / bound,
        "svr-pd / memory floor": svr / bound,
        "saga-pd / literal NumPy": saga / literal,
        "edge form / node form": by_edge / saga,
        "messages lost / none": lossy / by_edge,
        "pd / two BLAS passes": per_round(problem, graph, "pd", 5) / two_passes,
        "gt-saga / saga-pd": per_round(problem, graph, "gt-saga", 200) / saga,
    }


def small() -> dict[str, float]:
    problem, graph = build(10, 20, 100, 30)
    literal = seconds_per_round(problem, graph, 300)
    sketched = seconds_per_round(problem, graph, 300, SEGA)
    return {
        "saga-pd / literal NumPy, n = 30": per_round(problem, graph, "saga-pd", 30_000) / literal,
        "sk-pd / literal NumPy, n = 30": per_round(problem, graph, "sk-pd", 10_000) / sketched,
    }


def many_nodes() -> dict[str, float]:
    def of(V: int) -> float:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((V * 20, 50))
        shards = [(X[20 * i : 20 * i + 20], np.sign(X[20 * i : 20 * i + 20, 0])) for i in range(V)]
        problem = ew.Problem(shards, ew.Logistic(ridge=RIDGE))
        return per_round(problem, ew.Graph.random(V, 3 * V), "svr-pd", 40) / V

    return {"a node of 10,000 / of 1,000": of(10_000) / of(1_000)}


def sparse() -> dict[str, float]:
    rng = np.random.default_rng(0)

    def of(n: int) -> float:
        X = sp.random_array((4000, n), density=75 / n, format="csr", rng=rng)
        y = np.sign(rng.standard_normal(4000))
        shards = ew.split(X, y, nodes=20)
        problem = ew.Problem(shards, ew.Logistic(ridge=RIDGE), penalty=ew.L1(1e-4))
        return per_round(problem, ew.Graph.random(20, 50), "saga-pd", 40)

    return {"47,236 columns / 23,618, as sparse": of(47_236) / of(23_618)}


def couplings() -> dict[str, float]:
    """Equality as couplings, against consensus; and two long models among short ones."""
    rng = np.random.default_rng(0)
    shards = [(X := rng.standard_normal((100, 30)), X.sum(1)) for _ in range(10)]
    problem, graph = ew.Problem(shards, ew.Squared(ridge=RIDGE)), ew.Graph.random(10, 20, seed=0)
    plain = per_round(problem, graph, "pdmm", 300)

    def of(long: int) -> float:
        sizes = [long, long, *[2] * 198]
        costs = [ew.Quadratic(1.0 + rng.random(n), rng.standard_normal(n)) for n in sizes]
        few = ew.Graph.random(200, 400, seed=0)
        between = {
            (i, j): ew.Coupling(np.ones((1, sizes[i])), np.ones((1, sizes[j])))
            for i, j in few.edges.tolist()
        }
        lasso = ew.Problem(cost=costs, penalty=ew.L1(0.01))
        return per_round(lasso, few, "pdmm", 100, between=between)

    return {
        "pdmm / pd": plain / per_round(problem, graph, "pd", 300),
        "pdmm, between=Coupling() / pdmm": per_round(
            problem, graph, "pdmm", 300, between=ew.Coupling()
        )
        / plain,
        "two models of 50 among 200 of 2 / none": of(50) / of(2),
    }


def answers() -> dict[str, float]:
    """The default, to a residual of 1e-6: its rounds beside a centralised fit, and its bytes."""
    X, y = ew.data.dataset("breast_cancer")
    X = scale(X)
    shards = ew.split(X, y, nodes=10, how="label", seed=0)
    problem = ew.Problem(shards, ew.Logistic(ridge=RIDGE), weights="sample")
    graph, central = ew.Graph.random(10, 20, seed=0), []
    for _ in range(20):
        fit = LogisticRegression(C=1 / (RIDGE * len(y)), fit_intercept=False, tol=1e-8)
        with threadpool_limits(1):  # waiting for each other takes its threads longer than the fit
            start = time.perf_counter()
            fit.fit(X, y)
            central.append(time.perf_counter() - start)

    def cost(column: str, **more: Any) -> float:
        result = ew.solve(problem, graph, tol=1e-6, rounds=2000, reference=False, **more)
        if not result.converged:
            return np.inf
        return float(result.trace[column][-1])

    seconds = min(cost("seconds") for _ in range(3))
    eight = cost("bytes_sent", faults=ew.Faults(bits=8))
    return {
        "auto to 1e-6 / scikit-learn's lbfgs": seconds / min(central),
        "bytes of auto to 1e-6, 8 bits / whole": eight / cost("bytes_sent"),
    }


def measured() -> dict[str, float]:
    parts: list[Callable[[], dict[str, float]]] = [
        paper,
        small,
        many_nodes,
        sparse,
        couplings,
        answers,
        first_call.guarded,
    ]
    found: dict[str, list[float]] = {}
    turns = [part for _ in range(REPEAT) for part in parts]
    for part in track(turns, "measuring", console=Console(stderr=True), transient=True):
        for name, ratio in part().items():
            found.setdefault(name, []).append(ratio)
    return {name: float(np.median(each)) for name, each in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", action="store_true", help="compare with these from now on")
    options = parser.parse_args()
    os.environ["EDGEWISE_NUMPY"] = "0"  # rounds as they are once compiled, of small problems too
    now = measured()
    if options.save:
        COMMITTED.write_text(json.dumps({k: round(v, 4) for k, v in now.items()}, indent=2) + "\n")
    before = json.loads(COMMITTED.read_text())
    table = Table("cost / cost", "committed", "now", "now / then", "")
    slower = []
    for name in {**before, **now}:
        then, here = before.get(name, np.nan), now.get(name, np.nan)
        worse = here > SLOWER * then
        slower += [name] if worse else []
        remark = "[red]slower[/]" if worse else "new" if name not in before else ""
        table.add_row(name, f"{then:.3g}", f"{here:.3g}", f"{here / then:.2f}", remark)
    console = Console()
    console.print(table)
    console.print(f"slower: {', '.join(slower)}" if slower else "nothing got slower")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())

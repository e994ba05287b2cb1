"""What a grid of steps costs, against one run: 36 cells of SAGA-PD, 2,000 iterations each.

    python benchmarks/tuning.py               the table
    python benchmarks/tuning.py --plot FILE   a picture of the grid

V=20, n=200, K=500. Both are timed without compiling, in the same process; the ratio counts.
"""

import sys
import time

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew
from edgewise.engines.simulator import Simulator
from edgewise.methods.catalogue import make
from edgewise.running.measures import target_of
from edgewise.study.sweep import Sweep
from edgewise.study.tune import FACTORS, LOOKS, Search

V, E, N, K, ROUNDS, REPEATS = 20, 50, 200, 500, 2000, 5


def seconds_of(f) -> float:
    """The best of some repetitions, after one that compiles."""
    f()
    best = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    X, y = ew.data.epsilon_like(rows=V * K, features=N)
    problem = ew.Problem(ew.split(X, y, nodes=V), loss=ew.Logistic(ridge=1e-2))
    graph = ew.Graph.random(V, E, seed=0)
    star = ew.reference(problem)
    table = Table(title=f"V={V} n={N} K={K}, {ROUNDS} iterations")
    for column in (
        "method",
        "cells",
        "one run, ms",
        "all cells, ms",
        "ratio",
        "and looking at them",
    ):
        table.add_column(column, justify="right")
    kind, origin = np.dtype("float64"), np.zeros((V, N))
    with jax.enable_x64(True):
        target = target_of(star)
        for name in ("saga-pd", "svr-pd", "lsvr-pd", "svr-pd-es"):
            method = make(name)
            search = Search(problem, graph, method, None)
            cells = [search.cell((a, b)) for a in FACTORS for b in FACTORS]
            single = Simulator(problem, graph, method, 0, kind)

            def one(single=single) -> None:
                single.advance(single.start(origin, None), 0, ROUNDS)

            sweep = Sweep(problem, graph, cells, 0, kind)

            def grid(looks: int, sweep=sweep) -> None:
                sweep.start(origin)
                for _ in range(looks):
                    sweep.advance(ROUNDS // looks)
                    if looks > 1:
                        sweep.divergences(target)

            alone, all_of_them = seconds_of(one), seconds_of(lambda: grid(1))
            looked = seconds_of(lambda: grid(LOOKS))
            table.add_row(
                name,
                str(len(cells)),
                f"{1e3 * alone:.1f}",
                f"{1e3 * all_of_them:.0f}",
                f"{all_of_them / alone:.1f}",
                f"{looked / alone:.1f}",
            )
    Console().print(table)
    if len(sys.argv) == 3 and sys.argv[1] == "--plot":
        tuned = ew.tune(problem, graph, "saga-pd", reference=star)
        tuned.plot(path=sys.argv[2])
        print(tuned.message)


if __name__ == "__main__":
    main()

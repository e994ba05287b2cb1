"""From a thousand nodes to a hundred thousand: does a round cost the same per node?

    python benchmarks/many_nodes.py             V = 1e3, 1e4, 1e5; 3 V edges, n = 50, K = 20
    python benchmarks/many_nodes.py --million   V = 1e6, n = 10, K = 5
    python benchmarks/many_nodes.py --reference and what the centralised optimum takes

Every row is a process of its own, so that its peak memory is its own. "start" is all that `solve`
does besides rounds until the second row of the trace is there: steps, the first pass over all data,
compiling, measuring twice. "x linear" is the time per node over that of the first row.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew
from edgewise.data.shards import aligned_empty

METHODS = ("saga-pd", "svr-pd", "lsvr-pd")
SIZES = ((1_000, 50, 20), (10_000, 50, 20), (100_000, 50, 20))
MILLION = ((1_000_000, 10, 5),)
UPDATES = 1_000_000  # of nodes, in each of three stretches
HEADINGS = (
    ("V", "{:,.0f}"),
    ("graph s", "{:.1f}"),
    ("problem s", "{:.1f}"),
    ("start s", "{:.1f}"),
    ("ms per round", "{:.2f}"),
    ("us per node and round", "{:.3f}"),
    ("x linear", "{:.2f}"),
    ("measuring s", "{:.2f}"),
    ("reference s", "{:.1f}"),
    ("peak GB", "{:.2f}"),
)


def measure(method: str, V: int, n: int, K: int, reference: bool) -> dict[str, float]:
    marks = [time.perf_counter()]
    graph = ew.Graph.random(V, 3 * V, seed=0)
    marks.append(time.perf_counter())
    shards, dealing = draw(V, n, K)
    marks.append(time.perf_counter())
    problem = ew.Problem(shards, loss=ew.Logistic(ridge=1e-2), penalty=ew.L1(1e-4))
    marks.append(time.perf_counter())
    if reference:
        ew.reference(problem)
    marks.append(time.perf_counter())
    rounds = max(2 * K + 2, UPDATES // V)  # svr-pd's longest epoch, and its full pass
    looks: list[float] = []
    result = ew.solve(
        problem,
        graph,
        method,
        rounds=1 + 3 * rounds,
        record_every=rounds,
        reference=reference,
        callback=lambda row: looks.append(time.perf_counter()),
    )
    seconds = result.trace["seconds"]
    per_round = float(np.diff(seconds)[1:3].min()) / rounds
    idle = np.diff(looks)[1:3].min() - rounds * per_round
    return {
        "V": V,
        "graph s": marks[1] - marks[0],
        "problem s": dealing + marks[3] - marks[2],
        "start s": looks[1] - marks[4] - float(seconds[1] - seconds[0]),
        "ms per round": 1e3 * per_round,
        "us per node and round": 1e6 * per_round / V,
        "measuring s": float(idle),
        "reference s": marks[4] - marks[3] if reference else float("nan"),
        "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def draw(V: int, n: int, K: int) -> tuple[ew.Shards, float]:
    """Rows of unit norm, labels by a model of which a tenth are wrong; and the seconds that
    `Shards` took of that."""
    rng = np.random.default_rng(0)
    X = aligned_empty((V * K, n), np.float64)
    rng.standard_normal(out=X)
    X /= np.linalg.norm(X, axis=1)[:, None]
    y = np.where(rng.random(V * K) < 0.1, -1.0, 1.0) * np.sign(X @ rng.standard_normal(n))
    start = time.perf_counter()
    return ew.Shards(X, y, np.full(V, K)), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*json.loads(options.one), options.reference)))
        return
    for method in options.methods:
        table = Table(title=method, title_justify="left")
        for heading, _ in HEADINGS:
            table.add_column(heading, justify="right")
        base = None
        for size in MILLION if options.million else SIZES:
            command = [sys.executable, __file__, "--one", json.dumps([method, *size])]
            command += ["--reference"] * options.reference
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            row = json.loads(said.splitlines()[-1])
            base = base or row["us per node and round"]
            row["x linear"] = row["us per node and round"] / base
            table.add_row(*(form.format(row[heading]) for heading, form in HEADINGS))
        Console(width=120).print(table)


if __name__ == "__main__":
    main()

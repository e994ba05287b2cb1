"""From a thousand nodes to a hundred thousand: does a round cost the same per node?

    python benchmarks/many_nodes.py             V = 1e3, 1e4, 1e5; 3 V edges, n = 50, K = 20
    python benchmarks/many_nodes.py --million   V = 1e6, n = 10, K = 5
    python benchmarks/many_nodes.py --reference and what the centralised optimum takes
    python benchmarks/many_nodes.py --plain     compiled rounds beside XLA's (EDGEWISE_NATIVE=0)

Every row is a process of its own, so that its peak memory is its own. "start" is all that `solve`
does besides rounds until the second row of the trace is there: steps, the first pass over all data,
compiling, measuring twice. "x linear" is the time per node over that of the first row. "--plain"
has both kinds of rounds in one process, in turn, and nothing else: elapsed time and all threads'
CPU time, the least of seven stretches each.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew
from edgewise.data.shards import aligned_empty
from edgewise.engines import native
from edgewise.methods.catalogue import make

METHODS = ("saga-pd", "svr-pd", "lsvr-pd")
SIZES = ((1_000, 50, 20), (10_000, 50, 20), (100_000, 50, 20))
MILLION = ((1_000_000, 10, 5),)
BESIDE = ((100_000, 10, 5), (100_000, 50, 20))  # smaller ones are XLA's
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
BOTH = (
    ("V", "{:,.0f}"),
    ("n", "{:,.0f}"),
    ("ms per round", "{:.2f}"),
    ("plain ms", "{:.2f}"),
    ("times as fast", "{:.1f}"),
    ("CPU ms", "{:.2f}"),
    ("plain CPU ms", "{:.2f}"),
)
STRETCHES = 7


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


def beside_plain(method: str, V: int, n: int, K: int) -> dict[str, float]:
    graph = ew.Graph.random(V, 3 * V, seed=0)
    problem = ew.Problem(draw(V, n, K)[0], loss=ew.Logistic(ridge=1e-2), penalty=ew.L1(1e-4))
    rounds, runs, least = max(12, UPDATES // V), [], np.full((2, 2), np.inf)
    with jax.enable_x64(True):
        for switch in ("1", "0"):
            os.environ["EDGEWISE_NATIVE"] = switch
            runner = native.simulator(problem, graph, make(method), 0, np.dtype(np.float64))
            runs.append([runner, runner.start(runner.origin(), None)])
        if type(runs[0][0]) is type(runs[1][0]):
            raise SystemExit(f"no compiled rounds for {V} nodes of {n} unknowns here")
        for stretch in range(1 + STRETCHES):  # the first compiles
            for k, run in enumerate(runs):
                before = time.process_time()
                run[1], seconds = run[0].advance(run[1], stretch * rounds, rounds)
                spent = seconds, time.process_time() - before
                if stretch:
                    least[k] = np.minimum(least[k], 1e3 * np.array(spent) / rounds)
    (ours, cpu), (plain, plain_cpu) = least
    return {
        "V": V,
        "n": n,
        "ms per round": ours,
        "plain ms": plain,
        "times as fast": plain / ours,
        "CPU ms": cpu,
        "plain CPU ms": plain_cpu,
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
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        row = json.loads(options.one)
        print(json.dumps(beside_plain(*row) if options.plain else measure(*row, options.reference)))
        return
    headings = BOTH if options.plain else HEADINGS
    for method in options.methods:
        table = Table(title=method, title_justify="left")
        for heading, _ in headings:
            table.add_column(heading, justify="right")
        base = None
        for size in MILLION if options.million else BESIDE if options.plain else SIZES:
            command = [sys.executable, __file__, "--one", json.dumps([method, *size])]
            command += ["--reference"] * options.reference + ["--plain"] * options.plain
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            row = json.loads(said.splitlines()[-1])
            if not options.plain:
                base = base or row["us per node and round"]
                row["x linear"] = row["us per node and round"] / base
            table.add_row(*(form.format(row[heading]) for heading, form in headings))
        Console(width=120).print(table)


if __name__ == "__main__":
    main()

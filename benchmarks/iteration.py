"""Time per iteration against literal NumPy transcriptions and against what memory allows.

    python benchmarks/iteration.py                 the paper's size: V=50, E=250, K=2000, n=2000
    python benchmarks/iteration.py --size small    V=10, n=30
    python benchmarks/iteration.py --size large    K=8000, 6.4 GB of data: resident memory
    python benchmarks/iteration.py --threads 1     one thread each, by CPU time

Every method is measured against its own transcription, stretches of the one and of the other in
turn, so that a busy machine is as busy for both; medians are compared. What counts are the ratios:
machines differ. Two threads share a round's columns, so where no two cores are idle the last column
of --threads 1 tells what they would take, but for waiting for each other: the time of half the
columns, on one.
"""

import argparse
import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np
import transcriptions
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import edgewise as ew
from edgewise.data.synthetic import fill_epsilon_like
from edgewise.engines import native
from edgewise.methods.catalogue import make

SIZES = {
    "paper": {"V": 50, "E": 250, "K": 2000, "n": 2000},
    "small": {"V": 10, "E": 20, "K": 100, "n": 30},
    "large": {"V": 50, "E": 250, "K": 8000, "n": 2000},
}
ROUNDS = {"paper": 500, "small": 5000, "large": 200}  # of ours in a stretch
LITERAL_ROUNDS = {"paper": 8, "small": 200, "large": 4}
RIDGE = 1.4e-3
EDGE = ew.PrimalDual(ew.SAGA(), form="edge")
METHODS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "saga-pd": ("saga-pd", transcriptions.SAGA),
    "svr-pd": ("svr-pd", transcriptions.SAGA),  # but for full passes one does what the other does
    "lsvr-pd": ("lsvr-pd", transcriptions.LSVRG),
    "asvr-pd": ("asvr-pd", transcriptions.ASVRG),
    "saga-pd, edge": (EDGE, transcriptions.SAGA),
    "sk-pd": ("sk-pd", transcriptions.SEGA),
    "sk-pd-fd": ("sk-pd-fd", transcriptions.SEGAOfValues),
}
OF_ALL_DATA = ("sk-pd", "sk-pd-fd")  # in every round: these take fewer


def build(V: int, E: int, K: int, n: int) -> tuple[ew.Problem, ew.Graph]:
    shards = ew.Shards.build(
        np.full(V, K), n, lambda i, X, y: fill_epsilon_like(X, y, start=i * K, seed=0)
    )
    return ew.Problem(shards, loss=ew.Logistic(ridge=RIDGE)), ew.Graph.random(V, E, seed=0)


class Times(NamedTuple):
    """Seconds a round, of every stretch."""

    ours: np.ndarray
    literal: np.ndarray
    half: np.ndarray  # ours on half the columns; or nothing


class Ours:
    """As an engine advances, samples drawn included; nothing is evaluated between."""

    def __init__(self, problem: ew.Problem, graph: ew.Graph, method: Any) -> None:
        self.engine = native.simulator(problem, graph, make(method), 0, np.dtype(np.float64))
        self.carry, self.done = self.engine.start(self.engine.origin(), None), 0

    def run(self, rounds: int) -> None:
        self.carry, _ = self.engine.advance(self.carry, self.done, rounds)
        self.done += rounds


def measure(
    problems: list[ew.Problem],
    graph: ew.Graph,
    name: str,
    rounds: int,
    literal_rounds: int,
    stretches: int,
    clock: Callable[[], float],
) -> Times:
    method, kind = METHODS[name]
    times: list[list[float]] = [[], [], []]
    with jax.enable_x64(True):
        whole, *half = (Ours(problem, graph, method) for problem in problems)
        runs = [(whole, rounds), (transcriptions.Network(problems[0], graph, kind), literal_rounds)]
        runs += [(half[0], rounds)] if half else []
        for run, many in runs:
            run.run(many)
            run.run(many)
        for _ in range(stretches):
            for (run, many), into in zip(runs, times, strict=False):
                start = clock()
                run.run(many)
                into.append((clock() - start) / many)
    return Times(*map(np.array, times))


def floor(problem: ew.Problem, repeat: int = 300) -> float:
    """Seconds to move what one SAGA-PD round must, by all cores at once: X, S, R and the mean read
    and written, and a random row per node read from where it lies. Each core has its share of the
    nodes, and no other work."""
    cores = min(os.cpu_count() or 1, problem.nodes)
    data, n = problem.shards.X, problem.size

    def share(k: int) -> float:
        own = len(range(k, problem.nodes, cores))
        at = np.random.default_rng(k).integers(0, len(data), (repeat, own))
        state, rows = np.zeros((4, own, n)), np.empty((own, n), data.dtype)
        copy = np.empty_like(state)
        times = []
        for picked in at:
            start = time.perf_counter()
            np.copyto(copy, state)
            np.take(data, picked, 0, out=rows, mode="clip")
            times.append(time.perf_counter() - start)
        return float(np.median(times))

    with ThreadPoolExecutor(cores) as pool:
        return max(pool.map(share, range(cores)))


def resident_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="paper")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--stretches", type=int, default=9)
    parser.add_argument("--threads", type=int, choices=[1], help="1: and CPU time, not wall time")
    options = parser.parse_args()
    clock = time.perf_counter
    if options.threads == 1:
        from edgewise.engines.native import rounds as compiled_rounds

        clock = time.process_time
        compiled_rounds.SPARE_CORES = compiled_rounds.Cores(0)

    size = SIZES[options.size]
    problem, graph = build(**size)
    problems = [problem]
    if options.threads == 1 and options.size == "paper":
        problems.append(build(**size | {"n": size["n"] // 2})[0])
    bound = floor(problem)
    table = Table(title=", ".join(f"{k}={v}" for k, v in size.items()), title_justify="left")
    headings = (
        "",
        "us",
        "literal us",
        "x literal",
        "least",
        "most",
        "x floor",
        "us, passes in",
        "us, half",
    )
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name in options.methods:
        fewer = 20 if name in OF_ALL_DATA and options.size != "small" else 1
        rounds = [max(2, many[options.size] // fewer) for many in (ROUNDS, LITERAL_ROUNDS)]
        with threadpool_limits(options.threads):
            found = measure(problems, graph, name, *rounds, options.stretches, clock)
        each, ours = found.literal / found.ours, float(np.median(found.ours))
        theirs = float(np.median(found.literal))
        table.add_row(
            name,
            f"{1e6 * ours:.1f}",
            f"{1e6 * theirs:.0f}",
            f"{theirs / ours:.1f}",
            f"{each.min():.1f}",
            f"{each.max():.1f}",
            f"{ours / bound:.2f}",
            f"{1e6 * found.ours.mean():.1f}",
            f"{1e6 * np.median(found.half):.1f}" if len(found.half) else "",
        )
    table.add_row("memory floor", f"{1e6 * bound:.1f}", *[""] * 4, "1.00")
    console = Console(width=120)
    console.print(table)
    data = problem.shards.X.nbytes / 2**30
    console.print(f"data {data:.2f} GB, peak resident memory {resident_gigabytes():.2f} GB")


if __name__ == "__main__":
    main()

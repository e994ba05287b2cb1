"""Time per iteration against literal NumPy transcriptions and against what memory allows.

    python benchmarks/iteration.py                 the paper's size: V=50, E=250, K=2000, n=2000
    python benchmarks/iteration.py --size small    V=10, n=30: iterations per second
    python benchmarks/iteration.py --size large    K=8000, 6.4 GB of data: resident memory

Everything is measured in one run, and what counts are the ratios: machines differ.
"""

import argparse
import os
import resource
import time
from concurrent.futures import ThreadPoolExecutor

import literal
import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew
from edgewise.data.synthetic import fill_epsilon_like

SIZES = {
    "paper": {"V": 50, "E": 250, "K": 2000, "n": 2000},
    "small": {"V": 10, "E": 20, "K": 100, "n": 30},
    "large": {"V": 50, "E": 250, "K": 8000, "n": 2000},
}
RIDGE = 1.4e-3


def build(V: int, E: int, K: int, n: int) -> tuple[ew.Problem, ew.Graph]:
    shards = ew.Shards.build(
        np.full(V, K), n, lambda i, X, y: fill_epsilon_like(X, y, start=i * K, seed=0)
    )
    return ew.Problem(shards, loss=ew.Logistic(ridge=RIDGE)), ew.Graph.random(V, E, seed=0)


def ours(problem: ew.Problem, graph: ew.Graph, method: object, rounds: int) -> tuple[float, float]:
    """Seconds per round: of the fastest stretch, which for svr-pd has no full pass in it, and of
    the four stretches after the first together, with the full passes that fell into them."""
    result = ew.solve(
        problem, graph, method, rounds=5 * rounds, record_every=rounds, reference=False
    )
    seconds = result.trace["seconds"]
    fastest = np.diff(seconds).min() / rounds
    return float(fastest), float((seconds[-1] - seconds[1]) / (4 * rounds))


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
    parser.add_argument("--rounds", type=int, help="rounds timed per method")
    options = parser.parse_args()
    size = SIZES[options.size]
    rounds = options.rounds or {"paper": 500, "small": 200_000, "large": 200}[options.size]

    problem, graph = build(**size)
    few = max(3, rounds // 50 if options.size != "small" else 500)
    bound = floor(problem)
    table = Table(title=", ".join(f"{k}={v}" for k, v in size.items()), title_justify="left")
    headings = ("", "us", "x literal", "x floor", "per second", "us, passes in")
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)

    def row(name: str, seconds: float, with_passes: float = 0.0, base: float = 0.0) -> None:
        table.add_row(
            name,
            f"{1e6 * seconds:.1f}",
            f"{base / seconds:.1f}" if base else "",
            f"{seconds / bound:.2f}",
            f"{1 / seconds:,.0f}",
            f"{1e6 * (with_passes or seconds):.1f}",
        )

    edge = ew.PrimalDual(ew.SAGA(), form="edge")
    methods = {
        "saga-pd": ("saga-pd", literal.SAGA),
        "svr-pd": ("svr-pd", literal.SAGA),  # but for full passes one does what the other does
        "lsvr-pd": ("lsvr-pd", literal.LSVRG),
        "asvr-pd": ("asvr-pd", literal.ASVRG),
        "saga-pd, edge": (edge, literal.SAGA),
    }
    if options.size == "small":  # a round is a pass over the data, which memory is the bound of
        methods["sk-pd"] = ("sk-pd", literal.SEGA)
        methods["sk-pd-fd"] = ("sk-pd-fd", literal.SEGAOfValues)
    for name, (method, kind) in methods.items():
        times = ours(problem, graph, method, rounds)
        base = literal.seconds_per_round(problem, graph, few, kind)
        row(name, *times, base)
        row(f"{name}, literal", base)
    row("memory floor", bound)
    console = Console(width=120)
    console.print(table)
    data = problem.shards.X.nbytes / 2**30
    console.print(f"data {data:.2f} GB, peak resident memory {resident_gigabytes():.2f} GB")


if __name__ == "__main__":
    main()

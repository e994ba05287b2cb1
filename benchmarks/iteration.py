"""Time per iteration against a literal NumPy transcription and against what memory allows.

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


def literal_saga(problem: ew.Problem, graph: ew.Graph, rounds: int) -> float:
    """Seconds per round of SAGA-PD as printed: a dual per directed edge, node by node."""
    V, n = problem.nodes, problem.size
    rng = np.random.default_rng(0)
    eta, rho = 1.0, 0.2
    neighbours = [graph.neighbours(i) for i in range(V)]
    data = [problem.shards[i][0] for i in range(V)]
    labels = [problem.labels[problem.own(i)] for i in range(V)]
    x = np.zeros((V, n))
    dual = {(i, j): np.zeros(n) for i in range(V) for j in neighbours[i]}
    slopes = [-0.5 * c for c in labels]
    means = [s @ D / len(s) for s, D in zip(slopes, data, strict=True)]
    start = time.perf_counter()
    for _ in range(rounds):
        new_x, new_dual = np.empty_like(x), {}
        for i in range(V):
            k = rng.integers(len(labels[i]))
            d, c = data[i][k], labels[i][k]
            slope = -c / (1 + np.exp(c * (d @ x[i])))
            change = (slope - slopes[i][k]) * d
            g = change + means[i] + RIDGE * x[i]
            slopes[i][k] = slope
            means[i] = means[i] + change / len(labels[i])
            gamma = 1 / (1 / eta + rho * len(neighbours[i]))
            heard = sum(rho * x[j] - dual[j, i] for j in neighbours[i])
            new_x[i] = gamma * (x[i] / eta - g + heard)
            for j in neighbours[i]:
                new_dual[i, j] = -dual[j, i] + rho * (x[j] - new_x[i])
        x, dual = new_x, new_dual
    return (time.perf_counter() - start) / rounds


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
    base = literal_saga(problem, graph, max(3, rounds // 50 if options.size != "small" else 500))
    bound = floor(problem)
    table = Table(title=", ".join(f"{k}={v}" for k, v in size.items()), title_justify="left")
    headings = ("", "us", "x literal", "x floor", "per second", "us, passes in")
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)

    def row(name: str, seconds: float, with_passes: float | None = None) -> None:
        table.add_row(
            name,
            f"{1e6 * seconds:.1f}",
            f"{base / seconds:.1f}",
            f"{seconds / bound:.2f}",
            f"{1 / seconds:,.0f}",
            f"{1e6 * (with_passes or seconds):.1f}",
        )

    row("literal NumPy", base)
    for name in ("saga-pd", "svr-pd", "lsvr-pd"):
        row(name, *ours(problem, graph, name, rounds))
    edge = ew.PrimalDual(ew.SAGA(), form="edge")
    row("saga-pd, edge", *ours(problem, graph, edge, rounds))
    row("memory floor", bound)
    console = Console()
    console.print(table)
    data = problem.shards.X.nbytes / 2**30
    console.print(f"data {data:.2f} GB, peak resident memory {resident_gigabytes():.2f} GB")


if __name__ == "__main__":
    main()

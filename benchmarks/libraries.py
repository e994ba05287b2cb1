"""Time per iteration against other libraries' D2.

    python benchmarks/libraries.py                  both sizes
    python benchmarks/libraries.py --size small     V=20, n=200, K=500, batch 10
    python benchmarks/libraries.py --size paper     V=50, E=250, n=2000, batch 1

nda is github.com/liboyue/Network-Distributed-Algorithm (MIT; what PyPI has under that name is
another thing). Where it is not installed its D2 with its logistic loss is timed as transcribed
here: the same array operations in the same order, in our own words, read from its D2.py and
logistic_regression.py as of early 2022. Only its update is timed; its loop also evaluates the
objective and the gradient over all data after every iteration. decent-bench is not timed: it needs
Python 3.13 (`pip install decent-bench`), and this has not been tried with it.
"""

import argparse
import time

import numpy as np
from iteration import ours
from rich.console import Console
from rich.table import Table

import edgewise as ew

SIZES = {
    "small": {"V": 20, "E": 50, "K": 500, "n": 200, "batch": 10},
    "paper": {"V": 50, "E": 250, "K": 500, "n": 2000, "batch": 1},
}
ROUNDS = {"small": (500, 5000), "paper": (60, 500)}  # of theirs, of ours
RIDGE, STEP = 1e-3, 0.1
INSTALL = "pip install git+https://github.com/liboyue/Network-Distributed-Algorithm.git"


def build(V: int, E: int, K: int, n: int) -> tuple[ew.Problem, ew.Graph]:
    X, y = ew.data.epsilon_like(rows=V * K, features=n, seed=0)
    shards = ew.split(X, y, nodes=V, seed=0)
    return ew.Problem(shards, ew.Logistic(ridge=RIDGE)), ew.Graph.random(V, E, seed=0)


def metropolis(graph: ew.Graph) -> np.ndarray:
    W = np.zeros((graph.nodes, graph.nodes))
    for i, j in graph.edges:
        W[i, j] = W[j, i] = 1 / (1 + max(graph.degrees[i], graph.degrees[j]))
    return W + np.diag(1 - W.sum(1))


class TranscribedD2:
    """Models are columns. The first step is not mixed; later ones are 2 x - x_last + eta g_last -
    eta g, times (W + I) / 2. Samples come with replacement, and gradients node by node."""

    def __init__(self, X: np.ndarray, Y: np.ndarray, W: np.ndarray, batch: int) -> None:
        self.X, self.Y, self.batch = X, Y, batch  # (V, K, n), (V, K) of 0 and 1
        self.mixing = (W + np.eye(len(W))) / 2
        self.x = np.zeros((X.shape[2], len(X)))
        self.draw, self.last, self.slope = np.random.default_rng(0), None, None

    def gradient(self, w: np.ndarray, samples: np.ndarray) -> np.ndarray:
        out = []
        for i, at in enumerate(samples):
            chance = 1 / (1 + np.exp(-self.X[i][at].dot(w[:, i])))
            mean = self.X[i][at].T.dot(chance - self.Y[i][at]) / len(at)
            out.append(mean + w[:, i] * RIDGE)
        return np.array(out).T

    def update(self) -> None:
        samples = self.draw.integers(0, self.X.shape[1], (len(self.X), self.batch))
        if self.last is None:
            self.slope = self.gradient(self.x, samples)
            moved = self.x - STEP * self.slope
        else:
            moved = 2 * self.x - self.last
            moved += STEP * self.slope
            self.slope = self.gradient(self.x, samples)
            moved -= STEP * self.slope
            moved = moved.dot(self.mixing)
        self.x, self.last = moved, self.x


def installed_d2(X: np.ndarray, Y: np.ndarray, W: np.ndarray, batch: int) -> object | None:
    """nda's own, on our data; None where it is not installed."""
    try:
        from nda.optimizers import D2
        from nda.problems import LogisticRegression
    except ImportError:
        return None
    V, K, n = X.shape

    class Ours(LogisticRegression):
        def generate_data(self) -> None:
            self.X_train, self.Y_train = X.reshape(V * K, n), Y.reshape(-1)
            self.X_test, self.Y_test = self.X_train[:1], self.Y_train[:1]

    problem = Ours(n_agent=V, m=K, dim=n, graph_type="cycle", LAMBDA=RIDGE)
    return D2(problem, W=W, x_0=np.zeros((n, V)), eta=STEP, batch_size=batch)


def theirs(problem: ew.Problem, graph: ew.Graph, batch: int, rounds: int) -> tuple[str, float]:
    """Which it is, and seconds per update in the fastest of five stretches."""
    V, K = problem.nodes, int(problem.counts[0])
    X, Y = problem.shards.X.reshape(V, K, -1), (problem.labels.reshape(V, K) + 1) / 2
    name, d2 = "nda D2", installed_d2(X, Y, metropolis(graph), batch)
    if d2 is None:
        name, d2 = "nda D2, transcribed", TranscribedD2(X, Y, metropolis(graph), batch)
    else:
        d2.init()
    d2.t, stretches = 1, []
    d2.update()
    d2.t = 2
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(rounds):
            d2.update()
        stretches.append((time.perf_counter() - start) / rounds)
    return name, min(stretches)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, help="default: both")
    options = parser.parse_args()
    console = Console()
    for chosen in (options.size,) if options.size else SIZES:
        size = dict(SIZES[chosen])
        batch, (rounds, our_rounds) = size.pop("batch"), ROUNDS[chosen]
        problem, graph = build(**size)
        name, base = theirs(problem, graph, batch, rounds)
        title = ", ".join(f"{k}={v}" for k, v in SIZES[chosen].items())
        table = Table(title=title, title_justify="left")
        for heading in ("", "us", "x theirs"):
            table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
        table.add_row(name, f"{1e6 * base:.0f}", "1")
        for told, method in (
            ("d2", ew.D2(ew.SGD(batch=batch))),
            ("saga-pd", ew.PrimalDual(ew.SAGA(batch=batch))),
        ):
            seconds = ours(problem, graph, method, our_rounds)[0]
            table.add_row(told, f"{1e6 * seconds:.0f}", f"{base / seconds:.1f}")
        console.print(table)
        if "transcribed" in name:
            console.print(f"nda is not installed ({INSTALL})", highlight=False)
    console.print("decent-bench skipped: it needs Python 3.13 (pip install decent-bench)")


if __name__ == "__main__":
    main()

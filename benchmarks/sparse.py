"""Sparse rows in many dimensions: what an iteration costs, what is held, and scikit-learn.

    python benchmarks/sparse.py                 all three tables, n = 47,236 as rcv1 has
    python benchmarks/sparse.py --only round    time per round against unknowns and entries
    python benchmarks/sparse.py --only pass     a pass over all data against scipy's two products
    python benchmarks/sparse.py --only one      one node against scikit-learn's saga (needs 1.8)

Rows are rcv1-like: unit norm, lengths as uneven, columns by Zipf's law, rare ones weigh more.
"""

import argparse
import sys
import time
import warnings
from timeit import repeat

import jax
import numpy as np
import scipy.sparse as sp
import sklearn
from iteration import resident_gigabytes
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import edgewise as ew

V, E, K, FEATURES, ENTRIES = 20, 50, 1000, 47_236, 75
LASSO = 1e-4
EPOCHS = (2, 5, 10, 20)
LEVELS = (1e-1, 1e-2, 1e-3)


def rcv1_like(rows: int, features: int, entries: int) -> tuple[sp.csr_array, np.ndarray]:
    """Against 1,000 rows of rcv1: lengths 5, 50, 95 % at 18, 57, 175 (20, 62, 186), the 1st, 100th
    and 1000th column in 251, 67, 10 rows (435, 109, 17)."""
    rng = np.random.default_rng(0)
    lengths = np.maximum(rng.lognormal(np.log(entries) - 0.245, 0.7, rows), 1).astype(np.int64)
    share = 1 / (np.arange(features) + 30.0)
    share /= share.sum()
    column = np.searchsorted(np.cumsum(share), rng.random(lengths.sum())).clip(max=features - 1)
    at = np.unique(np.repeat(np.arange(rows), lengths) * features + column)
    row, column = np.divmod(at, features)
    counts = 1 + np.log(rng.geometric(0.6, len(at)))
    values = counts * np.log1p(1 / np.minimum(1, entries * share[column]))
    X = sp.csr_array((values, (row, column)), shape=(rows, features))
    X = sp.csr_array(sp.diags_array(1 / np.sqrt(X.multiply(X).sum(1))) @ X)
    told = np.where(np.arange(features) < 2000, 20 * rng.standard_normal(features), 0)
    return X, np.where(X @ told + rng.logistic(size=rows) > 0, 1.0, -1.0)


def build(nodes: int, features: int, entries: int) -> tuple[ew.Problem, ew.Graph]:
    X, y = rcv1_like(V * K, features, entries)
    shards = ew.split(X, y, nodes=nodes, seed=0)
    graph = ew.Graph.random(V, E, seed=0) if nodes == V else ew.Graph(1, [])
    return ew.Problem(shards, ew.Logistic(), ew.L1(LASSO)), graph


def state_floor(problem: ew.Problem) -> float:
    """Seconds to read and write X, S, R and the mean gradient once, at copy bandwidth."""
    state = np.zeros((4, problem.nodes, problem.size))
    copy = np.empty_like(state)
    return min(repeat(lambda: np.copyto(copy, state), number=1, repeat=50))


def held(problem: ew.Problem) -> float:
    """Bytes that the block's rows hold per stored entry."""
    with jax.enable_x64(True):
        rows = problem.block(None, np.float64).rows
        return sum(a.nbytes for a in jax.tree.leaves(rows)) / problem.shards.X.nnz


def table(title: str, *headings: str) -> Table:
    made = Table(title=title, title_justify="left")
    for k, heading in enumerate(headings):
        made.add_column(heading, justify="right" if k else "left", no_wrap=True)
    return made


def fastest_round(problem: ew.Problem, graph: ew.Graph, rounds: int) -> float:
    """Seconds, of saga-pd's fastest stretch of rounds after the first."""
    result = ew.solve(
        problem, graph, "saga-pd", rounds=5 * rounds, record_every=rounds, reference=False
    )
    return float(np.diff(result.trace["seconds"]).min() / rounds)


def rounds_table(rounds: int) -> Table:
    made = table(
        f"saga-pd, {V} nodes, {K} rows each",
        *("unknowns", "entries a row", "longest", "us", "x floor", "bytes an entry"),
    )
    sizes = [(FEATURES // part, ENTRIES) for part in (4, 2, 1)]
    for features, entries in (*sizes, (FEATURES, 4 * ENTRIES)):
        problem, graph = build(V, features, entries)
        fastest = fastest_round(problem, graph, rounds)
        lengths = np.diff(problem.shards.X.indptr)
        made.add_row(
            f"{features:,}",
            f"{lengths.mean():.0f}",
            f"{lengths.max():,}",
            f"{1e6 * fastest:,.0f}",
            f"{fastest / state_floor(problem):.2f}",
            f"{held(problem):.1f}",
        )
    return made


def pass_table() -> Table:
    """`Block.full` of all nodes, and the two products of it in scipy."""
    problem, _ = build(V, FEATURES, ENTRIES)
    made = table(f"a pass over {problem.shards.X.nnz:,} entries", "", "ms", "x scipy")
    W = np.random.default_rng(0).standard_normal((V, FEATURES))
    pairs = [(problem.shards[i][0], w) for i, w in enumerate(W)]
    scipy = min(repeat(lambda: [X.T @ np.tanh(X @ w) for X, w in pairs], number=1, repeat=30))
    with jax.enable_x64(True):
        block, at = problem.block(None, np.float64), jax.numpy.asarray(W)
        full = jax.jit(lambda p, X: p.full(X))
        full(block, at).block_until_ready()
        seconds = min(repeat(lambda: full(block, at).block_until_ready(), number=1, repeat=30))
    made.add_row("scipy, product and transposed product", f"{1e3 * scipy:.1f}", "1")
    made.add_row("gradients of all nodes", f"{1e3 * seconds:.1f}", f"{seconds / scipy:.2f}")
    return made


def one_table() -> Table:
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        sys.exit("--only one needs scikit-learn 1.8, which takes l1 by l1_ratio")
    warnings.simplefilter("ignore", ConvergenceWarning)
    problem, graph = build(1, FEATURES, ENTRIES)
    star = ew.reference(problem)
    made = table(
        f"l1 logistic, one node with {V * K:,} rows: (F - F*) / F*",
        *("", "s an epoch", "x sklearn", *(f"after {e}" for e in EPOCHS)),
        *(f"s to {level:.0e}" for level in LEVELS),
    )
    theirs = sklearn_run(problem, star)
    base = np.diff(theirs[1])[-1] / np.diff(theirs[0])[-1]
    made.add_row("sklearn saga", *cells(*theirs, base))
    for batch, epochs in ((1, 2), (10, 5), (100, 20)):
        made.add_row(
            f"saga-pd, batch {batch}", *cells(*our_run(problem, graph, batch, epochs, star), base)
        )
    return made


def sklearn_run(problem: ew.Problem, star: ew.Reference) -> tuple[np.ndarray, ...]:
    """Epochs, seconds and relative gaps, of fits that are each begun anew."""
    X, y, C = problem.shards.X, problem.labels, 1 / (LASSO * V * K)
    X = sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
    settings = {"l1_ratio": 1.0, "fit_intercept": False, "solver": "saga", "tol": 1e-300}
    epochs, seconds, gaps = np.array((1, *EPOCHS, 40)), [], []
    for most in epochs:
        model = LogisticRegression(C=C, max_iter=most, random_state=0, **settings)
        start = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - start)
        gaps.append(objective(X, y, model.coef_[0]) / star.objective - 1)
    return epochs, np.array(seconds), np.array(gaps)


def objective(X: sp.csr_array, y: np.ndarray, w: np.ndarray) -> float:
    return float(np.logaddexp(0, -y * (X @ w)).mean() + LASSO * np.abs(w).sum())


def our_run(
    problem: ew.Problem, graph: ew.Graph, batch: int, epochs: int, star: ew.Reference
) -> tuple[np.ndarray, ...]:
    """As `sklearn_run`; the first epoch is the pass that fills the table."""
    every = V * K // batch
    method = ew.PrimalDual(ew.SAGA(batch=batch))
    trace = ew.solve(
        problem, graph, method, (epochs - 1) * every, record_every=every, reference=star
    ).trace
    gaps = trace["objective_gap"] / star.objective
    return trace["oracle_calls"] / (V * K), trace["seconds"], gaps


def cells(epochs: np.ndarray, seconds: np.ndarray, gaps: np.ndarray, base: float) -> list[str]:
    each = np.diff(seconds)[-1] / np.diff(epochs)[-1]
    at = dict(zip(np.rint(epochs).astype(int), gaps, strict=True))
    reached = [seconds[gaps <= level] for level in LEVELS]
    return [
        f"{each:.3f}",
        f"{each / base:.1f}",
        *(f"{at[e]:.1e}" if e in at else "-" for e in EPOCHS),
        *(f"{s[0]:.2f}" if len(s) else "-" for s in reached),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = {"round": lambda: rounds_table(options.rounds), "pass": pass_table, "one": one_table}
    parser.add_argument("--only", choices=parts)
    parser.add_argument("--rounds", type=int, default=40, help="rounds timed at a time")
    options = parser.parse_args()
    console = Console(width=120)
    for name in (options.only,) if options.only else parts:
        console.print(parts[name]())
    console.print(f"peak resident memory {resident_gigabytes():.2f} GB")


if __name__ == "__main__":
    main()

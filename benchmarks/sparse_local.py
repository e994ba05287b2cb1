"""Sparse rows in compiled local training against scikit-learn's saga, which is lazy as well.

    python benchmarks/sparse_local.py         one node per epoch, 20 nodes to 1e-6 of the optimum
    python benchmarks/sparse_local.py --l1    with an l1 penalty of 1e-4, not a ridge of 1/N

20,000 rcv1-like rows (`sparse.rcv1_like`), 47,236 unknowns, logistic loss, no intercept. An epoch
is as many oracle calls as samples; over nodes the gap is the divergence, which no disagreement
hides. Both solve the same problem; what counts are the ratios.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sparse import rcv1_like

import edgewise as ew

ROWS, FEATURES, ENTRIES, NODES, LINKS = 20_000, 47_236, 75, 20, 50
LASSO, LEVEL = 1e-4, 1e-6
EPOCHS = 5, 25  # of which the difference is timed


def sklearn_model(lasso: bool, epochs: int) -> LogisticRegression:
    C = 1 / (LASSO * ROWS) if lasso else 1.0
    return LogisticRegression(
        C=C, l1_ratio=float(lasso), fit_intercept=False, solver="saga", tol=1e-300,
        max_iter=epochs, random_state=0,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--l1", action="store_true")
    parser.add_argument("--rounds", type=int, default=3000, help="of 20 nodes, at most")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y = rcv1_like(ROWS, FEATURES, ENTRIES)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # as sklearn asks
    loss = ew.Logistic(ridge=0.0 if options.l1 else 1 / ROWS)
    penalty = ew.L1(LASSO) if options.l1 else None

    def problem_of(nodes: int) -> ew.Problem:
        return ew.Problem(ew.split(X, y, nodes=nodes, seed=0), loss, penalty, weights="sample")

    def objective(w: np.ndarray) -> float:
        value = np.logaddexp(0, -y * (X @ w)).mean()
        return float(value + (LASSO * np.abs(w).sum() if options.l1 else w @ w / (2 * ROWS)))

    spent, there, best = {}, np.inf, np.inf
    fits = []
    for epochs in (2, *EPOCHS, 10, 15, 20, 30, 40, 60, 80, 120, 300):
        model, start = sklearn_model(options.l1, epochs), time.perf_counter()
        model.fit(X, y)
        spent[epochs] = time.perf_counter() - start
        fits.append((spent[epochs], objective(model.coef_[0]), epochs))
    best = fits[-1][1]
    reached = [(s, e) for s, value, e in fits if value / best - 1 <= LEVEL]
    there, passes = min(reached)
    theirs = (spent[EPOCHS[1]] - spent[EPOCHS[0]]) / (EPOCHS[1] - EPOCHS[0])
    print(f"sklearn saga: {theirs:.4f} s an epoch, {there:.2f} s to 1e-6 ({passes} epochs)")

    one, few = problem_of(1), 30
    method = ew.PrimalDual(ew.SAGA(), local=2000)
    trace = ew.solve(
        one, ew.Graph(1, []), method, rounds=4 * few, record_every=few, reference=False
    ).trace
    seconds, calls = np.diff(trace["seconds"])[1:], np.diff(trace["oracle_calls"])[1:]
    ours = float((seconds / calls).min() * ROWS)
    print(f"one node, 2,000 steps a round: {ours:.4f} s an epoch, {ours / theirs:.2f} of theirs")
    print(f"  {1e6 * ours / ROWS:.2f} us a step")

    many, graph = problem_of(NODES), ew.Graph.random(NODES, LINKS, seed=0)

    def enough(row: dict) -> bool:
        return bool(row["bregman"] <= LEVEL * star.objective)

    star = ew.reference(many)
    result = ew.solve(
        many, graph, "lt-saga-pd", rounds=options.rounds, record_every=10, reference=star,
        callback=enough,
    )  # fmt: skip
    last = {name: float(column[-1]) for name, column in result.trace.columns.items()}
    epochs, gap = last["oracle_calls"] * NODES / ROWS, last["bregman"] / star.objective
    print(
        f"{NODES} nodes, lt-saga-pd: {last['rounds']:.0f} rounds, {epochs:.0f} epochs to {gap:.1e}"
    )
    print(f"  {last['seconds']:.2f} s, {last['seconds'] / there:.1f} times sklearn's")


if __name__ == "__main__":
    main()

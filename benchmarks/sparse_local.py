"""Sparse rows in compiled local training against scikit-learn's saga, which is lazy as well.

    python benchmarks/sparse_local.py         one node per epoch, 20 nodes to 1e-6 of the optimum
    python benchmarks/sparse_local.py --l1    with an l1 penalty of 1e-4, not a ridge of 1/N

20,000 rcv1-like rows (`sparse.rcv1_like`), 47,236 unknowns, logistic loss, no intercept. An epoch
is as many oracle calls as samples; over nodes the gap is the divergence, which no disagreement
hides. Both solve the same problem; what counts are the ratios, of CPU time where a machine is busy.
scikit-learn's saga has one thread, nodes are shared over as many as there are cores.
"""

import argparse
import os
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
STEPS, ROUNDS_TIMED = 2000, 60
TRIES = 3  # of scikit-learn's, of which the fastest counts


def sklearn_model(lasso: bool, epochs: int) -> LogisticRegression:
    C = 1 / (LASSO * ROWS) if lasso else 1.0
    return LogisticRegression(
        C=C, l1_ratio=float(lasso), fit_intercept=False, solver="saga", tol=1e-300,
        max_iter=epochs, random_state=0,
    )  # fmt: skip


def clocks() -> tuple[float, float]:
    """Seconds on the wall, and of all threads' CPU."""
    return time.perf_counter(), time.process_time()


def cpu_a_round(problem: ew.Problem, graph: ew.Graph, method: object, rounds: int) -> float:
    """Of a run of so many rounds and one of thrice as many, both without looking at them: what they
    begin and end with is taken off."""
    took = []
    for many in (rounds, 3 * rounds, rounds, 3 * rounds):  # the first two compile
        start = time.process_time()
        ew.solve(problem, graph, method, rounds=many, record_every=many, reference=False)
        took.append(time.process_time() - start)
    return (took[3] - took[2]) / (2 * rounds)


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

    fits = []
    for epochs in (2, *EPOCHS, 10, 12, 15, 20, 30, 40, 60, 80, 120, 300):
        took = []
        for _ in range(TRIES if epochs <= 30 else 1):
            model, start = sklearn_model(options.l1, epochs), np.array(clocks())
            model.fit(X, y)
            took.append(np.array(clocks()) - start)
        fits.append((epochs, np.min(took, 0), objective(model.coef_[0])))
    best = fits[-1][2]
    passes, there, _ = min(fit for fit in fits if fit[2] / best - 1 <= LEVEL)
    spent = {epochs: seconds for epochs, seconds, _ in fits}
    theirs = (spent[EPOCHS[1]] - spent[EPOCHS[0]])[1] / (EPOCHS[1] - EPOCHS[0])
    print(
        f"sklearn saga, s of CPU: {theirs:.4f} an epoch, {there[1]:.2f} to 1e-6 ({passes} epochs)"
    )

    one, graph = problem_of(1), ew.Graph(1, [])
    method = ew.PrimalDual(ew.SAGA(), local=STEPS)
    ours = cpu_a_round(one, graph, method, ROUNDS_TIMED) / STEPS * ROWS
    print(f"one node, {STEPS} steps a round: {ours:.4f} an epoch, {ours / theirs:.2f} of theirs")
    print(f"  {1e6 * ours / ROWS:.2f} us a step")

    many, graph = problem_of(NODES), ew.Graph.random(NODES, LINKS, seed=0)

    def enough(row: dict) -> bool:
        return bool(row["bregman"] <= LEVEL * star.objective)

    star = ew.reference(many)
    result = ew.solve(
        many, graph, "lt-saga-pd", rounds=options.rounds, record_every=5, reference=star,
        callback=enough,
    )  # fmt: skip
    last = {name: float(column[-1]) for name, column in result.trace.columns.items()}
    epochs, gap = last["oracle_calls"] * NODES / ROWS, last["bregman"] / star.objective
    rounds, cores = int(last["rounds"]), len(os.sched_getaffinity(0))
    print(f"{NODES} nodes, lt-saga-pd: {rounds} rounds, {epochs:.0f} epochs to {gap:.1e}")
    seconds = last["seconds"]
    print(f"  {seconds:.2f} s on {cores} cores, {seconds / there[0]:.1f} times sklearn's on one")
    cpu = rounds * cpu_a_round(many, graph, "lt-saga-pd", rounds)
    print(f"  {cpu:.2f} s of CPU, {cpu / there[1]:.1f} times sklearn's")


if __name__ == "__main__":
    main()

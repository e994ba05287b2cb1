"""What differential privacy costs: models of nodes that add noise, and of one place that adds it.

    python benchmarks/private.py --data FOLDER     breast_cancer, and a9a and spambase from FOLDER,
                                                   as .svm.xz; without it breast_cancer alone
    python benchmarks/private.py --page            the table in docs/privacy.md again

Ridge logistic regression, epsilon 1, 3 and 8 at delta 1e-5 for one sample or nothing in its place.
Columns are scaled by ranges that are written down here, not looked up: what nuclei measure, how
often words come. Rows are then at most 1 long, which is the clip. Ten nodes on a random graph of 20
edges have as many samples each.

  pd, dgd-full       what `solve(privacy=)` runs, each node with noise of its own, 400 rounds
  DP-SGD             one place has all data: Poisson samples of a tenth, 300 steps, noise by the RDP
                     accountant of the same library; its step goes by the rule of `solve`
  objective          one place: a random linear term (Kifer, Smith, Thakurta 2012, Algorithm 1,
  perturbation       Gaussian), whose guarantee holds at the exact optimum
  no noise           scikit-learn, on the same rows

Accuracy is of held-out samples, the objective gap of training ones: means over five splits and
noises, of a9a two, with the standard deviation of accuracy. Kept in docs/data/private.json.
"""

import argparse
import json
import logging
import lzma
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import dp_accounting
import numpy as np
import private_page
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_svmlight_file

import edgewise as ew
from edgewise.differential_privacy.accountant import noise_for
from edgewise.differential_privacy.private_method import REACH
from edgewise.graph.mixing import mixing_weights

ROOT = Path(__file__).parents[1]
KEPT, PAGE = ROOT / "docs" / "data" / "private.json", ROOT / "docs" / "privacy.md"
EPSILONS, DELTA, RIDGE = (1.0, 3.0, 8.0), 1e-5, 1e-4
NODES, GRAPH = 10, ew.Graph.random(10, 20, seed=0)
REPEATS, FEW_REPEATS = 5, 2  # the latter of a set with test samples of its own, and many
RATE, STEPS = 0.1, 300  # of DP-SGD
DISTANCES = {
    "ring of 20": ew.Graph.ring(20),
    "grid of 5 x 5": ew.Graph.grid(5, 5),
    "20 nodes, 40 edges": ew.Graph.random(20, 40, seed=0),
}
NUCLEI = [
    30,
    40,
    200,
    2500,
    0.2,
    0.4,
    0.5,
    0.25,
    0.4,
    0.1,
]  # largest means, then errors, then worst
NUCLEI += [3, 5, 25, 600, 0.04, 0.15, 0.4, 0.06, 0.08, 0.03]
NUCLEI += [40, 50, 260, 4500, 0.25, 1.1, 1.3, 0.3, 0.7, 0.21]


class Task(NamedTuple):
    X: np.ndarray  # training rows, at most 1 long, the last column constant
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


# --- data, by ranges known before -----------------------------------------------------------------


def svm(folder: Path, name: str, features: int) -> tuple[np.ndarray, np.ndarray]:
    with lzma.open(folder / f"{name}.svm.xz", "rb") as file:
        X, y = load_svmlight_file(file, n_features=features)
    return X.toarray(), np.where(y > 0, 1.0, -1.0)


def bounded(X: np.ndarray, longest: float) -> np.ndarray:
    """With a constant column; all rows over `longest`, and at most 1 long."""
    X = np.c_[X, np.ones(len(X))] / longest
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)


@cache
def rows(name: str, folder: Path | None) -> tuple[np.ndarray, ...]:
    if name == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True)
        X = 2 * np.clip(X / NUCLEI, 0, 1) - 1
        return bounded(X, np.sqrt(31)), np.where(y > 0, 1.0, -1.0)
    assert folder is not None
    if name == "spambase":  # words in per cent, up to 20; runs of capitals, up to e^7, e^9, e^10
        X, y = svm(folder, "spambase", 57)
        X = np.log1p(np.clip(X, 0, None))
        return bounded(np.clip(X / np.r_[np.full(54, 3.0), 7, 9, 10], 0, 1), 2.0), y
    (X, y), (X_test, y_test) = svm(folder, "a9a", 123), svm(folder, "a9a.t", 123)
    return bounded(X, np.sqrt(15)), y, bounded(X_test, np.sqrt(15)), y_test


def task(name: str, folder: Path | None, repeat: int) -> Task:
    found = rows(name, folder)
    if len(found) == 4:
        return Task(*found)
    X, y = found
    order = np.random.default_rng(repeat).permutation(len(y))
    train, test = np.split(order, [int(0.7 * len(y))])
    return Task(X[train], y[train], X[test], y[test])


# --- models ---------------------------------------------------------------------------------------


def objective(t: Task, w: np.ndarray) -> tuple[float, np.ndarray]:
    z = t.y * (t.X @ w)
    slope = -t.y / (1 + np.exp(z))
    value = np.logaddexp(0, -z).mean() + RIDGE / 2 * w @ w
    return float(value), t.X.T @ slope / len(z) + RIDGE * w


def best(t: Task, linear: np.ndarray | float = 0.0, quadratic: float = 0.0) -> np.ndarray:
    def perturbed(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(t, w)
        value += float(np.sum(linear * w)) + quadratic / 2 * w @ w
        return value, gradient + linear + quadratic * w

    options = {"maxiter": 5000, "gtol": 1e-10, "ftol": 1e-15}
    start = np.zeros(t.X.shape[1])
    return minimize(perturbed, start, jac=True, method="L-BFGS-B", options=options).x


def decentralised(method: str) -> Any:
    def fit(t: Task, epsilon: float, repeat: int) -> np.ndarray:
        shards = ew.split(t.X, t.y, NODES, seed=repeat)
        problem = ew.Problem(shards, ew.Logistic(ridge=RIDGE), weights="sample")
        budget = ew.DP(epsilon, DELTA, clip=1.0, noise_seed=repeat)
        return ew.solve(problem, GRAPH, method, privacy=budget, reference=False).x

    return fit


@cache
def sgd_noise(epsilon: float) -> float:
    """z of Poisson samples, by bisection of the library."""

    def event(z: float) -> Any:
        one = dp_accounting.PoissonSampledDpEvent(RATE, dp_accounting.GaussianDpEvent(z))
        return dp_accounting.SelfComposedDpEvent(one, STEPS)

    make = dp_accounting.rdp.RdpAccountant
    return dp_accounting.calibrate_dp_mechanism(make, event, epsilon, DELTA)


def dp_sgd(t: Task, epsilon: float, repeat: int) -> np.ndarray:
    rng, (N, n), z = np.random.default_rng(repeat), t.X.shape, sgd_noise(epsilon)
    batch = RATE * N
    eta = min(1 / (0.25 + RIDGE), REACH * batch / (z * np.sqrt(n * STEPS)), 5 / (RIDGE * STEPS))
    w = np.zeros(n)
    for _ in range(STEPS):
        drawn = rng.random(N) < RATE
        slope = -t.y[drawn] / (1 + np.exp(t.y[drawn] * (t.X[drawn] @ w)))  # at most 1, as rows are
        noisy = t.X[drawn].T @ slope + z * rng.standard_normal(n)
        w = w - eta * (noisy / batch + RIDGE * w)
    return w


def perturbation(t: Task, epsilon: float, repeat: int) -> np.ndarray:
    """Of the sum of losses: gradients at most 1 long, curvature 1/4 of one sample."""
    rng, (N, n) = np.random.default_rng(repeat), t.X.shape
    deviation = np.sqrt(8 * np.log(2 / DELTA) + 4 * epsilon) / epsilon
    quadratic = max(0.0, 2 * 0.25 / epsilon - RIDGE * N)
    return best(t, deviation * rng.standard_normal(n) / N, quadratic / N)


MODELS = {
    "pd": decentralised("pd"),
    "dgd-full": decentralised("dgd-full"),
    "DP-SGD": dp_sgd,
    "objective perturbation": perturbation,
}


def measured(t: Task, w: np.ndarray, least: float) -> tuple[float, float]:
    return float(np.mean(np.sign(t.X_test @ w) == t.y_test)), objective(t, w)[0] - least


def race(name: str, folder: Path | None) -> dict[str, Any]:
    repeats = REPEATS if len(rows(name, folder)) == 2 else FEW_REPEATS
    tasks = [task(name, folder, repeat) for repeat in range(repeats)]
    stars = [best(t) for t in tasks]
    least = [objective(t, w)[0] for t, w in zip(tasks, stars, strict=True)]
    plain = [measured(t, w, f)[0] for t, w, f in zip(tasks, stars, least, strict=True)]
    zero = [objective(t, 0 * w)[0] - f for t, w, f in zip(tasks, stars, least, strict=True)]
    kept: dict[str, Any] = {
        "samples": len(tasks[0].y),
        "unknowns": tasks[0].X.shape[1],
        "no noise": round(float(np.mean(plain)), 4),
        "gap of zeros": round(float(np.mean(zero)), 4),
        "most frequent": round(
            float(np.mean([max(np.mean(t.y_test > 0), np.mean(t.y_test < 0)) for t in tasks])), 4
        ),
        "models": {},
    }
    for epsilon in EPSILONS:
        for model, fit in MODELS.items():
            found = [
                measured(t, fit(t, epsilon, repeat), f)
                for repeat, (t, f) in enumerate(zip(tasks, least, strict=True))
            ]
            accuracy, gap = np.array(found).T
            numbers = {"accuracy": accuracy.mean(), "spread": accuracy.std(), "gap": gap.mean()}
            kept["models"].setdefault(model, {})[f"{epsilon:g}"] = {
                k: round(float(v), 4) for k, v in numbers.items()
            }
            print(name, f"{epsilon:g}", model, kept["models"][model][f"{epsilon:g}"], flush=True)
    return kept


def by_distance() -> dict[str, dict[str, float]]:
    """Epsilon to a single node so far away, of dgd-full with epsilon 1 to neighbours."""
    budget, found = ew.DP(1.0, DELTA, 1.0), {}
    noise = noise_for(budget.epsilon, DELTA, budget.rounds)
    for name, graph in DISTANCES.items():
        weights, alike = mixing_weights("lazy-metropolis", graph), np.ones(graph.nodes)
        spent = ew.PrivacySpent(budget, budget.rounds, noise, 1.0, graph, weights, alike)
        found[name] = {str(d): round(e, 3) for d, e in spent.by_distance().items()}
        print(name, found[name], flush=True)
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--data", type=Path, help="a folder with a9a and spambase, as .svm.xz")
    asked.add_argument("--page", action="store_true", help="the table again, without running")
    o = asked.parse_args()
    logging.getLogger("absl").setLevel(logging.ERROR)  # of orders that the accountant leaves out
    if not o.page:
        names = ["breast_cancer", *(() if o.data is None else ("spambase", "a9a"))]
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        kept.setdefault("models", {}).update({name: race(name, o.data) for name in names})
        kept["distances"] = by_distance()
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    private_page.write(PAGE, json.loads(KEPT.read_text()))


if __name__ == "__main__":
    main()

"""Losses that are not convex, which the paper leaves open: a bounded loss on labels of which some
are wrong, and a small neural network, whose nodes hold different parts of the plane."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.data.synthetic import epsilon_like
from edgewise.experiments.estimator_runs import ESTIMATORS, METHODS, NAMES, Bench, Runs, draw
from edgewise.experiments.experiment import AUTOMATIC, BEYOND, TUNED, Job, Outcome, Verdict
from edgewise.experiments.passages import amount
from edgewise.graph.graph import Graph
from edgewise.methods.catalogue import make
from edgewise.problem.losses import CustomLoss, Logistic, Sigmoid
from edgewise.problem.problem import Problem
from edgewise.running.solve import solve

SIGMOID, NETWORK = "sigmoid loss", "neural network"
RIDGE = 1e-3
WRONG = 0.2  # of the labels
FAR = 5.0  # times as long as the others, for a tenth of the rows, all of them labelled wrongly
HIDDEN = 8
LEVELS = {SIGMOID: 1e-6, NETWORK: 3e-3}  # of the residual at the start
ROUNDS = {SIGMOID: 6000, NETWORK: 10_000}
SETTINGS = (TUNED, AUTOMATIC)
SIZES = {"small": (10, 20, 40), "paper": (20, 50, 200)}  # nodes, edges, samples a node
TEST = 4000
FEW = 1000  # rounds


class Samples:
    """Rows and labels dealt out so that nodes differ, and others to test on."""

    def __init__(self, X: np.ndarray, y: np.ndarray, order: np.ndarray, nodes: int) -> None:
        X, y = X[order], y[order]
        self.parts = list(zip(np.array_split(X, nodes), np.array_split(y, nodes), strict=True))


def mislabelled(
    nodes: int, K: int, rng: np.random.Generator, far: float = 1.0
) -> tuple[Samples, Any, Any]:
    """Rows like epsilon's, a fifth of the labels wrong; or a tenth, those of rows that are `far`
    times as long as the others. Test rows are as the others, and labelled rightly."""
    rows = nodes * K
    X, y = epsilon_like(rows=rows + TEST, features=20)
    wrong = rng.random(rows) < (WRONG if far == 1 else WRONG / 2)
    own = X[:rows] * np.where(wrong, far, 1)[:, None]
    given = np.where(wrong, -y[:rows], y[:rows])
    return Samples(own, given, np.argsort(own[:, 0]), nodes), X[rows:], y[rows:]


def moons(nodes: int, K: int, rng: np.random.Generator) -> tuple[Samples, Any, Any]:
    """Two half moons; each node has a stripe of the plane, more or less."""
    rows = nodes * K + TEST
    angle, y = rng.uniform(0, np.pi, rows), rng.choice([-1.0, 1.0], rows)
    lower = y < 0
    X = np.stack([y * np.cos(angle) + lower, y * np.sin(angle) + 0.5 * lower], 1)
    X += 0.15 * rng.standard_normal(X.shape)
    here = X[: nodes * K]
    order = np.argsort(here[:, 0] + 0.5 * rng.standard_normal(len(here)))
    return Samples(here, y[: nodes * K], order, nodes), X[nodes * K :], y[nodes * K :]


def scores(params: Any, d: Any) -> Any:
    hidden = jnp.tanh(d @ params["inner"] + params["bias"])
    return hidden @ params["outer"] + params["offset"]


def network_loss(params: Any, d: Any, y: Any) -> Any:
    """Logistic, of a network with one hidden layer."""
    return jax.nn.softplus(-y * scores(params, d))


LIKE = {
    "inner": np.zeros((2, HIDDEN)),
    "bias": np.zeros(HIDDEN),
    "outer": np.zeros(HIDDEN),
    "offset": np.zeros(()),
}


@dataclass(frozen=True)
class NonConvex:
    name: str = "nonconvex"
    title: str = "Losses that are not convex"
    source: str = BEYOND

    def run(self, job: Job) -> Outcome:
        small = job.scale.nodes, job.scale.edges, job.scale.samples[50]
        nodes, edges, K = SIZES.get(job.scale.name, small)
        graph = Graph.random(nodes, edges, seed=0)
        rng = np.random.default_rng(0)
        rows, X, y = mislabelled(nodes, K, rng)
        outliers = mislabelled(nodes, K, rng, FAR)[0]
        points, P, labels = moons(nodes, K, rng)
        loss = CustomLoss.of_pytree(network_loss, LIKE, ridge=RIDGE)
        X0 = 0.7 * rng.standard_normal(loss.size)
        bounded = Problem(rows.parts, Sigmoid(ridge=RIDGE))
        network = Problem(points.parts, loss)
        benches = {
            SIGMOID: Bench(bounded, graph, ROUNDS[SIGMOID], LEVELS[SIGMOID]),
            NETWORK: Bench(network, graph, ROUNDS[NETWORK], LEVELS[NETWORK], X0),
        }
        runs = Runs(self.name, job, benches)
        verdicts = [
            *(comes_there(runs, p, m) for p in benches for m in METHODS),
            wrong_labels("labels that are wrong at random", rows, graph, X, y),
            wrong_labels(f"wrong labels of rows {FAR:g} times as long", outliers, graph, X, y),
            network_is_one(network, graph, X0, P, labels),
            local_training(
                {
                    "with labels wrong at random": (bounded, None),
                    "with wrong rows far out": (Problem(outliers.parts, bounded.loss), None),
                    "on the network": (network, X0),
                },
                graph,
            ),
        ]
        about = {
            "data": "rows like epsilon's, some labels wrong; two half moons",
            "samples a node": K,
            "ridge": RIDGE,
            "network": f"one hidden layer of {HIDDEN}, {loss.size} unknowns",
            "seed": job.seed,
        }
        title = "Losses that are not convex, step tuned by one rule (dashed: biased)"
        return Outcome(
            runs.pages(), verdicts, graph, about, partial(draw, runs, title), runs.table()
        )


def comes_there(runs: Runs, problem: str, method: str) -> Verdict:
    level, holds, said = LEVELS[problem], {}, []
    for s in SETTINGS:
        costs = {e: runs.cost((problem, method, e), s, "oracle_calls") for e in ESTIMATORS}
        holds[s] = all(np.isfinite(list(costs.values())))
        said.append(f"{s}: calls {', '.join(f'{e} {amount(c)}' for e, c in costs.items())}")
    return Verdict(
        f"{problem}: with every estimator {NAMES[method]} comes to a stationary point, to "
        f"{level:g} of the first residual",
        holds,
        "; ".join(said),
    )


def wrong_labels(what: str, rows: Samples, graph: Graph, X: np.ndarray, y: np.ndarray) -> Verdict:
    """Judged by the models that `auto` comes to, on labels that are right."""
    right = {}
    for loss in (Sigmoid(ridge=RIDGE), Logistic(ridge=RIDGE)):
        problem = Problem(rows.parts, loss)
        options: dict[str, Any] = {"reference": False, "progress": False}
        result = solve(problem, graph, rounds=20_000, tol=1e-5, **options)
        right[type(loss).__name__] = float(np.mean(np.sign(X @ result.x) == y))
    return Verdict(
        f"{what} hurt less than with the logistic loss",
        {AUTOMATIC: right["Sigmoid"] > right["Logistic"]},
        f"of {len(y):,} test labels right: Sigmoid {right['Sigmoid']:.1%}, "
        f"Logistic {right['Logistic']:.1%}",
    )


def network_is_one(
    problem: Problem, graph: Graph, X0: np.ndarray, P: np.ndarray, labels: np.ndarray
) -> Verdict:
    """All nodes together know what none of them does."""
    loss = problem.loss
    assert isinstance(loss, CustomLoss)
    result = solve(problem, graph, X0=X0, rounds=4000, progress=False)

    def right(x: np.ndarray) -> float:
        return float(np.mean(np.sign(np.asarray(scores(loss.unflatten(x), P))) == labels))

    alone = [
        right(
            solve(
                problem.only([i]), Graph.from_edges([], nodes=1), X0=X0, rounds=4000, progress=False
            ).x
        )
        for i in range(problem.nodes)
    ]
    together = right(result.x)
    return Verdict(
        "the network that nodes agree on is better than any node's own",
        {AUTOMATIC: together > max(alone)},
        f"of {len(labels):,} test labels right: together {together:.1%}, alone {min(alone):.1%} to "
        f"{max(alone):.1%}",
    )


def local_training(problems: Mapping[str, tuple[Problem, Any]], graph: Graph) -> Verdict:
    """Many steps between two messages find a node's own minimum, unless it has several."""
    holds, said, single = {}, [], make("page-pd")
    for name, (problem, X0) in problems.items():
        options: dict[str, Any] = {"X0": X0, "rounds": FEW, "record_every": FEW, "progress": False}
        left = []
        for method in (replace(single, local="auto"), single):
            trace = solve(problem, graph, method, **options).trace
            left.append(float(trace["residual"][-1] / trace["residual"][0]))
        holds[name] = left[0] <= 0.1 * left[1]
        said.append(f"{name} {left[0]:.0e}, one step a round {left[1]:.0e}")
    return Verdict(
        f"local training, with PAGE, comes ten times as near in {FEW:,} rounds",
        holds,
        f"residual, a part of the first one: {'; '.join(said)}",
    )


EXPERIMENT = NonConvex()

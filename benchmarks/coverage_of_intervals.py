"""How often intervals of 95 % hold what they are about, by simulation.

Nodes differ: each has an effect of its own on the outcome (a random intercept, standard deviation
--spread), and x0 is the same for all samples of a node, x1 is a sample's own. Columns say how often
an interval held the true coefficient, of x0 and of x1. 0.95 is wanted; what chance alone does at so
many replicates is told below the table. Models are marginal: for the families the true coefficient
of a link that is not the identity is that of the population, found by one large fit.

    python benchmarks/coverage_of_intervals.py --replicates 1000
"""

import argparse
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew
from edgewise.inference.bootstrap import bootstrap_steps
from edgewise.inference.estimation import Wanted, estimation
from edgewise.running.summary import answered

KINDS = ("model", "HC0", "cluster", "bootstrap t", "bootstrap percentile")
PER_NODE = 20
LARGE = 4000  # nodes of the population


def sampled(
    name: str, rng: np.random.Generator, nodes: int, spread: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    K = PER_NODE
    X = np.stack([np.repeat(rng.normal(size=nodes), K), rng.normal(size=nodes * K)], 1)
    z = 0.3 + X @ [0.5, -0.4] + np.repeat(spread * rng.normal(size=nodes), K)
    if name == "squared":
        y = z + rng.normal(size=len(z))
    elif name == "logistic":
        y = (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(float)
    else:
        y = rng.poisson(np.exp(z)).astype(float)
    return [(X[i : i + K], y[i : i + K]) for i in range(0, len(z), K)]


LOSSES = {"squared": ew.Squared(), "logistic": ew.Logistic(), "poisson": ew.Poisson()}


def problem_of(name: str, parts: list[tuple[np.ndarray, np.ndarray]]) -> ew.Problem:
    classes = [0.0, 1.0] if name == "logistic" else None
    return ew.Problem(parts, LOSSES[name], weights="sample", intercept=True, classes=classes)


def fitted(problem: ew.Problem) -> ew.Inference:
    """Newton's method by sums, as `debias` goes to the optimum without a penalty."""
    steps = estimation(problem, np.zeros(problem.size), Wanted(debias=True))
    return answered(steps, problem, lambda each: np.sum(each, 0))


def population(name: str, spread: float) -> np.ndarray:
    if name == "squared" or spread == 0:
        return np.array([0.3, 0.5, -0.4])
    parts = sampled(name, np.random.default_rng(10**6), LARGE, spread)
    X, y = (np.concatenate(a) for a in zip(*parts, strict=True))
    return fitted(problem_of(name, [(X, y)])).coef


def intervals(problem: ew.Problem, replicates: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    fit = fitted(problem)
    for kind in KINDS[:3]:
        yield kind, fit.robust(kind).interval()
    if replicates:
        x = np.append(fit.coef[1:], fit.coef[0])
        steps = bootstrap_steps(problem, x, replicates, seed, problem.nodes)
        drawn = answered(steps, problem, lambda each: np.sum(each, 0))
        yield KINDS[3], drawn.interval()
        yield KINDS[4], drawn.interval(kind="percentile")


def coverage(
    name: str, nodes: int, spread: float, replicates: int, bootstraps: int
) -> dict[str, np.ndarray]:
    """By kind, the part of intervals that held the coefficients of x0 and x1."""
    true = population(name, spread)
    held: dict[str, list[np.ndarray]] = {}
    for r in range(replicates):
        parts = sampled(name, np.random.default_rng([nodes, r]), nodes, spread)
        for kind, ends in intervals(problem_of(name, parts), bootstraps, r):
            held.setdefault(kind, []).append((ends[:, 0] <= true) & (true <= ends[:, 1]))
    return {kind: np.mean(each, 0)[1:] for kind, each in held.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--bootstraps", type=int, default=200, help="replicates of each; 0: none")
    parser.add_argument("--nodes", type=int, nargs="+", default=[6, 12, 40])
    parser.add_argument("--spread", type=float, default=0.5, help="of the nodes' effects")
    parser.add_argument("--losses", nargs="+", default=list(LOSSES), choices=list(LOSSES))
    options = parser.parse_args()
    kinds = KINDS if options.bootstraps else KINDS[:3]
    table = Table("loss", "nodes", "spread", *kinds)
    for name in options.losses:
        for nodes in options.nodes:
            for spread in dict.fromkeys([0.0, options.spread]):
                found = coverage(name, nodes, spread, options.replicates, options.bootstraps)
                cells = (f"{a:.3f} {b:.3f}" for a, b in (found[kind] for kind in kinds))
                table.add_row(name, str(nodes), f"{spread:g}", *cells)
    Console(width=120).print(table)
    chance = 2 * np.sqrt(0.95 * 0.05 / options.replicates)
    print(f"{options.replicates} data sets a row: 0.95 give or take {chance:.3f}")


if __name__ == "__main__":
    main()

"""Intervals hold what they are about as often as they say: a bounded simulation. The thorough one
is benchmarks/coverage_of_intervals.py."""

import numpy as np

import edgewise as ew
from edgewise.inference.estimation import Wanted, estimation
from edgewise.running.summary import answered

NODES, EACH, TIMES = 20, 12, 120
TRUE = np.array([0.3, 0.5, -0.4])  # the intercept, of a node's column, of a sample's own


def coverage(spread, kinds):
    """{kind: (3,)} of intervals of 95 %, where nodes have effects of this standard deviation."""
    held = {kind: np.zeros(3) for kind in kinds}
    for seed in range(TIMES):
        rng = np.random.default_rng([seed, int(10 * spread)])
        at_node = np.repeat(rng.normal(size=(NODES, 2)), EACH, 0)
        X = np.stack([at_node[:, 0], rng.normal(size=NODES * EACH)], 1)
        y = TRUE[0] + X @ TRUE[1:] + spread * at_node[:, 1] + rng.normal(size=len(X))
        shards = ew.Shards(X, y, np.full(NODES, EACH))
        problem = ew.Problem(shards, ew.Squared(), weights="sample", intercept=True)
        steps = estimation(problem, np.zeros(3), Wanted(debias=True))
        fit = answered(steps, problem, lambda each: np.sum(each, 0))
        for kind in kinds:
            ends = fit.robust(kind).interval()
            held[kind] += (ends[:, 0] <= TRUE) & (ends[:, 1] >= TRUE)
    return {kind: count / TIMES for kind, count in held.items()}


CHANCE = 3.5 * np.sqrt(0.95 * 0.05 / TIMES)  # 0.07


def test_of_independent_samples():
    for kind, part in coverage(0.0, ["model", "HC0"]).items():
        assert (np.abs(part - 0.95) <= CHANCE).all(), (kind, part)


def test_of_nodes_that_differ():
    part = coverage(0.7, ["model", "cluster"])
    assert part["model"][1] < 0.75  # of the column that is a node's
    assert (part["cluster"] >= 0.95 - CHANCE - 0.02).all(), part  # 20 clusters: a little short

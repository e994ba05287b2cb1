"""As printed: the paper's algorithms with the ridge in the samples, held against a transcript."""

from dataclasses import replace

import jax
import literal
import numpy as np
import pytest

import edgewise as ew
from edgewise.backend.random_bits import draw_bits
from edgewise.experiments import data, named
from edgewise.experiments.experiment import AUTOMATIC, PRINTED, SMALL, Job
from edgewise.experiments.figure import FigureProblem, FigureRun
from edgewise.experiments.lineup import LINEUP

TINY = replace(
    SMALL, name="tiny", features=3, samples={2000: 6}, rounds=40, longest=16, nodes=5, edges=7
)
TAU = 0.05
SEED = 3


class Node:
    """Of its samples each has the ridge, as the paper's f_i(x, xi)."""

    def __init__(self, D, c):
        self.D, self.c, self.K = D, c, len(c)

    def sample(self, x, k):
        d, c = self.D[k], self.c[k]
        return -c * d / (1 + np.exp(c * (d @ x))) + TAU * x

    def mean(self, x):
        return sum(self.sample(x, k) for k in range(self.K)) / self.K

    def ridge_part(self, x):
        return 0.0


def transcript(problem, graph, estimate, draws, eta, rho, rounds):
    """(primup) and (dualup) with a dual per directed edge, from zero."""
    V, n = problem.nodes, problem.size
    nodes = [Node(problem.shards[i][0], problem.labels[problem.own(i)]) for i in range(V)]
    with jax.enable_x64(True):
        words = np.asarray(draw_bits(jax.random.key(SEED), np.arange(V), np.arange(rounds), draws))
    near = [[] for _ in range(V)]
    for i, j in graph.edges.tolist():
        near[i].append(j)
        near[j].append(i)
    x = np.zeros((V, n))
    dual = {(i, j): np.zeros(n) for i in range(V) for j in near[i]}
    gradients = [estimate(node, x[i]) for i, node in enumerate(nodes)]
    for g in gradients:
        next(g)
    for t in range(rounds):
        new = np.empty_like(x)
        for i in range(V):
            gamma = 1 / (1 / eta + rho * len(near[i]))
            pull = sum(rho * x[j] - dual[j, i] for j in near[i])
            step = x[i] - eta * gradients[i].send((x[i], words[t, i]))
            new[i] = gamma / eta * step + gamma * pull
        dual = {(i, j): -dual[j, i] + rho * (x[j] - new[i]) for i, j in dual}
        x = new
    answers = [getattr(node, "answer", lambda y: y)(x[i]) for i, node in enumerate(nodes)]
    for g in gradients:
        g.close()
    return np.array(answers)


def both():
    """To the letter, and with the ridge put in exactly."""
    exact = data.problem_of(TINY, 6, TAU, None)
    return data.to_the_letter(exact), exact


CASES = {
    "SAGA-PD": (literal.saga, 1),
    "ASVR-PD": (lambda node, y: literal.asvrg(node, y, momentum=0.99, ask=0.2, floor=0.0), 2),
}


@pytest.mark.parametrize("name", CASES)
def test_as_printed_is_the_papers_algorithm_to_the_letter(name):
    estimate, draws = CASES[name]
    graph = data.graph_of(TINY, ring=False)
    method, printed = LINEUP[name].with_printed(TINY), LINEUP[name].printed
    runs = {}
    for exactly in (False, True):
        problem = both()[exactly]
        runs[exactly] = ew.solve(
            problem, graph, method, rounds=30, seed=SEED, reference=False, dtype="float64"
        ).X
    theirs = transcript(problem, graph, estimate, draws, **printed, rounds=30)
    assert np.abs(runs[False] - theirs).max() < 1e-13
    assert np.abs(runs[True] - theirs).max() > 1e-3  # with the ridge put in exactly


def test_only_as_printed_and_where_it_differs(tmp_path):
    bench = FigureProblem(named("oracle"), Job(TINY, tmp_path, progress=False), {})
    for setting, method, exactly in (
        (PRINTED, "SAGA-PD", False),
        (PRINTED, "ASVR-PD", False),
        (PRINTED, "S-DIGing", False),
        (PRINTED, "SVR-PD", True),  # its ridge's terms cancel
        (PRINTED, "EXTRA", True),
        (AUTOMATIC, "SAGA-PD", True),
    ):
        given = bench.problem_for(FigureRun(setting, method), LINEUP[method].make(TINY))
        assert (given is bench.problem) == exactly, (setting, method)
    plain = FigureProblem(replace(named("oracle"), literal=False), bench.job, {})
    assert plain.problem_for(FigureRun(PRINTED, "SAGA-PD"), LINEUP["SAGA-PD"].make(TINY)) is (
        plain.problem
    )


def test_both_readings_are_one_problem():
    inside, exact = both()
    np.testing.assert_allclose(ew.reference(inside).x, ew.reference(exact).x, atol=1e-9)

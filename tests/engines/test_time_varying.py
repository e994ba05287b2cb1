"""Graphs whose links come and go: which links are there in which round, that methods that heal end
at the optimum which scikit-learn finds, on these graphs (docs/faults.md has turns on which some do
not), and that the others are told."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

import edgewise as ew
from edgewise.errors import CheckpointError, FaultWarning, GraphError, MethodError

V, N, n, RIDGE = 7, 56, 4, 0.1
GRAPH = ew.Graph.random(V, 12, seed=1)
PIECES = [ew.Graph.from_edges(GRAPH.edges[k::3], V) for k in range(3)]  # none is connected
VARYING = {
    "thirds": lambda: ew.TimeVarying(PIECES, every=4),
    "matchings": lambda: ew.TimeVarying.matchings(GRAPH),
    "random": lambda: ew.TimeVarying.random(GRAPH, 0.2, length=300, seed=2),
}


@cache
def problem():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((N, n)) + np.linspace(-0.5, 0.5, N)[:, None]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ [2.0, -1.5, 0.0, 0.5] + 0.5 * rng.standard_normal(N) > 0, 1, -1)
    return ew.Problem(ew.split(X, y, nodes=V, how="size", seed=1), ew.Logistic(ridge=RIDGE))


@cache
def optimum():
    made = problem()
    weight = np.repeat(1 / made.counts, made.counts)
    options = {"fit_intercept": False, "solver": "newton-cholesky", "tol": 1e-14, "max_iter": 500}
    fit = LogisticRegression(C=1 / (V * RIDGE), **options)
    return fit.fit(made.shards.X, made.shards.y, sample_weight=weight).coef_[0]


def solve(graph, method="saga-pd", rounds=4000, **options):
    given = {"record_every": rounds, "reference": False, **options}
    return ew.solve(problem(), graph, method, rounds=rounds, **given)


@pytest.mark.quick_if(lambda name, method: name == "thirds" or method in ("saga-pd", "newton-pd"))
@pytest.mark.parametrize("method", ["saga-pd", "pd", "newton-pd", "pdmm", "lt-saga-pd"])
@pytest.mark.parametrize("name", VARYING)
def test_methods_that_heal_stay_exact(name, method):
    assert not all(graph.connected for graph in VARYING[name]().graphs)
    assert_allclose(solve(VARYING[name](), method).X, np.tile(optimum(), (V, 1)), atol=1e-7)


@pytest.mark.parametrize("method", ["extra", "gt-saga", "nids", "apapc"])
def test_the_others_are_told_and_end_elsewhere(method):
    with pytest.warns(FaultWarning, match="on a graph whose links come and go it ends away"):
        run = solve(VARYING["thirds"](), method)
    assert not np.abs(run.X - optimum()).max() < 1e-3


@pytest.mark.parametrize("name", VARYING)
def test_only_the_links_of_a_round_carry_anything(name):
    varying = VARYING[name]()
    trace = solve(varying, rounds=30, record_every=1).trace
    links = [varying.graphs[r // varying.every % len(varying.graphs)] for r in range(30)]
    assert np.diff(trace["vectors_sent"]).tolist() == [2 * g.edge_count for g in links]
    assert len({g.edge_count for g in links}) > 1 or name == "thirds"


def test_a_link_that_is_not_there_is_one_that_is_down():
    """The same iterates as of faults that say so, link by link."""
    rounds, away = 24, []
    for i, j in GRAPH.edges.tolist():
        own = next(k for k, piece in enumerate(PIECES) if [i, j] in piece.edges.tolist())
        for first in range(0, rounds, 4):
            if first // 4 % 3 != own:
                away.append((i, j, first, first + 3))
    down = solve(GRAPH, rounds=rounds, faults=ew.Faults(down=away))
    varying = solve(VARYING["thirds"](), rounds=rounds)
    assert_allclose(varying.X, down.X, atol=1e-14)
    assert np.abs(solve(GRAPH, rounds=rounds).X - varying.X).max() > 1e-4


def test_faults_come_on_top():
    faults = ew.Faults(drop=0.2, awake=0.7, wipe=(2, 500))
    run = solve(VARYING["thirds"](), rounds=6000, faults=faults)
    assert_allclose(run.X, np.tile(optimum(), (V, 1)), atol=1e-7)


def test_matchings_are_matchings_and_cover_the_graph():
    varying = ew.TimeVarying.matchings(GRAPH)
    assert all(graph.degrees.max() == 1 for graph in varying.graphs)
    assert sum(graph.edge_count for graph in varying.graphs) == GRAPH.edge_count
    assert np.array_equal(varying.union.edges, GRAPH.edges)
    assert len(varying.graphs) < 2 * GRAPH.degrees.max()


def test_random_links_are_as_many_as_asked_for_and_all_come():
    weighted = ew.Graph(V, GRAPH.edges, np.arange(1.0, 13.0))
    varying = ew.TimeVarying.random(weighted, 0.3, length=2000, seed=1)
    assert abs(varying.on.mean() - 0.3) < 0.02
    assert np.array_equal(varying.union.edges, GRAPH.edges)
    assert np.array_equal(varying.union.weights, weighted.weights)
    rare = ew.TimeVarying.random(GRAPH, 1e-9, length=5)
    assert np.array_equal(rare.union.edges, GRAPH.edges)
    again = ew.TimeVarying.random(weighted, 0.3, length=2000, seed=1)
    assert np.array_equal(varying.on, again.on)
    assert (varying.on != ew.TimeVarying.random(GRAPH, 0.3, length=2000, seed=2).on).any()


def test_compare_tune_and_sums_take_it():
    varying = VARYING["thirds"]()
    found = ew.compare(problem(), varying, ["pd", "extra"], 4000, tune=False, show=False)
    assert found.harmed.keys() == {"extra"}
    assert found.ended("pd")[1] < 1e-6 < 1e-4 < found.ended("extra")[1]
    tuned = ew.tune(problem(), varying, "pd", budget=300, factors=(1, 2))
    assert tuned.factors.keys() == {"eta", "rho"}
    added = ew.sum_over(varying, [np.array([float(i)]) for i in range(V)])
    assert_allclose(added.value, [21.0], atol=1e-6)


def test_a_run_goes_on_with_the_same_links_and_no_others(tmp_path):
    whole = solve(VARYING["thirds"](), rounds=40)
    file = tmp_path / "run.ckpt"
    solve(VARYING["thirds"](), rounds=22, checkpoint=file)
    rest = solve(VARYING["thirds"](), rounds=40, checkpoint=file)
    assert_allclose(rest.X, whole.X, atol=1e-14)
    with pytest.raises(CheckpointError, match="other faults"):
        solve(ew.TimeVarying(PIECES[::-1], every=4), rounds=50, checkpoint=file)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ew.TimeVarying([]), GraphError, "give a list of Graph"),
        (lambda: ew.TimeVarying(3), GraphError, "give a list of Graph"),
        (lambda: ew.TimeVarying([GRAPH, ew.Graph.ring(5)]), GraphError, "5 and 7 nodes"),
        (lambda: ew.TimeVarying([GRAPH], every=0), GraphError, "every is 0"),
        (lambda: ew.TimeVarying.random(GRAPH, 0), GraphError, "give a part of one"),
        (lambda: solve(ew.TimeVarying(PIECES[:1])), GraphError, "the graph is in"),
        (
            lambda: solve(VARYING["thirds"](), faults=ew.Faults(bits=8)),
            MethodError,
            "a time-varying graph set feedback=False",
        ),
        (lambda: solve(VARYING["thirds"](), devices=1), MethodError, "with a time-varying graph"),
        (lambda: solve(VARYING["thirds"](), faults=3), MethodError, "give edgewise.Faults"),
        (
            lambda: solve(ew.Graph.ring(V), faults=ew.Faults(links=VARYING["thirds"]())),
            GraphError,
            "give the TimeVarying as the graph",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()

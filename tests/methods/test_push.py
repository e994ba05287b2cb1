"""Directed graphs: Push-SAGA and Push-DIGing give their printed iterates and the optimum of
scikit-learn, exact costs, and everything else refuses links that go one way."""

from functools import cache

import jax
import networkx as nx
import numpy as np
import push_numpy as printed
import pytest
from literal import make_case
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from tracking_numpy import Saga, noise

import edgewise as ew
from edgewise.engines.simulator import Simulator
from edgewise.errors import DivergenceWarning, GraphError, MethodError
from edgewise.methods.catalogue import CATALOGUE, make
from edgewise.methods.knowledge import whole_network
from edgewise.methods.push import mixing_matrix

V, STEPS, SEED, RIDGE = 8, 20, 5, 0.05
GRAPHS = {
    "cycle": lambda: ew.DirectedGraph.cycle(V),
    "random": lambda: ew.DirectedGraph.random(V, 20, seed=1),
    "few ways back": lambda: ew.DirectedGraph.from_arcs(
        [(i, j) for i in range(V) for j in range(i + 1, V)] + [(V - 1, 0)]
    ),
    "both ways": lambda: ew.Graph.random(V, 12, seed=1),
}
METHODS = ("push-saga", "push-diging")


@cache
def problem(**options):
    X, y = ew.data.epsilon_like(rows=240, features=5)
    return ew.Problem(
        ew.split(X, y, nodes=V, how="label", alpha=0.3), ew.Logistic(ridge=RIDGE), **options
    )


@cache
def optimum():
    made = problem()
    weight = np.repeat(1 / made.counts, made.counts)
    options = {"fit_intercept": False, "solver": "newton-cholesky", "tol": 1e-14, "max_iter": 500}
    fit = LogisticRegression(C=1 / (V * RIDGE), **options)
    return fit.fit(made.shards.X, made.shards.y, sample_weight=weight).coef_[0]


@pytest.mark.parametrize("name", METHODS)
def test_iterates_are_as_printed(name):
    case = make_case(penalty="none", intercept=True, weighted=True)
    graph = ew.DirectedGraph.random(case.graph.nodes, 2 * case.graph.nodes, seed=3)
    nodes = [case.node(i) for i in range(graph.nodes)]
    estimator = Saga if name == "push-saga" else printed.Whole
    oracles = [estimator(node, case.X0[i]) for i, node in enumerate(nodes)]
    B = printed.column_stochastic(graph.arcs.tolist(), graph.nodes)
    words = noise(case, STEPS, 1, SEED)
    told = printed.push(B, oracles, words, 0.1, case.X0, STEPS, name == "push-diging")
    with jax.enable_x64(True):
        sim = Simulator(case.problem, graph, make(name, eta=0.1), SEED, np.dtype("float64"))
        carry = sim.start(case.X0, None)
        for t in range(STEPS):
            carry, _ = sim.advance(carry, t, 1)
            assert_allclose(sim.view(carry)[0], told[t], atol=1e-12, rtol=0)
        assert np.asarray(carry[0].memory.calls).tolist() == [node.calls for node in nodes]
    assert np.abs(told[-1] - case.X0).max() > 0.05, "nothing moves: this shows nothing"
    assert np.ptp(np.asarray(carry[0].Y)) > 0.1, "the graph is balanced: push-sum shows nothing"


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_they_reach_the_optimum(graph, name):
    run = ew.solve(problem(), GRAPHS[graph](), name, rounds=40000, record_every=2000, tol=1e-11)
    assert run.converged
    assert_allclose(run.X, np.tile(optimum(), (V, 1)), atol=1e-8)


def test_auto_takes_it_and_says_so():
    run = ew.solve(problem(), GRAPHS["random"](), rounds=100, reference=False)
    assert run.method_note == "auto: push-diging, because links go one way"
    tuned = ew.tune(problem(), GRAPHS["random"](), budget=200, factors=(0.5, 1))
    assert tuned.factors.keys() == {"eta"}


@pytest.mark.parametrize("name", METHODS)
def test_costs_are_exact(name):
    graph, size = GRAPHS["random"](), problem().size
    trace = ew.solve(problem(), graph, name, rounds=12, record_every=12, reference=False).trace
    assert trace["vectors_sent"][-1] == 12 * 20 * 2
    assert trace["bytes_sent"][-1] == 12 * 20 * (2 * size + 1) * 8
    K = problem().counts.mean()
    assert trace["oracle_calls"][-1] == K + (12 if name == "push-saga" else 12 * K)


@pytest.mark.parametrize("name", METHODS)
def test_the_rule_is_short_enough_and_not_too_short(name):
    """On squares of one curvature 1.4 times the rule's step still converges, 6 times does not."""
    rng = np.random.default_rng(0)
    unit = np.sqrt(3) * np.eye(3)  # grad f_i(x) = x - b_i
    squares = ew.Problem([(unit, rng.normal(size=3)) for _ in range(V)], ew.Squared())
    graph, method = GRAPHS["few ways back"](), make(name)
    method = ew.PushTracking(ew.Full(), first=method.first)
    rule = float(method.prepare(whole_network(squares, graph))[0].eta[0, 0])

    def far(eta):
        made = ew.PushTracking(ew.Full(), eta, method.first)
        return ew.solve(squares, graph, made, rounds=1500, record_every=500).trace["bregman"][-1]

    assert far(1.4 * rule) < 1e-3
    with pytest.warns(DivergenceWarning):
        assert not far(6 * rule) < 1


def test_too_many_nodes_for_the_rule():
    many = ew.Problem([(np.eye(2), np.ones(2))] * 301, ew.Squared())
    with pytest.raises(MethodError, match="of 301 nodes, 300 at most: give eta a number"):
        ew.solve(many, ew.DirectedGraph.cycle(301), "push-saga")


# --- graphs ---------------------------------------------------------------------------------------


def test_arcs_come_back():
    arcs = [(2, 0), (0, 1), (1, 2), (1, 0), (3, 1), (2, 3)]
    graph = ew.DirectedGraph.from_arcs(arcs)
    assert graph.arcs.tolist() == sorted(map(list, arcs))
    assert graph.out_degrees.tolist() == [1, 2, 2, 1]
    assert graph.arc_count == 6
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
    assert repr(graph) == "DirectedGraph(4 nodes, 6 arcs, 1 of 5 pairs both ways)"
    assert_allclose(mixing_matrix(graph), printed.column_stochastic(arcs, 4))
    there = ew.DirectedGraph.from_networkx(graph.to_networkx())
    assert there.arcs.tolist() == graph.arcs.tolist()
    assert ew.DirectedGraph.ring(4).arc_count == ew.Graph.ring(4).arc_count == 8


def test_random_digraphs_are_strongly_connected_and_as_large_as_asked_for():
    for seed in range(5):
        graph = ew.DirectedGraph.random(9, 14, seed)
        assert graph.arc_count == 14
        assert graph.connected
        assert nx.is_strongly_connected(graph.to_networkx())


@pytest.mark.parametrize("arcs", [[(0, 1), (1, 2), (2, 1)], [(1, 0), (1, 2), (2, 1)]])
def test_one_that_cannot_be_reached_is_named(arcs):
    graph = ew.DirectedGraph.from_arcs(arcs)
    assert not graph.connected
    a, b = (1, 0) if arcs[0] == (0, 1) else (0, 1)
    with pytest.raises(GraphError, match=f"nothing that node {a} says ever comes to node {b}"):
        graph.require_strongly_connected()


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in CATALOGUE if n not in METHODS])
def test_every_other_method_says_what_to_use(name):
    with pytest.raises(MethodError, match="on a directed graph use push-saga or push-diging"):
        ew.solve(problem(), GRAPHS["cycle"](), name)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda g: ew.solve(problem(penalty=ew.L1(0.1)), g), MethodError, "no method here takes a"),
        (lambda g: ew.solve(problem(), g, faults=ew.Faults(drop=0.1)), GraphError, "faults on a"),
        (lambda g: ew.solve(problem(), g, devices=1), MethodError, "runs in one process"),
        (
            lambda g: ew.solve(problem(), g, between=ew.Shared([0])),
            GraphError,
            "have to go both ways",
        ),
        (lambda g: ew.sum_over(g, np.ones((V, 1))), GraphError, "go both ways here"),
        (lambda g: ew.TimeVarying([g]), GraphError, "give a list of Graph, undirected"),
        (lambda g: ew.DirectedGraph.random(5, 4), GraphError, "give 5 to 20"),
        (lambda g: ew.DirectedGraph(V, g.edges, ways=[1]), GraphError, "use DirectedGraph.from"),
        (lambda g: ew.PushTracking(ew.SAGA(), first="x"), MethodError, 'give "mix" or "step"'),
        (lambda g: ew.PushTracking(ew.ASVRG()), MethodError, "has momentum"),
        (lambda g: ew.Graph.from_networkx(g.to_networkx()), GraphError, "or use DirectedGraph"),
    ],
)
def test_what_cannot_be_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make(GRAPHS["cycle"]())

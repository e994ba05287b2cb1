"""The contract of methods: what lacks a member is refused by its name, and what a node and its
neighbours know is enough for the steps that the whole network would give it."""

from dataclasses import dataclass, fields, replace

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.errors import DataError, MethodError
from edgewise.gradients import ESTIMATORS
from edgewise.methods.catalogue import CATALOGUE, make
from edgewise.methods.contract import ESTIMATOR_MEMBERS, MEMBERS, MethodDefaults, require_method
from edgewise.methods.knowledge import neighbourhood, whole_network
from edgewise.problem.smoothness import ReportedSmoothness

GRAPH = ew.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (1, 3)])  # degrees 1, 3, 2, 3, 1
COUNTS = (3, 8, 5, 7, 4)


def some_problem():
    rng = np.random.default_rng(3)
    parts = [((1 + i) * rng.standard_normal((K, 4)), rng.random(K)) for i, K in enumerate(COUNTS)]
    return ew.Problem(parts, ew.Squared(ridge=0.02), intercept=True)


PROBLEM = some_problem()
LOCAL = [
    name
    for name in CATALOGUE
    if set(make(name).hears) & {"rho", "each"} and not make(name).directed
]
EIGENVALUES = (
    "dcs",
    "sdcs",
    "pmgt",
    "apapc",
    "opapc",
    "acc-",
    "push-",
)  # or sums, of the whole network
WITH_A_STEP = [  # one number for all, where their rule takes the least or the largest of all nodes
    name for name in CATALOGUE if name not in LOCAL and not name.startswith(EIGENVALUES)
]


def facts(i):
    L = PROBLEM.smoothness
    smooth = (float(a[i]) for a in (L.sample, L.mean, L.intercept))
    return int(GRAPH.degrees[i]), COUNTS[i], *smooth


def around(i):
    """What node i knows: itself, and what its neighbours tell."""
    edges = [(facts(i), facts(j)) for j in GRAPH.neighbours(i)]
    return neighbourhood(PROBLEM.only([i]), facts(i), edges)


def rows_of(i):
    """Of the graph's edges those of node i, in the order of its neighbours."""
    d = GRAPH.directed
    return d.edge[d.owner == i]


def own_numbers(method):
    return [np.asarray(a) for a in jax.tree.leaves(method)]


def settled(name):
    method = make(name, eta=0.05)
    return replace(method, mu=1.0) if hasattr(method, "mu") else method


@pytest.mark.parametrize("name", [*LOCAL, *WITH_A_STEP])
def test_a_node_and_its_neighbours_come_to_the_steps_of_the_whole_network(name):
    method = make(name) if name in LOCAL else settled(name)
    whole, weights = method.prepare(whole_network(PROBLEM, GRAPH))
    for i in range(GRAPH.nodes):
        alone, mine = method.prepare(around(i))
        assert np.array_equal(alone.eta, whole.eta[[i]])
        assert mine.keys() == weights.keys()
        for kind, each in mine.items():
            assert np.array_equal(each, weights[kind][rows_of(i)])
        for own, every in zip(own_numbers(alone), own_numbers(whole), strict=True):
            assert np.array_equal(own, every[[i]] if every.ndim else every)


@pytest.mark.parametrize("name", sorted(CATALOGUE.keys() - set(LOCAL)))
def test_what_takes_the_whole_network_says_so(name):
    with pytest.raises(MethodError, match=r"which no peer knows: (give|use)"):
        make(name).prepare(around(1))
    make(name).prepare(whole_network(PROBLEM, GRAPH))


@pytest.mark.parametrize(
    ("method", "what"),
    [
        (ew.PrimalDual(ew.SAGA(), eta=np.ones(5)), "eta has several numbers"),
        (ew.PDMM(rho=np.ones(5)), "rho has several numbers"),
        (ew.DGD(ew.Full(), 0.1, mixing="max-degree"), "mixing 'max-degree' takes the whole"),
        (ew.DGD(ew.Full(), 0.1, mixing=np.eye(5)), "mixing matrix takes the whole"),
    ],
)
def test_numbers_of_nodes_that_nobody_knows_are_refused(method, what):
    with pytest.raises(MethodError, match=what):
        method.prepare(around(1))


def test_an_edge_keeps_the_weight_of_when_it_came_about():
    then, now = facts(1), (7, *facts(1)[1:])
    method = make("saga-pd")
    before = method.prepare(neighbourhood(PROBLEM, then, [(then, facts(2))]))
    after = method.prepare(neighbourhood(PROBLEM, now, [(then, facts(2)), (now, facts(3))]))
    assert after[1]["rho"][0] == before[1]["rho"][0]
    anew = method.prepare(neighbourhood(PROBLEM, now, [(now, facts(2))]))
    apart = before[1]["rho"] / anew[1]["rho"]
    assert_allclose(apart, np.sqrt(7 / 3))  # with the degree of now it would have another


def test_reported_smoothness_is_that_of_the_data():
    L = PROBLEM.smoothness
    told = ReportedSmoothness(L.counts, L.sample, L.mean, L.intercept, L.ridge, L.size)
    for batch in (1, 3, 100):
        assert np.array_equal(told.expected(batch), L.expected(batch))


# --- what lacks a member --------------------------------------------------------------------------


def without(part, member):
    """An object with all that the part has, but for one member."""
    kept = {m: None for m in (*MEMBERS, *ESTIMATOR_MEMBERS, "step") if hasattr(part, m)}
    return type("Lacking", (), {m: v for m, v in kept.items() if m != member} | {"phases": ()})()


@pytest.mark.parametrize("member", MEMBERS)
def test_a_method_that_lacks_a_member_is_refused_by_its_name(member):
    if member == "phases":
        lacking = type("Lacking", (), {m: None for m in MEMBERS if m != "phases"})()
    else:
        lacking = without(make("pdmm"), member)
    with pytest.raises(MethodError, match=f"has no '{member}'.*adding-a-method"):
        require_method(lacking)
    with pytest.raises(MethodError, match=f"has no '{member}'"):
        ew.solve(PROBLEM, GRAPH, lacking, rounds=1)


def test_a_phase_that_is_not_there_is_named():
    @dataclass(frozen=True)
    class Forgetful(MethodDefaults):
        gradient = None
        eta: float = 0.1
        hears = ("mixing",)
        phases = ("step", "descend")
        prepare = init = step = None

    with pytest.raises(MethodError, match="has no 'descend'"):
        require_method(Forgetful())


def test_something_else_altogether_is_told_what_comes_first():
    for other in (3, None, GRAPH):
        with pytest.raises(MethodError, match="is no method, it has no 'prepare'"):
            ew.solve(PROBLEM, GRAPH, other, rounds=1)


def test_a_method_that_is_no_pytree_is_refused():
    class Plain(MethodDefaults):
        gradient = None
        eta = 0.1
        hears = ("mixing",)
        prepare = init = step = None

    with pytest.raises(MethodError, match=r"Plain is no pytree.*adding-a-method"):
        ew.solve(PROBLEM, GRAPH, Plain(), rounds=1)


@dataclass(frozen=True)
class Prepares(MethodDefaults):
    """A user's method that gives what the test says."""

    gives: object
    gradient = None
    eta: object = 0.1
    hears = ("mixing",)
    init = step = None

    def prepare(self, known):
        eta, weights = self.gives(len(known.own), len(known.edges))
        return None if eta is None else (replace(self, eta=eta), weights)


@pytest.mark.parametrize(
    ("gives", "told"),
    [
        (lambda v, m: (None, None), "gives NoneType: it must give the method and the weights"),
        (lambda v, m: (0.1, {"mixing": np.ones(m)}), r"an eta of shape \(\): .* \(5, 1\)"),
        (lambda v, m: (np.ones((v, 1)), {}), r"no weight for each edge: .* shape \(5,\)"),
        (lambda v, m: (np.ones((v, 1)), {"mixing": np.ones(1)}), "no weight for each edge"),
    ],
)
def test_a_method_that_prepares_something_else_is_told_what_it_must_give(gives, told):
    with pytest.raises(MethodError, match=f"Prepares.*{told}"):
        ew.solve(PROBLEM, GRAPH, Prepares(gives), rounds=1)


@pytest.mark.parametrize("hears", ["mixing", ("mix",), ["mixing"]])
def test_a_method_hears_what_there_is_to_hear(hears):
    wrong = type("Wrong", (Prepares,), {"hears": hears})(lambda v, m: (np.ones((v, 1)), {}))
    with pytest.raises(MethodError, match=r'Wrong\.hears is .*"rho", "mixing", "each" or "news"'):
        ew.solve(PROBLEM, GRAPH, wrong, rounds=1)


@pytest.mark.parametrize("member", ESTIMATOR_MEMBERS[1:])
def test_an_estimator_that_lacks_a_member_is_refused_by_its_name(member):
    kept = {m: None for m in ESTIMATOR_MEMBERS if m != member} | {"__call__": lambda *a: None}
    lacking = type("Lacking", (), kept)()
    for method in (ew.PrimalDual, ew.DGD, ew.EDGE):
        with pytest.raises(MethodError, match=f"has no '{member}'"):
            method(lacking)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_an_estimator_is_no_method(kind):
    with pytest.raises(MethodError, match=rf"use PrimalDual\({kind.__name__}"):
        require_method(kind())


# --- what is declared -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", CATALOGUE)
def test_declarations_are_true_of_the_method(name):
    method = require_method(make(name))
    healing = method.healing()
    assert healing.healing().hears == healing.hears  # nothing is left to heal
    # all it holds of an edge is messages; where links go one way they are added up
    assert healing.heals == (set(healing.hears) <= {"each", "news"} and not method.directed)
    assert (method.news_head > 0) == ("news" in method.hears)
    assert len(method.message_sizes(3, 1)) == len(method.hears)
    assert set(method.tunes) <= {f.name for f in fields(method)}
    assert all(callable(getattr(method, phase)) for phase in method.phases)
    assert method.rounds_a_step in (None, len(method.phases))
    if method.streams:
        assert method.samples == method.gradient.batch


def test_classes_that_a_shard_lacks():
    X = np.eye(3)
    alone = ew.Problem([(X, [2, 2, 5])], ew.Multinomial(), classes=[5, 1, 2])
    assert alone.classes.tolist() == [1, 2, 5]
    assert alone.labels.tolist() == [1, 1, 2]
    assert alone.size == 9
    assert ew.Problem([(X, [7, 7, 7])], ew.Logistic(), classes=[3, 7]).labels.tolist() == [1, 1, 1]
    with pytest.raises(DataError, match="label 4 is none of the classes"):
        ew.Problem([(X, [2, 2, 4])], ew.Multinomial(), classes=[5, 1, 2])

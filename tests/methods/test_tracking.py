"""Gradient tracking, PMGT and Network-DANE: the printed iterates, the optimum, the exact costs."""

from functools import cache

import jax
import numpy as np
import pytest
import tracking_numpy as printed
from literal import make_case

import edgewise as ew
from edgewise.engines.simulator import Simulator
from edgewise.errors import MethodError
from edgewise.gradients import PlainSVRG
from edgewise.methods.knowledge import whole_network
from edgewise.methods.network_dane import NetworkDane
from edgewise.methods.pmgt import PMGT
from edgewise.methods.tracking import GradientTracking

STEPS, SEED, V = 20, 5, 8
METHODS = {
    "gt-saga": lambda: GradientTracking(ew.SAGA()),
    "gt-svrg": lambda: GradientTracking(PlainSVRG()),
    "vr-diging": lambda: GradientTracking(ew.LSVRG()),
    "network-dane": lambda: NetworkDane(),
    "network-svrg": lambda: NetworkDane(batch=1, inner=20),
    "pmgt-saga": lambda: PMGT(ew.SAGA()),
    "pmgt-lsvrg": lambda: PMGT(ew.LSVRG()),
}
GRAPHS = {
    "ring": lambda: ew.Graph.ring(V),
    "random": lambda: ew.Graph.random(nodes=V, edges=14),
    "complete": lambda: ew.Graph.complete(V),
}


def iterates(case, method):
    """x(1)..x(T) of the library, and its calls."""
    with jax.enable_x64(True):
        sim = Simulator(case.problem, case.graph, method, SEED, np.dtype("float64"))
        carry, told, phases = sim.start(case.X0, None), [], len(sim.method.phases)
        for t in range(STEPS):
            carry, _ = sim.advance(carry, t * phases, phases)
            told.append(np.array(sim.view(carry)[0]))
        return told, np.array(carry[0].memory.calls)


def assert_same(case, method, told, nodes=None):
    library, calls = iterates(case, method)
    assert np.abs(library[-1] - case.X0).max() > 0.05, "nothing moves: this shows nothing"
    for t, (a, b) in enumerate(zip(library, told, strict=True)):
        assert np.abs(a - b).max() < 1e-10, t
    if nodes is not None:
        assert calls.tolist() == [node.calls for node in nodes]


def test_saga_tracking_is_as_printed():
    case = make_case(penalty="none", intercept=True, weighted=True)
    told, nodes = printed.gradient_tracking(case, printed.Saga, 0.3, STEPS, SEED)
    assert_same(case, GradientTracking(ew.SAGA(), eta=0.3), told, nodes)


def test_svrg_tracking_is_as_printed():
    case = make_case(penalty="none")
    told, _ = printed.gradient_tracking(
        case, lambda node, x: printed.Svrg(node, x, 6), 0.3, STEPS, SEED
    )
    method = GradientTracking(PlainSVRG(length=6), eta=0.3)
    assert_same(case, method, told)
    # the library has asked for g(0)..g(19), with snapshots at 6, 12 and 18
    K = case.problem.counts
    assert iterates(case, method)[1].tolist() == (K + 2 * STEPS + 3 * K).tolist()


def test_vr_diging_is_tracking_with_loopless_svrg():
    case = make_case(penalty="none")
    told, nodes = printed.vr_diging(case, 0.3, STEPS, SEED)
    assert_same(case, GradientTracking(ew.LSVRG(), eta=0.3), told, nodes)


@pytest.mark.parametrize(("name", "depth"), [("saga", 1), ("saga", 2), ("lsvrg", 3)])
def test_pmgt_is_as_printed(name, depth):
    case = make_case(penalty="l1")
    estimator, gradient = {
        "saga": (printed.Saga, ew.SAGA()),
        "lsvrg": (printed.Lsvrg, ew.LSVRG()),
    }[name]
    told, nodes = printed.pmgt(case, estimator, 0.3, STEPS, depth, gradient.random_draws, SEED)
    assert_same(case, PMGT(gradient, eta=0.3, depth=depth), told, nodes)


def test_network_dane_is_as_printed():
    case = make_case(penalty="none")
    told, nodes = printed.network_dane(case, printed.gradient_steps(0.4, 0.7, 4), STEPS)
    assert_same(case, NetworkDane(eta=0.4, mu=0.7, inner=4), told, nodes)


def test_network_svrg_is_as_printed():
    case = make_case(penalty="none")
    words = printed.noise(case, STEPS, 3, SEED)
    told, nodes = printed.network_dane(case, printed.svrg_steps(0.4, 0.7, 4, words), STEPS)
    assert_same(case, NetworkDane(eta=0.4, mu=0.7, inner=4, batch=1), told, nodes)


def test_network_dane_with_many_inner_steps_solves_the_local_problems():
    case = make_case(loss="squared", penalty="none")
    told, _ = printed.network_dane(case, printed.newton_step(0.7), STEPS)
    assert_same(case, NetworkDane(mu=0.7, inner=200), told)


@cache
def problem(how, penalised):
    X, y = ew.data.epsilon_like(rows=240, features=5)
    shards = ew.split(X, y, nodes=V, how=how, alpha=0.3)
    made = ew.Problem(shards, ew.Logistic(ridge=0.05), ew.L1(0.05) if penalised else None)
    star = ew.reference(made)
    assert star.residual < 1e-11
    return made, star


@pytest.mark.quick_if(lambda graph, how, **_: (graph, how) == ("ring", "label"))
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("how", ["iid", "label"])
def test_it_reaches_the_optimum(name, graph, how):
    here, star = problem(how, name.startswith("pmgt"))
    method = METHODS[name]()
    rounds = 1000 if isinstance(method, NetworkDane) else 15000
    run = ew.solve(
        here, GRAPHS[graph](), method, rounds=rounds, record_every=1000, tol=1e-11, reference=False
    )
    assert np.abs(run.X - star.x).max() < 1e-8
    if name.startswith("pmgt"):
        assert 0 < np.count_nonzero(star.x) < len(star.x), "the penalty does nothing"


def test_exact_tracking_leaves_its_bound_where_stable_says():
    """Beyond 3/2 of `stable` squares of one curvature swing and grow, before it they do not."""
    rng, ring = np.random.default_rng(0), ew.Graph.ring(V)
    unit = np.sqrt(3) * np.eye(3)  # grad f_i(x) = x - b_i: the curvature is one
    squares = ew.Problem([(unit, rng.normal(size=3)) for _ in range(V)], ew.Squared())
    limit = (1 - 1 / 3) ** 2 / 2

    def spread(eta):
        run = ew.solve(
            squares, ring, GradientTracking(ew.Full(), eta), rounds=400, record_every=200
        )
        return run.trace["consensus"][-1]

    assert spread(0.95 * limit) < 1e-3
    assert spread(1.05 * limit) > 10
    ready, _ = GradientTracking(ew.Full()).prepare(whole_network(squares, ring))
    assert 0.9 * limit / 1.5 < ready.eta[0, 0] <= limit / 1.5


def test_plain_stochastic_gradients_stop_at_a_distance_that_shrinks_with_the_step():
    here, star = problem("iid", False)

    def distance(eta):
        run = ew.solve(
            here,
            GRAPHS["random"](),
            GradientTracking(ew.SGD(), eta),
            rounds=6000,
            record_every=100,
            X0=star.x,  # it leaves the optimum for its noise floor
            reference=star,
        )
        return np.mean(run.trace["bregman"][-30:])

    far, near = distance(0.1), distance(0.01)
    assert near > 1e-9
    assert 4 < far / near < 40


COSTS = {  # calls of a node with K samples, rounds and vectors per directed edge after 12 rounds
    "gt-saga": (lambda: GradientTracking(ew.SAGA()), lambda K: K + 12, 12, 24),
    "saga, four": (lambda: GradientTracking(ew.SAGA(4)), lambda K: K + 48, 12, 24),
    "gt-svrg": (lambda: GradientTracking(PlainSVRG(length=5)), lambda K: 3 * K + 24, 12, 24),
    "network-dane": (lambda: NetworkDane(inner=3), lambda K: K + 12 * 3 * K, 12, 24),
    "network-svrg": (
        lambda: NetworkDane(inner=3, batch=2),
        lambda K: K + 12 * (K + 2 * 4),
        12,
        24,
    ),
    "pmgt-saga": (lambda: PMGT(ew.SAGA(), depth=2), lambda K: K + 3, 12, 12),
    "pmgt-saga, a step": (lambda: PMGT(ew.SAGA(), depth=5), lambda K: K + 2, 20, 20),
    "pmgt-full": (lambda: PMGT(ew.Full(), depth=3), lambda K: 3 * K, 12, 12),
}


@pytest.mark.parametrize("name", COSTS)
def test_costs_are_exact(name):
    here, _ = problem("iid", False)
    make, calls, rounds, vectors = COSTS[name]
    graph = GRAPHS["random"]()
    run = ew.solve(here, graph, make(), rounds=12, record_every=12, reference=False)
    assert run.trace["rounds"][-1] == rounds
    assert run.trace["vectors_sent"][-1] == vectors * 2 * graph.edge_count
    assert run.trace["oracle_calls"][-1] == calls(30)


@pytest.mark.parametrize("name", ["gt-saga", "gt-svrg", "vr-diging", "network-dane"])
def test_a_penalty_is_refused_before_the_start(name):
    with pytest.raises(MethodError, match="cannot handle a penalty"):
        ew.solve(problem("iid", True)[0], ew.Graph.ring(V), METHODS[name]())


def test_pmgt_refuses_a_penalty_of_its_own_at_each_node():
    here, _ = problem("iid", False)
    many = ew.Problem(here.shards, here.loss, [ew.L1(0.01 * (i + 1)) for i in range(V)])
    with pytest.raises(MethodError, match="same penalty at every node"):
        ew.solve(many, ew.Graph.ring(V), PMGT(ew.SAGA()), reference=False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GradientTracking("saga"), "give an estimator"),
        (lambda: GradientTracking(ew.ASVRG()), "has momentum"),
        (lambda: PMGT(ew.ASVRG()), "has momentum"),
        (lambda: PMGT(ew.SAGA(), depth=0), "PMGT's depth is 0: give a whole number from 1 up"),
        (lambda: NetworkDane(ew.SAGA()), "tracks whole gradients"),
        (lambda: NetworkDane(inner=0), "NetworkDane's inner is 0"),
        (lambda: NetworkDane(batch=0), "NetworkDane's batch is 0"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(MethodError, match=message):
        make()


def test_the_rules_give_one_step_to_all_nodes():
    here, _ = problem("label", False)
    graph = ew.Graph.ring(V)
    for method in (GradientTracking(ew.SAGA()), PMGT(ew.SAGA())):
        ready, weights = method.prepare(whole_network(here, graph))
        assert ready.eta.shape == (V, 1)
        assert (ready.eta == ready.eta[0]).all()
        assert ready.mixing is None
        assert weights["mixing"].shape == (V,)
        assert ready.eta[0, 0] <= ew.SAGA().auto_step(here.smoothness).min()
    for method in (GradientTracking, PMGT):
        with pytest.raises(MethodError, match="one step for all nodes"):
            method(ew.SAGA(), eta=np.linspace(0.1, 0.2, V)).prepare(whole_network(here, graph))

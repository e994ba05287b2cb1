"""Several steps between two messages: against literal code, the optimum, and exact counts."""

import catalogue as cat
import jax
import literal
import literal_biased
import numpy as np
import pytest
from literal import make_case
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.engines import native
from edgewise.engines.simulator import Simulator
from edgewise.errors import MethodError
from edgewise.methods.catalogue import make
from edgewise.methods.knowledge import whole_network

CLOSE, ROUNDS = 1e-12, 12
CASE = make_case(ridge=0.005)
ESTIMATORS = {
    "full": (ew.Full(), literal.full, {}),
    "saga": (ew.SAGA(batch=3), literal.saga, {}),
    "svrg-stop": (ew.SVRG(stop=0.6), literal.svrg, {"stop": 0.6}),
    "lsvrg": (ew.LSVRG(), literal.lsvrg, {}),
    "sega": (ew.SEGA(batch=2), literal.sega, {}),
    "sag": (ew.SAG(batch=2), literal_biased.sag, {}),
    "page": (ew.PAGE(), literal_biased.page, {}),
    "sarah": (ew.SARAH(), literal_biased.sarah, {}),
}


def prepared(method, problem=CASE.problem, graph=CASE.graph):
    return method.prepare(whole_network(problem, graph))


def assert_as_printed(method, told):
    """All rounds of it are those of the literal code, calls too."""
    assert np.abs(told[-1].X - told[0].X).max() > 0.05, "nothing moves: this shows nothing"
    with jax.enable_x64(True):
        sim = Simulator(CASE.problem, CASE.graph, method, 0, np.dtype("float64"))
        sim.unroll, sim.options = 1, {**sim.options, **literal.QUICK}
        carry = sim.start(CASE.X0, None)
        for t in range(0, ROUNDS + 1, 4):
            if t:
                carry, _ = sim.advance(carry, t - 4, 4)
            X, duals = map(np.array, sim.view(carry))
            assert_allclose(X, told[t].X, atol=CLOSE)
            assert_allclose(duals, told[t].duals, atol=CLOSE)
            assert (np.array(carry[0].memory.calls) == told[t].calls).all()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_round_is_so_many_steps_with_the_inbox_held_fixed(name):
    gradient, printed, options = ESTIMATORS[name]
    method = ew.PrimalDual(gradient, eta=CASE.eta, rho=CASE.rho, local=3)
    tau = [3] * len(CASE.eta)
    assert method.random_draws == 3 * gradient.random_draws
    draws = gradient.random_draws
    assert_as_printed(method, literal.run(CASE, printed, ROUNDS, draws, local=tau, **options))


@pytest.mark.parametrize("name", ["full", "saga", "svrg-stop", "page"])
def test_by_rule_each_node_takes_its_own_number_and_stops_when_it_has_settled(name):
    gradient, printed, options = ESTIMATORS[name]
    method = ew.PrimalDual(gradient, eta=CASE.eta, rho=CASE.rho, local="auto")
    ready, _ = prepared(method)
    assert len(set(ready.steps)) > 2
    assert ready.random_draws == max(ready.steps) * gradient.random_draws
    draws, enough = gradient.random_draws, ready.enough[0]
    told = literal.run(CASE, printed, ROUNDS, draws, local=ready.steps, enough=enough, **options)
    assert_as_printed(method, told)
    if name == "full":
        most = CASE.counts * ready.steps * ROUNDS
        assert (told[-1].calls < most).any(), "no node ever stops early: this shows little"
        assert (told[-1].calls >= CASE.counts * ROUNDS).all()


def test_one_step_is_the_edge_form_bit_for_bit():
    options = {"rounds": 40, "reference": False, "eta": CASE.eta, "rho": CASE.rho}
    one, edge = (
        ew.solve(CASE.problem, CASE.graph, ew.PrimalDual(ew.SVRG(stop=0.6), **how), **options)
        for how in ({"local": 1}, {"form": "edge"})
    )
    assert (one.X == edge.X).all()
    assert (one.trace["oracle_calls"] == edge.trace["oracle_calls"]).all()


@pytest.mark.parametrize("name", ["lt-saga-pd", "lt-svr-pd-es", "lt-pd"])
def test_it_reaches_the_optimum_where_every_node_has_its_own_penalty(name):
    each = cat.PROBLEMS["each-its-own"]
    result = ew.solve(each.problem(), cat.GRAPHS["random"], name, rounds=2500, reference=False)
    assert cat.residual(each, result.x) < 1e-8
    assert result.trace["residual"][-1] < 1e-8


def test_it_heals():
    """A fifth of the messages lost, half of the nodes asleep."""
    lasso, graph = cat.PROBLEMS["l1-logistic"], cat.GRAPHS["ring"]
    faults = ew.Faults(drop=0.2, awake=0.5)
    result = ew.solve(
        lasso.problem(), graph, "lt-saga-pd", rounds=600, faults=faults, reference=False
    )
    assert cat.residual(lasso, result.x) < 1e-8
    assert result.trace["consensus"][-1] < 1e-8
    assert (result.X == 0).any(), "no zeros: this shows little"


def test_one_node_alone():
    single = cat.PROBLEMS["l1-logistic"]
    made, alone = single.problem(nodes=1), cat.GRAPHS["single"]
    result = ew.solve(made, alone, "lt-saga-pd", rounds=400, reference=False)
    assert cat.residual(single, result.x, nodes=1) < 1e-8


def test_the_rules():
    """tau = 1 / (eta s), edges that add twice s to a node of degree one each, s = sqrt(mu L)."""
    graph, L = CASE.graph, CASE.problem.smoothness
    ready, weights = prepared(ew.PrimalDual(ew.Full(), local="auto"))
    s = np.sqrt(np.maximum(L.ridge, 0.01 * L.mean) * L.mean)
    assert_allclose(ready.steps, np.ceil(L.mean / s))
    i, j = graph.edges.T
    d = graph.degrees
    assert_allclose(weights["rho"], 2 * np.sqrt(s[i] * s[j] / (d[i] * d[j])))
    few, heavier = prepared(ew.PrimalDual(ew.Full(), local=2))
    pull = np.maximum(s, L.mean / 2)
    assert (few.steps == 2).all()
    assert_allclose(heavier["rho"], 2 * np.sqrt(pull[i] * pull[j] / (d[i] * d[j])))
    saga, _ = prepared(ew.PrimalDual(ew.SAGA(), local="auto"))
    assert_allclose(saga.eta[:, 0], 1 / np.minimum(3 * L.sample, L.sample + L.ridge * CASE.counts))


def text_like(intercept=True):
    """Rows of length 0.5, so that an intercept is far more curved than all else."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    X *= 0.5 / np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ rng.normal(size=12) + 0.1 * rng.normal(size=60) > 0, 1.0, -1.0)
    shards = ew.split(X, y, nodes=6, seed=0)
    return ew.Problem(shards, ew.Logistic(ridge=1e-3), weights="sample", intercept=intercept)


def test_edges_weigh_an_intercept_by_its_own_curvature():
    """0.3 of it; s is that of the features; never less than they have."""
    problem, graph = text_like(), ew.Graph.ring(6)
    L = problem.smoothness
    ready, weights = prepared(ew.PrimalDual(ew.Full(), local="auto"), problem, graph)
    assert_allclose(L.intercept, 1.05 / 4)
    rest = L.mean - L.intercept
    s = np.sqrt(np.maximum(L.ridge, 0.01 * rest) * rest)
    assert_allclose(ready.steps, np.ceil(L.mean / s))
    i, j = graph.edges.T
    assert_allclose(weights["rho"], np.sqrt(s[i] * s[j]))
    assert_allclose(weights["rho"] * weights["intercept"], 0.15 * L.intercept[0])
    given = prepared(ew.PrimalDual(ew.Full(), local="auto", rho=0.1), problem, graph)[1]
    assert_allclose(given["intercept"], weights["intercept"])  # so that multiples of a rule are
    for plain in (
        prepared(ew.PrimalDual(ew.Full(), local="auto", rho="theory"), problem, graph),
        prepared(ew.PrimalDual(ew.Full(), local="auto"), text_like(intercept=False), graph),
    ):
        assert plain[1].keys() == {"rho"}
    long = ew.Problem(CASE.problem.shards, ew.Logistic(ridge=0.005), intercept=True)
    assert (
        prepared(ew.PrimalDual(ew.Full(), local="auto"), long, CASE.graph)[1]["intercept"] >= 1
    ).all()


@pytest.mark.parametrize(
    ("faults", "rounds"),
    [(None, 80), (ew.Faults(drop=0.2, awake=0.7), 140)],
    ids=["calm", "faulty"],
)
def test_short_rows_and_an_intercept_arrive(faults, rounds):
    """With one weight for all coordinates they are still 1e-2 off."""
    problem, graph = text_like(), ew.Graph.ring(6)
    result = ew.solve(problem, graph, "lt-pd", rounds=rounds, faults=faults, reference=False)
    assert np.abs(result.X - ew.reference(problem).x).max() < 1e-6


def test_many_unknowns_are_taken_to_be_flat():
    """mu is then no more than a sample's L over n."""
    X = np.zeros((6, 400))
    X[:, 0], X[np.arange(6), 1 + np.arange(6)] = 1, 0.1
    problem = ew.Problem([(X, np.array([1.0, -1] * 3))] * 3, ew.Logistic(ridge=1e-6))
    L, graph = problem.smoothness, ew.Graph.ring(3)
    _, weights = prepared(ew.PrimalDual(ew.Full(), local="auto"), problem, graph)
    assert_allclose(weights["rho"], np.sqrt(L.sample / 400 * L.mean))


def test_a_node_looks_only_where_a_round_may_draw_all_its_samples():
    few, _ = prepared(ew.PrimalDual(ew.SAGA(), local="auto"))
    all_drawn = few.steps >= CASE.counts
    assert (few.enough == np.where(all_drawn, 0.1, 0)).all()
    whole, _ = prepared(ew.PrimalDual(ew.Full(), local="auto"))
    assert (whole.enough == 0.1).all()
    given, _ = prepared(ew.PrimalDual(ew.Full(), local=3))
    assert (given.enough == 0).all()


def test_compiled_rounds_of_one_step_leave_it_alone():
    rng = np.random.default_rng(0)
    wide = ew.Problem([(rng.normal(size=(3, 300)), [1.0, -1.0, 1.0])] * 2, ew.Logistic())
    pytest.importorskip("numba")
    assert native.fits(wide, make("saga-pd"))
    assert not native.fits(wide, make("lt-saga-pd"))


def test_what_cannot_work_is_refused():
    with pytest.raises(MethodError, match="cannot take ASVRG, which has momentum"):
        ew.PrimalDual(ew.ASVRG(), local=5)
    for local in (0, 2.5, True):
        with pytest.raises(MethodError, match="local is"):
            ew.PrimalDual(ew.SAGA(), local=local)
    with pytest.raises(MethodError, match="give 'auto', or how many steps"):
        ew.PrimalDual(ew.SAGA(), local="many")


def test_it_takes_no_stream():
    def draw(node, size, rng):
        return rng.normal(size=(size, 4)), np.ones(size)

    held = ew.split(np.eye(6, 4), np.ones(6), nodes=3)
    problem = ew.Problem(ew.data.Stream(draw, held), ew.Squared(ridge=0.1))
    assert ew.PrimalDual(ew.SGD()).streams
    with pytest.raises(MethodError, match="needs a finite set of samples"):
        ew.solve(problem, ew.Graph.ring(3), ew.PrimalDual(ew.SGD(), local=5), rounds=2)


def test_one_row_much_longer_than_the_others_does_not_throw_squared_loss_off():
    """What SAGA remembers of it is old when it is drawn again: with steps of 1/L it diverges."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 5)), rng.standard_normal(80)
    X[7] *= 20
    problem = ew.Problem(ew.split(X, y, nodes=4), ew.Squared(), penalty=ew.L1(0.01))
    result = ew.solve(problem, ew.Graph.ring(4), "lt-saga-pd", rounds=60, record_every=20)
    assert result.trace["bregman"][-1] < 1e-4 * result.trace["bregman"][0]

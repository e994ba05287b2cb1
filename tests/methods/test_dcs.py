"""DCS and SDCS: their authors' iterates, the rates that theory promises, exact counts."""

from functools import cache

import dcs_numpy as printed
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from literal import draw, make_case
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.backend.random_bits import draw_bits
from edgewise.engines.simulator import Simulator
from edgewise.errors import MethodError, UnknownName
from edgewise.methods.dcs import DCS
from edgewise.methods.knowledge import whole_network

NODES, RIDGE, STEPS, SEED = 6, 0.1, 20, 4
GRAPHS = {
    "ring": ew.Graph.ring(NODES),
    "random": ew.Graph.random(NODES, 9),
    "complete": ew.Graph.complete(NODES),
}
OWN = [ew.L1(0.05), ew.NoPenalty(), ew.Box(-0.3, 0.3), ew.L1(0.1), ew.NonNegative(), ew.L1(0)]
PENALTIES = {"none": None, "l1": ew.L1(0.05), "own": OWN}


@cache
def problem(how="iid", penalty="none", **options):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((72, 4)) + 0.5
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.standard_normal(72) > 0, 1, -1)
    shards = ew.split(X, y, nodes=NODES, how=how, alpha=0.3)
    return ew.Problem(shards, ew.Logistic(ridge=RIDGE), PENALTIES[penalty], **options)


@cache
def optimum(how="iid", penalty="none"):
    return ew.reference(problem(how, penalty))


# --- iterates -------------------------------------------------------------------------------------


def mixing_matrix(graph):
    rng, W = np.random.default_rng(1), np.zeros((graph.nodes, graph.nodes))
    W[tuple(graph.edges.T)] = rng.uniform(0.05, 0.2, graph.edge_count)
    W += W.T
    return W + np.diag(1 - W.sum(1))


def whole(node):
    return lambda x, words: node.mean(x) + node.ridge_part(x)


def sampled(node):
    return lambda x, words: node.sample(x, draw(words, node.K)[0]) + node.ridge_part(x)


@pytest.mark.parametrize("strong", [True, False])
@pytest.mark.parametrize("noisy", [False, True])
def test_iterates_are_those_of_the_source(noisy, strong):
    case, T = make_case(penalty="l1"), 4
    V = case.graph.nodes
    W, nodes = mixing_matrix(case.graph), [case.node(i) for i in range(V)]
    L = np.eye(V) - W
    norm, mu = np.linalg.norm(L, 2), nodes[0].ridge
    assert mu > 0
    gradient, oracle = (ew.SGD(), sampled) if noisy else (ew.Full(), whole)
    with jax.enable_x64(True):
        rounds = jnp.arange(2 * STEPS)
        drawn = draw_bits(jax.random.key(SEED), jnp.arange(V), rounds, T * gradient.random_draws)
        words = np.asarray(drawn)[1::2].reshape(STEPS, V, T, -1)  # of every second round
        method = DCS(gradient, eta="theory", mixing=W, mu="auto" if strong else 0.0, inner=T)
        sim = Simulator(case.problem, case.graph, method, SEED, np.dtype("float64"))
        carry, got = sim.start(case.X0, None), []
        for k in range(STEPS):
            carry, _ = sim.advance(carry, 2 * k, 2)
            X, duals = map(np.asarray, sim.view(carry))
            assert_allclose(duals.sum(0), 0, atol=1e-12)
            got.append(X)
        calls = np.asarray(carry[0].memory.calls)
    settings = printed.strongly_convex(mu, norm) if strong else printed.convex(norm)
    ask = [oracle(node) for node in nodes]
    told = list(printed.dcs(L, ask, case.prox, settings, T, case.X0, words))
    assert_allclose(got, told, atol=1e-10, rtol=0)
    assert np.abs(np.diff(told, axis=0)).max(axis=(1, 2)).min() > 1e-5, "nothing moves"
    assert calls.tolist() == [node.calls for node in nodes]


def test_auto_enters_the_same_sequence_later():
    """eta = 2 / (7 mu) is to begin at k = 7."""
    case, T = make_case(penalty="l1"), 3
    V = case.graph.nodes
    W, nodes = mixing_matrix(case.graph), [case.node(i) for i in range(V)]
    L, mu = np.eye(V) - W, nodes[0].ridge
    settings = printed.strongly_convex(mu, np.linalg.norm(L, 2))
    ask, words = [whole(node) for node in nodes], np.zeros((8, V, T, 0))
    *_, told = printed.dcs(L, ask, case.prox, settings, T, case.X0, words, first=7)
    method = DCS(ew.Full(), eta=2 / (7 * mu), mixing=W, inner=T)
    run = ew.solve(
        case.problem, case.graph, method, rounds=16, record_every=16, reference=False, X0=case.X0
    )
    assert_allclose(run.X, told, atol=1e-10)


@pytest.mark.parametrize("first", [1, 7.3])
def test_the_settings_meet_the_conditions_of_the_proofs(first):
    """Telescoping sums: outer in k, inner in t; |L|^2 bounded by eta tau, with a share to spare."""
    norm, mu = 1.7, 0.3
    for m, (outer, inner) in (
        (mu, printed.strongly_convex(mu, norm)),
        (0, printed.convex(norm)),
    ):
        for k in first + np.arange(1, 50):
            alpha, theta, eta, tau = outer(k)
            _, theta_before, eta_before, tau_before = outer(k - 1)
            assert_allclose(alpha * theta, theta_before)
            assert theta * eta <= theta_before * (eta_before + m) * (1 + 1e-12)
            assert theta * tau <= theta_before * tau_before * (1 + 1e-12)
            assert alpha * norm**2 <= eta_before * tau * (1 + 1e-12)
            for t in range(1, 20):
                (weight, beta), (later, beta_later) = inner(t, eta), inner(t + 1, eta)
                assert_allclose(later * (eta * beta_later - m), weight * eta * (1 + beta))


# --- rates ----------------------------------------------------------------------------------------


def run(method, graph="random", how="iid", penalty="none", rounds=3200, **options):
    options = {"record_every": rounds // 4, "reference": optimum(how, penalty), **options}
    return ew.solve(problem(how, penalty), GRAPHS[graph], method, rounds=rounds, **options)


def slope(values):
    """Of the logarithm over that of the rounds, from the middle of the run to its end."""
    at = np.arange(len(values) // 2, len(values))
    return np.polyfit(np.log(at), np.log(np.asarray(values)[at]), 1)[0]


@pytest.mark.quick_if(
    lambda graph, how, penalty: (graph, how) == ("ring", "label") or penalty == "own"
)
@pytest.mark.parametrize(
    ("graph", "how", "penalty"),
    [
        *((graph, how, "l1") for graph in GRAPHS for how in ("iid", "label")),
        ("ring", "label", "none"),
        ("random", "label", "own"),
    ],
)
def test_errors_fall_at_least_as_fast_as_theory_says(graph, how, penalty):
    """1/N^2 with a strongly convex setting, 1/N without, N the number of steps."""
    for mu, rate in (("auto", 2), (0.0, 1)):
        result = run(DCS(ew.Full(), mu=mu), graph, how, penalty)
        error, apart = result.trace["bregman"], result.trace["consensus"]
        assert slope(error) < -0.9 * rate, (mu, error)
        assert slope(apart) < -0.9 * rate, (mu, apart)
        assert error[-1] < (1e-4 if mu else 1e-2), (mu, error[-1])


@pytest.mark.exhaustive
def test_with_time_it_comes_close():
    result = run(DCS(ew.Full(), inner=2), "random", "label", rounds=40_000)
    assert np.abs(result.X - optimum("label").x).max() < 2e-6


def test_theory_as_printed_converges_on_bounded_gradients():
    result = run(DCS(ew.Full(), eta="theory"), "ring", "label")
    assert slope(result.trace["bregman"]) < -1.9
    assert result.trace["bregman"][-1] < 1e-6


def test_noise_falls_with_the_number_of_inner_steps():
    def floor(inner):
        runs = [
            run(DCS(ew.SGD(), mu=0.0, inner=inner), seed=seed, X0=optimum().x, rounds=800)
            for seed in range(2)
        ]
        return np.mean([made.trace["bregman"][-1] for made in runs])

    few, many = floor(2), floor(32)
    assert few > 1e-5
    assert many < few / 4


def test_sdcs_reaches_a_neighbourhood():
    result = run(DCS(ew.SGD()), "ring", "label", "l1")
    assert slope(result.trace["bregman"]) < -0.7
    assert result.trace["bregman"][-1] < 5e-4


# --- warm starts, counts, refusals ----------------------------------------------------------------


def test_nothing_moves_from_the_optimum_and_its_duals():
    made = problem("label", "own")
    solved = ew.solve(made, GRAPHS["ring"], "pd", rounds=2500, record_every=2500, reference=False)
    options = {"graph": "ring", "how": "label", "penalty": "own", "rounds": 8, "X0": solved.X}
    assert_allclose(run(DCS(ew.Full()), duals=solved, **options).X, solved.X, atol=1e-8)
    assert np.abs(run(DCS(ew.Full()), **options).X - solved.X).max() > 1e-3


@pytest.mark.parametrize(
    ("method", "a_step"),
    [(lambda: DCS(ew.Full(), inner=3), 3 * 12), (lambda: DCS(ew.SGD(batch=2), inner=5), 10)],
)
def test_counts_are_exact(method, a_step):
    result = run(method(), rounds=40, record_every=10, reference=False)
    assert list(result.trace["rounds"]) == [0, 10, 20, 30, 40]
    assert list(result.trace["vectors_sent"]) == [2 * 9 * t for t in (0, 10, 20, 30, 40)]
    assert list(result.trace["oracle_calls"]) == [a_step * t // 2 for t in (0, 10, 20, 30, 40)]


def test_rules_in_numbers():
    made, ring = problem("label"), GRAPHS["ring"]
    shortest = ew.Full().auto_step(made.smoothness).min()
    ready, weights = DCS(ew.Full()).prepare(whole_network(made, ring))
    assert_allclose(ready.eta, np.full((NODES, 1), shortest))
    assert_allclose(ready.mu, np.full((NODES, 1), RIDGE))
    norm = 4 / 3  # weights of 1/3 on an even ring
    assert_allclose(ready.dual, np.full((NODES, 1), 1 / (2 * norm**2)))
    assert list(weights) == ["mixing"]
    assert_allclose(
        DCS(ew.Full(), eta="theory").prepare(whole_network(made, ring))[0].eta, 2 / RIDGE
    )
    assert_allclose(
        DCS(ew.Full(), "theory", mu=0).prepare(whole_network(made, ring))[0].eta, 1 / (2 * norm)
    )
    free = problem("label", intercept=True)
    assert (DCS(ew.Full()).prepare(whole_network(free, ring))[0].mu == 0).all()


def test_what_cannot_work_is_refused():
    made, ring = problem(), GRAPHS["ring"]
    with pytest.raises(MethodError, match="give an estimator"):
        DCS("sgd")
    with pytest.raises(MethodError, match="has momentum"):
        DCS(ew.ASVRG())
    for method, message in (
        (DCS(ew.Full(), inner=0), "DCS's inner is 0: give a whole number from 1 up"),
        (DCS(ew.Full(), mu=-1.0), r"DCS\(mu=-1.0\): give 'auto', or one number, zero or more"),
        (DCS(ew.Full(), mu="ridge"), r"DCS\(mu='ridge'\)"),
        (DCS(ew.Full(), mu=np.ones(NODES)), "one number"),
        (DCS(ew.Full(), eta=np.linspace(0.1, 0.2, NODES)), "one step for all nodes"),
    ):
        with pytest.raises(MethodError, match=message):
            method.prepare(whole_network(made, ring))
    with pytest.raises(UnknownName, match="step rule eta"):
        DCS(ew.Full(), eta="best").prepare(whole_network(made, ring))

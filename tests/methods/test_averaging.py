"""DGD, EXTRA, PG-EXTRA, VR-EXTRA, NIDS and D2: their authors' iterates, the optimum where theory
promises it and a neighbourhood where it does not, and exact counts."""

from functools import cache
from itertools import islice

import averaging_numpy as plain
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

import edgewise as ew
from edgewise.backend.random_bits import draw_bits
from edgewise.engines.simulator import Simulator
from edgewise.errors import GraphError, MethodError
from edgewise.graph.mixing import mixing_weights
from edgewise.methods.d2 import D2
from edgewise.methods.dgd import DGD
from edgewise.methods.extra import EXTRA
from edgewise.methods.knowledge import whole_network
from edgewise.methods.nids import NIDS

NODES, ROWS, FEATURES, RIDGE, L1 = 6, 72, 4, 0.1, 0.05
GRAPHS = {
    "ring": ew.Graph.ring(NODES),
    "random": ew.Graph.random(NODES, 9),
    "complete": ew.Graph.complete(NODES),
}
METHODS = {
    "dgd": lambda **o: DGD(ew.SGD(), **o),
    "dgd-full": lambda **o: DGD(ew.Full(), **o),
    "extra": lambda **o: EXTRA(ew.Full(), **o),
    "pg-extra": lambda **o: EXTRA(ew.Full(), proximal=True, **o),
    "vr-extra": lambda **o: EXTRA(ew.LSVRG(), **o),
    "nids": lambda **o: NIDS(ew.Full(), **o),
    "d2": lambda **o: D2(ew.SGD(), **o),
    "d2-full": lambda **o: D2(ew.Full(), **o),
}
PROXIMAL = ("pg-extra", "nids")
LATE = {"nids": 1, "d2": 1, "d2-full": 1}  # rounds before the first iterate
PLAIN = {
    "dgd": (plain.dgd, plain.SGD),
    "dgd-full": (plain.dgd, plain.Full),
    "extra": (plain.extra, plain.Full),
    "pg-extra": (plain.pg_extra, plain.Full),
    "vr-extra": (plain.vr_extra, plain.LSVRG),
    "nids": (plain.nids, plain.Full),
    "d2": (plain.d2, plain.SGD),
    "d2-full": (plain.d2, plain.Full),
}


@cache
def samples():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((ROWS, FEATURES)) + 0.5
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.standard_normal(ROWS) > 0, 1, -1)
    return X, y


@cache
def problem(how, penalised):
    """Six nodes; "label" leaves most of them with one class, and unequal in size; "same" has the
    same samples at all."""
    if how == "same":
        X, y = samples()
        shards = [(X[: ROWS // NODES], y[: ROWS // NODES])] * NODES
    else:
        shards = ew.split(*samples(), nodes=NODES, how=how, alpha=0.3)
    penalty = ew.L1(L1) if penalised else ew.NoPenalty()
    return ew.Problem(shards, loss=ew.Logistic(ridge=RIDGE), penalty=penalty)


@cache
def optimum(penalised, how):
    """Of sum_i f_i + h_i, f_i a mean over the node's samples, by scikit-learn."""
    made = problem(how, penalised)
    X, y, counts = made.shards.X, made.shards.y, made.counts
    weight = np.repeat(1 / counts, counts)  # sum: one a node
    l1, l2 = NODES * L1 * penalised, NODES * RIDGE
    fit = LogisticRegression(
        C=1 / (l1 + l2),
        l1_ratio=l1 / (l1 + l2),
        solver="saga",
        fit_intercept=False,
        tol=1e-13,
        max_iter=100_000,
    )
    return fit.fit(X, y, sample_weight=weight).coef_[0]


def run(name, graph="random", how="iid", penalised=None, rounds=2500, **options):
    penalised = name in PROXIMAL if penalised is None else penalised
    given = {k: options.pop(k) for k in ("eta", "mixing") if k in options}
    options = {"record_every": rounds, "reference": False, **options}
    made = problem(how, penalised)
    return ew.solve(made, GRAPHS[graph], METHODS[name](**given), rounds=rounds, **options)


# --- iterates -------------------------------------------------------------------------------------


def dense(graph, weights):
    W = np.zeros((graph.nodes, graph.nodes))
    W[tuple(graph.edges.T)] = weights
    W += W.T
    return W + np.diag(1 - W.sum(1))


@pytest.mark.parametrize(
    ("name", "mix"),
    [*((name, "given") for name in METHODS), ("pg-extra", "default"), ("nids", "default")],
)
def test_iterates_are_those_of_the_source(name, mix):
    graph, eta, T = GRAPHS["random"], 0.7, 20
    made = problem("label", name in PROXIMAL)
    options = {"eta": eta}
    if mix == "given":
        weights = np.random.default_rng(1).uniform(0.05, 0.2, graph.edge_count)
        options["mixing"] = dense(graph, weights)
    method = METHODS[name](**options)
    W = dense(graph, mixing_weights(method.mixing, graph))
    X0 = np.random.default_rng(2).standard_normal((NODES, FEATURES))
    parts = [(made.shards.X[made.own(i)], made.shards.y[made.own(i)]) for i in range(NODES)]
    seed, late = 5, LATE.get(name, 0)
    with jax.enable_x64(True):
        sim = Simulator(made, graph, method, seed, np.dtype("float64"))
        words = np.asarray(
            draw_bits(
                jax.random.key(seed), jnp.arange(NODES), jnp.arange(T + late), method.random_draws
            )
        )
        transcript, estimator = PLAIN[name]
        gradient = estimator(parts, RIDGE, words)
        prox = plain.soft_threshold(L1)
        expected = list(islice(transcript(W, gradient, eta, X0, prox), T + 1))
        carry = sim.start(X0, None)
        if late:
            carry, _ = sim.advance(carry, 0, late)
        got = [np.asarray(sim.view(carry)[0])]
        for t in range(T):
            carry, _ = sim.advance(carry, late + t, 1)
            X, duals = map(np.asarray, sim.view(carry))
            assert_allclose(duals.sum(0), 0, atol=1e-12)
            got.append(X)
        calls = np.asarray(carry[0].memory.calls)
    assert_allclose(got, expected, atol=1e-10, rtol=0)
    assert np.abs(np.diff(expected, axis=0)).max(axis=(1, 2)).min() > 1e-5, "nothing moves"
    if late:  # has gone on to the gradient at the last iterate
        gradient(T, expected[-1])
    assert (calls == gradient.calls).all()


# --- the optimum ----------------------------------------------------------------------------------


@pytest.mark.quick_if(lambda graph, how, **_: (graph, how) == ("ring", "label"))
@pytest.mark.parametrize("how", ["iid", "label"])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", ["extra", "pg-extra", "nids", "d2-full"])
def test_exact_methods_reach_the_optimum(name, graph, how):
    result = run(name, graph, how)
    assert result.converged
    star = np.broadcast_to(ew.reference(problem(how, name in PROXIMAL)).x, result.X.shape)
    assert_allclose(result.X, star, atol=1e-8)
    assert_allclose(result.x, optimum(name in PROXIMAL, how), atol=1e-6)  # as scikit-learn can
    if name in PROXIMAL:
        assert (result.X == 0).any(), "no zeros: this shows little"
    # d_i - grad f_i is a subgradient of h_i, and the d_i add up to zero
    assert_allclose(result.duals.sum(0), 0, atol=1e-12)
    with jax.enable_x64(True):
        p = problem(how, name in PROXIMAL).block(None, np.float64)
        v = jnp.asarray(result.duals) - p.full(jnp.asarray(result.X)) - p.ridge(result.X)
        back = p.penalty.prox(result.X + v, jnp.ones((NODES, 1)))
        assert_allclose(back, result.X, atol=1e-8)


def test_vr_extra_reaches_the_optimum():
    result = run("vr-extra", "random", "label", rounds=4000)
    assert_allclose(result.X, np.tile(ew.reference(problem("label", False)).x, (6, 1)), atol=1e-8)


@pytest.mark.parametrize("name", PROXIMAL)
def test_a_penalty_of_each_nodes_own(name):
    """The residual then rests on the duals."""
    own = [ew.L1(0.05), ew.NoPenalty(), ew.Box(-0.3, 0.3), ew.L1(0.1), ew.NonNegative(), ew.L1(0)]
    shards = ew.split(*samples(), nodes=NODES, how="label", alpha=0.3)
    made = ew.Problem(shards, loss=ew.Logistic(ridge=RIDGE), penalty=own)
    result = ew.solve(made, GRAPHS["random"], METHODS[name](), rounds=3000, record_every=3000)
    assert result.trace["residual"][-1] < 1e-9
    assert_allclose(result.X, np.tile(ew.reference(made).x, (NODES, 1)), atol=1e-8)


def test_nids_takes_a_mixing_and_a_step_that_break_extra():
    """eta = 1.9/L on a W with an eigenvalue near -1: fine for NIDS, too long for EXTRA."""
    W = dense(GRAPHS["ring"], np.full(NODES, 0.49))
    eta = 1.9 * float(np.min(1 / problem("label", False).smoothness.mean))
    good = run("nids", "ring", "label", penalised=False, rounds=2000, eta=eta, mixing=W)
    assert_allclose(good.X, np.tile(ew.reference(problem("label", False)).x, (6, 1)), atol=1e-8)
    bad = run("extra", "ring", "label", rounds=2000, eta=eta, mixing=W)
    assert np.abs(bad.X - good.X).max() > 0.1


# --- a neighbourhood ------------------------------------------------------------------------------


def floor(name, eta, how="label", seeds=(0,), rounds=4000):
    """Root mean square distance from the optimum, over the second half of a run."""
    star, squares = ew.reference(problem(how, False)).x, []
    with jax.enable_x64(True):
        for seed in seeds:
            method = METHODS[name](eta=eta)
            made = Simulator(problem(how, False), GRAPHS["ring"], method, seed, np.dtype(float))
            carry = made.start(np.tile(star, (NODES, 1)), None)
            for t in range(0, rounds, 40):
                carry, _ = made.advance(carry, t, 40)
                if t >= rounds // 2:
                    squares.append(((np.asarray(made.view(carry)[0]) - star) ** 2).sum())
    return np.sqrt(np.mean(squares))


def test_dgd_with_exact_gradients_ends_at_a_distance_of_order_eta():
    far, near, nearer = (floor("dgd-full", eta) for eta in (0.2, 0.1, 0.05))
    assert 1.7 < far / near < 2.1
    assert 1.8 < near / nearer < 2.05
    assert far > 1e-2


def test_stochastic_methods_end_at_a_noise_floor_that_shrinks_with_eta():
    """A variance of order eta: a distance of order sqrt(eta), to which DGD adds its bias."""
    for name in ("dgd", "d2"):
        far, near = floor(name, 0.4, "iid", (0, 1)), floor(name, 0.1, "iid", (0, 1))
        assert 1.5 < far / near < 4.5, name
        assert near > 1e-3, name


def test_d2_does_not_mind_how_the_data_differ_and_dgd_does():
    assert floor("d2-full", 0.2) < 1e-9
    assert floor("dgd-full", 0.2, "same") < 1e-9
    assert floor("dgd-full", 0.2, "label") > 0.1
    # with as much noise, DGD is farther off by its bias
    apart, noise, bias = floor("dgd", 0.1), floor("d2", 0.1), floor("dgd-full", 0.1)
    assert 0.5 < (apart**2 - noise**2) / bias**2 < 2


# --- warm starts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["extra", "pg-extra"])
def test_extra_goes_on_where_it_stopped(name):
    whole, half = run(name, rounds=40), run(name, rounds=20)
    rest = run(name, rounds=20, X0=half.X, duals=half)
    assert_allclose(rest.X, whole.X, atol=1e-13)
    assert np.abs(whole.X - half.X).max() > 1e-4


@pytest.mark.parametrize("name", ["extra", "pg-extra", "nids", "d2-full"])
def test_duals_of_one_method_start_another(name):
    """All have the same: from the optimum and its duals nothing moves; from it alone it does."""
    made = problem("label", name in PROXIMAL)
    solved = ew.solve(made, GRAPHS["ring"], "pd", rounds=3000, record_every=3000, reference=False)
    options = {"graph": "ring", "how": "label", "rounds": 6, "X0": solved.X}
    assert_allclose(run(name, duals=solved, **options).X, solved.X, atol=1e-9)
    assert np.abs(run(name, **options).X - solved.X).max() > 1e-3


# --- counts, steps and refusals -------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_counts_are_exact(name):
    graph, rounds = GRAPHS["random"], 30
    result = run(name, rounds=rounds, record_every=10)
    K = ROWS // NODES
    assert list(result.trace["rounds"]) == [0, 10, 20, 30]
    assert list(result.trace["vectors_sent"]) == [2 * graph.edge_count * t for t in (0, 10, 20, 30)]
    calls = result.trace["oracle_calls"]
    if name == "vr-extra":  # a pass, two calls a round, and K for each coin that came up
        coins = (calls - K - 2 * result.trace["rounds"]) * NODES / K
        assert coins[0] == 0
        assert (coins == np.round(coins)).all()
        assert coins[-1] > 0
    else:
        a_round = 1 if name in ("dgd", "d2") else K
        assert list(calls) == [a_round * t for t in (0, 10, 20, 30)]


@pytest.mark.parametrize("name", METHODS)
def test_one_step_for_all_nodes_the_shortest(name):
    made, graph = problem("label", False), GRAPHS["ring"]
    method = METHODS[name]()
    for rule in ("auto", "theory"):
        steps = getattr(method.gradient, f"{rule}_step")(made.smoothness)
        prepared, weights = METHODS[name](eta=rule).prepare(whole_network(made, graph))
        assert steps.min() < steps.max()
        assert np.array_equal(prepared.eta, np.full((NODES, 1), steps.min()))
        assert prepared.mixing is None
        assert list(weights) == ["mixing"]
    with pytest.raises(MethodError, match="one step for all nodes"):
        METHODS[name](eta=np.linspace(0.1, 0.2, NODES)).prepare(whole_network(made, graph))


@pytest.mark.parametrize("name", METHODS)
def test_penalties_are_refused_by_those_that_have_no_prox(name):
    if name in PROXIMAL:
        assert run(name, rounds=1, penalised=True).X.shape == (NODES, FEATURES)
    else:
        with pytest.raises(MethodError, match="cannot handle a penalty"):
            run(name, rounds=1, penalised=True)


@pytest.mark.parametrize("method", [DGD, EXTRA, NIDS, D2])
def test_what_cannot_work_is_refused(method):
    with pytest.raises(MethodError, match="give an estimator"):
        method("saga")
    with pytest.raises(MethodError, match="has momentum"):
        method(ew.ASVRG())
    made = method(ew.Full(), mixing=np.eye(3))
    with pytest.raises(GraphError, match="has shape"):
        made.prepare(whole_network(problem("iid", False), GRAPHS["ring"]))

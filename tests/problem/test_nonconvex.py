"""Losses that are not convex: what is chosen, refused and said, and models that are pytrees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

import edgewise as ew
from edgewise.backend.declared import declared
from edgewise.errors import MethodError, ProblemError
from edgewise.methods.auto import NOT_CONVEX, by_rule, candidates
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node.supported_methods import settled
from edgewise.problem.from_text import loss as loss_from_text

V, K, n, RIDGE, DECAY = 6, 20, 4, 0.02, 0.1
GRAPH = ew.Graph.random(V, 9, seed=1)
REFUSED = ["newton-pd", "pdmm", "d-admm", "network-dane"]


def parts():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((V * K, n))
    z = X @ [2.0, -1.0, 0.5, 0.0]
    y = np.where(rng.random(V * K) < 0.2, -np.sign(z), np.sign(z))  # a fifth is wrong
    order = np.argsort(X[:, 0])
    shards = X[order].reshape(V, K, n), y[order].reshape(V, K)
    return list(zip(*shards, strict=True))


def sigmoid_problem(**options):
    return ew.Problem(parts(), ew.Sigmoid(ridge=RIDGE), **options)


def gradient_of_all(x):
    total = V * RIDGE * x
    for X, y in parts():
        s = expit(-y * (X @ x))
        total += X.T @ (-y * s * (1 - s)) / K
    return total


# --- the loss -------------------------------------------------------------------------------------


def test_the_sigmoid_loss_is_the_formula_and_its_slope_the_derivative():
    z = np.linspace(-8, 8, 4001)
    for label in (-1.0, 1.0):
        with jax.enable_x64(True):
            y = jnp.full_like(jnp.asarray(z), label)
            at = jnp.asarray(z)
            value, slope = map(np.asarray, (ew.Sigmoid().value(at, y), ew.Sigmoid().slope(at, y)))
        assert_allclose(value, expit(-label * z), rtol=1e-12)
        assert_allclose(slope[1:-1], (value[2:] - value[:-2]) / (z[2:] - z[:-2]), atol=1e-5)


def test_its_curvature_is_bounded_tightly_on_both_sides():
    z = np.linspace(-8, 8, 40_001)
    with jax.enable_x64(True):
        bends = np.diff(np.asarray(ew.Sigmoid().slope(jnp.asarray(z), jnp.ones(len(z))))) / np.diff(
            z
        )
    bound = ew.Sigmoid().curvature()
    assert 0.999 * bound < bends.max() <= bound * (1 + 1e-9)
    assert 0.999 * bound < -bends.min() <= bound * (1 + 1e-9), "it is as concave elsewhere"


def test_it_stays_finite_far_out_and_its_influence_goes_to_zero():
    far = jnp.array([1e4, -1e4, 800.0, -800.0])
    with jax.enable_x64(True):
        assert_array_equal(ew.Sigmoid().value(far, jnp.ones(4)), [0, 1, 0, 1])
        assert_array_equal(ew.Sigmoid().slope(far, jnp.ones(4)), [0, 0, 0, 0])


def test_it_has_a_name_and_no_compiled_copy():
    made = loss_from_text("sigmoid", 0.1)
    assert isinstance(made, ew.Sigmoid)
    assert made.ridge == 0.1
    assert declared(made) is None
    assert ew.Problem(parts(), "sigmoid").convex is False
    assert ew.Problem(parts(), "logistic").convex is True


# --- what is chosen and refused -------------------------------------------------------------------


@pytest.mark.parametrize("linear", [True, False])
def test_auto_takes_no_hessians_of_it(linear):
    name, why = by_rule(31, linear, False, convex=False)
    assert name == NOT_CONVEX
    assert "not convex" in why
    assert NOT_CONVEX in candidates()
    assert NOT_CONVEX in candidates(eta=0.1)


def test_auto_comes_to_a_stationary_point_and_says_so():
    result = ew.solve(sigmoid_problem(), GRAPH, rounds=20_000, tol=1e-9)
    assert result.converged
    assert result.method_note.startswith("auto: pd, because the loss is not convex")
    assert "a stationary point, as the loss is not convex" in result.message
    assert "optimum" not in result.message
    assert np.linalg.norm(gradient_of_all(result.x)) < 1e-8
    assert np.linalg.norm(gradient_of_all(np.zeros(n))) > 0.1, "it began there"
    assert np.abs(result.X - result.x).max() < 1e-8
    assert np.isnan(result.trace["bregman"]).all()
    assert result.trace["residual"][-1] >= 0.99 * np.linalg.norm(gradient_of_all(result.x))


def test_no_message_of_a_run_that_falls_short_speaks_of_an_optimum():
    said = ew.solve(sigmoid_problem(), GRAPH, "spd", rounds=3000).explanation
    assert "a stationary point" in said
    assert "optimum" not in said
    slow = ew.solve(sigmoid_problem(), GRAPH, eta=1e-3, rounds=200).message
    assert not set(REFUSED) & set(slow.replace(":", " ").split()), slow
    convex = ew.Problem(parts(), ew.Squared(ridge=RIDGE))
    said = ew.solve(convex, GRAPH, "spd", eta=0.01, rounds=1000).explanation
    assert "the optimum" in said, "it would have been said here"


@pytest.mark.parametrize("name", REFUSED)
def test_methods_that_need_convex_problems_are_refused(name):
    with pytest.raises(MethodError, match=r"to be convex.*use pd, or"):
        ew.solve(sigmoid_problem(), GRAPH, name, rounds=5)
    with pytest.raises(MethodError, match="to be convex"):
        settled(Fit(loss="sigmoid", method=name), sigmoid_problem())


def test_peers_choose_alike():
    named, note = settled(Fit(loss="sigmoid"), sigmoid_problem().only([2]))
    assert named.method == NOT_CONVEX
    assert "not convex" in note


def test_couplings_by_default_are_refused():
    between = ew.NetworkRidge(0.1)
    with pytest.raises(MethodError, match="to be convex"):
        ew.solve(sigmoid_problem(), GRAPH, between=between, rounds=5)


def test_there_is_no_optimum_to_measure_against():
    for call in (
        lambda: ew.reference(sigmoid_problem()),
        lambda: ew.solve(sigmoid_problem(), GRAPH, rounds=5, reference=True),
        lambda: ew.tune(sigmoid_problem(), GRAPH, "saga-pd"),
        lambda: ew.compare(sigmoid_problem(), GRAPH, ["saga-pd"], 100),
    ):
        with pytest.raises(
            ProblemError, match="Sigmoid is not convex, so that there is no optimum"
        ):
            call()


def test_its_model_predicts():
    result = ew.solve(sigmoid_problem(), GRAPH, rounds=200)
    X = np.concatenate([X for X, _ in parts()])
    assert_array_equal(result.model.predict(X), np.where(X @ result.x > 0, 1, -1))
    assert_allclose(result.to_sklearn().decision_function(X), X @ result.x)


# --- pytrees --------------------------------------------------------------------------------------

LIKE = {"layers": [(np.zeros((n, 3)), np.zeros(3))], "out": np.zeros(3), "offset": np.zeros(())}


def scores(params, d):
    (W, b), out = params["layers"][0], params["out"]
    return jnp.tanh(d @ W + b) @ out + params["offset"]


def network(params, d, y):
    return jax.nn.softplus(-y * scores(params, d))


def random_params(seed):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda a: rng.standard_normal(a.shape), LIKE)


def numpy_gradient(params):
    """Of all nodes' mean losses and ridges, by back-propagation in NumPy, flattened by hand."""
    (W, b), v, c = params["layers"][0], params["out"], params["offset"]
    total = {k: V * DECAY * a for k, a in (("W", W), ("b", b), ("v", v), ("c", c))}
    for X, y in parts():
        h = np.tanh(X @ W + b)
        s = -y * expit(-y * (h @ v + c)) / K
        inner = np.outer(s, v) * (1 - h**2)
        total["W"], total["b"] = total["W"] + X.T @ inner, total["b"] + inner.sum(0)
        total["v"], total["c"] = total["v"] + h.T @ s, total["c"] + s.sum()
    return total


def test_a_pytree_goes_into_a_vector_and_comes_back():
    loss, params = ew.CustomLoss.of_pytree(network, LIKE), random_params(0)
    assert loss.size == 4 * 3 + 3 + 3 + 1
    assert not loss.convex
    back = loss.unflatten(loss.flatten(params))
    assert jax.tree.structure(back) == jax.tree.structure(params)
    for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(params), strict=True):
        assert_array_equal(a, b)


def test_a_network_is_fitted_from_one_start_to_a_stationary_point():
    loss = ew.CustomLoss.of_pytree(network, LIKE, ridge=DECAY)
    problem = ew.Problem(parts(), loss)
    start = loss.flatten(random_params(1))
    result = ew.solve(problem, GRAPH, X0=start, rounds=30_000, tol=1e-6)
    assert result.converged, result.message
    assert result.method_note.startswith("auto: pd,")
    assert "stationary point" in result.message
    assert np.abs(result.X - result.x).max() < 1e-5
    found = numpy_gradient(loss.unflatten(result.x))
    began = numpy_gradient(random_params(1))
    assert np.sqrt(sum((g**2).sum() for g in found.values())) < 1e-5
    assert np.sqrt(sum((g**2).sum() for g in began.values())) > 1


def test_losses_of_the_same_function_and_shapes_share_a_program():
    one, two = (ew.CustomLoss.of_pytree(network, LIKE) for _ in range(2))
    assert one.fn == two.fn
    assert hash(one.fn) == hash(two.fn)
    other = ew.CustomLoss.of_pytree(network, {**LIKE, "out": np.zeros(4)})
    assert one.fn != other.fn


def test_what_does_not_fit_is_said():
    loss = ew.CustomLoss.of_pytree(network, LIKE)
    with pytest.raises(ProblemError, match="the loss was made for"):
        loss.flatten({**random_params(0), "out": np.zeros(4)})
    with pytest.raises(ProblemError, match=r"give one of \(19,\)"):
        loss.unflatten(np.zeros(18))
    with pytest.raises(ProblemError, match="floating-point"):
        ew.CustomLoss.of_pytree(network, {"steps": np.zeros(3, int)})
    with pytest.raises(ProblemError, match=r"CustomLoss\.of_pytree"):
        ew.CustomLoss(lambda x, d, y: (x @ d - y) ** 2).unflatten(np.zeros(3))
    with pytest.raises(ProblemError, match="give True or False"):
        ew.CustomLoss(lambda x, d, y: (x @ d - y) ** 2, convex="no")

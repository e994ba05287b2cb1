"""The centralised answer against scikit-learn, CVXPY and the optimality conditions."""

import catalogue
import jax
import numpy as np
import pytest
from catalogue import DIFFERENT, NODES, PROBLEMS, gradient, listed, parts, prox
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.preprocessing import StandardScaler

import edgewise as ew
from edgewise.centralised import smooth_part as central


@pytest.fixture(scope="module", params=PROBLEMS)
def solved(request):
    case = PROBLEMS[request.param]
    problem = case.problem()
    return request.param, case, problem, ew.reference(problem)


def test_optimality(solved):
    name, case, _, star = solved
    assert star.residual <= 1e-10
    assert catalogue.residual(case, star.x) <= 1e-10
    assert_allclose(star.x, catalogue.optimum(name), atol=1e-5)


def test_objective(solved):
    _, case, _, star = solved
    everywhere = np.tile(star.x, (NODES, 1))
    assert_allclose(star.objective, catalogue.objective(case, everywhere), rtol=1e-13)


def test_gradients_and_subgradients(solved):
    name, case, _, star = solved
    by_hand = [gradient(case.loss, part, star.x) for part in parts(case.target)]
    assert_allclose(star.gradients, by_hand, atol=1e-13)
    assert_allclose((star.gradients + star.subgradients).sum(0), 0, atol=1e-10)
    for h, v in zip(listed(case.penalty, NODES), star.subgradients, strict=True):
        # v in the subdifferential of h at x, which is to say x = prox_h(x + v)
        assert_allclose(prox(h, star.x + v, 1.0), star.x, atol=1e-10)
        if name in DIFFERENT:
            assert np.linalg.norm(v) > 1e-2 or isinstance(h, ew.NoPenalty)


def test_is_kept():
    problem = PROBLEMS["ridge"].problem()
    star = ew.reference(problem)
    assert ew.reference(problem) is star
    assert ew.reference(problem, tol=1e-6) is star  # good enough for less
    loose = PROBLEMS["ridge"].problem()
    assert ew.reference(loose, tol=1e-3) is not ew.reference(loose)
    assert ew.reference(loose).residual <= 1e-10


def test_equal_penalties_in_a_list_are_one_penalty():
    shards = parts("number")
    one = ew.reference(ew.Problem(shards, ew.Squared(), ew.L1(0.03)))
    many = ew.reference(ew.Problem(shards, ew.Squared(), [ew.L1(0.03) for _ in range(NODES)]))
    assert_array_equal(one.x, many.x)
    assert_array_equal(one.subgradients, many.subgradients)


def test_penalties_that_repeat():
    """Two kinds over six nodes: x is the optimum with each counted as often as it occurs."""
    h = [ew.L1(0.05), ew.NonNegative()]
    penalty = [h[i] for i in (0, 1, 0, 0, 1, 0)]
    star = ew.reference(ew.Problem(parts("number"), ew.Squared(ridge=0.1), penalty))
    X, y = catalogue.samples("number")
    model = Lasso(alpha=0.05 * 4 / 6, positive=True, fit_intercept=False, tol=1e-14)
    root = np.sqrt(len(y) * 0.1)  # ridge as so many more samples: Lasso has none
    scale = (len(y) + 5) / len(y)
    model.set_params(alpha=model.alpha / scale)
    model.fit(np.vstack([X, root * np.eye(5)]), np.append(y, np.zeros(5)))
    assert_allclose(star.x, model.coef_, atol=1e-8)


def test_unequal_shards():
    """f_i is a mean: a node with few samples counts as much as one with many."""
    X, y = catalogue.samples("sign")
    cuts = [3, 8, 30, 31]
    shards = list(zip(np.split(X, cuts), np.split(y, cuts), strict=True))
    star = ew.reference(ew.Problem(shards, ew.Logistic(ridge=0.1)))
    weight = np.concatenate([np.full(len(y_i), 1 / (5 * len(y_i))) for _, y_i in shards])
    model = LogisticRegression(C=10, fit_intercept=False, tol=1e-12, solver="newton-cholesky")
    model.fit(X, y, sample_weight=weight)
    assert_allclose(star.x, model.coef_[0], atol=1e-9)


# --- hard ones -----------------------------------------------------------------------------------


def breast_cancer(kind):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:560], y[:560]
    if kind == "standardised":
        X = StandardScaler().fit_transform(X)
    elif kind == "scaled":
        X = X / X.max(0)
    return X, y


def kkt(problem, x, lam=0.0):
    """The gradient's distance from -lam d|x|_1, relative to the largest term in it."""
    X, y = problem.shards.X, problem.labels
    free = problem.free
    z = X @ x[: X.shape[1]] + (x[-1] if free else 0)
    s = -y / (1 + np.exp(y * z)) / len(y)
    g = np.append(X.T @ s + problem.loss.ridge * x[: X.shape[1]], [s.sum()] * free)
    weights = np.append(np.full(X.shape[1], lam), [0.0] * free)
    off = np.where(x != 0, np.abs(g + weights * np.sign(x)), np.maximum(np.abs(g) - weights, 0))
    return np.linalg.norm(off) / np.abs(X.T @ np.abs(s)).max()


def test_no_regulariser_at_all():
    """Noisy labels keep the unregularised optimum finite."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 8))
    y = np.where(X[:, 0] + 1.5 * rng.normal(size=240) > 0, 1, -1)
    shards = ew.split(X, y, nodes=6)
    star = ew.reference(ew.Problem(shards, ew.Logistic()))
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, solver="newton-cholesky")
    assert star.residual <= 1e-10
    assert_allclose(star.x, model.fit(X, y).coef_[0], atol=1e-8)


@pytest.mark.parametrize(
    ("kind", "ridge", "lam"),
    [
        ("standardised", 1e-3, 0.0),
        ("standardised", 0.0, 1e-3),
        ("scaled", 1e-4, 0.0),
        ("scaled", 0.0, 1e-3),
        ("raw", 1e-4, 0.0),
    ],
)
def test_breast_cancer(kind, ridge, lam):
    X, y = breast_cancer(kind)
    shards = ew.split(X, y, nodes=8)
    penalty = ew.L1(lam) if lam else None
    problem = ew.Problem(shards, ew.Logistic(ridge=ridge), penalty, intercept=True)
    star = ew.reference(problem)
    assert kkt(problem, star.x, lam) <= 1e-10
    assert star.residual <= 1e-8 * max(1, np.abs(X).max() / 10)


def test_says_so_where_it_stops_short():
    """Raw features, from 1e-2 to 4e3, and an l1 penalty: out of reach or not, no false claim."""
    X, y = breast_cancer("raw")
    problem = ew.Problem(ew.split(X, y, nodes=8), ew.Logistic(), ew.L1(1.0), intercept=True)
    star = ew.reference(problem)
    assert kkt(problem, star.x, 1.0) <= 1e-10 or star.residual > 1e-3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_chunks_and_a_thinned_hessian_come_to_the_same(monkeypatch, dtype):
    X, y = ew.data.epsilon_like(600, 12, dtype=dtype)

    def made():
        return ew.Problem(ew.split(X, y, nodes=5), ew.Logistic(ridge=1e-3), ew.L1(1e-3))

    plain = ew.reference(made())
    monkeypatch.setattr(central, "CHUNK_NUMBERS", 12 * 5)  # 120 chunks, in threads
    monkeypatch.setattr(central, "MOST_FLOPS", 600 * 12**2 / 3)  # a third of the samples
    thinned = ew.reference(made())
    np.testing.assert_allclose(thinned.x, plain.x, atol=1e-11)
    np.testing.assert_allclose(thinned.gradients, plain.gradients, atol=1e-12)
    assert thinned.iterations < 40  # plain steps alone take hundreds


def test_where_jax_was_left_no_cpu(monkeypatch):
    real = jax.devices

    def without_cpu(backend=None):
        if backend == "cpu":
            raise RuntimeError("Unknown backend cpu")
        return real()

    monkeypatch.setattr(jax, "devices", without_cpu)
    problem = ew.Problem([(np.eye(2), [1, 0]), (np.eye(2), [3, 0])], ew.Squared())
    np.testing.assert_allclose(ew.reference(problem).x, [2, 0], atol=1e-12)

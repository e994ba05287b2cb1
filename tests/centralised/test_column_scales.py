"""The centralised answer where columns are of unequal scale, repeat or stand still: against
scikit-learn, in the units of each column."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression

import edgewise as ew
from edgewise.errors import ReferenceWarning

RNG = np.random.default_rng(0)
N, P = 96, 6
X = RNG.normal(size=(N, P)) + RNG.normal(size=P)
NUMBER = X @ np.array([1.0, -2, 0, 0, 0.5, 0]) + 0.3 * RNG.normal(size=N) + 2
CLASS = np.where(NUMBER + RNG.normal(size=N) > 2, 1, -1)
UNITS = np.array([1, 1e6, 1, 1e-4, 30, 1])
WEIGHT = RNG.integers(1, 5, N).astype(float)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReferenceWarning)
        yield


def found(A, y, loss, penalty=None, intercept=True, nodes=4, **weights):
    shards = ew.split(A, y, nodes=nodes, seed=0)
    problem = ew.Problem(shards, loss, penalty, "sample", intercept=intercept, **weights)
    star = ew.reference(problem)
    assert star.reached
    assert star.optimality <= 1e-12
    return star.x


def assert_same(x, model, A, tol=1e-9):
    """In units in which every column has spread 1."""
    A = A.toarray() if sp.issparse(A) else A
    W, b = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    unit = np.maximum(A.std(0), np.abs(A).max(0) * 1e-3)
    far = np.abs(x[: W.size].reshape(W.shape) - W) * unit
    assert far.max() <= tol * max(1, np.abs(W * unit).max())
    assert np.abs(x[W.size :] - b[: x.size - W.size]).max(initial=0) <= tol * max(
        1, np.abs(b).max()
    )


def logistic(A, y, C=1.0, weight=None, intercept=True):
    model = LogisticRegression(
        C=C, fit_intercept=intercept, tol=1e-11, solver="newton-cholesky", max_iter=1000
    )
    return model.fit(A, y, sample_weight=weight)


def net(A, l1, l2=0.0, weight=None, **kind):
    model = ElasticNet(l1 + l2, l1_ratio=l1 / (l1 + l2), tol=1e-15, max_iter=10**6, **kind)
    return model.fit(A, NUMBER, sample_weight=weight)


def test_breast_cancer_as_it_is():
    """Columns from 4e-3 to 4e3; it was 9e-6 off."""
    A, y = load_breast_cancer(return_X_y=True)
    assert_same(found(A, y, ew.Logistic(ridge=1 / len(y))), logistic(A, y), A)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["units", "repeated", "constant", "weights", "sparse"])
def test_logistic(kind, intercept):
    A = {
        "repeated": np.column_stack([X, X[:, 0], 1e3 * X[:, 1]])[:, [0, 1, 2, 3, 6, 7]],
        "constant": np.where(np.arange(P) == 2, 1e3, X),
    }.get(kind, X * UNITS)
    A = sp.csr_array(np.where(X > 0, A, 0)) if kind == "sparse" else A
    ridge, given, weight = 1 / N, {}, None
    if kind == "weights":
        given, weight, ridge = {"sample_weight": WEIGHT}, WEIGHT, 1 / WEIGHT.sum()
    model = logistic(A, CLASS, 1.0, weight, intercept)
    # an intercept beside a column of 1,000s: scikit-learn has 9 digits of it, by machine 8
    tol = 1e-8 if kind == "constant" else 1e-9
    assert_same(found(A, CLASS, ew.Logistic(ridge), None, intercept, **given), model, A, tol)


def test_squares_without_ridge():
    A = X * UNITS
    plain = LinearRegression().fit(X, NUMBER)
    plain.coef_ = plain.coef_ / UNITS
    assert_same(found(A, NUMBER, ew.Squared()), plain, A)


def test_repeated_columns_without_ridge_share_a_coefficient():
    """No one optimum: what the columns do together is unique."""
    A = np.column_stack([X, X[:, 0]])
    x = found(A, NUMBER, ew.Squared())
    x[0] += x[P]
    assert_same(np.delete(x, P), LinearRegression().fit(X, NUMBER), X)


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("intercept", [True, False])
def test_l1(l2, intercept):
    A = X * UNITS
    penalty = ew.ElasticNet(0.2, l2) if l2 else ew.L1(0.2)
    x, model = (
        found(A, NUMBER, ew.Squared(), penalty, intercept),
        net(A, 0.2, l2, fit_intercept=intercept),
    )
    assert_same(x, model, A)
    assert np.array_equal(x[:P] == 0, model.coef_ == 0)


def test_l1_with_sample_weights():
    A = X * UNITS
    x = found(A, NUMBER, ew.Squared(), ew.L1(0.2), sample_weight=WEIGHT)
    assert_same(x, net(A, 0.2, weight=WEIGHT), A)


def test_l1_logistic():
    """scikit-learn has nothing as exact: the optimality conditions, in each column's units."""
    A = X * UNITS
    x = found(A, CLASS, ew.Logistic(), ew.L1(0.02))
    s = -CLASS / (1 + np.exp(CLASS * (A @ x[:P] + x[P]))) / N
    g = A.T @ s
    assert abs(s.sum()) <= 1e-13
    on = x[:P] != 0
    assert 0 < on.sum() < P
    assert (np.abs(g + 0.02 * np.sign(x[:P])) / A.std(0))[on].max() <= 1e-12
    assert np.abs(g[~on]).max() <= 0.02


def test_multinomial():
    A, y = load_digits(return_X_y=True)
    A, y = A[y < 3][:120, 18:34], y[y < 3][:120]
    A = A * np.where(np.arange(16) == 2, 20, 1)
    x = found(A, y, ew.Multinomial(ridge=1 / 120))
    model = logistic(A, y)
    x[-3:] -= x[-3:].mean()  # all intercepts may move together
    model.intercept_ = model.intercept_ - model.intercept_.mean()
    assert_same(x, model, A)


def test_a_penalty_for_each_node():
    A, penalty = X * UNITS, [ew.L1(0.2), ew.NonNegative(), ew.L1(0.2), ew.L1(0.2)]
    x = found(A, NUMBER, ew.Squared(), penalty)
    model = Lasso(0.2 * 3 / 4, positive=True, tol=1e-15, max_iter=10**6).fit(A, NUMBER)
    assert_same(x, model, A)


def test_constraints_are_kept_to_the_last_digit():
    lower, upper = np.full(P, -0.1) / UNITS, np.full(P, 0.3) / UNITS
    x = found(X * UNITS, NUMBER, ew.Squared(), ew.Box(lower, upper))
    plain = found(X, NUMBER, ew.Squared(), ew.Box(-0.1, 0.3))
    assert np.all((lower <= x[:P]) & (x[:P] <= upper))
    assert np.array_equal(x[:P] == upper, plain[:P] == 0.3)
    np.testing.assert_allclose(x[:P] * UNITS, plain[:P], atol=1e-11)


def test_says_what_it_reached_and_what_to_do():
    problem = ew.Problem(ew.split(X, CLASS, nodes=4), ew.Logistic(ridge=1e-3), ew.L1(1e-3))
    with pytest.warns(ReferenceWarning, match=r"optimality of .*, 1e-12 wanted .*iterations=\)"):
        star = ew.reference(problem, iterations=2)
    assert not star.reached
    assert star.optimality > 1e-6
    assert ew.reference(problem).reached


def test_a_half_space_in_any_units():
    x = found(X * UNITS, NUMBER, ew.Squared(), ew.HalfSpace(UNITS, -1.5))
    plain = found(X, NUMBER, ew.Squared(), ew.HalfSpace(np.ones(P), -1.5))
    assert plain[:P].sum() == pytest.approx(-1.5, abs=1e-12)  # it binds
    np.testing.assert_allclose(x[:P] * UNITS, plain[:P], atol=1e-10)


def test_a_penalty_that_ties_columns_together_makes_it_say_so():
    """A ball in the units of unequal columns: steps as short as the longest column wants are lost
    in rounding, whatever the displacement says."""
    problem = ew.Problem(ew.split(X * UNITS, CLASS, nodes=4), ew.Logistic(), ew.L2Ball(0.5))
    with pytest.warns(ReferenceWarning, match="like scale"):
        assert not ew.reference(problem).reached

"""Regressors for counts, amounts and quantiles against scikit-learn's."""

import jax
import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import (
    GammaRegressor,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn.metrics import d2_pinball_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from edgewise.errors import DataError, ProblemError
from edgewise.sklearn import (
    DecentralizedGammaRegressor,
    DecentralizedPoissonRegressor,
    DecentralizedQuantileRegressor,
    DecentralizedTweedieRegressor,
)


@pytest.fixture(scope="module", autouse=True)
def quick_compiles():
    """Many shapes are fitted, a few times each: compiling is all they cost."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


SMALL = {"n_nodes": 3, "graph": "ring"}
ALL = [
    DecentralizedPoissonRegressor(**SMALL),
    DecentralizedGammaRegressor(**SMALL),
    DecentralizedTweedieRegressor(power=1.5, **SMALL),
    DecentralizedQuantileRegressor(alpha=0.01, **SMALL),
]
X, Y = load_diabetes(return_X_y=True)
X, Y = X[:150, :4], Y[:150]
WEIGHT = np.random.default_rng(0).uniform(0.5, 2, len(Y))
EXACT = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}
TWINS = [
    (DecentralizedPoissonRegressor, PoissonRegressor, {"alpha": 0.01}),
    (DecentralizedPoissonRegressor, PoissonRegressor, {"alpha": 0.1, "fit_intercept": False}),
    (DecentralizedGammaRegressor, GammaRegressor, {"alpha": 0.0}),
    (DecentralizedTweedieRegressor, TweedieRegressor, {"power": 1.5, "alpha": 0.1}),
    (DecentralizedTweedieRegressor, TweedieRegressor, {"alpha": 0.1}),
]


@parametrize_with_checks(ALL, legacy=False)
def test_check_estimator_api(estimator, check):
    check(estimator)


@pytest.mark.exhaustive
@parametrize_with_checks(ALL)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("ours", "theirs", "given"), TWINS)
def test_coefficients_means_and_score_are_those_of_the_twin(ours, theirs, given):
    made = ours(**given, **SMALL).fit(X, Y, sample_weight=WEIGHT)
    twin = theirs(**given, **EXACT).fit(X, Y, sample_weight=WEIGHT)
    most = abs(twin.coef_).max()
    assert made.coef_ == pytest.approx(twin.coef_, abs=1e-6 * most)
    assert made.intercept_ == pytest.approx(twin.intercept_, rel=1e-6, abs=1e-9)
    assert made.node_coef_ == pytest.approx(np.tile(twin.coef_, (3, 1)), abs=1e-6 * most)
    assert made.predict(X) == pytest.approx(twin.predict(X), rel=1e-6)
    assert made.score(X, Y, WEIGHT) == pytest.approx(twin.score(X, Y, WEIGHT), abs=1e-6)


def test_units_of_labels_do_not_matter():
    one = DecentralizedGammaRegressor(alpha=0.1, **SMALL).fit(X, Y)
    other = DecentralizedGammaRegressor(alpha=0.1, **SMALL).fit(X, 1e6 * Y)
    assert other.coef_ == pytest.approx(one.coef_, abs=1e-8)
    assert other.intercept_ == pytest.approx(one.intercept_ + np.log(1e6), rel=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_a_quantile_loses_at_most_an_eighth_of_the_width(alpha):
    made = DecentralizedQuantileRegressor(quantile=0.8, alpha=alpha, **SMALL)
    made.fit(10 * X, Y, sample_weight=WEIGHT)
    twin = QuantileRegressor(quantile=0.8, alpha=alpha).fit(10 * X, Y, sample_weight=WEIGHT)

    def objective(model):
        r = Y - model.predict(10 * X)
        loss = np.average(np.maximum(0.8 * r, -0.2 * r), weights=WEIGHT)
        return loss + alpha * np.abs(model.coef_).sum()

    spread = np.sqrt(np.average((Y - np.average(Y, weights=WEIGHT)) ** 2, weights=WEIGHT))
    assert made.width_ == pytest.approx(spread / 20)
    assert 0 <= objective(made) - objective(twin) <= made.width_ / 8
    score = d2_pinball_score(Y, made.predict(10 * X), alpha=0.8)
    assert made.score(10 * X, Y) == pytest.approx(score)


@pytest.mark.parametrize(
    ("model", "y", "error", "said"),
    [
        (DecentralizedPoissonRegressor(), -Y, DataError, "Poisson takes labels of 0 or more"),
        (DecentralizedGammaRegressor(), 0 * Y, DataError, "labels of above 0"),
        (DecentralizedTweedieRegressor(power=3), Y, ProblemError, "power=3: give a number"),
        (DecentralizedTweedieRegressor(power=0.5), Y, ProblemError, "has no convex loss"),
        (DecentralizedTweedieRegressor(link="log"), Y, ProblemError, "has no convex loss"),
        (DecentralizedTweedieRegressor(link="logit"), Y, ProblemError, "link='logit'"),
        (DecentralizedQuantileRegressor(quantile=1), Y, ProblemError, "quantile=1"),
        (DecentralizedQuantileRegressor(width=0), Y, ProblemError, "width=0"),
    ],
)  # fmt: skip
def test_what_is_refused(model, y, error, said):
    with pytest.raises(error, match=said):
        model.fit(X, y)

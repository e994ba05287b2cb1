"""Cox's model as an estimator: statsmodels' coefficients, and what scikit-learn expects."""

import warnings

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from statsmodels.duration.hazard_regression import PHReg

import edgewise as ew
from edgewise.errors import DataError, ProblemError, UnknownName
from edgewise.sklearn import DecentralizedCoxPH


@pytest.fixture(scope="module", autouse=True)
def quick_compiles():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


# without groups samples are dealt out to strata: other rows make other strata
STRATA = {
    "check_sample_weight_equivalence_on_dense_data": "rows that are left out, or come twice, are "
    "dealt out to other strata",
}


ESTIMATOR = DecentralizedCoxPH(alpha=1.0)


QUICK = {  # of each kind one
    "check_estimator_cloneable",
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_no_attributes_set_in_init",
    "check_requires_y_none",
    "check_positive_only_tag_during_fit",
    "check_n_features_in_after_fitting",
    "check_supervised_y_2d",
    "check_supervised_y_no_nan",
    "check_complex_data",
}


@pytest.mark.quick_if(lambda estimator, check: getattr(check, "func", check).__name__ in QUICK)
@parametrize_with_checks([ESTIMATOR], expected_failed_checks=lambda _: STRATA)
def test_check_estimator(estimator, check):
    run_check(estimator, check)


def run_check(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def drawn(seed=0, samples=120):
    rng = np.random.default_rng(seed)
    site = rng.integers(3, size=samples)
    X = rng.normal(size=(samples, 3)) * [1, 10, 0.1] + [0, 50, 1]
    risk = (X - [0, 50, 1]) @ [0.8, -0.05, 3.0]
    death = rng.exponential(10 * (1 + site) * np.exp(-risk))
    end = rng.exponential(30, samples)
    return X, np.ceil(np.minimum(death, end)), death <= end, np.array(["x", "y", "z"])[site]


def as_field(time, event):
    return np.array(list(zip(event, time, strict=True)), [("event", "?"), ("time", "f8")])


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_stratified_by_groups(ties):
    X, time, event, site = drawn()
    model = DecentralizedCoxPH(ties=ties).fit(X, as_field(time, event), groups=site)
    pooled = PHReg(time, X, status=event.astype(int), strata=site, ties=ties)
    fitted = pooled.fit(method="newton", tol=1e-12)
    assert_allclose(model.coef_, fitted.params, rtol=1e-6)
    assert model.groups_.tolist() == ["x", "y", "z"]
    assert_allclose(model.predict(X), X @ model.coef_)
    same = clone(model).fit(X, np.column_stack([time, event]), groups=site)
    assert (same.coef_ == model.coef_).all()
    labels = ew.survival_labels(time, event)
    within = ew.metrics.concordance_index(
        "ring",
        [labels[site == s] for s in "xyz"],
        [model.predict(X)[site == s] for s in "xyz"],
    )
    assert_allclose(model.score(X, labels, groups=site), within.value, rtol=1e-12)
    assert 0.6 < model.score(X, labels) < 1


def test_ridge_and_case_weights():
    X, time, event, site = drawn(1)
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    y = ew.survival_labels(time, event)
    model = DecentralizedCoxPH(2.0, ties="breslow").fit(X, y, weight, groups=site)
    rows = np.repeat(np.arange(len(X)), weight)
    pooled = PHReg(time[rows], X[rows], status=event[rows].astype(int), strata=site[rows])
    # the gradient of what is minimised, by statsmodels
    assert_allclose(pooled.score(model.coef_), 2.0 * model.coef_, atol=2e-5)


def test_one_baseline_for_all():
    X, time, event, site = drawn(2)
    times = np.unique(time[event])
    cox = DecentralizedCoxPH(grid=times, exposure="risk set").fit(
        X, as_field(time, event), groups=site
    )
    pooled = PHReg(time, X, status=event.astype(int), ties="breslow")
    fitted = pooled.fit(method="newton", tol=1e-12)
    assert_allclose(cox.coef_, fitted.params, rtol=1e-6)
    S = cox.predict_survival_function(X[:2], times)
    jumps = [
        np.sum(event & (time == t)) / np.exp(X[time >= t] @ fitted.params).sum() for t in times
    ]
    assert_allclose(cox.baseline_hazard_, jumps, rtol=1e-5)
    assert_allclose(
        S, np.exp(-np.exp(X[:2] @ fitted.params)[:, None] * np.cumsum(jumps)), rtol=1e-5
    )
    near = DecentralizedCoxPH(grid=np.quantile(time[event], [0.25, 0.5, 0.75]))
    near.fit(X, as_field(time, event), groups=site)
    assert (np.abs(near.coef_ - fitted.params) < 0.25 * fitted.bse).all()
    S = near.predict_survival_function(X[:1], [0, 1, 5, 1000])[0]
    assert S[0] == 1
    assert (np.diff(S) < 0).all()


def test_shards_and_cross_validation():
    X, time, event, site = drawn(3)
    y = ew.survival_labels(time, event)
    order = np.argsort(site, kind="stable")
    shards = ew.Shards(X[order], y[order], np.unique(site, return_counts=True)[1])
    graph = ew.Graph.path(3)
    held = DecentralizedCoxPH(graph=graph).fit(shards)
    assert_allclose(held.coef_, DecentralizedCoxPH(graph=graph).fit(X, y, groups=site).coef_)
    made, scaling = ew.standardize(shards, graph)
    assert scaling is not None
    assert_allclose(DecentralizedCoxPH(graph=graph).fit(made).coef_, held.coef_, rtol=1e-6)
    scores = cross_val_score(DecentralizedCoxPH(n_nodes=2), X, y, cv=2)
    assert (scores > 0.5).all()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"ties": "exact"}, UnknownName, "unknown ties 'exact'"),
        ({"grid": [3.0], "exposure": "all"}, UnknownName, "unknown exposure"),
        ({"alpha": -1}, ProblemError, "alpha=-1"),
        ({"y": -np.ones(120)}, DataError, "no sample had the event"),
        ({"y": np.zeros(120)}, DataError, "has the time 0"),
        ({"y": np.ones((120, 3))}, DataError, "two columns, time and event"),
    ],
)
def test_what_does_not_fit_is_said(given, error, message):
    X, time, event, _ = drawn()
    y = given.pop("y", ew.survival_labels(time, event))
    with pytest.raises(error, match=message):
        DecentralizedCoxPH(**given).fit(X, y)

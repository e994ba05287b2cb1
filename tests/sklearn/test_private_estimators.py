"""Estimators with a budget: features as they are, and what was spent."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

pytest.importorskip("dp_accounting", reason="pip install 'edgewise[privacy]'")

import edgewise as ew
from edgewise.errors import InputError
from edgewise.sklearn import DecentralizedLogisticRegression, DecentralizedModel, DecentralizedRidge

X, y = load_breast_cancer(return_X_y=True)
# ranges that were known before: about what a nucleus measures
TOP = [30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1, 3, 5, 25, 600, 0.04, 0.15, 0.4, 0.06, 0.08]
TOP += [0.03, 40, 50, 260, 4500, 0.25, 1.1, 1.3, 0.3, 0.7, 0.21]
X = (2 * np.clip(X / TOP, 0, 1) - 1) / np.sqrt(30)
BUDGET = ew.DP(epsilon=8, delta=1e-4, clip=1.5, row_norm=1.0, noise_seed=0)


def test_a_private_classifier_learns_and_says_what_it_spent():
    model = DecentralizedLogisticRegression(C=10, n_nodes=4, privacy=BUDGET)
    fitted = clone(model).fit(X, y)
    assert fitted.score(X, y) > 0.85
    assert fitted.privacy_.epsilon == pytest.approx(8)
    assert fitted.n_iter_ == BUDGET.rounds
    assert fitted.method_note_.startswith("auto: pd, because under differential privacy")
    little = clone(model).set_params(privacy=ew.DP(0.1, 1e-4, 1.5, 1.0, noise_seed=0)).fit(X, y)
    assert little.score(X, y) < fitted.score(X, y)


def test_the_model_depends_on_no_mean_and_no_spread():
    """An outlying row is bounded by itself, and moves no other's scale."""
    other = X.copy()
    other[0] *= 1e6
    fits = [
        DecentralizedLogisticRegression(n_nodes=4, privacy=BUDGET).fit(D, y) for D in (X, other)
    ]
    moved = np.linalg.norm(fits[0].coef_ - fits[1].coef_)
    assert moved < 0.05 * np.linalg.norm(fits[0].coef_)


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        (DecentralizedLogisticRegression(class_weight="balanced"), {}, "weights let one sample"),
        (DecentralizedLogisticRegression(), {"sample_weight": np.ones(len(y))}, "weights let one"),
        (DecentralizedLogisticRegression(method="newton-pd"), {}, "cannot run under differential"),
        (DecentralizedRidge(), {}, r"slopes of Squared have no bound"),
        (DecentralizedModel(ew.Squared()), {}, r"slopes of Squared have no bound"),
    ],
)
def test_what_is_refused(model, given, message):
    model.set_params(privacy=ew.DP(1.0, 1e-5, 1.0))
    with pytest.raises(InputError, match=message):
        model.fit(X, y, **given)


def test_partial_fits_are_refused():
    model = DecentralizedLogisticRegression(privacy=BUDGET, n_nodes=4).fit(X, y)
    with pytest.raises(InputError, match="spend the budget anew"):
        model.partial_fit(X, y)

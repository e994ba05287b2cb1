"""The sigmoid loss as an estimator: a classifier, of two classes and of more."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import is_classifier

import edgewise as ew
from edgewise.sklearn import DecentralizedModel

RIDGE = 0.05


def samples(classes):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 3))
    Z = X @ rng.standard_normal((3, classes))
    return X, np.array(["a", "b", "c"])[:classes][Z.argmax(1)]


@pytest.mark.parametrize("classes", [2, 3])
def test_it_ends_at_a_stationary_point_of_one_class_against_the_rest(classes):
    X, y = samples(classes)
    model = DecentralizedModel(ew.Sigmoid(ridge=RIDGE), n_nodes=4, fit_intercept=False, tol=1e-8)
    model.fit(X, y)
    assert is_classifier(model)
    assert "not convex" in model.method_note_
    assert model.score(X, y) > 0.8
    for row, name in zip(model.coef_, model.classes_[-len(model.coef_) :], strict=True):
        signs = np.where(y == name, 1, -1)
        s = expit(-signs * (X @ row))
        slope = X.T @ (-signs * s * (1 - s)) / len(y) + RIDGE * row
        assert np.abs(slope).max() < 1e-6
        assert np.abs(row).max() > 0.1

"""Silos as groups: a node for each, in a fit and among scikit-learn's tools."""

import jax
import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import edgewise as ew
from edgewise.errors import DataError
from edgewise.sklearn import DecentralizedLogisticRegression, DecentralizedRidge
from edgewise.sklearn.base import Decentralized


@pytest.fixture(scope="module", autouse=True)
def quick_compiles():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def silos():
    """Rows of three hospitals, mixed, of unequal sizes."""
    rng = np.random.default_rng(0)
    whose = rng.permutation(np.repeat(["north", "east", "west"], [8, 20, 12]))
    X = rng.normal(size=(40, 3)) + (whose == "west")[:, None]
    return X, X @ [1.0, -2.0, 0.5] + rng.normal(size=40), whose


@pytest.fixture
def held(monkeypatch):
    """The problems that are solved."""
    seen, solved = [], Decentralized._solved

    def look(self, problem, *rest):
        seen.append(problem)
        return solved(self, problem, *rest)

    monkeypatch.setattr(Decentralized, "_solved", look)
    return seen


def test_a_node_holds_the_rows_of_its_group(held):
    X, y, whose = silos()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    model = DecentralizedRidge(graph="path").fit(X, y, sample_weight=weight, groups=whose)
    assert_array_equal(model.groups_, ["east", "north", "west"])
    shards, scaling = held[0].shards, model._scaling
    cuts = np.cumsum(shards.counts)[:-1]
    for name, rows, labels in zip(
        model.groups_, np.split(shards.X, cuts), np.split(shards.y, cuts), strict=True
    ):
        assert_allclose(rows * scaling.scale + scaling.centre, X[whose == name])
        assert_allclose(labels + scaling.shift, y[whose == name])
    twin = Ridge().fit(X, y, sample_weight=weight)  # weights go with their rows
    assert_allclose(model.node_coef_, np.tile(twin.coef_, (3, 1)), atol=1e-6)
    again = DecentralizedRidge(graph="path").partial_fit(X, y, groups=pd.Series(whose))
    assert_allclose(again.coef_, Ridge().fit(X, y).coef_, atol=1e-6)
    assert not hasattr(model.set_params(n_nodes=3).fit(X, y), "groups_")


def test_groups_reach_a_fit_in_a_pipeline_in_a_search(held):
    """And the folds: every one leaves whole silos out, and every fit has a node for each left."""
    X, y, whose = silos()
    weight = np.linspace(0.5, 1.5, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        ridge = DecentralizedRidge(graph="path").set_fit_request(groups=True, sample_weight=True)
        ridge.set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, ridge)
        grid = {"decentralizedridge__alpha": [0.1, 50.0]}
        search = GridSearchCV(pipeline, grid, cv=GroupKFold(3))
        search.fit(X, y, groups=whose, sample_weight=weight)
        twin = GridSearchCV(
            make_pipeline(
                scaler,
                Ridge().set_fit_request(sample_weight=True).set_score_request(sample_weight=True),
            ),
            {"ridge__alpha": [0.1, 50.0]},
            cv=GroupKFold(3),
        ).fit(X, y, groups=whose, sample_weight=weight)
    assert [problem.nodes for problem in held] == 6 * [2] + [3]
    sizes = {tuple(sorted(problem.counts)) for problem in held}
    assert sizes == {(8, 12), (8, 20), (12, 20), (8, 12, 20)}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    for key in ("split0_test_score", "split1_test_score", "split2_test_score"):
        assert_allclose(search.cv_results_[key], twin.cv_results_[key], atol=1e-6)


def test_one_silo_left_out(held):
    """Without routing folds go by groups and rows are dealt out."""
    X, y, whose = silos()
    found = cross_validate(
        DecentralizedRidge(n_nodes=2, graph="path"), X, y, groups=whose, cv=LeaveOneGroupOut()
    )
    twin = cross_validate(Ridge(), X, y, groups=whose, cv=LeaveOneGroupOut())
    assert_allclose(found["test_score"], twin["test_score"], atol=1e-6)
    assert [problem.nodes for problem in held] == 3 * [2]


def test_groups_that_are_refused():
    X, y, whose = silos()
    model = DecentralizedRidge()
    for groups, told in [
        (whose[:3], r"shape \(3,\): give 40 names, one per sample"),
        (np.where(whose == "west", np.nan, 1.0), "groups has a NaN"),
        (np.array([*whose[:39], 7.5], object), "names of one kind"),
    ]:
        with pytest.raises(DataError, match=told):
            model.fit(X, y, groups=groups)
    with pytest.raises(DataError, match=r"call fit\(shards\), without groups"):
        model.fit(ew.split(X, y, nodes=2), groups=whose)
    with pytest.raises(ew.errors.ProblemError, match="the graph has 5 nodes"):
        DecentralizedLogisticRegression(graph=ew.Graph.ring(5)).fit(X, y > 0, groups=whose)

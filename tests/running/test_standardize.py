"""Standardisation over the network is scikit-learn's of all data, and models come back in the
units that the data came in."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import edgewise as ew
from edgewise.errors import EdgewiseError

RNG = np.random.default_rng(0)
GRAPH = ew.Graph.random(6, 9, seed=2)
N = 90
# like units, a huge offset beside a small spread, large, tiny, constant, zero, nearly always zero
X = np.column_stack(
    [
        RNG.standard_normal(N),
        50 + 10 * RNG.standard_normal(N),
        1e6 * RNG.standard_normal(N) - 3e6,
        1e-9 * RNG.random(N),
        np.full(N, 0.1),
        np.zeros(N),
        np.where(np.arange(N) == 7, 3.0, 0),
    ]
)
Y = np.where(X[:, 0] + (X[:, 1] - 50) / 10 + RNG.standard_normal(N) > 0, "sick", "well")
SHARDS = ew.split(X, Y, nodes=6, how="label")


def test_it_is_scikit_learns_of_all_data():
    theirs = StandardScaler().fit(X)
    shards, scaling = ew.standardize(SHARDS, GRAPH)
    assert scaling.reached
    assert scaling.count == N
    assert_allclose(scaling.centre, theirs.mean_, rtol=1e-10)
    assert_allclose(scaling.scale, theirs.scale_, rtol=1e-10)
    assert_allclose(scaling.variance[:4], theirs.var_[:4], rtol=1e-10)
    assert_allclose(shards.X, theirs.transform(X)[SHARDS.order], atol=1e-10)
    assert_allclose(scaling.inverse(shards.X), SHARDS.X, rtol=1e-12)
    _, by_name = ew.standardize(SHARDS, "ring")
    assert_allclose(by_name.scale, scaling.scale, rtol=1e-10)
    assert_array_equal(shards.counts, SHARDS.counts)
    assert scaling.bytes_sent == scaling.rounds * 2 * GRAPH.edge_count * (1 + 2 * 7) * 8


def test_weights_are_those_of_the_samples_as_they_were_given():
    weight = RNG.random(N) * (RNG.random(N) < 0.8)
    theirs = StandardScaler().fit(X, sample_weight=weight)
    _, scaling = ew.standardize(SHARDS, GRAPH, weight, faults=ew.Faults(drop=0.2, seed=1))
    assert_allclose(scaling.centre, theirs.mean_, rtol=1e-10)
    assert_allclose(scaling.scale, theirs.scale_, rtol=1e-10)


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-5])
def test_an_offset_costs_no_digits_but_those_that_the_data_lack(spread):
    x = 1e9 + spread * RNG.standard_normal((N, 1))
    exact = [Fraction(v) for v in x[:, 0].tolist()]
    mean = sum(exact) / N
    variance = float(sum((v - mean) ** 2 for v in exact) / N)
    shards, scaling = ew.standardize(ew.split(x, Y, nodes=6), GRAPH)
    assert_allclose(scaling.scale, np.sqrt(variance), rtol=1e-10)
    assert_allclose(scaling.centre, float(mean), rtol=1e-15)
    resolution = 2e-7 / spread  # of a float64 near 1e9, in units of the spread
    assert abs(shards.X.mean()) < resolution
    assert abs(shards.X.std() - 1) < resolution


def test_sparse_columns_are_scaled_and_stay_sparse():
    D = np.where(RNG.random((N, 5)) < 0.3, RNG.normal([0, 1, 5, 0, 0], size=(N, 5)), 0)
    D[:, 4] = 0
    theirs = StandardScaler(with_mean=False).fit(sp.csr_array(D))
    shards, scaling = ew.standardize(ew.split(sp.csr_array(D), Y, nodes=6), GRAPH)
    assert sp.issparse(shards.X)
    assert not scaling.centred
    assert_allclose(scaling.scale, theirs.scale_, rtol=1e-10)
    assert_allclose(shards.X.toarray(), theirs.transform(D)[shards.order], rtol=1e-10)
    assert_allclose(scaling.mean, D.mean(0), rtol=1e-10)


def test_float32_data_stay_so_and_are_summed_in_float64():
    x = (1000 + RNG.standard_normal((N, 2))).astype(np.float32)
    shards, scaling = ew.standardize(ew.split(x, Y, nodes=6), GRAPH)
    assert shards.X.dtype == np.float32
    assert_allclose(scaling.scale, x.astype(np.float64).std(0), rtol=1e-10)


def test_models_come_back_in_the_units_that_the_data_came_in():
    """The penalty is on the standardised coefficients, as in scikit-learn's pipeline."""
    shards, _ = ew.standardize(SHARDS, GRAPH)
    problem = ew.Problem(shards, ew.Logistic(ridge=0.1), weights="sample", intercept=True)
    result = ew.solve(problem, GRAPH, tol=1e-11, reference=False, progress=False)
    scaler, fitted = make_pipeline(
        StandardScaler(), LogisticRegression(C=1 / (0.1 * N), tol=1e-12, max_iter=1000)
    ).fit(X, Y)
    coef = fitted.coef_ / scaler.scale_
    model = result.model
    assert_allclose(model.coef, coef, rtol=1e-6, atol=1e-12)
    assert_allclose(model.intercept, fitted.intercept_ - coef @ scaler.mean_, rtol=1e-6)
    assert_array_equal(model.predict(X), fitted.predict(scaler.transform(X)))


def test_without_an_intercept_the_centre_makes_one():
    y = X[:, :3] @ [1, 0.2, 1e-6] + RNG.standard_normal(N)
    shards, _ = ew.standardize(ew.split(X[:, :3], y, nodes=6), GRAPH)
    problem = ew.Problem(shards, ew.Squared(ridge=0.2), weights="sample")
    model = ew.solve(problem, GRAPH, tol=1e-11, reference=False, progress=False).model
    theirs = make_pipeline(StandardScaler(), Ridge(0.2 * N, fit_intercept=False)).fit(X[:, :3], y)
    assert_allclose(model.predict(X[:, :3]), theirs.predict(X[:, :3]), rtol=1e-8)


def test_shards_on_disk_remember_it(tmp_path):
    shards, scaling = ew.standardize(SHARDS, GRAPH)
    ew.data.write_shards(tmp_path / "shards", shards)
    problem = ew.Problem(tmp_path / "shards", ew.Logistic())
    assert_array_equal(problem.shards.scaling.scale, scaling.scale)
    assert_array_equal(problem.only([1]).shards.scaling.centre, scaling.centre)
    with pytest.raises(EdgewiseError, match="standardised already"):
        ew.standardize(tmp_path / "shards", GRAPH)


@pytest.mark.parametrize(
    ("given", "graph", "more", "words"),
    [
        (SHARDS, ew.Graph.ring(5), {}, "the graph has 5 nodes and the data have 6"),
        (GRAPH, SHARDS, {}, "no Graph: standardize"),
        ([], GRAPH, {}, "no nodes"),
        (SHARDS, GRAPH, {"sample_weight": np.zeros(N)}, "zero for every sample"),
        (SHARDS, GRAPH, {"accuracy": 2.0}, "accuracy"),
    ],
)
def test_what_does_not_fit_is_refused(given, graph, more, words):
    with pytest.raises(EdgewiseError, match=words):
        ew.standardize(given, graph, **more)

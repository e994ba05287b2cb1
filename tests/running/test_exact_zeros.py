"""One model for all has the zeros of its penalty, which a mean of models has not."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression

import edgewise as ew
from edgewise.engines.base import OneProcess
from edgewise.running.evaluator import Evaluator
from edgewise.sklearn import (
    DecentralizedElasticNet,
    DecentralizedLasso,
    DecentralizedLogisticRegression,
)

RING = ew.Graph.ring(4)


@pytest.fixture(scope="module", autouse=True)
def quick_compiles():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def drawn(seed):
    """48 samples of 10 features, three of which matter; a number and a class for each."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(48, 10)) * np.exp(rng.normal(size=10))
    y = (X / X.std(0))[:, :3] @ [3, -2, 2] + rng.normal(size=48) + 1
    return X, y, y > np.median(y)


@pytest.mark.parametrize("seed", range(10))
def test_scikit_learns_support(seed):
    """All seeds are fitted by one compiled program for numbers and one for classes."""
    X, number, label = drawn(seed)
    exact, network = {"tol": 1e-13, "max_iter": 10**6}, {"graph": RING, "random_state": seed}
    saga = {"solver": "saga", "tol": 1e-11, "max_iter": 10**6, "random_state": 0}
    pairs = [
        (DecentralizedLasso(0.4, **network), Lasso(0.4, **exact), number),
        (
            DecentralizedElasticNet(0.4, l1_ratio=0.8, **network),
            ElasticNet(0.4, l1_ratio=0.8, **exact),
            number,
        ),
        (
            DecentralizedLogisticRegression(C=0.4, l1_ratio=1, **network),
            LogisticRegression(C=0.4, l1_ratio=1, **saga),
            label,
        ),
    ]
    for ours, theirs, y in pairs:
        ours.fit(X, y)
        theirs.fit(X, y)
        assert 0 < np.count_nonzero(theirs.coef_) < 10
        np.testing.assert_array_equal(ours.coef_ != 0, theirs.coef_ != 0)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)


def small(penalty):
    X, y, _ = drawn(1)
    return ew.Problem(ew.split(X / X.std(0), y, nodes=4, seed=0), ew.Squared(), penalty)


def solved(problem, method, **more):
    return ew.solve(problem, RING, method, progress=False, **{"rounds": 3000, "tol": 1e-8, **more})


@pytest.mark.quick_if(lambda method: method == "d-admm")
@pytest.mark.parametrize("method", ["d-admm", "pdmm", "pd", "saga-pd"])
def test_of_a_converged_run(method):
    problem = small(ew.L1(0.3))
    star, result = ew.reference(problem), solved(problem, method)
    assert result.converged
    np.testing.assert_array_equal(result.x == 0, star.x == 0)
    np.testing.assert_allclose(result.x, star.x, atol=1e-7)
    if method == "d-admm":
        assert np.any((result.x == 0) & (result.X.mean(0) != 0))  # there was something to do


def test_of_nodes_with_penalties_of_their_own():
    problem = small([ew.L1(0.9), ew.L1(0.2), None, ew.NonNegative()])
    star, result = ew.reference(problem), solved(problem, "pd")
    assert result.converged
    assert 0 < np.count_nonzero(star.x) < 10
    np.testing.assert_array_equal(result.x == 0, star.x == 0)
    assert np.all(result.X[2] != 0)  # a node without a penalty has no zeros of its own


def test_before_that_the_mean_but_for_zeros_that_cost_nothing():
    problem = small(ew.L1(0.3))
    result = solved(problem, "d-admm", rounds=12, tol=1e-12)
    mean = result.X.mean(0)
    assert not result.converged
    kept = result.x != 0
    np.testing.assert_allclose(result.x[kept], mean[kept], rtol=1e-13)

    def residual(x):
        return ew.solve(problem, RING, "pd", rounds=1, X0=x, progress=False).trace["residual"][0]

    assert residual(result.x) <= residual(mean) * (1 + 1e-9)


@pytest.mark.parametrize(("at_zero", "kept"), [(2.0, 3.0), (0.5, 0.0)])
def test_a_mean_that_a_step_makes_worse_stays(at_zero, kept):
    class Told(Evaluator):
        def __init__(self):
            self.curvatures = SimpleNamespace(sample=np.ones(4))
            self.communicator = OneProcess()

        def evaluate(self, X, duals, round):
            return {"settled": np.zeros(2), "residual": np.where(X[0, 0] == 0, at_zero, 1.0)}

    X = np.full((4, 2), 3.0)
    assert np.all(Told().settled(X.mean(0), X, 0 * X, round=1, converged=True) == kept)

"""Early rounds by NumPy, held to the compiled ones: every method, loss and penalty."""

import numpy as np
import pytest

import edgewise as ew

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
SIGNS = np.where(X @ [1.0, -2.0, 0.5] + 0.3 * RNG.standard_normal(60) > 0, 1, -1)
NUMBERS = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.standard_normal(60)
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0])).astype(float)
LOGISTIC = (ew.Logistic(ridge=0.1), SIGNS)
LOSSES = [
    (ew.Squared(), NUMBERS),
    (ew.Huber(0.5), NUMBERS),
    (ew.Multinomial(ridge=0.1), RNG.integers(0, 3, 60)),
    (ew.Poisson(ridge=0.1), COUNTS),
    (ew.Gamma(ridge=0.1), COUNTS + 1),
    (ew.Tweedie(1.5, ridge=0.1), COUNTS),
    (ew.NegativeBinomial(0.5, ridge=0.1), COUNTS),
    (ew.Quantile(0.5, 0.2, ridge=0.1), NUMBERS),
]
PENALTIES = [ew.L1(0.01), ew.Box(-0.3, 0.3), ew.SquaredL2(0.1), ew.ElasticNet(0.01, 0.1)]
PENALTIES += [ew.L2Ball(0.5)]
ONE_WAY = ew.DirectedGraph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], 4)


def held(monkeypatch, method, loss, y, penalty=None):
    graph = ONE_WAY if method.startswith("push") else ew.Graph.ring(4)
    problem = ew.Problem(ew.split(X, y, nodes=4), loss, penalty=penalty)
    runs = []
    for by_numpy in "10":
        monkeypatch.setenv("EDGEWISE_NUMPY", by_numpy)
        runs.append(ew.solve(problem, graph, method, rounds=24, record_every=8, seed=3))
    found, expected = runs
    size = np.abs(expected.X).max()
    np.testing.assert_allclose(found.X, expected.X, atol=1e-6 * size)  # matrices go in 32 bits
    for column in ("oracle_calls", "bytes_sent", "rounds"):
        assert np.array_equal(found.trace[column], expected.trace[column])


@pytest.mark.quick_if(lambda method: method in ("pdmm", "lsvr-pd", "d-admm"))
@pytest.mark.parametrize("method", sorted(set(ew.list_methods()) - {"newton-pd", "saga-pd"}))
def test_of_every_method(monkeypatch, method):
    held(monkeypatch, method, *LOGISTIC)


@pytest.mark.quick_if(lambda loss, method: loss == LOSSES[2] and method == "auto")
@pytest.mark.parametrize("method", ["auto", "saga-pd"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss[0]).__name__)
def test_of_every_loss(monkeypatch, method, loss):
    if method == "saga-pd" and not np.isfinite(loss[0].curvature()):
        pytest.skip("steps by a rule need curvature with a bound")
    held(monkeypatch, method, *loss)


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", ["auto", "saga-pd", "pdmm"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda h: type(h).__name__)
def test_of_penalties(monkeypatch, method, penalty):
    held(monkeypatch, method, *LOGISTIC, penalty)

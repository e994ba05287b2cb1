"""SkPD's compiled rounds against the plain ones, which are the reference."""

import numpy as np
import pytest

import edgewise as ew
from edgewise.engines import native
from edgewise.gradients import SEGA, ExactCoordinates, FiniteDifference

pytest.importorskip("numba", reason="compiled rounds need Numba: pip install 'edgewise[fast]'")

COUNTS = (1, 33, 70, 32, 5)  # samples: less than a tile, one and more, several


def problem_of(n, loss=None, dtype=np.float64, size=1.0, **options):
    rng = np.random.default_rng(n)
    shards = [
        (
            (size * rng.standard_normal((K, n)) / np.sqrt(n)).astype(dtype),
            rng.choice([-1.0, 1.0], K),
        )
        for K in COUNTS
    ]
    return ew.Problem(shards, loss or ew.Logistic(ridge=1e-2), **options)


def alike(monkeypatch, problem, method, tolerance=1e-12, **options):
    """Both really run, and count the same."""
    graph, found = ew.Graph.random(5, 7, seed=1), []
    options = {"rounds": 42, "record_every": 21, "reference": False} | options
    monkeypatch.setattr(native, "LEAST_SKETCHED", 1)
    for switch in ("1", "0"):
        monkeypatch.setenv("EDGEWISE_NATIVE", switch)
        assert native.fits(problem, method) == (switch == "1")
        found.append(ew.solve(problem, graph, method, **options))
    a, b = found
    np.testing.assert_allclose(a.X, b.X, rtol=0, atol=tolerance)
    np.testing.assert_allclose(a.duals, b.duals, rtol=0, atol=10 * tolerance)
    for counted in ("oracle_calls", "function_values"):
        assert a.trace[counted].tolist() == b.trace[counted].tolist()
    assert np.abs(b.X).max() > 1e-2  # it moved


# A difference has the rounding of two function values, divided by its step
ORACLES = {
    "coordinates": (SEGA(), 1e-12),
    "three at a time": (SEGA(batch=3), 1e-12),
    "differences": (SEGA(FiniteDifference(1e-3), batch=2), 1e-10),
    "differences by the usual step": (SEGA(FiniteDifference()), 1e-5),
}


@pytest.mark.parametrize("form", ["node", "edge"])
@pytest.mark.parametrize("oracle", ORACLES)
def test_every_oracle_in_both_forms(monkeypatch, oracle, form):
    gradient, tolerance = ORACLES[oracle]
    method = ew.PrimalDual(gradient, eta=0.2, form=form)
    alike(monkeypatch, problem_of(7, penalty=ew.L1(1e-3)), method, tolerance)


LOSSES = [ew.Squared(ridge=0.1), ew.Huber(0.5), ew.SmoothedHinge(0.7, ridge=0.01), ew.Logistic()]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("oracle", ["coordinates", "differences"])
def test_losses_and_weights_at_small_and_large_margins(monkeypatch, loss, oracle):
    gradient, tolerance = ORACLES[oracle]
    wide = isinstance(loss, ew.Logistic)  # its exp and log are our own
    problem = problem_of(8, loss, weights="sample", size=1000.0 if wide else 1.0)
    method = ew.PrimalDual(gradient, eta=0.2, rho=0.1)
    alike(monkeypatch, problem, method, tolerance * (1000 if wide else 1))


@pytest.mark.parametrize("n", [1, 33, 129])
@pytest.mark.parametrize("oracle", ["coordinates", "differences"])
def test_rows_as_they_lie_and_work_for_several_threads(monkeypatch, n, oracle):
    from edgewise.engines.native import rounds, sketches

    monkeypatch.setattr(sketches, "MOST_COPIED", 0)
    monkeypatch.setattr(sketches, "LITTLE_WORK", 0)
    monkeypatch.setattr(rounds, "SPARE_CORES", rounds.Cores(2))
    gradient, tolerance = ORACLES[oracle]
    gradient = SEGA(gradient.oracle)
    alike(monkeypatch, problem_of(n), ew.PrimalDual(gradient, eta=0.02, rho=0.1), tolerance)


@pytest.mark.parametrize("run", ["float64", "float32"])
def test_precisions(monkeypatch, run):
    problem = problem_of(40, dtype=np.float32)
    method = ew.PrimalDual(SEGA(batch=2), eta=0.2)
    alike(monkeypatch, problem, method, 1e-12 if run == "float64" else 1e-5, dtype=run)


def test_what_is_left_to_the_plain_rounds(monkeypatch):
    class Halved(ExactCoordinates):
        def __call__(self, p, X, at):
            return super().__call__(p, X, at) / 2

    problem = problem_of(40)
    assert not native.fits(problem, ew.PrimalDual(SEGA()))  # little data: a round is soon over
    monkeypatch.setattr(native, "LEAST_SKETCHED", 1)
    assert native.fits(problem, ew.PrimalDual(SEGA()))
    assert not native.fits(problem, ew.PrimalDual(SEGA(Halved())))
    assert not native.fits(problem, ew.PrimalDual(SEGA(batch=41)))
    assert not native.fits(problem_of(40, intercept=True), ew.PrimalDual(SEGA()))

"""The dispersion of counts along with their model, against statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm

import edgewise as ew
from edgewise.errors import DataError, ProblemError
from edgewise.running.dispersion import log_slope, with_dispersion

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 2))
EXPOSURE = RNG.uniform(0.5, 3, 150)
MEAN = EXPOSURE * np.exp(X @ [0.5, -0.3] + 1)
Y = RNG.negative_binomial(1 / 0.6, 1 / (1 + 0.6 * MEAN)).astype(float)
OPTIONS = {"weights": "sample", "intercept": True, "exposure": EXPOSURE}
RING = ew.Graph.ring(3)


def problem(y=Y, dispersion=1.0):
    return ew.Problem(ew.split(X, y, 3), ew.NegativeBinomial(dispersion), **OPTIONS)


def test_model_and_dispersion_are_those_of_statsmodels():
    rows = sm.add_constant(X)
    model = sm.NegativeBinomial(Y, rows, exposure=EXPOSURE)
    a, *w, alpha = model.fit(method="newton", tol=1e-14, maxiter=200, disp=0).params
    found = ew.fit_dispersion(problem(), RING)
    assert found.converged
    assert found.dispersion == pytest.approx(alpha, rel=1e-6)
    assert pytest.approx(np.tile([*w, a], (3, 1)), abs=1e-6) == found.result.X
    assert found.problem.loss.dispersion == pytest.approx(alpha, rel=1e-6)
    assert found.fits <= 6


def test_the_slope_is_that_of_the_log_likelihood():
    p, x, h = problem(), np.array([0.3, -0.2, 0.9]), 1e-5

    def likelihood(a):
        own = with_dispersion(p, a)
        z = p.shards.X[p.own(1)] @ x[:2] + x[2] + p.offset[p.own(1)]
        return own.loss.log_likelihood(z, p.labels[p.own(1)]).mean()

    wanted = (likelihood(0.7 * np.exp(h)) - likelihood(0.7 * np.exp(-h))) / (2 * h)
    assert log_slope(p, 1, x, 0.7) == pytest.approx(wanted, rel=1e-6)


def test_counts_that_vary_less_than_poissons_have_none():
    y = np.rint(MEAN)
    with pytest.raises(DataError, match="vary no more than Poisson's do"):
        ew.fit_dispersion(problem(y), RING)


def test_other_losses_have_none():
    with pytest.raises(ProblemError, match="Poisson has no dispersion"):
        ew.fit_dispersion(ew.Problem(ew.split(X, Y, 3), ew.Poisson()), RING)

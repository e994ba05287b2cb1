"""Runs of losses without a bound on their curvature do not diverge: outliers, a node of zeros, and
starts far away come to the answer all the same, whose score equations are worked out here."""

import numpy as np
import pytest

import edgewise as ew

N, NODES = 80, 4
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2))
MEAN = np.exp(X @ [0.5, -0.8] + 0.4)
Y = RNG.poisson(MEAN) + 0.0
POWERS = {"poisson": 1.0, "gamma": 2.0, "tweedie:1.5": 1.5}


def disturbed(what, name):
    """Rows, labels, and where the run begins."""
    x, y, start = X.copy(), Y + 0.5 * (name == "gamma"), None
    if what == "a count of a million":
        y[3] = 1e6
    elif what == "a feature ten thousand times as large":
        x[3, 0] *= 1e4
    elif what == "a node of zeros":
        y[: N // NODES] = 1e-6 if name == "gamma" else 0
    elif what == "far above":
        start = np.array([3.0, -3, 5])
    elif what == "far below":
        start = np.array([-3.0, 3, -5])
    return x, y, start


@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize(
    "what",
    [
        "a count of a million",
        "a feature ten thousand times as large",
        "a node of zeros",
        "far above",
        "far below",
    ],
)
def test_it_comes_to_the_answer(what, name):
    x, y, start = disturbed(what, name)
    p = ew.Problem(
        ew.Shards(x, y, np.full(NODES, N // NODES)), name, weights="sample", intercept=True
    )
    options = {"tol": 1e-7, "rounds": 3000, "reference": False}
    result = ew.solve(p, ew.Graph.ring(NODES), X0=start, **options)
    assert result.converged
    assert np.isfinite(result.trace["residual"]).all()
    rows, power = np.c_[x, np.ones(N)], POWERS[name]
    z = rows @ result.x
    falling = np.exp((1 - power) * np.where(y > 0, z, 0))
    above, below = np.exp((2 - power) * z), y * falling
    size = abs(rows).T @ (above + below)
    assert (abs(rows.T @ (above - below)) <= 1e-6 * size).all()
    star = ew.reference(p)
    assert star.reached
    assert pytest.approx(np.tile(star.x, (NODES, 1)), abs=1e-6) == result.X


def test_margins_of_labels_of_zero_may_go_down_without_end():
    loss = ew.Tweedie(1.5)
    for z in (-2000.0, 0.0, 3.0):
        wanted = 2 * np.exp(z / 2)
        assert loss.value(z, 0.0) == pytest.approx(wanted, rel=1e-6)
        assert loss.slope(z, 0.0) == pytest.approx(wanted / 2, rel=1e-6)
        assert loss.hessian(np.array(z), np.array(0.0)) == pytest.approx(wanted / 4, rel=1e-6)
    assert np.isfinite(loss.divergence(-2000.0, 0.0, -1999.0))

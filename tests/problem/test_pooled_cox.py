"""Cox's model over pooled risk sets: exact on all times, near it on a few."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from statsmodels.datasets import heart
from statsmodels.duration.hazard_regression import PHReg

import edgewise as ew
from edgewise.errors import DataError, ProblemError


def transplants():
    """The Stanford heart transplants, 69 patients, at 3 nodes: (time, event, X, parts)."""
    held = heart.load_pandas().data.to_numpy(float)
    time, event = held[:, 0], held[:, 1] == 1
    age = held[:, 2]
    X = np.column_stack([(age - age.mean()) / age.std(), np.arange(len(age)) % 2])
    parts = [
        (X[rows], ew.survival_labels(np.maximum(time[rows], 0.5), event[rows]))
        for rows in np.split(np.random.default_rng(0).permutation(len(age)), [25, 41])
    ]
    return np.maximum(time, 0.5), event, X, parts


def test_all_times_of_events_give_coxs_own_estimate():
    time, event, X, parts = transplants()
    problem = ew.pooled_cox(parts, np.unique(time[event]), "risk set")
    pooled = PHReg(time, X, status=event.astype(int), ties="breslow").fit(
        method="newton", tol=1e-12
    )
    star = ew.reference(problem)
    assert_allclose(star.x[-2:], pooled.params, atol=1e-7)
    for level, t in zip(star.x, np.unique(time[event]), strict=False):  # the hazards are Breslow's
        jump = np.sum(event & (time == t)) / np.exp(X[time >= t] @ pooled.params).sum()
        assert_allclose(np.exp(level), jump, rtol=1e-6)


def test_the_finer_the_grid_the_nearer():
    """In standard errors of Cox's estimate."""
    time, event, X, parts = transplants()
    pooled = PHReg(time, X, status=event.astype(int), ties="efron").fit(method="newton", tol=1e-12)
    times = np.unique(time[event])
    grids = [np.quantile(times, [0.2, 0.4, 0.6, 0.8]), times[:-1]]
    stars = [ew.reference(ew.pooled_cox(parts, grid)) for grid in grids]
    off = [np.abs((star.x[-2:] - pooled.params) / pooled.bse).max() for star in stars]
    assert off[0] < 0.1
    assert off[1] < 0.07


def test_piecewise_exponential_likelihood():
    time, event, X, parts = transplants()
    ends = np.array([0, 30.0, 200.0, np.inf])
    problem = ew.pooled_cox(parts, ends[1:-1])

    def cost(x):
        """By its definition: hazards minus their integrals."""
        value = 0.0
        for t, died, d in zip(time, event, X, strict=True):
            for a, b, level in zip(ends[:-1], ends[1:], x[:3], strict=True):
                value += np.exp(level + d @ x[3:]) * max(min(t, b) - a, 0)
                value -= (level + d @ x[3:]) * (died and a < t <= b)
        return value / 100

    found = minimize(cost, np.append(np.full(3, -5.0), [0, 0]), tol=1e-9)
    star = ew.reference(problem)
    assert_allclose(star.x, found.x, atol=1e-4)
    run = ew.solve(problem, "ring", tol=1e-8, rounds=2000, progress=False)
    assert run.converged
    assert_allclose(run.x, star.x, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"grid": [30, 5000]}, DataError, r"no node has an event in \(5000, inf\]"),
        ({"grid": [30, 20]}, DataError, "positive times that grow"),
        ({"exposure": "none"}, ProblemError, "'time' or 'risk set'"),
        ({"shards": []}, DataError, "give Shards"),
        ({"shards": [(np.eye(2), [1.0])]}, DataError, "give a row for each"),
        (
            {"shards": [(np.eye(2), [1, 2.0]), (np.eye(3), [1, 2, 3.0])]},
            DataError,
            "different numb",
        ),
    ],
)
def test_what_does_not_fit_is_said(change, error, message):
    with pytest.raises(error, match=message):
        ew.pooled_cox(**{"shards": transplants()[-1], "grid": [30], **change})


def test_shards_are_taken_as_they_are():
    *_, parts = transplants()
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    held = ew.Shards(X, y, np.array([len(y) for _, y in parts]), columns=("age", "odd"))
    made, same = ew.pooled_cox(held, [30.0]), ew.pooled_cox(parts, [30.0])
    assert made.columns == ("(0, 30]", "(30, inf]", "age", "odd")
    assert (made.shards.X == same.shards.X).all()
    assert (made.counts == same.counts).all()

"""A bootstrap over nodes against refits of the nodes that were drawn."""

import numpy as np
import pytest
import statsmodels.api as sm

import edgewise as ew
from edgewise.errors import DisclosureError, ProblemError
from edgewise.inference.bootstrap import bootstrap_steps
from edgewise.running.summary import answered

N, NODES = 120, 6
RNG = np.random.default_rng(8)
X = RNG.normal(size=(N, 2))
MEAN = np.exp(X @ [0.4, -0.5] + 0.6)
PARTS = np.split(np.arange(N), [10, 25, 45, 60, 90])
B = 12


def drawn():
    return np.random.default_rng(3).multinomial(NODES, np.full(NODES, 1 / NODES), B)


def replicates(problem, x, B=B):
    steps = bootstrap_steps(problem, x, B, 3, NODES)
    return answered(steps, problem, lambda all: np.sum(all, 0))


@pytest.mark.parametrize("weights", ["sample", "node"])
def test_replicates_are_refits(weights):
    y = RNG.poisson(MEAN).astype(float)
    problem = ew.Problem([(X[p], y[p]) for p in PARTS], ew.Poisson(), weights=weights)

    def refit(often):
        w = np.concatenate([m * np.ones(len(p)) for m, p in zip(often, PARTS, strict=True)])
        if weights == "node":
            w = w / np.repeat([len(p) for p in PARTS], [len(p) for p in PARTS])
        return sm.GLM(y, X, sm.families.Poisson(), freq_weights=w).fit(tol=1e-13).params

    ours = replicates(problem, refit(np.ones(NODES)))
    theirs = np.array([refit(often) for often in drawn()])
    assert ours.failed == 0
    assert ours.estimates == pytest.approx(theirs, rel=1e-8)
    assert ours.std_err == pytest.approx(theirs.std(0, ddof=1), rel=1e-8)
    ends = np.quantile(theirs, [0.05, 0.95], axis=0).T
    assert ours.interval(0.9, "percentile") == pytest.approx(ends, rel=1e-8)
    assert ours.interval(0.9, "basic")[:, 0] == pytest.approx(2 * ours.coef - ends[:, 1])


def test_a_ridge_of_the_mean_stays_what_it_is():
    y = X @ [1.0, -2.0] + RNG.normal(size=N)
    problem = ew.Problem([(X[p], y[p]) for p in PARTS], ew.Squared(ridge=0.2), weights="sample")
    ours = replicates(problem, np.zeros(2))
    for often, x in zip(drawn(), ours.estimates, strict=True):
        w = np.repeat(often, [len(p) for p in PARTS])
        A = X.T @ (X * w[:, None]) / w.sum() + 0.2 * np.eye(2)
        assert x == pytest.approx(np.linalg.solve(A, X.T @ (w * y) / w.sum()), rel=1e-8)


@pytest.mark.exhaustive  # compiling Cox's Hessian takes long
def test_losses_of_nodes_and_of_ones_own():
    y = X @ [1.0, -2.0] + RNG.normal(size=N)
    plain = ew.Problem([(X[p], y[p]) for p in PARTS], ew.Squared(), weights="sample")
    own = ew.CustomLoss(lambda x, d, y: (d @ x - y) ** 2 / 2)
    custom = ew.Problem([(X[p], y[p]) for p in PARTS], own, weights="sample")
    x = np.linalg.lstsq(X, y, rcond=None)[0]
    same = replicates(plain, x).estimates
    assert replicates(custom, x).estimates == pytest.approx(same, rel=1e-8)
    time, died = RNG.exponential(1 / MEAN), RNG.random(N) < 0.8
    parts = [(X[p], ew.survival_labels(time[p], died[p])) for p in PARTS]
    theirs = sm.PHReg(time, X, status=died, strata=np.repeat(range(NODES), [*map(len, PARTS)]))
    cox = replicates(ew.Problem(parts, ew.CoxPH(), weights="sample"), theirs.fit().params, 3)
    often = drawn()[0]
    again = np.concatenate([np.tile(p, m) for p, m in zip(PARTS, often, strict=True)]).astype(int)
    strata = np.repeat(range(often.sum()), np.repeat([*map(len, PARTS)], often))
    refit = sm.PHReg(time[again], X[again], status=died[again], strata=strata).fit()
    assert cox.estimates[0] == pytest.approx(refit.params, rel=1e-6)


def test_replicates_without_an_optimum_are_counted():
    y = (X[:, 0] > 0).astype(int)
    y[PARTS[0]] = 1 - y[PARTS[0]]  # but for one node a plane separates the classes
    problem = ew.Problem([(X[p], y[p]) for p in PARTS], ew.Logistic(), weights="sample")
    x = sm.GLM(y, X, sm.families.Binomial()).fit().params
    ours = replicates(problem, x, 60)
    without = np.random.default_rng(3).multinomial(NODES, np.full(NODES, 1 / NODES), 60)[:, 0] == 0
    assert ours.failed == without.sum()
    assert f"{ours.failed} more replicates" in str(ours)
    parts = [(X[p], X[p, 0] > 0) for p in PARTS]
    apart = ew.Problem(parts, ew.Logistic(), weights="sample")
    with pytest.raises(ProblemError, match="12 of 12 replicates have no optimum"):
        replicates(apart, x)


def test_over_a_network():
    y = X @ [1.0, -2.0] + RNG.normal(size=N)
    problem = ew.Problem([(X[p], y[p]) for p in PARTS], ew.Squared(), weights="sample")
    result = ew.solve(problem, "ring", tol=1e-9)
    ours = result.bootstrap(B, seed=3)
    assert ours.estimates == pytest.approx(replicates(problem, result.x).estimates, rel=1e-6)
    with pytest.raises(DisclosureError, match="node 0 has 10 samples"):
        result.bootstrap(B, least_count=11)
    with pytest.raises(DisclosureError, match="node 3 has 15 samples"):
        result.summary(least_count=[5, 5, 5, 16, 5, 5])

"""Cox's partial likelihood, node by node, against statsmodels', and lifelines' for case weights."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from statsmodels.duration.hazard_regression import PHReg

import edgewise as ew
from edgewise.errors import DataError, ProblemError

SIZES = (18, 11, 25)


def drawn(seed=0, columns=3):
    """(X, time, event, entry, node) with many ties, hazards of the nodes' own."""
    rng = np.random.default_rng(seed)
    node = np.repeat(range(len(SIZES)), SIZES)
    X = rng.normal(size=(len(node), columns)) + 0.3 * node[:, None]
    death = rng.exponential(8 * (node + 1) * np.exp(-X @ np.linspace(0.8, -0.4, columns)))
    end = rng.exponential(20, len(node))
    time, event = np.ceil(np.minimum(death, end)) + 1, death <= end
    return X, time, event, np.floor(0.6 * time * rng.random(len(node))) + 0.5, node


def problem_of(X, time, event, node, loss, **more):
    y = ew.survival_labels(time, event)
    parts = [(X[node == i], y[node == i]) for i in range(len(SIZES))]
    return ew.Problem(parts, loss, weights="sample", **more)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("truncated", [False, True])
def test_stratified_fit(ties, truncated):
    """The estimate, the likelihood, the gradient and the Hessian are those of all data together,
    stratified."""
    X, time, event, entry, node = drawn()
    more = {"entry": entry} if truncated else {}
    pooled = PHReg(time, X, status=event.astype(int), strata=node, ties=ties, **more)
    given = np.column_stack([X[:, :1], entry, X[:, 1:]]) if truncated else X
    problem = problem_of(given, time, event, node, ew.CoxPH(ties, 1 if truncated else None))
    star = ew.reference(problem)
    # statsmodels ends its iterations earlier
    assert_allclose(star.x, pooled.fit(method="newton", tol=1e-12).params, atol=1e-6)
    scale = len(node) / problem.nodes
    x = np.array([0.5, -0.2, 0.1])
    with jax.enable_x64(True):
        rows = problem.shards.X
        values = [problem.loss.fn(x, d, 0.0) for d in rows]
        slopes = [jax.grad(problem.loss.fn)(x, d, 0.0) for d in rows]
        bends = [jax.hessian(problem.loss.fn)(x, d, 0.0) for d in rows]
    weight = problem.scale * scale
    assert_allclose(weight @ np.array(values), -pooled.loglike(x), rtol=1e-11)
    assert_allclose(weight @ np.array(slopes), -pooled.score(x), rtol=1e-9)
    H = np.tensordot(weight, np.array(bends), 1)
    assert_allclose(H, -pooled.hessian(x), rtol=1e-8)
    assert (np.linalg.eigvalsh(np.array(bends))[:, -1] <= problem.smoothness.sample).all()


@pytest.mark.parametrize("penalty", ["l1", "ridge"])
def test_penalties(penalty):
    """The optimality conditions, by statsmodels' score."""
    X, time, event, _, node = drawn(1)
    pooled = PHReg(time, X, status=event.astype(int), strata=node, ties="efron")
    h = ew.L1(0.12) if penalty == "l1" else None
    star = ew.reference(
        problem_of(X, time, event, node, ew.CoxPH(ridge=0.0 if h else 0.2), penalty=h)
    )
    slope = -pooled.score(star.x) / len(node)
    if h is None:
        assert_allclose(slope, -0.2 * star.x, atol=1e-9)
    else:
        assert 0 < np.count_nonzero(star.x) < len(star.x)
        live = star.x != 0
        assert_allclose(slope[live], -0.12 * np.sign(star.x[live]), atol=1e-9)
        assert (np.abs(slope[~live]) <= 0.12).all()


@pytest.mark.parametrize(
    ("weighted", "truncated", "expected"),
    [
        (False, False, (-0.14843624724629798, 0.22868402352575587)),
        (True, False, (-0.33323721193761136, 0.21754987217331698)),
        (False, True, (-0.11193025443713694, 0.24222299317644128)),
    ],
)
def test_case_weights(weighted, truncated, expected):
    """As lifelines 0.30.3 has it, CoxPHFitter(strata=, weights_col=, entry_col=), with Efron's
    ties."""
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(40, 2)), 2)
    time = np.round(rng.exponential(6, 40)) + 1
    event, weight = rng.random(40) < 0.7, rng.integers(1, 4, 40)
    entry = np.floor(time * rng.random(40) * 0.6)
    y, node = ew.survival_labels(time, event), np.arange(40) % 2
    X = np.column_stack([X, entry]) if truncated else X
    order = np.argsort(node, kind="stable")
    parts = [(X[node == i], y[node == i]) for i in range(2)]
    problem = ew.Problem(
        parts,
        ew.CoxPH(entry=-1 if truncated else None),
        weights="sample",
        sample_weight=weight[order] if weighted else None,
    )
    assert_allclose(ew.reference(problem).x, expected, atol=1e-8)


def test_newton_rounds():
    """The default method arrives, from the text of the loss too; nodes are of unequal sizes."""
    X, time, event, _, node = drawn()
    problem = problem_of(X, time, event, node, "cox")
    result = ew.solve(problem, "ring", rounds=300, tol=1e-9)
    assert result.converged
    assert "newton-pd" in result.method_note
    assert_allclose(result.X, np.tile(ew.reference(problem).x, (3, 1)), atol=1e-8)
    assert str(problem) == "Problem(3 nodes, 54 samples, 3 unknowns, CoxPH)"
    some = problem.only([2, 0])
    assert some.samples_of_nodes.tolist() == [25, 18]
    assert (some.scale == problem.scale[[2, 0]]).all()


def test_far_out():
    """Hazards that overflow as such are no trouble, nor are models far away."""
    X, time, event, _, node = drawn()
    problem = problem_of(X, time, event, node, ew.CoxPH())
    x = np.array([90.0, -60.0, 40.0])
    predicted = X @ x
    own = node == 0
    log_risk = [np.logaddexp.reduce(predicted[own][time[own] >= t]) for t in time[own]]
    expected = (np.array(log_risk) - predicted[own])[event[own]].sum() / own.sum()
    with jax.enable_x64(True):
        breslow = problem_of(X, time, event, node, ew.CoxPH("breslow"))
        value = breslow.loss.fn(x, breslow.shards.X[0], 0.0)
        slope = jax.grad(problem.loss.fn)(100 * x, problem.shards.X[0], 0.0)
    assert np.ptp(predicted[own]) > 300
    assert_allclose(value, expected, rtol=1e-11)
    assert np.isfinite(slope).all()


def test_refusals():
    X, y = np.eye(2), [3.0, -4.0]
    with pytest.raises(DataError, match="sample 1 has the time 0"):
        ew.Problem([(X, [1.0, 0.0])], ew.CoxPH())
    with pytest.raises(DataError, match="events must be True and False"):
        ew.survival_labels([1, 2], [1, 2])
    with pytest.raises(ProblemError, match="no intercept"):
        ew.Problem([(X, y)], ew.CoxPH(), intercept=True)
    with pytest.raises(ProblemError, match="give 'efron' or 'breslow'"):
        ew.CoxPH("exact")
    with pytest.raises(DataError, match="enters at 5 and leaves at 3"):
        ew.Problem([(np.array([[1.0, 5.0], [2.0, 0.0]]), y)], ew.CoxPH(entry=1))

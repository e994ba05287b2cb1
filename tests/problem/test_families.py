"""Losses of generalised linear models against statsmodels and scikit-learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from sklearn.linear_model import (
    GammaRegressor,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)

import edgewise as ew
from edgewise.errors import DataError, MethodError, ProblemError

LOG = sm.families.links.Log()
N, NODES = 120, 4
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3)) * [1.0, 0.5, 2.0]
MEAN = np.exp(X @ [0.5, -1.0, 0.2] + 0.4)
WEIGHT = RNG.integers(1, 5, N).astype(float)
LABELS = {
    "poisson": RNG.poisson(MEAN).astype(float),
    "gamma": RNG.gamma(2.0, MEAN / 2),
    "tweedie": np.where(RNG.random(N) < 0.3, 0.0, RNG.gamma(2.0, MEAN / 2)),
    "negative-binomial": RNG.negative_binomial(2, 2 / (2 + MEAN)).astype(float),
    "binomial": RNG.binomial(WEIGHT.astype(int), MEAN / (1 + MEAN)) / WEIGHT,
    "squared": X @ [1.0, 2.0, 3.0] + RNG.normal(size=N),
}
LOSSES = {
    "poisson": ew.Poisson(),
    "gamma": ew.Gamma(),
    "tweedie": ew.Tweedie(1.4),
    "negative-binomial": ew.NegativeBinomial(0.5),
    "binomial": ew.Binomial(),
    "squared": ew.Squared(),
}
FAMILIES = {
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(LOG),
    "tweedie": sm.families.Tweedie(LOG, var_power=1.4),
    "negative-binomial": sm.families.NegativeBinomial(alpha=0.5),
    "binomial": sm.families.Binomial(),
    "squared": sm.families.Gaussian(),
}
SCALES = {"gamma": 0.4, "tweedie": 1.3, "squared": 2.0}


def glm(name, y=None, x=X):
    """statsmodels' answer, the intercept last."""
    y = LABELS[name] if y is None else y
    model = sm.GLM(y, sm.add_constant(x), family=FAMILIES[name], freq_weights=WEIGHT)
    a, *w = model.fit(tol=1e-14, maxiter=300).params
    return np.array([*w, a])


def problem(name, y=None, x=X, loss=None):
    shards = ew.split(x, LABELS[name] if y is None else y, NODES)
    loss = LOSSES[name] if loss is None else loss
    return ew.Problem(shards, loss, weights="sample", sample_weight=WEIGHT, intercept=True)


@pytest.mark.parametrize("name", [*LOSSES, "quantile"])
def test_slope_hessian_and_divergence_are_those_of_the_value(name):
    def near(a, **tolerance):
        return pytest.approx(np.asarray(a), **tolerance)

    loss = ew.Quantile(0.8, 0.7) if name == "quantile" else LOSSES[name]
    with jax.enable_x64(True):
        z = jnp.linspace(-3, 3, N)
        y = jnp.asarray(LABELS["poisson" if name == "quantile" else name])
        assert jax.vmap(jax.grad(loss.value))(z, y) == near(loss.slope(z, y), abs=1e-12)
        bend = jax.vmap(jax.grad(lambda z, y: loss.slope(z, y)))(z, y)
        assert loss.hessian(z, y) == near(bend, abs=1e-12)
        at = z + 0.3 * jnp.cos(5 * z)
        plain = loss.value(z, y) - loss.value(at, y) - loss.slope(at, y) * (z - at)
        assert loss.divergence(z, y, at) == near(plain, abs=1e-12)
        if name == "quantile":
            assert bend.max() <= loss.curvature() + 1e-12
            return
        close = z + 1e-9  # where the plain formula has no digits left
        assert loss.divergence(close, y, z) == near(0.5e-18 * bend, rel=1e-4)
        if loss.smooth:
            assert (np.asarray(bend) <= loss.curvatures(np.asarray(y)) + 1e-12).all()
        else:  # at the margin that is right
            some = y > 0
            right = loss.hessian(jnp.log(y[some]), y[some])
            assert right == near(loss.curvatures(np.asarray(y[some])), rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_likelihoods_are_those_of_statsmodels(name):
    loss, family, y = LOSSES[name], FAMILIES[name], LABELS[name]
    z, scale = 0.5 * X[:, 0] + 0.1, SCALES.get(name, 1.0)
    mean = loss.mean(z)
    assert mean == pytest.approx(family.fitted(z), rel=1e-12)
    assert loss.variance(mean) == pytest.approx(family.variance(mean), rel=1e-12)
    assert loss.deviance(z, y) == pytest.approx(
        family._resid_dev(y, mean) if name != "binomial" else family.resid_dev(y, mean) ** 2,
        rel=1e-9, abs=1e-12,
    )  # fmt: skip
    assert loss.pearson(z, y) == pytest.approx((y - mean) ** 2 / family.variance(mean), rel=1e-12)
    if name == "binomial":
        counts = np.column_stack([y * WEIGHT, (1 - y) * WEIGHT])
        family.initialize(counts, np.ones(N))
        want = family.loglike_obs(y, mean)
        family.n = 1
    else:
        want = WEIGHT * family.loglike_obs(y, mean, scale=scale)
    assert loss.log_likelihood(z, y, scale, WEIGHT) == pytest.approx(want, rel=1e-9)
    assert loss.estimated == (name in SCALES)


def test_logistic_labels_are_rates_of_one_trial():
    y = LABELS["poisson"] > 1
    z, signed = X[:, 0], np.where(y, 1.0, -1.0)
    for what in ("deviance", "log_likelihood", "pearson"):
        ours = getattr(ew.Logistic(), what)(z, signed)
        assert ours == pytest.approx(getattr(ew.Binomial(), what)(z, y.astype(float)), rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_the_centralised_answer_is_that_of_statsmodels(name):
    assert ew.reference(problem(name)).x == pytest.approx(glm(name), abs=1e-8)


def outlier():
    """One label a hundred times as large as the largest, and one row of features."""
    y, x = LABELS["poisson"].copy(), X.copy()
    y[5], x[17] = 100 * y.max(), 100 * x[17]
    return y, x


@pytest.mark.parametrize("name", ["poisson", "tweedie"])
def test_auto_comes_to_the_answer_over_a_network(name):
    result = ew.solve(problem(name), ew.Graph.ring(NODES), tol=1e-7)
    assert result.converged
    assert result.method_note.startswith("auto: newton-pd, because the loss's curvature has no")
    assert pytest.approx(np.tile(glm(name), (NODES, 1)), abs=1e-6) == result.X


def test_an_outlier_slows_a_run_and_does_not_end_it():
    y, x = outlier()
    result = ew.solve(problem("poisson", y, x), ew.Graph.ring(NODES), tol=1e-5)
    assert result.converged
    assert np.isfinite(result.trace["residual"]).all()
    assert pytest.approx(np.tile(glm("poisson", y, x), (NODES, 1)), abs=1e-6) == result.X


@pytest.mark.parametrize("method", ["pd", "saga-pd", "pdmm", "lt-saga-pd", "extra", "network-dane"])
def test_steps_that_need_a_bound_on_curvature_are_refused(method):
    p, ring = problem("poisson"), ew.Graph.ring(NODES)
    with pytest.raises(MethodError, match=r"Poisson has no bound.*use newton-pd.*number for eta"):
        ew.solve(p, ring, method, rounds=1)


def test_with_a_step_of_ones_own_gradients_do():
    p = problem("poisson")
    result = ew.solve(p, ew.Graph.complete(NODES), "pd", eta=0.1, rounds=4000, tol=1e-6)
    assert result.x == pytest.approx(glm("poisson"), abs=1e-6)


def test_negative_binomial_and_binomial_have_a_bound_for_each_label():
    for name in ("negative-binomial", "binomial"):
        p = problem(name)
        rows = np.c_[p.shards.X, np.ones(N)]
        bends = p.loss.curvatures(p.labels) * p.scale
        H = [rows[own].T @ (bends[own, None] * rows[own]) for own in map(p.own, range(NODES))]
        most = np.array([np.linalg.eigvalsh(h).max() for h in H]) / p.counts
        assert (p.smoothness.mean >= most).all()
        assert (p.smoothness.mean <= 1.06 * most).all()


SKLEARN = {
    "poisson": PoissonRegressor,
    "gamma": GammaRegressor,
    "tweedie": lambda **more: TweedieRegressor(power=1.4, link="log", **more),
}


@pytest.mark.parametrize("name", SKLEARN)
def test_with_a_ridge_the_answer_is_that_of_scikit_learn(name):
    theirs = SKLEARN[name](alpha=0.3, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    theirs.fit(X, LABELS[name], sample_weight=WEIGHT)
    loss = type(LOSSES[name])(**{**vars(LOSSES[name]), "ridge": 0.3})
    star = ew.reference(problem(name, loss=loss)).x
    assert star == pytest.approx([*theirs.coef_, theirs.intercept_], abs=1e-6)


def test_the_rounded_quantile_is_a_mean_of_pinballs():
    from scipy.integrate import quad

    loss = ew.Quantile(0.8, 0.7)

    def pinball(r):
        return max(0.8 * r, -0.2 * r)

    with jax.enable_x64(True):
        for z in (-1.0, -0.3, 0.0, 0.2, 0.35, 2.0):
            mean = quad(lambda u, z=z: pinball(-z - u), -0.35, 0.35, points=[-z])[0] / 0.7
            assert float(loss.value(jnp.float64(z), jnp.float64(0))) == pytest.approx(mean)


def test_the_centralised_rounded_quantile_is_that_of_scipy():
    loss, y = ew.Quantile(0.8, 0.5), LABELS["squared"]
    p = problem("squared", loss=loss)
    rows, width = np.c_[X, np.ones(N)], 0.5

    def mean(x):
        r = y - rows @ x
        near = np.minimum(abs(r), width / 2)
        each = 0.3 * r + 0.5 * (abs(r) - near + near**2 / width + width / 4)
        slope = np.clip(-r / width, -0.5, 0.5) + 0.5 - 0.8
        return WEIGHT @ each / WEIGHT.sum(), rows.T @ (WEIGHT * slope) / WEIGHT.sum()

    found = minimize(mean, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-11})
    assert ew.reference(p).x == pytest.approx(found.x, abs=1e-6)


@pytest.mark.parametrize("level", [0.2, 0.5, 0.9])
def test_quantiles_lose_at_most_an_eighth_of_the_width(level):
    """Beside statsmodels' and scikit-learn's, of the pinball loss with its corner."""
    y, rows, width = LABELS["squared"], np.c_[X, np.ones(N)], 0.2
    theirs = QuantileRegressor(quantile=level, alpha=0).fit(X, y)
    exact = np.append(theirs.coef_, theirs.intercept_)
    p = ew.Problem(ew.split(X, y, NODES), ew.Quantile(level, width), weights="sample",
                   intercept=True)  # fmt: skip
    ours = ew.reference(p).x

    def pinball(x):
        return float(np.maximum(level * (y - rows @ x), (level - 1) * (y - rows @ x)).mean())

    assert pinball(exact) == pytest.approx(
        pinball(sm.QuantReg(y, rows).fit(level, p_tol=1e-9).params), abs=1e-6
    )
    assert 0 <= pinball(ours) - pinball(exact) <= width / 8
    assert ours == pytest.approx(exact, abs=width)
    assert abs((y <= rows @ ours).mean() - level) <= 4 / N + 0.02


@pytest.mark.parametrize(
    ("loss", "labels", "said"),
    [
        (ew.Poisson(), [1.0, -2.0], "labels of 0 or more, and there is -2"),
        (ew.Gamma(), [1.0, 0.0], "labels of above 0, and there is 0"),
        (ew.Tweedie(1.5), [1.0, -1.0], "labels of 0 or more"),
        (ew.NegativeBinomial(), [-1.0, 1.0], "labels of 0 or more"),
        (ew.Binomial(), [0.5, 3.0], "give the trials as sample_weight"),
    ],
)
def test_labels_that_the_family_has_not_are_refused(loss, labels, said):
    with pytest.raises(DataError, match=said):
        ew.Problem([(np.eye(2), labels)], loss)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ew.Tweedie(3.0), "beyond 2 the loss is not convex"),
        (lambda: ew.Tweedie(0.0), "for 0 take Squared"),
        (lambda: ew.NegativeBinomial(0.0), "is Poisson"),
        (lambda: ew.Quantile(1.0), "between 0 and 1"),
        (lambda: ew.Quantile(0.5, 0.0), "not smooth"),
    ],
)
def test_parameters_out_of_range_are_refused(make, said):
    with pytest.raises(ProblemError, match=said):
        make()

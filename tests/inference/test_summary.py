"""Standard errors, tests and criteria against statsmodels."""

import json
from itertools import pairwise

import numpy as np
import pytest
import statsmodels.api as sm

import edgewise as ew
from edgewise.errors import AccuracyWarning, GraphError, ProblemError, UnknownName
from edgewise.inference.estimation import Wanted, estimation
from edgewise.running.summary import answered, summary_of

LOG = sm.families.links.Log()
N, NODES = 150, 5
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 3)) * [1.0, 0.5, 2.0] + [0, 1, -2]
MEAN = np.exp(X @ [0.5, -1.0, 0.2] + 0.4)
WEIGHT = RNG.integers(1, 4, N).astype(float)
Z = sm.add_constant(X)
CASES = {
    "poisson": (ew.Poisson(), sm.families.Poisson(), RNG.poisson(MEAN)),
    "gamma": (ew.Gamma(), sm.families.Gamma(LOG), RNG.gamma(2.0, MEAN / 2)),
    "negative-binomial": (
        ew.NegativeBinomial(0.5),
        sm.families.NegativeBinomial(alpha=0.5),
        RNG.negative_binomial(2, 2 / (2 + MEAN)),
    ),
    "logistic": (ew.Logistic(), sm.families.Binomial(), RNG.random(N) < MEAN / (1 + MEAN)),
    "squared": (ew.Squared(), sm.families.Gaussian(), X @ [1.0, 2, 3] + RNG.normal(size=N)),
}
CASES = {name: (loss, family, y.astype(float)) for name, (loss, family, y) in CASES.items()}


def summed(problem, x, **wanted):
    """Without a network: the sums are NumPy's."""
    return answered(estimation(problem, x, Wanted(**wanted)), problem, lambda all: np.sum(all, 0))


def near(a, rel=1e-8):
    return pytest.approx(np.asarray(a), rel=rel, abs=1e-9)


def last_first(params):
    return np.array([*params[1:], params[0]])


def nodes_of(problem):
    """(N,) of the samples in the order that they were given."""
    shards = problem.held
    return np.repeat(np.arange(shards.nodes), shards.counts)[np.argsort(shards.order)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_estimates_are_those_of_statsmodels(name, weighted):
    loss, family, y = CASES[name]
    w = WEIGHT if weighted else None
    model = sm.GLM(y, Z, family=family, freq_weights=w)
    theirs = model.fit(tol=1e-14, maxiter=300)
    shards = ew.split(X, y, NODES, how="size", seed=1)
    problem = ew.Problem(shards, loss, weights="sample", sample_weight=w, intercept=True)
    ours = summed(problem, last_first(theirs.params), student=False)
    assert ours.names == ("Intercept", "x0", "x1", "x2")
    assert ours.coef == near(theirs.params)
    assert ours.std_err == near(theirs.bse)
    assert ours.statistic == near(theirs.tvalues)
    assert ours.p_values == near(theirs.pvalues)
    assert ours.interval(0.9) == near(theirs.conf_int(0.1))
    assert ours.scale == near(theirs.scale)
    assert ours.deviance == near(theirs.deviance)
    assert ours.null_deviance == near(theirs.null_deviance)
    assert ours.pearson == near(theirs.pearson_chi2)
    assert ours.log_likelihood == near(theirs.llf)
    assert ours.aic == near(theirs.aic)
    assert ours.bic == near(-2 * theirs.llf + 4 * np.log(ours.samples))
    assert ours.df_residual == theirs.df_resid
    R = np.array([[0, 1, 0, 0], [0, 0, 1, -1.0]])
    assert ours.wald_test(R).statistic == near(theirs.wald_test(R, scalar=True).statistic)
    if not weighted:  # statsmodels has squares of such weights in its outer products
        robust = model.fit(tol=1e-14, maxiter=300, cov_type="HC0")
        assert ours.robust("HC0").std_err == near(robust.bse)
        groups = {"groups": nodes_of(problem)}
        clusters = model.fit(tol=1e-14, maxiter=300, cov_type="cluster", cov_kwds=groups)
        assert ours.robust("cluster").std_err == near(clusters.bse)


@pytest.mark.parametrize("kind", ["model", "HC0", "HC1", "cluster"])
def test_a_weight_of_three_is_three_alike(kind):
    loss, _, y = CASES["logistic"]
    w = WEIGHT.astype(int)
    cut = np.arange(0, N + 1, N // NODES)
    ranges = list(pairwise(cut))
    few = ew.Problem(
        [(X[a:b], y[a:b]) for a, b in ranges],
        loss,
        weights="sample",
        sample_weight=WEIGHT,
        intercept=True,
    )
    shards = [(np.repeat(X[a:b], w[a:b], 0), np.repeat(y[a:b], w[a:b])) for a, b in ranges]
    many = ew.Problem(shards, loss, weights="sample", intercept=True)
    x = last_first(sm.GLM(y, Z, sm.families.Binomial(), freq_weights=w).fit(tol=1e-14).params)
    a, b = summed(few, x, covariance=kind), summed(many, x)
    assert a.std_err == near(b.robust(kind).std_err)
    assert a.samples == b.samples == w.sum()


def test_weights_are_precisions_or_trials():
    y = CASES["squared"][2]
    theirs = sm.WLS(y, Z, weights=WEIGHT).fit()
    shards = ew.split(X, y, NODES)
    known = {"weights": "sample", "sample_weight": WEIGHT, "intercept": True}
    problem = ew.Problem(shards, ew.Squared(), **known)
    ours = summed(problem, last_first(theirs.params), weights_are="precisions")
    assert ours.std_err == near(theirs.bse)
    assert ours.interval() == near(theirs.conf_int())  # by Student's t
    assert ours.robust("HC0").std_err == near(sm.WLS(y, Z, weights=WEIGHT).fit(cov_type="HC0").bse)
    assert ours.log_likelihood is None

    seen = RNG.binomial(WEIGHT.astype(int), MEAN / (1 + MEAN)) / WEIGHT
    pairs = np.column_stack([seen, 1 - seen]) * WEIGHT[:, None]
    theirs = sm.GLM(pairs, Z, sm.families.Binomial()).fit(tol=1e-14)
    problem = ew.Problem(ew.split(X, seen, NODES), ew.Binomial(), **known)
    ours = summed(problem, last_first(theirs.params))
    assert ours.std_err == near(theirs.bse)
    assert ours.df_residual == theirs.df_resid
    assert ours.log_likelihood == near(theirs.llf)


def test_offsets_and_observed_information():
    y, exposure = CASES["poisson"][2], RNG.uniform(0.5, 2, N)
    theirs = sm.GLM(y, Z, sm.families.Poisson(), exposure=exposure).fit(tol=1e-14)
    known = {"weights": "sample", "intercept": True}
    problem = ew.Problem(ew.split(X, y, NODES), ew.Poisson(), exposure=exposure, **known)
    ours = summed(problem, last_first(theirs.params))
    assert ours.std_err == near(theirs.bse)
    assert ours.log_likelihood == near(theirs.llf)
    assert ours.null_deviance is None  # it has no formula
    loss, family, y = CASES["gamma"]
    model = sm.GLM(y, Z, family)
    theirs = model.fit(tol=1e-14, maxiter=300)
    problem = ew.Problem(ew.split(X, y, NODES), loss, **known)
    ours = summed(problem, last_first(theirs.params), information="observed")
    seen = -np.linalg.inv(model.hessian(theirs.params, scale=theirs.scale, observed=True))
    assert ours.std_err == near(np.sqrt(np.diag(seen)))


def test_over_a_network_of_standardised_columns():
    _, family, y = CASES["logistic"]
    shards, _ = ew.standardize(ew.split(X, y, NODES), "ring")
    problem = ew.Problem(shards, ew.Logistic(), weights="sample", intercept=True)
    result = ew.solve(problem, "ring", tol=1e-9)
    ours = result.summary("cluster")
    model = sm.GLM(y, Z, family)
    clusters = model.fit(tol=1e-14, cov_type="cluster", cov_kwds={"groups": nodes_of(problem)})
    assert ours.coef == near(clusters.params, 1e-6)
    assert ours.std_err == near(clusters.bse, 1e-6)
    assert ours.df == NODES - 1
    assert ours.robust("model").std_err == near(model.fit(tol=1e-14).bse, 1e-6)
    model, _, names = result.model, str(ours), ours.frame().index
    assert ours.coef == near([model.intercept[0], *model.coef[0]])
    assert list(names) == ["Intercept", "x0", "x1", "x2"]


def test_sums_take_links_that_go_both_ways():
    _, _, y = CASES["squared"]
    problem = ew.Problem(ew.split(X, y, NODES), ew.Squared(), weights="sample")
    with pytest.raises(GraphError, match='graph="ring"'):
        summary_of(problem, ew.DirectedGraph.cycle(NODES), np.zeros(3), Wanted())


def test_likelihood_ratios():
    loss, family, y = CASES["gamma"]

    def both(columns):
        model = sm.GLM(y, Z[:, [0, *columns]], family).fit(tol=1e-14, maxiter=300)
        shards = ew.split(X[:, np.array(columns) - 1], y, NODES)
        problem = ew.Problem(shards, loss, weights="sample", intercept=True)
        return model, summed(problem, last_first(model.params))

    (theirs, ours), (_, less) = both([1, 2, 3]), both([1])
    test = ours.likelihood_ratio_test(less)
    F = (less.deviance - theirs.deviance) / 2 / theirs.scale
    assert test.statistic == near(F)
    assert (test.df, test.df_residual) == (2, N - 4)
    with pytest.raises(ProblemError, match="the other way"):
        less.likelihood_ratio_test(ours)
    y = CASES["poisson"][2]
    theirs = sm.GLM(y, Z, sm.families.Poisson()).fit(tol=1e-14)
    shards = ew.split(X, y, NODES)
    problem = ew.Problem(shards, ew.Poisson(), weights="sample", intercept=True)
    test = summed(problem, last_first(theirs.params)).likelihood_ratio_test()
    assert test.statistic == near(2 * (theirs.llf - theirs.llnull))
    assert test.df == 3


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_cox_is_that_of_statsmodels(ties):
    time = np.ceil(RNG.exponential(np.exp(-X @ [0.5, -0.3, 0.1]) * 8))
    died = RNG.random(N) < 0.7
    problem = ew.Problem(
        ew.split(X, ew.survival_labels(time, died), NODES), ew.CoxPH(ties), weights="sample"
    )
    strata = nodes_of(problem)
    model = sm.PHReg(time, X, status=died, strata=strata, ties=ties)
    theirs = model.fit(tol=1e-14)
    ours = summed(problem, theirs.params)
    assert ours.names == ("x0", "x1", "x2")
    assert ours.std_err == near(theirs.bse, 1e-6)
    assert ours.log_likelihood == near(theirs.llf, 1e-6)
    assert ours.events == died.sum()
    assert ours.likelihood_ratio_test().statistic == near(
        2 * (theirs.llf - model.loglike(np.zeros(3))), 1e-6
    )
    with pytest.raises(ProblemError, match="HC0 takes gradients of single samples"):
        summed(problem, theirs.params, covariance="HC0")
    G = np.array([model.score(theirs.params) * 0] * NODES)
    for i in range(NODES):
        own = strata == i
        G[i] = sm.PHReg(time[own], X[own], status=died[own], ties=ties).score(theirs.params)
    bread, correction = theirs.cov_params(), NODES / (NODES - 1) * (N - 1) / (N - 3)
    sandwich = correction * bread @ G.T @ G @ bread
    assert ours.robust("cluster").std_err == near(np.sqrt(np.diag(sandwich)), 1e-6)


def test_weights_of_cox_are_cases():
    time, died = RNG.exponential(8, N), RNG.random(N) < 0.7
    labels, w = ew.survival_labels(time, died), WEIGHT.astype(int)
    problem = ew.Problem(
        ew.split(X, labels, NODES), ew.CoxPH("breslow"), weights="sample", sample_weight=WEIGHT
    )
    strata, many = nodes_of(problem), np.repeat(np.arange(N), w)
    model = sm.PHReg(time[many], X[many], status=died[many], strata=strata[many], ties="breslow")
    theirs = model.fit(tol=1e-14)
    ours = summed(problem, theirs.params)
    assert ours.std_err == near(theirs.bse, 1e-6)
    assert ours.log_likelihood == near(theirs.llf, 1e-6)
    assert ours.events == (WEIGHT * died).sum()


def test_nodes_that_count_alike_have_a_sandwich():
    _, _, y = CASES["logistic"]
    shards = ew.split(X, y, NODES, how="size", seed=1)
    problem = ew.Problem(shards, ew.Logistic(), intercept=True)
    w = (1 / shards.counts)[nodes_of(problem)]
    theirs = sm.GLM(y, Z, sm.families.Binomial(), var_weights=w / w.mean())
    theirs = theirs.fit(tol=1e-14, cov_type="HC0")
    ours = summed(problem, last_first(theirs.params))
    assert ours.kind == "HC0"
    assert ours.std_err == near(theirs.bse)
    assert ours.log_likelihood is None
    assert "Nodes count alike" in str(ours)
    with pytest.raises(ProblemError, match='weights="sample"'):
        summed(problem, last_first(theirs.params), covariance="model")
    with pytest.raises(ProblemError, match="no likelihoods to compare"):
        ours.likelihood_ratio_test()


def test_losses_that_are_no_likelihoods():
    _, _, y = CASES["squared"]
    shards = ew.split(X, y, NODES)
    x = last_first(sm.OLS(y, Z).fit().params)
    ordinary = ew.Problem(shards, ew.Squared(), weights="sample", intercept=True)
    wide = ew.Problem(shards, ew.Huber(1e3), weights="sample", intercept=True)
    own = ew.CustomLoss(lambda x, d, y: (d @ x[:3] + x[3] - y) ** 2 / 2, size=4)
    custom = ew.Problem(shards, own, weights="sample")
    expected = summed(ordinary, x, covariance="HC0").covariance
    assert summed(wide, x).covariance == near(expected)
    order = [3, 0, 1, 2]
    assert summed(custom, x).covariance[np.ix_(order, order)] == near(expected)
    with pytest.raises(ProblemError, match="no likelihood"):
        summed(wide, x, covariance="model")


def test_a_ridge_takes_from_the_spread_of_estimates():
    """Of many labels with the same features, refitted in closed form."""
    y = CASES["squared"][2]
    ridge = 0.3
    R = N * ridge * np.diag([0.0, 1, 1, 1])
    at = np.linalg.solve(Z.T @ Z + R, Z.T)
    problem = ew.Problem(
        ew.split(X, y, NODES), ew.Squared(ridge=ridge), weights="sample", intercept=True
    )
    ours = summed(problem, last_first(at @ y))
    assert ours.covariance == near(ours.scale * at @ at.T)
    assert ours.size == near(np.trace(Z @ at))
    scores = Z * (y - Z @ at @ y)[:, None]
    bread = np.linalg.inv(Z.T @ Z + R)
    spread = scores.T @ scores - np.outer(scores.sum(0), scores.sum(0)) / N
    assert ours.robust("HC0").covariance == near(bread @ spread @ bread)
    assert "A ridge shrinks" in str(ours)
    with pytest.raises(ProblemError, match="ratios of likelihoods"):
        ours.likelihood_ratio_test()
    each = ew.Problem(
        ew.split(X, y, NODES), ew.Squared(), ew.SquaredL2(ridge), weights="sample", intercept=True
    )
    assert summed(each, last_first(at @ y)).covariance == near(ours.covariance)


def test_l1_is_refused_or_left_behind():
    loss, family, y = CASES["logistic"]
    theirs = sm.GLM(y, Z, family).fit(tol=1e-14)
    problem = ew.Problem(ew.split(X, y, NODES), loss, ew.L1(0.05), weights="sample", intercept=True)
    x = last_first(theirs.params) * [0.5, 0.5, 0, 1]
    with pytest.raises(ProblemError, match="debias=True"):
        summed(problem, x)
    ours = summed(problem, x, debias=True)
    assert ours.coef == near(theirs.params)
    assert ours.std_err == near(theirs.bse)
    assert "not the model's own" in str(ours)
    bounded = ew.Problem(ew.split(X, y, NODES), loss, ew.NonNegative(), weights="sample")
    with pytest.raises(ProblemError, match="bounds them"):
        summed(bounded, x[:3], debias=True)


def test_what_cannot_be_told_is_said():
    _, _, y = CASES["squared"]
    D = np.column_stack([X, X[:, 0] - 2 * X[:, 1]])
    shards = ew.split(D, y, NODES)
    problem = ew.Problem(shards, ew.Squared(), weights="sample")
    with pytest.raises(ProblemError, match="do not tell x0, x1, x3 apart"):
        summed(problem, np.zeros(4))
    fine = ew.Problem(ew.split(X, y, NODES), ew.Squared(), weights="sample")
    with pytest.warns(AccuracyWarning, match="standard errors from its optimum"):
        far = summed(fine, np.zeros(3))
    assert far.off_optimum > 1
    with pytest.raises(UnknownName, match="did you mean 'cluster'"):
        summed(fine, np.zeros(3), covariance="clusters")
    with pytest.raises(UnknownName, match="coefficient 'x9'"):
        far.wald_test("x9")
    classes = ew.Problem(ew.split(X, np.arange(N) % 3, NODES), ew.Multinomial())
    with pytest.raises(ProblemError, match="3 outputs"):
        summed(classes, np.zeros(9))


def test_a_summary_is_kept_as_text_and_numbers(tmp_path):
    loss, family, y = CASES["poisson"]
    theirs = sm.GLM(y, Z, family).fit(tol=1e-14)
    problem = ew.Problem(ew.split(X, y, NODES), loss, weights="sample", intercept=True)
    ours = summed(problem, last_first(theirs.params))
    ours.save(tmp_path)
    text = (tmp_path / "summary.txt").read_text()
    assert text.splitlines()[0].strip() == "Poisson: 150 samples at 5 nodes"
    row = next(line.split() for line in text.splitlines() if line.startswith("x1"))
    assert row == ["x1", *(f"{a:.4f}" for a in ours.frame().loc["x1"][:3]), *row[4:]]
    kept = json.loads((tmp_path / "summary.json").read_text())
    assert kept["coefficients"]["x1"]["std_err"] == ours.std_err[2]
    assert kept["covariance"] == ours.covariance.tolist()
    assert kept["aic"] == ours.aic
    ratios = ours.frame(exponentiated=True)
    assert ratios["exp(coef)"].to_numpy() == near(np.exp(theirs.params))
    assert ratios["[0.025"].to_numpy() == near(np.exp(theirs.conf_int()[:, 0]))

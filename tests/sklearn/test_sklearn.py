"""The estimators behave as scikit-learn asks, and come to what its own come to."""

import warnings
from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import edgewise as ew
from edgewise.backend import programs
from edgewise.errors import DataError, GraphError, MethodError, ProblemError, UnknownName
from edgewise.sklearn import (
    DecentralizedElasticNet,
    DecentralizedLasso,
    DecentralizedLogisticRegression,
    DecentralizedModel,
    DecentralizedRidge,
    DecentralizedSVC,
)
from edgewise.sklearn.feature_scaling import FeatureScaling
from edgewise.sklearn.solver_problem import SMALL, CodedLogistic, SharedProblem


@pytest.fixture(scope="module", autouse=True)
def quick_compiles():
    """Many shapes are fitted, a few times each: compiling is all they cost."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@parametrize_with_checks([DecentralizedLasso(), DecentralizedLogisticRegression()])
def test_check_estimator(estimator, check):
    run_check(estimator, check)


# What these do not share with those above is their parameters, penalties and losses.
LIKE_THEM = [
    DecentralizedElasticNet(),
    DecentralizedRidge(),
    DecentralizedModel(),
    DecentralizedSVC(),
]


@parametrize_with_checks(LIKE_THEM, legacy=False)
def test_check_estimator_api(estimator, check):
    run_check(estimator, check)


@pytest.mark.exhaustive
@parametrize_with_checks(LIKE_THEM)
def test_check_estimators_like_them(estimator, check):
    run_check(estimator, check)


def run_check(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


# --- scikit-learn's own answers -------------------------------------------------------------------


def scaled(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def small(classes=0, samples=60, features=5, seed=0):
    """Samples with a shift and a scale for every feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, features))
    z = X @ rng.normal(size=features) + 0.5 * rng.normal(size=samples)
    X = X * np.logspace(-1, 1, features) + np.linspace(-5, 5, features)
    return X, z + 3 if not classes else np.digitize(z, np.linspace(-1, 1, classes + 1)[1:-1])


TWINS = [
    (DecentralizedLasso(alpha=0.7), Lasso(alpha=0.7, tol=1e-13, max_iter=10**5), load_diabetes),
    (DecentralizedRidge(alpha=3.0), Ridge(alpha=3.0), load_diabetes),
    (DecentralizedRidge(fit_intercept=False), Ridge(fit_intercept=False), load_diabetes),
    (
        DecentralizedElasticNet(alpha=0.3, l1_ratio=0.8),
        ElasticNet(alpha=0.3, l1_ratio=0.8, tol=1e-13, max_iter=10**5),
        load_diabetes,
    ),
    (
        DecentralizedLogisticRegression(C=0.5),
        LogisticRegression(C=0.5, solver="newton-cholesky", tol=1e-10),
        load_breast_cancer,
    ),
    (
        DecentralizedLogisticRegression(C=0.05, l1_ratio=1.0),
        LogisticRegression(C=0.05, l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=10**5),
        load_breast_cancer,
    ),
    (
        DecentralizedLogisticRegression(C=0.1, l1_ratio=0.4),
        LogisticRegression(C=0.1, l1_ratio=0.4, solver="saga", tol=1e-9, max_iter=10**5),
        load_breast_cancer,
    ),
    (
        DecentralizedLogisticRegression(class_weight="balanced"),
        LogisticRegression(class_weight="balanced", solver="newton-cholesky", tol=1e-10),
        load_wine,
    ),
    (
        DecentralizedLogisticRegression(class_weight={0: 1.0, 1: 5.0, 2: 0.5}, graph="ring"),
        LogisticRegression(
            class_weight={0: 1.0, 1: 5.0, 2: 0.5}, solver="newton-cholesky", tol=1e-10
        ),
        load_iris,
    ),
]


@pytest.mark.quick_if(lambda ours, **_: ours not in (TWINS[2][0], TWINS[6][0], TWINS[8][0]))
@pytest.mark.parametrize(("ours", "twin", "load"), TWINS)
def test_coefficients_are_those_of_the_twin(ours, twin, load):
    X, y = scaled(load)
    ours.fit(X, y)
    twin.fit(X, y)
    assert_allclose(ours.coef_, twin.coef_, atol=1e-5)
    assert_array_equal(ours.coef_ == 0, twin.coef_ == 0)
    assert_allclose(ours.intercept_, twin.intercept_, atol=1e-5)
    assert np.shape(ours.intercept_) == np.shape(twin.intercept_)
    assert_allclose(ours.predict(X), twin.predict(X), atol=1e-4)
    if hasattr(twin, "predict_proba"):
        assert_array_equal(ours.classes_, twin.classes_)
        assert ours.node_coef_.shape == (10, *np.squeeze(twin.coef_).shape)
        assert_allclose(ours.predict_proba(X), twin.predict_proba(X), atol=1e-5)
        assert_allclose(np.exp(ours.predict_log_proba(X)), ours.predict_proba(X), atol=1e-12)


def test_units_of_features_do_not_matter():
    """Nothing is scaled by the user, and columns differ by 1e6 in size and have far means."""
    X, y = scaled(load_diabetes)
    X = X * np.logspace(-3, 3, X.shape[1]) + np.logspace(4, 0, X.shape[1])
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    ours = DecentralizedLasso(alpha=0.5).fit(X, y, sample_weight=weight)
    twin = Lasso(alpha=0.5, tol=1e-13, max_iter=10**6).fit(X, y, sample_weight=weight)
    assert_allclose(ours.coef_ * X.std(0), twin.coef_ * X.std(0), atol=1e-5)
    assert_allclose(ours.predict(X), twin.predict(X), atol=1e-5)


def smoothed_hinge(X, sign, C, width):
    """|w|²/2 + C Σ of rounded hinges, by L-BFGS."""

    def objective(x):
        short = 1 - sign * (X @ x[:-1] + x[-1])
        curved, straight = (short > 0) & (short <= width), short > width
        values = np.where(curved, short**2 / (2 * width), np.where(straight, short - width / 2, 0))
        slopes = -sign * np.where(curved, short / width, np.where(straight, 1.0, 0))
        gradient = np.append(C * slopes @ X + x[:-1], C * slopes.sum())
        return C * values.sum() + x[:-1] @ x[:-1] / 2, gradient

    options = {"maxiter": 10**5, "maxfun": 10**5, "ftol": 0, "gtol": 1e-10}
    start = np.zeros(X.shape[1] + 1)
    return minimize(objective, start, method="L-BFGS-B", jac=True, options=options).x


@pytest.mark.parametrize("classes", [2, 3])
def test_support_vectors_against_another_solver(classes):
    X, y = small(classes)
    ours = DecentralizedSVC(C=0.8, width=0.3).fit(X, y)
    assert_array_equal(ours.classes_, np.arange(classes))
    for row, label in enumerate([1] if classes == 2 else range(3)):
        star = smoothed_hinge(X, np.where(y == label, 1.0, -1.0), C=0.8, width=0.3)
        assert_allclose(ours.coef_[row], star[:-1], atol=1e-5)
        assert_allclose(ours.intercept_[row], star[-1], atol=1e-5)


def test_a_corner_of_a_hundredth_on_units_that_differ():
    """At the start no sample is in a corner: all Hessians are zero there. Runs stayed at the start,
    or at residuals of 1e-7, where a fall of the objective is below the rounding of the penalty."""
    X, y = small(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        ours = DecentralizedSVC(C=20.0, width=0.01, max_iter=1000).fit(X, y)
    sign, weights = np.where(y == 1, 1.0, -1.0), ours.coef_[0]
    short = 1 - sign * (X @ weights + ours.intercept_[0])
    assert ((short > 0) & (short < 0.01)).any(), "nothing is in the corner: this shows less"
    # the optimum is where |w|^2 / 2 + C sum of losses has no slope, in every feature's own unit
    pull = 20.0 * sign * np.clip(short / 0.01, 0, 1)
    assert_allclose((weights - pull @ X) / (np.abs(pull) @ np.abs(X)), 0, atol=1e-7)
    assert abs(pull.sum()) < 1e-6


def test_narrow_corners_lead_to_the_support_vector_machine():
    X, y = small(2)
    twin = SVC(kernel="linear", tol=1e-10).fit(X, y)
    far, near = (
        np.abs(DecentralizedSVC(width=width).fit(X, y).coef_ - twin.coef_).max()
        for width in (0.5, 0.05)
    )
    assert near < far / 4
    assert near < 0.05


def test_any_loss_and_penalty():
    X, y = small()
    X = X / X.std(0)
    model = DecentralizedModel(ew.Huber(delta=0.5), ew.NonNegative()).fit(X, y)
    star = ew.reference(ew.Problem([(X, y)], ew.Huber(delta=0.5), ew.NonNegative(), intercept=True))
    assert_allclose(model.coef_, star.x[:-1], atol=1e-6)
    assert_allclose(model.intercept_, star.x[-1], atol=1e-5)
    assert (model.coef_ >= 0).all()
    assert (model.coef_ == 0).any()
    assert not hasattr(model, "decision_function")

    custom = ew.CustomLoss(lambda x, d, t: (d @ x - t) ** 2 / 2)
    plain = DecentralizedModel(custom, ew.SquaredL2(0.1), fit_intercept=False, tol=1e-8)
    plain.fit(X, y)
    ridge = Ridge(alpha=0.1 * len(y), fit_intercept=False).fit(X, y)
    assert_allclose(plain.predict(X), ridge.predict(X), atol=1e-4)


def test_of_several_models_it_takes_the_shortest_whatever_rows_are_repeated():
    rng = np.random.default_rng(2)
    X, y, weight = rng.normal(size=(14, 10)), rng.normal(size=14), np.repeat([0, 1, 3], [6, 4, 4])
    shortest = np.linalg.lstsq(X[6:], y[6:])[0]
    weighted = DecentralizedModel(fit_intercept=False).fit(X, y, sample_weight=weight)
    assert_allclose(weighted.coef_, shortest, atol=1e-7)
    assert weighted.method_note_.startswith("auto: pdmm, because the data leave several models")


def test_a_model_with_a_loss_of_classes_is_a_classifier():
    X, y = scaled(load_iris)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = DecentralizedModel(ew.Logistic(), ew.SquaredL2(1 / len(y))).fit(X, names)
    twin = LogisticRegression(tol=1e-10, solver="newton-cholesky").fit(X, names)
    assert_allclose(model.coef_, twin.coef_, atol=1e-5)
    assert_array_equal(model.predict(X), twin.predict(X))
    assert_allclose(model.predict_proba(X), twin.predict_proba(X), atol=1e-5)
    assert model.score(X, names) == twin.score(X, names)
    X, y = X[y > 0], names[y > 0]
    both = DecentralizedModel(ew.Multinomial(ridge=0.1)).fit(X, y)
    # weights of two classes are opposite, and the difference of both is penalised half as much
    pair = LogisticRegression(C=2 / (0.1 * len(y)), tol=1e-10, solver="newton-cholesky").fit(X, y)
    assert both.coef_.shape == (2, 4)
    assert_allclose(both.decision_function(X), pair.decision_function(X), atol=1e-5)


# --- nodes ----------------------------------------------------------------------------------------


def test_the_answer_does_not_depend_on_the_split():
    X, y = small(2)
    whole = DecentralizedLogisticRegression(n_nodes=1).fit(X, y)
    runs = [
        (3, {"n_nodes": 3, "graph": "ring"}),
        (10, {"graph": "complete"}),
        (6, {"graph": ew.Graph.grid(2, 3), "random_state": None}),
    ]
    for nodes, run in runs:
        one = DecentralizedLogisticRegression(**run).fit(X, y)
        assert_allclose(one.coef_, whole.coef_, atol=1e-7)
        assert_allclose(one.intercept_, whole.intercept_, atol=1e-6)
        assert one.node_coef_.shape == (nodes, 5)
        assert_allclose(one.node_coef_, np.broadcast_to(one.coef_, (nodes, 5)), atol=1e-5)


def test_shards_that_nodes_hold():
    X, y = small(2)
    weight = np.random.default_rng(1).uniform(0, 2, len(y))
    weight[:9] = 0
    shards = ew.split(X, np.array(["no", "yes"])[y], nodes=6, how="label", alpha=0.3)
    assert len(set(shards.counts)) > 1
    held = DecentralizedLogisticRegression(graph="ring").fit(shards, sample_weight=weight)
    dealt = DecentralizedLogisticRegression().fit(X, y, sample_weight=weight)
    assert_allclose(held.coef_, dealt.coef_, atol=1e-7)
    assert_array_equal(held.classes_, ["no", "yes"])
    assert held.node_coef_.shape == (6, 5)
    assert held.n_features_in_ == 5
    assert set(held.predict(X)) == {"no", "yes"}


def test_standardised_shards_give_a_model_in_the_datas_own_units():
    X, y = small(2)
    X = pd.DataFrame(X * [1, 10, 100, 1, 0.1] + [5, 0, 300, 0, 1], columns=[*"abcde"])
    graph = ew.Graph.ring(4)
    shards, scaling = ew.standardize(ew.split(X, y, nodes=4), graph)
    held = DecentralizedLogisticRegression(graph=graph).fit(shards)
    pooled = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10)).fit(X, y)
    assert_allclose(held.decision_function(X), pooled.decision_function(X), atol=1e-5)
    assert_allclose(held.coef_ * scaling.scale, pooled[-1].coef_, atol=1e-6)
    assert list(held.feature_names_in_) == [*"abcde"]
    with pytest.raises(DataError, match="length 1"):
        held.fit(replace(shards, scaling=replace(scaling, unit_rows=True)))


def test_nodes_shrink_with_the_samples():
    X, y = small(samples=7)
    assert len(DecentralizedRidge().fit(X, y).node_coef_) == 7


def test_what_a_fit_tells():
    X, y = small()
    model = DecentralizedRidge(graph="ring", method="pdmm").fit(X, y)
    trace = model.trace_
    assert trace["rounds"][-1] == model.n_iter_
    assert trace["vectors_sent"][-1] == 2 * 10 * model.n_iter_
    assert trace["residual"][-1] < 1e-7 < trace["residual"][0]
    assert_allclose(model.node_coef_.mean(0), model.coef_, atol=1e-12)
    assert_allclose(model.node_intercept_.mean(), model.intercept_, atol=1e-12)
    with pytest.warns(
        ConvergenceWarning,
        match=r"ran all 7 rounds, .* tol=1e-10 asks .*: give method='auto', or raise max_iter$",
    ):
        model = DecentralizedRidge(max_iter=7, graph="ring", method="saga-pd").fit(X, y)
    assert model.n_iter_ == 7
    assert model.trace_["oracle_calls"][-1] == 6 + 7  # a table of six samples, then one a round


def test_padding_changes_nothing_but_the_programs():
    X, y = small(2, samples=61)
    shards = ew.split(X / np.abs(X).max(0), 2.0 * y - 1, nodes=4)
    weight = np.linspace(0, 1, 61)
    runs = []
    for kind in (ew.Problem, SharedProblem):
        problem = kind(
            shards, CodedLogistic(), ew.L1(0.01), weights="sample", sample_weight=weight,
            intercept=True,
        )  # fmt: skip
        runs.append(ew.solve(problem, ew.Graph.ring(4), "saga-pd", rounds=100, reference=False))
    assert_allclose(runs[1].X, runs[0].X, atol=1e-12)
    assert_array_equal(runs[1].trace["oracle_calls"], runs[0].trace["oracle_calls"])
    assert_allclose(runs[1].trace["residual"], runs[0].trace["residual"], atol=1e-12)

    model = DecentralizedRidge().fit(X, y)
    before = set(programs.COMPILED)
    model.fit(X[:-3], y[:-3])
    assert set(programs.COMPILED) == before


# --- going on -------------------------------------------------------------------------------------


def test_partial_fit_goes_on():
    X, y = small(2)
    model = DecentralizedLogisticRegression(C=0.5, method="pd").fit(X, y)
    rounds, answer = model.n_iter_, model.coef_
    model.partial_fit(X, y)
    assert model.n_iter_ <= 50 < rounds
    assert_allclose(model.coef_, answer, atol=1e-8)
    model.set_params(C=0.55).partial_fit(X, y)
    again = DecentralizedLogisticRegression(C=0.55, method="pd").fit(X, y)
    assert_allclose(model.coef_, again.coef_, atol=1e-7)
    assert model.n_iter_ < again.n_iter_
    short = DecentralizedLogisticRegression(C=0.5, method="pd", max_iter=100)
    with pytest.warns(ConvergenceWarning):
        short.fit(X, y)
    spent = 100
    while spent < 2 * rounds and abs(short.coef_ - answer).max() > 1e-7:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            short.partial_fit(X, y)
        spent += short.n_iter_
    assert spent <= 1.2 * rounds  # duals go on too, so that nothing is found anew


def test_partial_fit_on_batches():
    X, y = small(3)
    model = DecentralizedLogisticRegression(max_iter=100)
    with pytest.warns(ConvergenceWarning):  # nothing holds the intercept of the missing class
        model.partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    model.set_params(max_iter=20_000)
    assert model.coef_.shape == (3, 5)
    model.partial_fit(X, y)
    assert_allclose(model.coef_, DecentralizedLogisticRegression().fit(X, y).coef_, atol=1e-6)
    model.partial_fit(X[:4], y[:4])  # fewer samples than nodes: from the mean of the models
    assert len(model.node_coef_) == 4
    with pytest.raises(DataError, match=r"label .*7.* is none of the classes"):
        model.partial_fit(X[:3], [0, 1, 7])
    with pytest.raises(DataError, match=r"classes were .* in the first call"):
        model.partial_fit(X, y, classes=[0, 1])
    regressor = DecentralizedRidge().partial_fit(X[:30], y[:30]).partial_fit(X, y)
    assert_allclose(regressor.coef_, Ridge().fit(X, y).coef_, atol=1e-5)


# --- among scikit-learn's tools -------------------------------------------------------------------


def test_pipeline_grid_search_and_clone():
    X, y = small(2)
    pipeline = make_pipeline(StandardScaler(), DecentralizedLogisticRegression())
    grid = {"decentralizedlogisticregression__C": [0.01, 1.0]}
    ours = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    twins = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [0.01, 1]},
        cv=3,
    ).fit(X, y)  # fmt: skip
    assert_allclose(ours.cv_results_["mean_test_score"], twins.cv_results_["mean_test_score"])
    scores = cross_val_score(DecentralizedRidge(), X, y, cv=3)
    assert_allclose(scores, cross_val_score(Ridge(), X, y, cv=3), atol=1e-6)
    graph = ew.Graph.ring(4)
    copy = clone(DecentralizedModel(ew.Huber(), ew.L1(0.1), graph=graph, method=ew.PDMM()))
    assert copy.set_params(n_nodes=4).get_params()["n_nodes"] == 4
    assert_allclose(copy.fit(X, y).node_coef_.shape, (4, 5))


def test_names_of_features():
    X, y = small()
    table = pd.DataFrame(X, columns=list("abcde"))
    model = DecentralizedLasso(alpha=0.1).fit(table, pd.Series(y))
    assert_array_equal(model.feature_names_in_, list("abcde"))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert_allclose(model.predict(table), model.predict(X), rtol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[list("bacde")])
    assert not hasattr(model.fit(ew.split(X, y, nodes=10)), "feature_names_in_")


def test_sparse_is_dense():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 30)) * (rng.random((600, 30)) < 0.2) * np.logspace(0, 1, 30)
    y = X @ rng.normal(size=30) / 5 + rng.normal(size=600) + 1
    assert X.size > SMALL  # smaller ones are made dense
    for ours, twin in [
        (DecentralizedLasso(alpha=0.05), Lasso(alpha=0.05, tol=1e-12, max_iter=10**5)),
        (DecentralizedLogisticRegression(), LogisticRegression(solver="newton-cholesky")),
    ]:
        labels = y if isinstance(ours, DecentralizedLasso) else y > 1
        dense = twin.set_params(tol=1e-11).fit(X, labels)
        ours.fit(sp.csr_array(X), labels)
        assert_allclose(ours.coef_, dense.coef_, atol=1e-5)
        assert_allclose(ours.intercept_, dense.intercept_, atol=1e-5)
        assert_allclose(ours.predict(sp.csc_matrix(X)), ours.predict(X), rtol=1e-9)
    tiny = DecentralizedRidge().fit(sp.csc_matrix(X[:40, :5]), y[:40])
    assert_allclose(tiny.coef_, Ridge().fit(X[:40, :5], y[:40]).coef_, atol=1e-6)


def test_text_stays_in_its_units_and_is_fitted_by_compiled_rounds(monkeypatch):
    """Many sparse columns, and an intercept; with one that stands out they are scaled."""
    local_rounds = pytest.importorskip("edgewise.engines.native.local_rounds", reason="no Numba")
    rng = np.random.default_rng(0)
    X = sp.random_array((120, 1100), density=0.02, rng=rng, format="csr")
    X = sp.csr_array(sp.diags_array(1 / np.sqrt(X.multiply(X).sum(1))) @ X)
    y = X @ rng.normal(size=1100) + 0.1 * rng.normal(size=120) > 0
    ran, compiled = [], local_rounds.LocalSimulator
    rounds = compiled.run_rounds
    monkeypatch.setattr(compiled, "run_rounds", lambda *given: ran.append(1) or rounds(*given))
    ours = DecentralizedLogisticRegression(C=10, n_nodes=4).fit(X, y)
    twin = LogisticRegression(C=10, tol=1e-12, max_iter=10**5, solver="newton-cg").fit(X, y)
    assert_allclose(ours.coef_, twin.coef_, atol=1e-6)
    assert_allclose(ours.intercept_, twin.intercept_, atol=1e-6)
    assert ran
    ran.clear()
    ours = DecentralizedLogisticRegression(C=10, l1_ratio=0.5, n_nodes=4).fit(X, y)
    options = {"C": 10, "l1_ratio": 0.5, "tol": 1e-9, "max_iter": 10**5, "random_state": 0}
    twin = LogisticRegression(solver="saga", **options).fit(X, y)
    assert_allclose(ours.coef_, twin.coef_, atol=1e-5)
    assert ((ours.coef_ == 0) == (twin.coef_ == 0)).all()
    assert ran
    assert (FeatureScaling.of(X, np.ones(120), True, True).scale == 1).all()
    X.data[:5] *= 1e4
    assert (FeatureScaling.of(X, np.ones(120), True, True).scale != 1).any()


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_weights_are_repeated_rows():
    """They arrive, too: with a penalty runs stayed at twice the residual that tol wants."""
    X, y = small(3)
    weight = np.random.default_rng(4).integers(0, 4, len(y))
    for model in (
        DecentralizedLogisticRegression(class_weight="balanced", l1_ratio=0.3),
        DecentralizedSVC(C=0.3),
        DecentralizedElasticNet(alpha=0.1),
    ):
        weighted = clone(model).fit(X, y, sample_weight=weight)
        repeated = clone(model).fit(X.repeat(weight, 0), y.repeat(weight))
        assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


def test_float32():
    X, y = small()
    model = DecentralizedRidge().fit(X.astype(np.float32), y)
    assert_allclose(model.coef_, Ridge().fit(X, y).coef_, rtol=1e-4)


# --- refusals -------------------------------------------------------------------------------------

REFUSALS = [
    (DecentralizedLasso(alpha=-1), ProblemError, r"alpha=-1: give a number from 0 up"),
    (DecentralizedElasticNet(l1_ratio=2), ProblemError, r"l1_ratio=2: give a number from 0 to 1"),
    (DecentralizedSVC(C=0), ProblemError, r"C=0: give a number above 0"),
    (DecentralizedSVC(width=0.0), ProblemError, "width=0.* is not smooth"),
    (DecentralizedRidge(tol=0), ProblemError, r"tol=0: give a number above 0"),
    (DecentralizedRidge(max_iter=2.5), MethodError, "max_iter is 2.5: give a whole number"),
    (DecentralizedRidge(n_nodes=0), GraphError, "n_nodes is 0: give a whole number from 1 up"),
    (DecentralizedRidge(graph="rign"), UnknownName, "unknown graph 'rign': did you mean 'ring'"),
    (DecentralizedRidge(method="pdm"), UnknownName, "unknown method 'pdm': did you mean"),
    (DecentralizedRidge(method="gt-saga"), MethodError, "cannot handle a penalty: use saga-pd"),
    (DecentralizedRidge(graph=ew.Graph.ring(99)), DataError, "cannot go to 99 nodes"),
    (DecentralizedModel("l2"), UnknownName, "unknown loss 'l2'"),
    (DecentralizedModel(3), ProblemError, r"3 is not a loss: give one such as ew.Logistic"),
    (DecentralizedModel(penalty="l1"), ProblemError, "penalty 'l1' cannot be read: give l1:LAM"),
    (
        DecentralizedModel(ew.CustomLoss(lambda x, d, y: (d @ x - y) ** 2)),
        ProblemError,
        "no intercept: set fit_intercept=False",
    ),
]


@pytest.mark.parametrize(("model", "error", "match"), REFUSALS)
def test_refuses_parameters(model, error, match):
    X, y = small(2)
    with pytest.raises(error, match=match):
        model.fit(X, y)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_helps_where_a_fit_has_no_end():
    """It said, of method="auto", that newton-pd diverged: give another, as newton-pd."""
    X, y = small(2)
    frame = pd.DataFrame(X, columns=list("abcde"))
    sides = X[:, 0] > np.median(X[:, 0])
    clear = DecentralizedLogisticRegression(C=np.inf, max_iter=10)
    with pytest.warns(ConvergenceWarning, match=r"told apart without a.*: give a smaller C$"):
        clear.fit(frame, sides)
    frame["rare"] = 1.0 * (np.arange(len(y)) < 2)
    with pytest.warns(ConvergenceWarning, match=r"column 'rare' tells.* or give a smaller C$"):
        clear.fit(frame, np.where(frame["rare"] == 1, 1, np.random.default_rng(0).permutation(y)))
    none = DecentralizedModel(ew.Logistic(), max_iter=10)
    with pytest.warns(ConvergenceWarning, match=r"give a loss with a ridge, as Logistic\(ridge="):
        none.fit(X, sides)
    with pytest.warns(ConvergenceWarning) as told:  # a hinge is zero beyond its margin
        DecentralizedModel(ew.SmoothedHinge(), max_iter=2).fit(X, sides)
    assert "mistake" not in str(told[0].message)


def test_refuses_what_scikit_learn_lets_through():
    X, y = small(2)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.loc[7, "c"] = 1e200
    with pytest.raises(DataError, match=r"X has 1e\+200 in column 'c', row 7: give numbers below"):
        DecentralizedLasso().fit(frame, y)
    with pytest.raises(DataError, match=r"X has 1e\+200 in column 2, row 7: give numbers below"):
        DecentralizedLasso().fit(sp.csr_array(frame.to_numpy()), y)
    with pytest.raises(DataError, match=r"y has 1e\+200 in row 3: give numbers below"):
        DecentralizedLasso().fit(X, np.where(np.arange(len(y)) == 3, 1e200, y))
    names = np.where(y > 0, "ill", "well").astype(object)
    names[[3, 5]] = None
    with pytest.raises(DataError, match="y has no label in row 3 and in 1 more: drop that sample"):
        DecentralizedLogisticRegression().fit(X, names)


def test_refuses_data():
    X, y = small(2)
    model = DecentralizedLogisticRegression()
    with pytest.raises(DataError, match="all samples are of one class"):
        model.fit(X, np.ones(60))
    with pytest.raises(DataError, match="all samples are of one class"):
        model.fit(X, y, sample_weight=y)
    with pytest.raises(DataError, match=r"shape \(3,\): give 60, one per sample"):
        model.fit(X, y, sample_weight=[1, 2, 3])
    with pytest.raises(DataError, match="must be finite and not negative"):
        model.fit(X, y, sample_weight=-np.ones(60))
    with pytest.raises(DataError, match=r"class_weight='even': give 'balanced', a dict"):
        DecentralizedLogisticRegression(class_weight="even").fit(X, y)
    shards = ew.split(X, y, nodes=4)
    with pytest.raises(DataError, match="shards bring their own labels"):
        model.fit(shards, y)
    with pytest.raises(ProblemError, match="the graph has 3 nodes, the problem 4 shards"):
        DecentralizedLogisticRegression(graph=ew.Graph.ring(3)).fit(shards)
    with pytest.raises(DataError, match=r"shards have 2 features, .* was fitted with 5: give"):
        model.fit(shards).partial_fit(ew.split(X[:, :2], y, nodes=4))
    wide = ew.CustomLoss(lambda x, d, y: (d @ x[:5] + x[5] - y) ** 2, size=6)
    odd = DecentralizedModel(wide, fit_intercept=False, max_iter=10)
    with pytest.warns(ConvergenceWarning):
        odd.fit(X / 10, y)
    assert odd.coef_.shape == (6,)
    with pytest.raises(ProblemError, match="only the custom loss knows"):
        odd.predict(X)


def test_the_default_method_takes_few_rounds():
    X, y = small(classes=2)
    fits = [
        DecentralizedLogisticRegression(method=method, tol=1e-9).fit(X, y)
        for method in ("auto", "pd")
    ]
    assert 3 * fits[0].n_iter_ < fits[1].n_iter_ < 20_000
    assert fits[0].method_note_.startswith("auto: newton-pd, because 6 unknowns")

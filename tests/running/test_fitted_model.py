"""A model, kept and used: every way there and back gives what scikit-learn gives."""

import json
import pickle
import warnings
from dataclasses import replace

import joblib
import numpy as np
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import LinearSVC

import edgewise as ew
from edgewise.errors import DataError, InputError, ProblemError
from edgewise.running.model_form import ModelForm

RNG = np.random.default_rng(0)
N, NAMES = 80, ("age", "dose, mg", "hb")
X = RNG.standard_normal((N, 3)) * [1, 20, 0.1] + [50, 3, 1e5]
Z = (X - X.mean(0)) / X.std(0)
TABLE = pd.DataFrame(X, columns=NAMES)
GRAPH = ew.Graph.ring(4)
SIGNAL = Z @ [1.0, -2.0, 0.5] + 0.5 * RNG.standard_normal(N)
TWO = np.where(SIGNAL > 0, "sick", "well")
THREE = np.digitize(SIGNAL, [-1, 1])
CASES = {
    "logistic": (ew.Logistic(ridge=0.1), TWO),
    "multinomial": (ew.Multinomial(ridge=0.1), THREE),
    "multinomial of two": (ew.Multinomial(ridge=0.1), SIGNAL > 0),
    "hinge": (ew.SmoothedHinge(0.3, ridge=0.1), TWO),
    "squared": (ew.Squared(ridge=0.1), SIGNAL),
    "huber": (ew.Huber(1.5, ridge=0.1), SIGNAL),
}
KINDS = {"hinge": LinearSVC, "squared": LinearRegression, "huber": LinearRegression}


def fitted(name, scaled=True, rounds=2000, tol=1e-9):
    loss, y = CASES[name]
    split = ew.split(X, y, nodes=4)
    shards = replace(split, columns=NAMES)
    if scaled:
        shards, _ = ew.standardize(shards, GRAPH)
    problem = ew.Problem(shards, loss, ew.L1(1e-4), weights="sample", intercept=True)
    run = {"rounds": rounds, "tol": tol, "reference": False, "progress": False}
    return problem, ew.solve(problem, GRAPH, **run)


RESULTS = {name: fitted(name) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_every_way_there_and_back(name, tmp_path):
    problem, result = RESULTS[name]
    x, C = result.x, problem.loss.outputs
    W, b = x[: 3 * C].reshape(C, 3), x[3 * C :]
    z = Z @ W.T + b  # margins by hand, of standardised columns
    model = result.model
    result.save(tmp_path / "model")
    back = ew.load_model(tmp_path / "model")
    estimator = back.to_sklearn()
    assert isinstance(estimator, KINDS.get(name, LogisticRegression))
    assert estimator.feature_names_in_.tolist() == list(NAMES)
    joblib.dump(estimator, tmp_path / "estimator")
    unpickled = pickle.loads(pickle.dumps(estimator))
    every = [model, back, estimator, joblib.load(tmp_path / "estimator"), unpickled]

    if problem.classes is None:
        expected = z[:, 0]
    elif C == 1:
        expected = problem.classes[(z[:, 0] > 0).astype(int)]
    else:
        expected = problem.classes[z.argmax(1)]
    chances = None
    if "hinge" not in name and problem.classes is not None:
        odds = np.exp(z if C > 1 else z * [0, 1])
        chances = odds / odds.sum(1, keepdims=True)
    for each in every:
        if problem.classes is None:
            assert_allclose(each.predict(TABLE), expected, atol=1e-9)
        else:
            assert_array_equal(each.predict(TABLE), expected)
            assert each.predict(TABLE).dtype.kind == expected.dtype.kind
        if chances is not None:
            assert_allclose(each.predict_proba(TABLE), chances, atol=1e-9)
        elif problem.classes is not None:
            assert_allclose(each.decision_function(TABLE), z[:, 0], atol=1e-9)
            assert not hasattr(each, "predict_proba") or each in (model, back)
    assert_array_equal(back.coef, model.coef)
    assert_array_equal(back.intercept, model.intercept)
    assert back.loss == model.loss
    assert back.score(TABLE, CASES[name][1]) == pytest.approx(
        estimator.score(TABLE, CASES[name][1]), abs=1e-12
    )

    session = onnxruntime.InferenceSession(back.to_onnx(tmp_path / "model.onnx"))
    out = session.run(None, {"X": X})
    told = out[0].astype(expected.dtype).ravel()
    if problem.classes is None:
        assert_allclose(told, expected, atol=1e-5)
    else:
        sure = np.abs(np.sort(z, axis=1)[:, -1] - (np.sort(z, axis=1)[:, -2] if C > 1 else 0))
        assert_array_equal(told[sure > 1e-4], expected[sure > 1e-4])
    if chances is not None:
        assert_allclose(out[1], chances, atol=1e-5)
    elif problem.classes is not None:
        assert_allclose(out[1][:, -1], z[:, 0], atol=1e-5)


def test_the_file_is_plain_and_says_where_the_model_is_from(tmp_path):
    _, result = RESULTS["logistic"]
    text = result.save(tmp_path / "kept.json").read_text()
    saved = json.loads(text)
    assert list(saved["coefficients"]) == list(NAMES)
    assert saved["coefficients"] == dict(zip(NAMES, result.model.coef[0].tolist(), strict=True))
    assert (saved["loss"], saved["penalty"]) == ("logistic", "L1(lam=0.0001)")
    assert saved["classes"] == ["sick", "well"]
    assert saved["scaling"]["scale"] == result.form.scaling.scale.tolist()
    told = saved["provenance"]
    assert told["edgewise"] == ew.__version__
    assert told["converged"] is True
    assert told["message"] == result.message
    assert told["rounds"] == result.trace["rounds"][-1]
    assert (told["nodes"], told["edges"], told["ridge"]) == (4, 4, 0.1)
    assert told["samples_per_node"] == [20, 20, 20, 20]
    assert ew.load_model(tmp_path / "kept.json").converged
    assert RESULTS["huber"][1].model.loss == "huber:1.5"


def test_the_scaling_is_folded_into_the_coefficients():
    """The same optimum, fitted to columns as they are scaled by hand."""
    model = RESULTS["logistic"][1].model
    by_hand = StandardScaler().fit(X)
    x = RESULTS["logistic"][1].x
    assert_allclose(model.coef[0] * by_hand.scale_, x[:3], rtol=1e-9)
    assert_allclose(model.intercept + model.coef[0] @ by_hand.mean_, x[3:], atol=1e-9)


def test_rows_of_length_one_stay_a_step_of_the_model(tmp_path):
    scaling = ew.Standardization(X.mean(0), X.std(0), unit_rows=True)
    loss, y = CASES["squared"]
    problem = ew.Problem(replace(ew.split(scaling.apply(X), y, nodes=4), scaling=scaling), loss)
    x = np.array([1.0, -2.0, 0.5])
    ew.FittedModel.of(ModelForm.of(problem), x, {}).save(tmp_path)
    model = ew.load_model(tmp_path)
    expected = normalize(Z) @ x
    assert_allclose(model.predict(X), expected, rtol=1e-9)
    assert_allclose(model.to_sklearn().predict(X), expected, rtol=1e-9)
    session = onnxruntime.InferenceSession(model.to_onnx(tmp_path / "model.onnx"))
    assert_allclose(session.run(None, {"X": X})[0].ravel(), expected, atol=1e-5)


def test_a_run_that_has_not_converged_says_so():
    _, result = fitted("logistic", rounds=5, tol=1e-12)
    assert not result.converged
    assert not result.model.converged
    assert result.model.provenance["message"] == result.message


def test_columns_are_found_by_name_in_any_order():
    model = RESULTS["logistic"][1].model
    expected = model.predict_proba(TABLE)
    shuffled = TABLE[["hb", "age", "dose, mg"]]
    assert_allclose(model.predict_proba(shuffled), expected, rtol=1e-9)
    assert not np.allclose(model.coef[0], model.coef[0][[2, 0, 1]])
    with pytest.warns(UserWarning, match="no column names and the model has"):
        assert_allclose(model.predict_proba(X), expected, rtol=1e-9)
    with pytest.warns(UserWarning, match="no column names"):
        assert_allclose(model.predict_proba(sp.csr_array(X)), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="hb"), 'the data lack "hb": give'),
        (lambda t: t.assign(extra=1.0), 'have "extra", which the model does not know'),
        (lambda t: t.rename(columns={"hb": "HB"}), 'lack "hb" and have "HB"'),
        (lambda t: t[["age", "age", "hb"]], '"age" more than once'),
        (lambda t: t.assign(hb=t.hb.where(t.index != 7)), 'column "hb", row 7 is missing'),
        (lambda t: t.assign(age=t.age.where(t.index != 3, np.inf)), 'column "age", row 3 is inf'),
        (lambda t: t.assign(hb="high"), "column \"hb\", row 0 holds 'high'"),
        (lambda t: t.assign(hb=t.hb.convert_dtypes().where(t.index != 2, pd.NA)), "row 2 is miss"),
        (lambda t: X[:, :2], "have 2 columns, the model has 3"),
        (lambda t: X[0], "X.reshape"),
    ],
)
@pytest.mark.filterwarnings("ignore:the data have no column names")
def test_what_does_not_fit_is_refused_by_name(change, words):
    model = RESULTS["logistic"][1].model
    with pytest.raises(DataError, match=words):
        model.predict(change(TABLE))


@pytest.mark.parametrize("missing", ["mean", "indicator", "drop"])
def test_a_table_is_prepared_as_that_of_the_fit(missing, tmp_path):
    cells = TABLE.assign(
        ward=np.resize(["north", "south", "east"], N), sex=np.resize(["f", "m"], N), y=SIGNAL
    )
    cells.loc[3, "age"] = np.nan
    X1, y, preparation = ew.data.prepare(cells, "y", missing, "onehot")
    shards = replace(ew.split(X1, y, nodes=4), preparation=preparation)
    problem = ew.Problem(shards, ew.Squared(0.1), weights="sample", intercept=True)
    x = RNG.standard_normal(problem.size)
    ew.FittedModel.of(ModelForm.of(problem), x, {}).save(tmp_path)
    model = ew.load_model(tmp_path)
    assert model.columns == preparation.names
    assert "ward=north" in model.coefficients
    assert model.label == "y"
    new = cells.drop(columns="y").sample(frac=1, axis=1, random_state=0)
    expected = preparation.apply(new).to_numpy() @ x[:-1] + x[-1]
    assert len(expected) == N - (missing == "drop")
    if missing == "drop":
        with pytest.raises(DataError, match='column "age", row 3 is missing'):
            model.predict(new)
        new = new.drop(index=3)
    assert_allclose(model.predict(new), expected, rtol=1e-12)
    prepared = preparation.apply(new)
    assert_allclose(model.to_sklearn().predict(prepared), expected, rtol=1e-9)
    assert_allclose(model.predict(prepared), expected, rtol=1e-12)
    with pytest.raises(DataError, match='have "y", which the model does not know'):
        model.predict(cells)
    with pytest.raises(DataError, match="'west' is none of its 3 levels"):
        model.predict(new.assign(ward="west"))


def test_without_names_only_the_number_of_columns_is_checked(tmp_path):
    problem = ew.Problem(ew.split(Z, SIGNAL, nodes=4), ew.Squared())
    result = ew.solve(problem, GRAPH, tol=1e-9, reference=False, progress=False)
    model = ew.load_model(result.save(tmp_path / "m"))
    assert model.columns is None
    assert list(model.coefficients) == ["x0", "x1", "x2"]
    assert not hasattr(model.to_sklearn(), "feature_names_in_")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(model.predict(Z), Z @ result.x)
        assert_allclose(model.predict(pd.DataFrame(Z)), Z @ result.x)
        assert_allclose(model.predict(pd.DataFrame(Z, columns=NAMES)), Z @ result.x)
    with pytest.raises(DataError, match='column "hb", row 1'):
        model.predict(pd.DataFrame(Z, columns=NAMES).replace(Z[1, 2], np.nan))


def test_where_nothing_can_be_written_it_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    result = RESULTS["logistic"][1]
    for save in (result.save, result.model.save, result.model.to_onnx):
        with pytest.raises(InputError, match=r"cannot be written .*: give a path where"):
            save(tmp_path / "file" / "model.json")


def test_what_is_no_model_is_said(tmp_path):
    wide = ew.CustomLoss(lambda x, d, y: (x @ d - y) ** 2, smoothness=1.0)
    form = ModelForm.of(ew.Problem(ew.split(Z, SIGNAL, nodes=4), wide))
    with pytest.raises(ProblemError, match="only the loss itself knows"):
        ew.FittedModel.of(form, np.zeros(3), {})
    problem, _ = RESULTS["squared"]
    with pytest.raises(ProblemError, match="no model to keep: the run diverged by round 3"):
        ew.FittedModel.of(
            ModelForm.of(problem), np.full(4, np.nan), {"message": "diverged by round 3"}
        )
    with pytest.raises(ProblemError, match="tells no probabilities"):
        RESULTS["hinge"][1].model.predict_proba(TABLE)
    with pytest.raises(InputError, match="there is no model"):
        ew.load_model(tmp_path)
    file = RESULTS["logistic"][1].save(tmp_path)
    saved = json.loads(file.read_text())
    for damage, words in (
        ({"version": 1}, "no model as this version writes it"),
        ({"intercept": [1, 2]}, "is damaged"),
        ({"loss": "oracle"}, "is damaged"),
        ({"coefficients": {"age": [1, 2]}}, "is damaged"),
        ({"intercept": np.nan}, "is damaged .*not finite"),
        ({"coefficients": {"age": 1.0}}, "is damaged .*a scaling of 3 columns for 1"),
    ):
        file.write_text(json.dumps(saved | damage))
        with pytest.raises(InputError, match=words):
            ew.load_model(tmp_path)
    file.write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        ew.load_model(tmp_path)

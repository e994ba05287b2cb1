"""`edgewise predict`, and `--standardize`: files in, predictions out, by independent answers."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import edgewise as ew
from edgewise.cli.app import app

RNG = np.random.default_rng(0)
V, N, NAMES = 4, 60, ["age", "dose, mg", "hb"]
X = RNG.standard_normal((N, 3)) * [1, 20, 0.1] + [50, 3, 10]
Z = (X - X.mean(0)) / X.std(0)
Y = np.where(Z @ [1, -2, 0.5] + RNG.standard_normal(N) > 0, "sick", "well")
SOLVE = ["--nodes", V, "--graph", "ring", "--ridge", "0.1", "--weights", "sample", "--intercept"]
SOLVE += ["--no-reference", "--out", "run"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    np.savez("data.npz", X=X, y=Y)
    return tmp_path


@pytest.fixture(scope="module")
def result():
    shards = replace(ew.split(X, Y, nodes=V), columns=tuple(NAMES))
    shards, _ = ew.standardize(shards, ew.Graph.ring(V))
    problem = ew.Problem(shards, ew.Logistic(ridge=0.1), weights="sample", intercept=True)
    run = {"tol": 1e-9, "reference": False, "progress": False}
    return ew.solve(problem, ew.Graph.ring(V), **run)


@pytest.fixture(scope="module")
def theirs():
    """scikit-learn's, of the same problem."""
    penalty = LogisticRegression(C=1 / (0.1 * N), tol=1e-12, max_iter=1000)
    return make_pipeline(StandardScaler(), penalty).fit(X, Y)


def call(*words, code=0):
    done = CliRunner().invoke(app, [str(w) for w in words], prog_name="edgewise")
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done


def write_csv(path, columns, names=None):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([names] if names else [])
        writer.writerows(zip(*columns, strict=True))


def read_csv(text):
    return list(csv.reader(io.StringIO(text)))


# --- standardize ----------------------------------------------------------------------------------


def test_standardize_is_scale_by_messages(theirs):
    done = call("solve", "data.npz", *SOLVE, "--standardize", "--tol", "1e-9")
    assert "standardised by" in done.stdout
    told = json.loads(Path("run/result.json").read_text())["standardize"]
    assert told["reached"]
    assert told["bytes_sent"] == told["rounds"] * 2 * V * 7 * 8
    model = ew.load_model("run")
    assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    assert_allclose(model.scaling.scale, theirs[0].scale_, rtol=1e-10)

    call("solve", "data.npz", *SOLVE[:-1], "scaled", "--scale", "--tol", "1e-9")
    scaled = ew.load_model("scaled")
    assert_allclose(scaled.coef, model.coef, rtol=1e-7)
    assert "standardize" not in json.loads(Path("scaled/result.json").read_text())


def test_sums_are_exact_under_the_runs_faults_and_rows_come_after_columns():
    words = ["--standardize", "--normalize", "--drop", "0.2", "--wipe", "1:3", "--rounds", "20"]
    call("solve", "data.npz", *SOLVE, *words, code=1)
    model = ew.load_model("run")
    assert model.scaling.unit_rows
    assert_allclose(model.scaling.scale, X.std(0), rtol=1e-10)
    rows = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    x = np.load("run/model.npz")["x"]
    assert_allclose(model.decision_function(X), rows @ x[:3] + x[3], rtol=1e-8)


def test_shards_are_standardised_once():
    call("split", "data.npz", "--nodes", V, "--scale", "--out", "shards")
    words = ["solve", "shards", *SOLVE[2:], "--rounds", 5]
    assert "leave --scale, --standardize" in call(*words, "--standardize", code=2).stderr
    call("split", "data.npz", "--nodes", V, "--out", "plain")
    call("solve", "plain", *SOLVE[2:], "--standardize", "--rounds", 5, code=1)
    assert_allclose(ew.load_model("run").scaling.centre, X.mean(0), rtol=1e-10)


# --- predict --------------------------------------------------------------------------------------


def test_columns_in_any_order_with_labels_and_probabilities(result, theirs):
    result.save("model")
    write_csv("new.csv", [X[:, 2], Y, X[:, 0], X[:, 1]], ["hb", "outcome", "age", "dose, mg"])
    words = ["predict", "model", "new.csv"]
    done = call(*words, "--label", "outcome", "--probabilities")
    head, *rows = read_csv(done.stdout)
    assert head == ["prediction", "probability of sick", "probability of well"]
    assert [row[0] for row in rows] == theirs.predict(X).tolist()
    chances = np.array([row[1:] for row in rows], float)
    assert_allclose(chances, theirs.predict_proba(X), atol=1e-7)
    right = theirs.score(X, Y)
    assert done.stderr == f"accuracy {right:.4g} on {N} labelled rows\n"

    call(*words, "--label", "outcome", "--output", "out.csv")
    assert read_csv(Path("out.csv").read_text()) == [["prediction"], *([row[0]] for row in rows)]
    told = json.loads(call(*words, "--label", "outcome", "--json").stdout)
    assert told["score"] == right
    assert told["predictions"] == [row[0] for row in rows]
    assert told["converged"] is True
    wrong = call(*words, code=2).stderr
    assert 'a column "outcome", which the model does not know: give --label outcome' in wrong


def test_a_label_that_the_model_knows_by_name_is_found(result):
    table = pd.DataFrame(X, columns=NAMES).assign(outcome=Y)
    replace(result.model, preparation=ew.data.prepare(table).preparation).save("model")
    write_csv("new.csv", [*X.T, Y], [*NAMES, "outcome"])
    assert "labelled rows" in call("predict", "model", "new.csv").stderr
    write_csv("new.csv", X.T, NAMES)
    done = call("predict", "model", "new.csv")
    assert (done.stderr, len(read_csv(done.stdout))) == ("", N + 1)


def test_from_a_table_as_people_have_it_to_predictions():
    """Text, gaps, an identifier, semicolons: against scikit-learn's own preparation of it."""
    table = pd.DataFrame(X, columns=NAMES).assign(
        ward=np.resize(["north", "south", "east"], N), id=np.arange(N) + 0.5, outcome=Y
    )
    table.loc[5, "age"] = np.nan
    table.to_csv("data.csv", sep=";", index=False)
    numbers = table[NAMES].fillna(table[NAMES].mean())
    features = np.column_stack([numbers, pd.get_dummies(table["ward"])]).astype(float)
    penalty = LogisticRegression(C=1 / (0.1 * N), tol=1e-12, max_iter=1000)
    theirs = make_pipeline(StandardScaler(), penalty).fit(features, Y)

    words = ["--missing", "mean", "--encode", "onehot", "--ignore", "id", "--standardize"]
    call("solve", "data.csv", *SOLVE, *words, "--tol", "1e-9")
    table[["ward", "hb", "outcome", "age", "dose, mg", "id"]].to_csv("new.csv", index=False)
    done = call("predict", "run", "new.csv", "--ignore", "id", "--probabilities")
    chances = np.array([row[1:] for row in read_csv(done.stdout)[1:]], float)
    assert_allclose(chances, theirs.predict_proba(features), atol=1e-7)
    assert done.stderr == f"accuracy {theirs.score(features, Y):.4g} on {N} labelled rows\n"
    assert 'have "id", which the model does not know' in call(
        "predict", "run", "new.csv", code=2
    ).stderr.replace("\n", " ")

    call("split", "data.csv", "--nodes", V, *words[:-1], "--scale", "--out", "shards")
    call("solve", "shards", *SOLVE[2:-1], "again", "--tol", "1e-9")
    again = call("predict", "again", "new.csv", "--ignore", "id").stdout
    assert [row[0] for row in read_csv(again)[1:]] == theirs.predict(features).tolist()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": ["age", "dose, mg", "HB"]}, 'lack "hb" and have "HB"'),
        ({"cell": ""}, 'column "hb", line 5 is missing'),
        ({"cell": "high"}, "column \"hb\", line 5 holds 'high'"),
        ({"short": True}, "line 5 has 2 columns and the header has 3"),
        ({"names": ["age", "hb", "hb"]}, 'are both called "hb"'),
    ],
)
def test_what_does_not_fit_is_refused_by_name_and_line(result, change, words):
    result.save("model")
    rows = X.astype(str).tolist()
    rows[3][2] = change.get("cell", rows[3][2])
    if change.get("short"):
        rows[3].pop()
    lines = [",".join(row) for row in rows]
    head = ",".join(f'"{name}"' for name in change.get("names", NAMES))
    Path("new.csv").write_text("\n".join([head, *lines]))
    assert words in call("predict", "model", "new.csv", code=2).stderr.replace("\n", " ")


def test_a_run_without_names_on_every_kind_of_file(theirs):
    words = ["--standardize", "--tol", "1e-9"]
    call("solve", "data.npz", *SOLVE, *words)
    expected = theirs.predict(X).tolist()
    right = f"accuracy {theirs.score(X, Y):.4g} on {N} labelled rows\n"
    write_csv("bare.csv", [*X.T, Y])
    write_csv("only.csv", X.T)
    np.savez("only.npz", X=X)
    write_csv("first.csv", [Y, *X.T])
    for file, stderr, more in (
        ("data.npz", right, []),
        ("bare.csv", right, []),
        ("first.csv", right, ["--label", "first"]),
        ("only.csv", "", []),
        ("only.npz", "", []),
    ):
        done = call("predict", "run", file, *more)
        assert [row[0] for row in read_csv(done.stdout)[1:]] == expected
        assert done.stderr == stderr
    write_csv("few.csv", X.T[:2])
    assert "2 columns, the model has 3" in call("predict", "run", "few.csv", code=2).stderr


def test_a_report_of_one_run_has_its_coefficients_by_name(theirs):
    write_csv("data.csv", [*X.T, Y], [*NAMES, "outcome"])
    call("solve", "data.csv", *SOLVE, "--standardize", "--tol", "1e-9")
    done = call("report", "run", "--out", "page.html", "--json")
    told = json.loads(done.stdout)["coefficients"]
    per_unit = theirs[-1].coef_[0] / theirs[0].scale_
    assert_allclose([told[name] for name in NAMES], per_unit, rtol=1e-5)
    text = call("report", "run", "--out", "page.html").stdout
    assert "towards well" in text
    shown = [line.split()[0] for line in text.split("coefficients, per unit")[1].splitlines()[4:8]]
    by_weight = [NAMES[j].split()[0] for j in np.argsort(-np.abs(theirs[-1].coef_[0]))]
    assert shown == [*by_weight, "intercept"]


def test_classes_that_are_whole_numbers_are_written_as_such():
    np.savez("data.npz", X=X, y=(Y == "sick") * 1.0)
    call("solve", "data.npz", *SOLVE, "--tol", "1e-6")
    rows = read_csv(call("predict", "run", "data.npz", "--probabilities").stdout)
    assert rows[0] == ["prediction", "probability of 0", "probability of 1"]
    assert {row[0] for row in rows[1:]} == {"0", "1"}
    told = json.loads(call("predict", "run", "data.npz", "--json").stdout)
    assert {type(label) for label in told["predictions"]} == {int}


def test_numbers_are_scored_by_r2_and_libsvm_is_read():
    y = Z @ [1.0, 2.0, 3.0] + RNG.standard_normal(N)
    lines = [f"{t} 1:{a} 3:{c}" for t, (a, _, c) in zip(y, Z, strict=True)]
    Path("data.svm").write_text("\n".join(lines))
    options = [
        "--nodes",
        V,
        "--graph",
        "ring",
        "--loss",
        "squared",
        "--tol",
        "1e-9",
        "--out",
        "run",
    ]
    call("solve", "data.svm", *options, "--no-reference")
    told = json.loads(call("predict", "run", "data.svm", "--json").stdout)
    x = np.load("run/model.npz")["x"]
    assert_allclose(told["predictions"], Z[:, [0, 2]] @ x[[0, 2]], atol=1e-9)
    r2 = 1 - np.sum((y - told["predictions"]) ** 2) / np.sum((y - y.mean()) ** 2)
    assert told["score_kind"] == "R²"
    assert told["score"] == pytest.approx(r2, abs=1e-12)
    assert (
        "tells no probabilities"
        in call("predict", "run", "data.svm", "--probabilities", code=2).stderr
    )


def test_a_model_that_has_not_converged_says_so_in_one_line():
    call("solve", "data.npz", *SOLVE, "--scale", "--rounds", 5, code=1)
    done = call("predict", "run", "data.npz")
    message = ew.load_model("run").provenance["message"]
    warned = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert warned == [f"WARNING: the model is of a run that has not converged ({message})"]
    assert json.loads(call("predict", "run", "data.npz", "--json").stdout)["converged"] is False
    assert_array_equal(len(read_csv(done.stdout)), N + 1)


def test_a_run_that_diverged_leaves_no_model():
    words = ["--method", "saga-pd", "--loss", "squared", "--eta", "1e6", "--out", "run"]
    np.savez("data.npz", X=X, y=Z[:, 0])
    call("solve", "data.npz", "--nodes", V, "--graph", "ring", *words, "--no-reference", code=1)
    assert "no model run/model.json" in call("predict", "run", "data.npz", code=2).stderr
    assert "give a model and data" in call("predict", "run", code=2).stderr

"""`edgewise solve --summary` against statsmodels."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from command_line import call, said

RNG = np.random.default_rng(2)


@pytest.fixture
def table(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(RNG.normal([60, 0], 1, (90, 2)), columns=["age", "dose"])
    frame["died"] = (RNG.random(90) < 1 / (1 + np.exp(-frame["dose"]))).astype(int)
    frame.to_csv("patients.csv", index=False)
    return frame


FIT = ("--intercept", "--weights", "sample", "--tol", 1e-9, "--nodes", 4, "--summary")


def test_a_fit_with_its_table(table):
    done = said("solve", "patients.csv", *FIT, "--standardize", "--out", "run")
    theirs = sm.Logit(table["died"], sm.add_constant(table[["age", "dose"]])).fit(disp=False)
    kept = json.loads(Path("run/summary.json").read_text())
    assert kept == done["estimates"]
    found = [kept["coefficients"][name] for name in ("Intercept", "age", "dose")]
    assert [a["coef"] for a in found] == pytest.approx(theirs.params.to_numpy(), rel=1e-6)
    assert [a["std_err"] for a in found] == pytest.approx(theirs.bse.to_numpy(), rel=1e-6)
    assert kept["log_likelihood"] == pytest.approx(theirs.llf)
    text = Path("run/summary.txt").read_text()
    assert "Logistic: 90 samples at 4 nodes" in text
    model = json.loads(Path("run/model.json").read_text())
    assert model["coefficients"]["age"] == pytest.approx(found[1]["coef"])


def test_what_has_no_standard_errors_is_said_before_the_fit(table):
    refused = call("solve", "patients.csv", *FIT, "--penalty", "l1:0.1", "--out", "run", code=2)
    assert "--debias" in refused.output
    refused = call("solve", "patients.csv", *FIT, "--least-count", "30", "--out", "run", code=2)
    assert "(--least-count)" in refused.output.replace("\n", " ")
    refused = call("solve", "patients.csv", *FIT, "--covariance", "hc9", "--out", "run", code=2)
    assert "HC0" in refused.output

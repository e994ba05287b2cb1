"""Families, offsets and weights on the command line, against statsmodels."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from command_line import call, said

from edgewise.running.model_form import KINDS
from edgewise.spec import LOSSES, loss

RNG = np.random.default_rng(2)
N = 60
TABLE = pd.DataFrame(
    {
        "log_exposure": RNG.normal(size=N),
        "a": RNG.normal(size=N),
        "times": RNG.integers(1, 4, N),
        "b": RNG.normal(size=N),
    }
)
MEAN = np.exp(0.3 * TABLE["a"] - 0.5 * TABLE["b"] + TABLE["log_exposure"] + 0.4)
TABLE["claims"] = RNG.poisson(MEAN)
TABLE["years"] = np.exp(TABLE["log_exposure"])
SOLVE = ["--nodes", 3, "--graph", "ring", "--weights", "sample", "--intercept", "--tol", "1e-8"]
SOLVE += ["--label", "claims", "--case-weight", "times"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("claims.csv", index=False)


def test_poisson_with_an_offset_from_a_table_to_means():
    told = said("solve", "claims.csv", *SOLVE, "--family", "poisson", "--offset", "log_exposure",
                "--ignore", "years", "--out", "run", "--standardize")  # fmt: skip
    rows = sm.add_constant(TABLE[["a", "b"]])
    theirs = sm.GLM(
        TABLE["claims"], rows, sm.families.Poisson(),
        offset=TABLE["log_exposure"], freq_weights=TABLE["times"],
    ).fit(tol=1e-13)  # fmt: skip
    model = json.loads(Path("run/model.json").read_text())
    a, b = model["coefficients"]["a"], model["coefficients"]["b"]
    assert [model["intercept"], a, b] == pytest.approx(theirs.params.to_list(), abs=1e-6)
    assert told["score_kind"] == "D²"
    null = TABLE["claims"].sum() / TABLE["years"].sum() * TABLE["years"]
    deviance = sm.families.Poisson().deviance
    own = deviance(TABLE["claims"], theirs.fittedvalues)
    d2 = 1 - own / deviance(TABLE["claims"], null)
    assert told["score"] == pytest.approx(d2, abs=1e-6)
    done = call("predict", "run", "claims.csv", "--ignore", "years", "--ignore", "times")
    means = [float(row["prediction"]) for row in csv.DictReader(io.StringIO(done.stdout))]
    assert means == pytest.approx(theirs.fittedvalues.to_list(), rel=1e-6)
    assert f"D² {d2:.4g} on 60 labelled rows" in done.stderr
    TABLE.drop(columns="log_exposure").to_csv("other.csv", index=False)
    done = call("predict", "run", "other.csv", "--ignore", "years", "--ignore", "times", code=2)
    assert 'there is no column "log_exposure"' in done.stderr


def test_a_folder_of_shards_keeps_exposures_and_weights():
    of_table = ["--label", "claims", "--exposure", "years", "--case-weight", "times",
                "--ignore", "log_exposure", "--nodes", 3]  # fmt: skip
    call("split", "claims.csv", *of_table, "--out", "shards")
    run = ["--family", "poisson", "--weights", "sample", "--intercept", "--graph", "ring"]
    run += ["--no-reference"]
    call("solve", "shards", *run, "--out", "one")
    call("solve", "claims.csv", *of_table, *run, "--out", "other")
    one, other = (json.loads(Path(f, "model.json").read_text()) for f in ("one", "other"))
    assert one["coefficients"] == other["coefficients"]
    done = call("solve", "shards", *run, "--exposure", "years", code=2)
    assert "leave --exposure out, or split the file again" in done.stderr


def test_successes_of_trials():
    table = TABLE[["a", "b", "times"]].copy()
    table["claims"] = TABLE["claims"].clip(upper=TABLE["times"])
    table.to_csv("trials.csv", index=False)
    told = said("solve", "trials.csv", "--label", "claims", "--trials", "times", "--family",
                "binomial", "--nodes", 2, "--graph", "path", "--weights", "sample", "--intercept",
                "--tol", "1e-8", "--out", "run", "--no-reference")  # fmt: skip
    both = np.c_[table["claims"], table["times"] - table["claims"]]
    theirs = sm.GLM(both, sm.add_constant(table[["a", "b"]]), sm.families.Binomial()).fit(tol=1e-13)
    model = json.loads(Path("run/model.json").read_text())
    assert model["coefficients"]["b"] == pytest.approx(theirs.params.iloc[2], abs=1e-6)
    done = call("predict", "run", "trials.csv")
    assert f"D² {told['score']:.4g} on 60 labelled rows" in done.stderr
    table.drop(columns="times").to_csv("trials.csv", index=False)
    assert 'has labels and no column "times"' in call("predict", "run", "trials.csv", code=2).stderr


def test_columns_of_offsets_are_of_tables():
    np.savez("data.npz", X=TABLE[["a", "b"]], y=TABLE["claims"])
    done = call("solve", "data.npz", "--family", "poisson", "--offset", "c", code=2)
    assert "columns of offsets, exposures and weights go with tables" in done.stderr


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_by_name_has_a_model_that_says_the_name_again(name):
    if name in ("cox", "cox-breslow"):
        return  # of whole nodes
    made = loss(name, 0.0)
    assert type(made) is KINDS[name].loss
    own = ",".join(f"{getattr(made, number):g}" for number in KINDS[name].numbers)
    again = loss(f"{name}:{own}" if own else name, 0.0)
    assert vars(again) == vars(made)

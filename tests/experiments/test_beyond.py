"""Experiments beyond the paper: one rule tunes all, costs are what the traces say, and verdicts
can go either way."""

import json
from dataclasses import replace

import numpy as np
import pytest
from drawings import legend
from typer.testing import CliRunner

import edgewise as ew
from edgewise.cli.app import app
from edgewise.experiments import EXPERIMENTS, biased, estimator_runs, nonconvex, output
from edgewise.experiments.estimator_runs import Bench, Runs, curve, draw
from edgewise.experiments.experiment import AUTOMATIC, BEYOND, SMALL, TUNED, Job, Outcome
from edgewise.running.trace import COLUMNS, Trace

FACTORS = (0.25, 1.0, 64.0)  # too short, the rule's, too long
OURS = ("biased", "nonconvex")


def bench(**changes):
    X, y = ew.data.epsilon_like(rows=60, features=4)
    problem = ew.Problem(ew.split(X, y, nodes=4), ew.Logistic(ridge=0.1))
    return Bench(
        **{"problem": problem, "graph": ew.Graph.ring(4), "rounds": 400, "level": 1e-6} | changes
    )


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setattr(estimator_runs, "FACTORS", FACTORS)
    monkeypatch.setattr(estimator_runs, "ESTIMATORS", {"Full": ew.Full, "SAG": ew.SAG})
    monkeypatch.setattr(estimator_runs, "METHODS", {"pd": ew.PrimalDual})
    return Runs("some", Job(SMALL, tmp_path / "some", seed=7, progress=False), {"one": bench()})


def test_the_best_step_is_the_first_to_the_level_and_costs_are_the_traces(runs):
    for name in ("Full", "SAG"):
        key = ("one", "pd", name)
        assert runs.best[key] == 1.0
        assert runs.longest(*key) == 1.0, "64 times the rule's step diverges"
        for t in runs.traces(key, TUNED):
            cost = curve(t).cost_to("rounds", 1e-6)
            part = t["residual"] / t["residual"][0]
            assert (part[t["rounds"] >= cost] <= 1e-6).all()
            assert part[t["rounds"] < cost][-1] > 1e-6
            assert part[-1] < 1e-8
            assert np.isnan(t["bregman"]).all(), "no optimum is asked for"
    rows = runs.table()
    assert [row["estimator"] for row in rows] == ["Full", "SAG"]
    calls = runs.costs(("one", "pd", "SAG"), TUNED, "oracle_calls")
    assert len(calls) == estimator_runs.SEEDS
    assert rows[1]["calls"] == f"{calls[1]:.0f} ({calls[0]:.0f} to {calls[-1]:.0f})"
    assert rows[0]["calls"] == f"{15 * runs.cost(('one', 'pd', 'Full'), TUNED, 'rounds'):.0f}"


def test_what_is_drawn_and_written(runs, tmp_path, drawn):
    draw(runs, "some", tmp_path / "some.png")
    figure = drawn["some.png"]
    assert legend(figure) == ["Full", "SAG"]
    assert [len(ax.lines) for ax in figure.axes] == [2, 2, 2]
    experiment = replace(EXPERIMENTS["biased"], name="some")
    job = Job(SMALL, tmp_path)
    outcome = Outcome(runs.pages(), [], bench().graph, {}, lambda path: None, runs.table())
    files = output.write(experiment, job, outcome, 1.0)
    said = json.loads(files["json"].read_text())
    assert said["table"] == runs.table()
    assert said["about"]["experiment"] == "some (beyond the paper)"


def test_they_are_listed_by_themselves():
    said = CliRunner().invoke(app, ["reproduce", "--list"]).stdout
    paper, beyond = said.split(BEYOND)
    assert all(name in beyond and name not in paper for name in OURS)
    assert "oracle" in paper
    listed = json.loads(CliRunner().invoke(app, ["reproduce", "--list", "--json"]).stdout)
    assert {listed[name]["source"] for name in OURS} == {BEYOND}


# --- verdicts -------------------------------------------------------------------------------------


def falling(rounds_to_level, calls=1.0, rows=100):
    """A trace that is at 1e-6 of the start after so many rounds."""
    at = np.linspace(0, 5000, rows)
    columns = {c: np.zeros(rows) for c in COLUMNS} | {"rounds": at, "oracle_calls": calls * at}
    return Trace(columns | {"residual": 10 ** (-6 * at / rounds_to_level)})


class Told:
    """Runs of which only the costs count."""

    def __init__(self, **rounds):
        self.rounds = rounds

    def cost(self, key, setting, unit):
        given = self.rounds.get(f"{key[1]}_{key[2].replace('-', '')}", 1000)
        return curve(falling(given)).cost_to("rounds", 1e-6)


def test_verdicts_on_biased_estimators():
    assert str(biased.comes_there(Told())) == "holds"
    assert str(biased.comes_there(Told(tracking_SAG=1e9))) == "does not hold"
    assert str(biased.as_few_rounds(Told(pd_SAG=1050))) == "holds"
    assert str(biased.as_few_rounds(Told(pd_SARAH=1200))) == "does not hold"
    assert "SARAH over SVRG 1.20" in biased.as_few_rounds(Told(pd_SARAH=1200)).numbers
    assert str(biased.rounds_of_tracking(Told(tracking_PAGE=2000))) == "holds"
    assert str(biased.rounds_of_tracking(Told(tracking_PAGE=800))) == "does not hold"


def test_verdicts_on_losses_that_are_not_convex():
    problem = nonconvex.SIGMOID
    assert set(nonconvex.comes_there(Told(), problem, "pd").holds) == {TUNED, AUTOMATIC}
    assert str(nonconvex.comes_there(Told(), problem, "pd")) == "holds"
    assert str(nonconvex.comes_there(Told(pd_Full=1e9), problem, "pd")) == "does not hold"


def test_local_training_is_told_from_one_step_a_round(monkeypatch):
    monkeypatch.setattr(nonconvex, "FEW", 200)
    rows, _, _ = nonconvex.mislabelled(4, 20, np.random.default_rng(0))
    problem = ew.Problem(rows.parts, ew.Sigmoid(ridge=1e-3))
    verdict = nonconvex.local_training({"here": (problem, None)}, ew.Graph.ring(4))
    assert verdict.holds == {"here": True}
    assert "here" in verdict.numbers


def test_labels_are_wrong_where_it_says_so():
    rng = np.random.default_rng(0)
    rows, X, y = nonconvex.mislabelled(4, 200, rng)
    far, _, _ = nonconvex.mislabelled(4, 200, rng, far=5.0)
    D, truth = (a[:800] for a in ew.data.epsilon_like(rows=800 + nonconvex.TEST, features=20))
    truth = truth[np.argsort(D[:, 0])]
    given = np.concatenate([labels for _, labels in rows.parts])
    assert (given != truth).mean() == pytest.approx(nonconvex.WRONG, abs=0.05)
    assert len(X) == len(y) == nonconvex.TEST
    lengths = np.linalg.norm(np.concatenate([D for D, _ in far.parts]), axis=1)
    assert np.isclose(lengths, 5).mean() == pytest.approx(0.1, abs=0.04)
    assert np.isclose(lengths, 1).mean() == pytest.approx(0.9, abs=0.04)
    assert [len(D) for D, _ in rows.parts] == [200] * 4
    first = [D[:, 0].mean() for D, _ in rows.parts]
    assert first == sorted(first), "nodes hold different parts"

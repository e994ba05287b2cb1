"""benchmarks/defaults.py judges: its settings must be what they say, and its answers right."""

import argparse
import sys
from collections import Counter

import numpy as np
import pytest
from paths import ROOT
from scipy.special import expit

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def modules():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import defaults
        import ordinary

        yield ordinary, defaults
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_every_value_of_every_axis_is_there_several_times(modules):
    ordinary, _ = modules
    assert 60 <= len(ordinary.SETTINGS) <= 80
    assert len(ordinary.QUICK) == 13
    assert set(ordinary.QUICK) < set(ordinary.SETTINGS)
    for axis, values in (
        ("nodes", (1, 2, 8, 20)),
        ("graph", ("ring", "grid", "random")),
        ("split", ("even", "label", "single", "ones")),
    ):
        seen = Counter(getattr(s, axis) for s in ordinary.SETTINGS.values())
        assert all(seen[value] >= 3 for value in values), (axis, seen)


def test_splits_are_what_they_are_called(modules):
    ordinary, _ = modules
    rng = np.random.default_rng(0)
    y = rng.choice(3, 200, p=(0.7, 0.2, 0.1)).astype(float)
    X = np.arange(200.0)[:, None]
    for split in ("even", "label", "single", "ones"):
        shards = ordinary.deal(X, y, 8, split)
        assert sorted(shards.X[:, 0]) == list(range(200))
        assert (y[shards.X[:, 0].astype(int)] == shards.y).all()
        assert shards.counts.min() >= 1
        classes = [len(np.unique(own)) for _, own in shards]
        assert (max(classes) == 1) == (split == "single")
        assert ((shards.counts == 1).sum() == 4) == (split == "ones")


def test_answers_are_optima_of_the_problems_that_are_judged(modules):
    """By the gradient, written out here; the enlarged column in its units before."""
    ordinary, _ = modules
    for data in ("breast_cancer", "large"):
        X, y = ordinary.load(data, BENCHMARKS)
        x, sign = ordinary.optimum_of(data, "logistic", BENCHMARKS), np.where(y == 1, 1.0, -1.0)
        slope = -sign * expit(-sign * (X @ x[:-1] + x[-1])) / len(y)
        units = np.where(np.arange(30) == 0, 1e6 if data == "large" else 1.0, 1.0)
        assert np.abs((X.T @ slope + x[:-1] / len(y)) / units).max() < 1e-10
        assert abs(slope.sum()) < 1e-10
    X, y = ordinary.load("diabetes", BENCHMARKS)
    x = ordinary.optimum_of("diabetes", "enet", BENCHMARKS)
    G = X.T @ (X @ x[:-1] + x[-1] - y) / len(y) + 0.1 * 0.3 * x[:-1]
    here = x[:-1] != 0
    assert here.any()
    assert np.abs(G + 0.1 * 0.7 * np.sign(x[:-1]))[here].max() < 1e-6


def test_a_run_is_judged_by_its_residual_and_its_coefficients(modules, tmp_path):
    ordinary, defaults = modules
    (tmp_path / "curves").mkdir()
    setting = ordinary.Setting("few", "ridge", 2, "pair", "even")
    o = argparse.Namespace(data=tmp_path, out=tmp_path, rounds=500, limit=60.0)
    row = defaults.judge(setting, "pdmm", o)
    assert row.near
    assert 0 < row.residual <= 1e-6
    assert row.within(500)
    absent = ordinary.Setting("a9a", "logistic", 2, "pair", "even")
    assert defaults.judge(absent, "pdmm", o).skipped

    case = ordinary.make(setting, tmp_path, 1e-6)
    models = np.tile(case.optimum, (2, 1))
    models[1, 3] += 0.5
    expected = 0.5 / max(1, abs(case.optimum[3]))
    assert defaults.difference(models, case) == pytest.approx(expected)


def test_what_failed_is_said(modules):
    _, defaults = modules
    rounds = np.arange(0.0, 2001, 10)
    assert defaults.failure(rounds, 10.0 ** (-rounds / 1000), 1e-6).startswith("slow: 6,000")
    assert defaults.failure(rounds, np.maximum(10.0 ** (-rounds / 100), 1e-3), 1e-6) == (
        "stalls at 1e-03"
    )
    assert defaults.failure(rounds, 10.0 ** (rounds / 100), 1e-6) == "diverges"
    good = defaults.Row("a", "m", "reached", rounds=400, difference=1e-6)
    rows = [
        good,
        good._replace(rounds=900, difference=1e-4),
        good._replace(outcome="diverges"),
        good._replace(outcome="skipped: no data"),
    ]
    assert defaults.summary(rows, "m") == (
        "m: within 500 rounds: 1 of 3; within 2,000: 2 of 3; coefficients to 1e-05: 1 of 3; "
        "1 skipped"
    )


def test_no_benchmark_is_named_as_a_helper_of_tests_is():
    """Both are imported by their bare names: the first that is would be the other as well."""
    names = {file.name for file in BENCHMARKS.glob("*.py")}
    assert not names & {file.name for file in (ROOT / "tests" / "helpers").glob("*.py")}

from dataclasses import replace

import numpy as np
import pytest

from edgewise.experiments import linear_rates
from edgewise.experiments.experiment import SMALL, Job

pytest.importorskip("cvxpy", reason="the extra edgewise[theory] is not installed")


def test_runs_are_linear_no_slower_than_certified_and_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(linear_rates, "ESTIMATORS", {"PD": linear_rates.ESTIMATORS["PD"]})
    monkeypatch.setattr(linear_rates, "CERTIFIED", ("PD",))
    small = replace(linear_rates.EXPERIMENT, conditions=(10,), graphs=("complete",))
    outcome = small.run(Job(SMALL, tmp_path, progress=False))
    linear, proved, tight, _, sums = outcome.verdicts
    assert linear.holds == proved.holds == tight.holds == sums.holds == {"PD": True}
    assert len(outcome.runs) == 2
    outcome.draw(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_the_factor_is_that_of_the_late_stretch():
    class Trace(dict):
        pass

    t = np.arange(400)
    early_then_late = np.maximum(0.5**t, 1e-4 * 0.9 ** (t - 13))
    trace = Trace(rounds=t, bregman=early_then_late)
    assert linear_rates.measured(trace) == pytest.approx(0.9, rel=1e-2)
    assert np.isnan(linear_rates.measured(Trace(rounds=t, bregman=np.ones(400))))


def test_a_run_slower_than_its_certificate_would_be_told():
    case = linear_rates.Case(linear_rates.HARD, "ring", 10, "PD")
    for factor, holds in [(0.9, True), (0.95, False)]:
        found = [
            linear_rates.Measured(case._replace(method=m), factor, 0.91, 0.9, 0.1, 0.1)
            for m in linear_rates.CERTIFIED
        ]
        assert set(linear_rates.no_faster_than_proved(found).holds.values()) == {holds}

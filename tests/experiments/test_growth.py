"""Stochastic-PD's 1/eps^2 and SkPD's growth with n, on the smallest sizes that show them."""

from dataclasses import replace

import numpy as np
import pytest

from edgewise.experiments import growth
from edgewise.experiments.complexity import STEPS
from edgewise.experiments.experiment import SMALL, Job

SIZES = growth.Sizes(6, 9, (400, 1600, 6400), (14, 28), 1)


def job(folder):
    return Job(replace(SMALL, name="tiny"), folder, progress=False)


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    experiment = replace(growth.EXPERIMENT, small=SIZES)
    where = job(tmp_path_factory.mktemp("growth"))
    return experiment, where, experiment.run(where)


def test_both_grow_as_their_lemmas_say(grown):
    _, _, outcome = grown
    assert [v.holds for v in outcome.verdicts] == [{STEPS: True}] * 2
    assert "nan" not in "".join(v.numbers for v in outcome.verdicts)


def test_the_exponents_are_told_apart_from_others(grown):
    """SAGA's power of one would not do for Stochastic-PD, and SkPD needs all of its power."""
    experiment, where, _ = grown
    traces = experiment.traces(where, SIZES)
    stochastic, sketched = growth.spd(traces, SIZES), growth.skpd(traces, SIZES)
    assert replace(stochastic, most=1.0).verdict().holds == {STEPS: False}
    assert replace(sketched, most=0.8).verdict().holds == {STEPS: False}
    tight = replace(sketched, bounds=sketched.bounds / 100)
    assert tight.verdict().holds == {STEPS: False}


def test_more_coordinates_are_the_same_problem(grown):
    problem, star = growth.problem_for(growth.Case(growth.SKETCHED, 28, 1), SIZES)
    base, at = growth.problem_for(growth.Case(growth.STOCHASTIC, 400, 1), SIZES)
    assert problem.size == 28
    np.testing.assert_allclose(problem.smoothness.mean, base.smoothness.mean, rtol=1e-6)
    assert np.linalg.norm(star.x) == pytest.approx(np.linalg.norm(at.x))
    gradient = sum(
        D.T @ (D @ star.x - problem.labels[problem.own(i)]) / len(D)
        for i, (D, _) in enumerate(problem.shards[i] for i in range(problem.nodes))
    )
    assert np.abs(gradient).max() < 1e-9
    assert (np.abs(star.x) > 1e-6).all()  # all coordinates matter


def test_growth_is_drawn(grown, tmp_path, drawn):
    _, _, outcome = grown
    outcome.draw(tmp_path / "growth.png")
    panels = drawn["growth.png"].axes
    assert [ax.get_title() for ax in panels] == [growth.STOCHASTIC, growth.SKETCHED]
    assert all({"measured", "bound"} <= {str(n.get_label()) for n in ax.lines} for ax in panels)

"""The experiments on theory: complexities, SkPD, and the link with PDMM."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from drawings import lines

import edgewise as ew
from edgewise.experiments import complexity, complexity_runs, pdmm, sketched
from edgewise.experiments.experiment import AUTOMATIC, PRINTED, SMALL, Job
from edgewise.study import theory

mpl.use("Agg")
TINY = replace(
    SMALL, name="tiny", features=5, samples={2000: 20}, nodes=6, edges=9, easier=50.0, looks=20
)


def run(experiment, folder):
    outcome = experiment.run(Job(TINY, folder, progress=False))
    assert all((experiment.name, experiment.title, experiment.source))
    assert all(np.isfinite(r.trace["bregman"]).all() for r in outcome.runs)
    assert outcome.graph is not None
    return outcome


# --- complexity -----------------------------------------------------------------------------------

GRID = complexity.Grid(6, (16, 64), (4.0, 8.0), (9, 15), (0.05, 0.025), 0.05)


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("complexity")
    experiment = replace(complexity.EXPERIMENT, small=GRID)
    return folder, experiment, run(experiment, folder)


def test_counts_grow_no_faster_than_the_table(counted):
    _, _, outcome = counted
    told = {v.claim: v for v in outcome.verdicts}
    assert len(outcome.runs) == 4 * 4
    by_method = [v for claim, v in told.items() if "grow with 1/eps, K, L and E" in claim]
    assert len(by_method) == 4 * 2
    assert not any("nan" in v.numbers for v in outcome.verdicts)
    assert all(v.holds[complexity.STEPS] for v in by_method)


def test_saga_grows_as_corrected_not_as_printed(counted):
    _, _, outcome = counted
    (printed,) = (v for v in outcome.verdicts if "as printed" in v.claim)
    assert not printed.holds[complexity.STEPS]


def test_complexities_are_drawn_and_kept(counted, tmp_path, monkeypatch, drawn):
    folder, experiment, outcome = counted
    for suffix in ("png", "pdf"):
        outcome.draw(tmp_path / f"drawn.{suffix}")
        panels = drawn[f"drawn.{suffix}"].axes
        assert len(panels) == 2 * 4
        for ax in panels:  # points of each method, and a line for its bound
            assert len(ax.lines) == 2 * len(complexity.MARKS)
            assert set(complexity.MARKS) <= set(lines(ax))
    monkeypatch.setattr(complexity, "measured", None)  # nothing is run again
    again = run(experiment, folder)
    assert [v.numbers for v in again.verdicts] == [v.numbers for v in outcome.verdicts]


def test_each_number_of_the_problem_can_be_changed_alone():
    def known(K, L):
        problem = complexity_runs.problem_of(6, K, L)
        return problem, theory.Start(problem, ew.Graph.ring(6), "saga-pd")

    _, start = known(16, 4.0)
    assert start.w1 == pytest.approx(1)
    for K, L in ((64, 4.0), (16, 8.0)):
        problem, other = known(K, L)
        np.testing.assert_allclose(problem.smoothness.sample, L)
        assert (problem.counts == K).all()
        np.testing.assert_allclose(other.star.x, start.star.x, atol=1e-9)
        np.testing.assert_allclose(other.from_f, start.from_f, rtol=1e-9)
        assert other.w1 == pytest.approx(1)


@pytest.mark.parametrize("method", ["SVR-PD", "ASVR-PD"])
def test_promised_counts_meet_the_bound(method):
    case = complexity_runs.Case(method, 16, 4.0, 9)
    problem = complexity_runs.problem_of(6, 16, 4.0)
    start = theory.Start(problem, complexity_runs.graph_of(6, 9), complexity_runs.method_of(case))
    distances, first, _ = start.terms(tight=True)
    for epochs in (10, 20):
        level = theory.epoch_bound(start, epochs)
        rounds = complexity.promised(case, [distances, first], "rounds", level)
        calls = complexity.promised(case, [distances, first], "oracle_calls", level)
        if method == "SVR-PD":
            assert rounds == pytest.approx(16 * (2**epochs - 1))
            assert calls == pytest.approx(16 * epochs + 2 * rounds)
        else:
            assert calls == pytest.approx(3 * 16 * epochs, rel=0.15)


# --- SkPD, PDMM -----------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_skpd_converges_and_finite_differences_end_at_their_floor(tmp_path):
    outcome = run(sketched.EXPERIMENT, tmp_path)
    assert len(outcome.runs) == 2 * 3
    for verdict in outcome.verdicts:
        assert verdict.holds == {AUTOMATIC: True, sketched.THEORY: True}, verdict
    for r in outcome.runs:
        values, calls = r.trace["function_values"][-1], r.trace["oracle_calls"][-1]
        assert values == (0 if r.method == sketched.COORDINATES else 2 * calls)


def test_pd_is_pdmm_with_quadratic_approximations(tmp_path):
    outcome = run(pdmm.EXPERIMENT, tmp_path)
    (verdict,) = outcome.verdicts
    assert verdict.holds == {PRINTED: True}
    problem, graph = pdmm.problem_of(TINY, None), pdmm.data.graph_of(TINY, False)
    theirs = pdmm.quadratic_pdmm(problem, graph, 0.5, 0.3, 50)
    ours = ew.solve(problem, graph, "pd", rounds=50, record_every=50, eta=0.5, rho=0.3).X
    assert np.abs(ours - theirs[-1]).max() < 1e-10
    assert np.abs(theirs[-1] - theirs[-2]).max() > 1e-8  # still on the way


def test_the_transcription_is_sensitive_to_its_parameters():
    problem, graph = pdmm.problem_of(TINY, None), pdmm.data.graph_of(TINY, False)
    one, other = (pdmm.quadratic_pdmm(problem, graph, 0.5, rho, 20) for rho in (0.3, 0.31))
    assert np.abs(one - other).max() > 1e-4

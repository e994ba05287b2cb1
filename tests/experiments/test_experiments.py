"""The paper's experiments: what they run, keep and write, and how claims are judged."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from drawings import legend
from typer.testing import CliRunner

import edgewise as ew
from edgewise.cli.app import app
from edgewise.experiments import EXPERIMENTS, FIGURES, data, experiment, named, output
from edgewise.experiments.claims import Curves, fastest
from edgewise.experiments.experiment import AUTOMATIC, PRINTED, SMALL, TUNED, Job, Scale, Verdict
from edgewise.experiments.figure import FigureProblem, FigureRun
from edgewise.experiments.large_data import stopping_changes_little
from edgewise.experiments.lineup import LINEUP, oracle_budget
from edgewise.experiments.oracle import asvr_swings, edge_fails
from edgewise.experiments.ring import ring_costs_little, two_do_not_converge
from edgewise.experiments.small_data import lsvr_catches_up, order_stays
from edgewise.experiments.unregularised import much_slower, svr_first_then_d2
from edgewise.running.trace import COLUMNS, Trace

TINY = Scale(
    "tiny",
    features=4,
    samples={2000: 20, 50: 4, 8000: 40},
    rounds=60,
    longest=16,
    looks=6,
    dtype="float64",
    easier=20.0,
    nodes=6,
    edges=9,
)


@pytest.fixture(autouse=True)
def tiny_scale(monkeypatch):
    monkeypatch.setitem(experiment.SCALES, "tiny", TINY)


def job(folder, **changes):
    return Job(**{"scale": TINY, "folder": folder, "tune_at": "tiny", "progress": False} | changes)


# --- runs -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_figure():
    return replace(named("oracle"), methods=("SVR-PD", "SAGA-PD", "EXTRA"), claims=())


@pytest.fixture(scope="module")
def made(tmp_path_factory, small_figure):
    experiment.SCALES["tiny"] = TINY
    where = job(tmp_path_factory.mktemp("reproduce") / "oracle", jobs=2)
    return where, small_figure.run(where)


def test_every_method_runs_in_every_setting(made):
    _, outcome = made
    cells = {(r.setting, r.method) for r in outcome.runs}
    assert len(cells) == len(outcome.runs) == 9
    runs = {(r.setting, r.method): r for r in outcome.runs}
    printed = runs[PRINTED, "SVR-PD"]
    assert printed.parameters == {"eta": 0.7, "rho": 0.9}
    assert printed.trace["rounds"][-1] == TINY.rounds
    assert "none is printed" in runs[PRINTED, "EXTRA"].parameters["eta"]
    assert set(runs[TUNED, "SAGA-PD"].parameters) == {"eta by rule, times", "rho by rule, times"}
    lows = {s: runs[s, "SAGA-PD"].trace["bregman"][-1] for s in (PRINTED, TUNED, AUTOMATIC)}
    assert lows[TUNED] < lows[PRINTED]
    assert len({r.trace["bregman"][0] for r in outcome.runs}) == 1  # one problem, one start


def test_budgets_are_those_of_svr_pd(made):
    _, outcome = made
    budget = oracle_budget(TINY, 20)
    for run in outcome.runs:
        calls = run.trace["oracle_calls"]
        if run.setting != PRINTED or run.method == "EXTRA":
            assert calls[-2] < budget <= calls[-1]
        elif run.method == "SVR-PD":
            assert calls[-1] == budget


def test_what_is_there_is_not_run_again(made, small_figure, monkeypatch):
    where, outcome = made

    def refuse(*_):
        raise AssertionError("it ran again")

    monkeypatch.setattr(FigureProblem, "__init__", refuse)
    again = small_figure.run(where)
    for one, other in zip(outcome.runs, again.runs, strict=True):
        np.testing.assert_array_equal(one.trace["bregman"], other.trace["bregman"])
        assert one.parameters == other.parameters
    with pytest.raises(AssertionError, match="it ran again"):
        small_figure.run(replace(where, seed=2))


def test_an_interrupted_run_leaves_what_was_done(tmp_path, small_figure, monkeypatch):
    where = job(tmp_path / "oracle")
    run, seen = FigureProblem.run, []

    def interrupted(bench, cell, stop):
        seen.append(cell)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return run(bench, cell, stop)

    cells = [FigureRun(AUTOMATIC, m) for m in small_figure.methods]
    with monkeypatch.context() as patch:
        patch.setattr(FigureProblem, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            small_figure.traces(where, cells)
    assert len(list((where.folder / "traces").iterdir())) == 2
    seen.clear()
    monkeypatch.setattr(FigureProblem, "run", lambda *a: (seen.append(a[1]), run(*a))[1])
    assert len(small_figure.traces(where, cells)) == 3
    assert [c.method for c in seen] == ["EXTRA"]


def test_printed_parameters_are_the_papers():
    given = {m: dict(e.printed) for m, e in LINEUP.items() if e.printed}
    assert given["SAGA-PD"] == {"eta": 0.5, "rho": 0.5}
    assert given["SVR-PD"] == given["SVR-PD, early stopping"] == {"eta": 0.7, "rho": 0.9}
    assert given["LSVR-PD"] == {"eta": 0.6, "rho": 0.5}
    assert given["ASVR-PD"] == {"eta": 0.7, "rho": 0.9}
    assert given["Network-DANE"]["eta"] == 10
    assert given["GT-SVR"] == {"eta": 0.1}
    asvr = LINEUP["ASVR-PD"].make(SMALL).gradient
    assert (asvr.momentum, asvr.ask) == (0.99, 0.2)
    paper = experiment.PAPER
    assert (paper.nodes, paper.edges, paper.features) == (50, 250, 2000)
    assert (paper.rounds, paper.longest, paper.samples[8000]) == (7000, 1000, 8000)
    assert {f.ridge for f in FIGURES.values()} == {0.0014, 0.0}


def test_data_by_path_are_drawn_and_normalised(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((150, 6)), rng.choice([0.0, 1.0], 150)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    problem = data.problem_of(TINY, 20, 0.1, str(tmp_path / "rows.npz"))
    assert problem.nodes == 6
    np.testing.assert_allclose(np.linalg.norm(problem.shards.X, axis=1), 1)
    assert set(np.unique(problem.shards.y)) == {-1, 1}
    unit = X[:, :4] / np.linalg.norm(X[:, :4], axis=1)[:, None]
    near = np.abs(unit[:, None] - problem.shards.X[None]).sum(-1).min(0)
    assert near.max() < 1e-12
    with pytest.raises(ew.errors.InputError, match="150 rows of 6 features and this takes 240"):
        data.problem_of(TINY, 40, 0.1, str(tmp_path / "rows.npz"))


# --- files ----------------------------------------------------------------------------------------


def test_everything_is_written(made, small_figure, drawn):
    where, outcome = made
    verdict = Verdict("it works", {PRINTED: True, TUNED: False}, "1 and 2")
    files = output.write(small_figure, where, replace(outcome, verdicts=[verdict]), 1.5)
    assert set(files) == {"csv", "png", "pdf", "html", "json"}
    assert "<html" in files["html"].read_text()
    for kind in ("png", "pdf"):
        figure = drawn[files[kind].name]
        assert legend(figure) == list(small_figure.methods)
        shown = [line for ax in figure.axes for line in ax.lines]
        assert len(shown) == 2 * len(outcome.runs)  # against calls, and against rounds
        assert np.array_equal(shown[0].get_xdata(), outcome.runs[0].trace["oracle_calls"])
    with files["csv"].open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(r.trace) for r in outcome.runs)
    assert float(rows[0]["bregman"]) == pytest.approx(outcome.runs[0].trace["bregman"][0], rel=1e-4)
    said = json.loads(files["json"].read_text())
    assert said["verdicts"][0]["verdict"] == "holds only as printed"
    assert {"seed", "scale", "edgewise", "jax", "machine", "data"} <= set(said["about"])


def test_runtime_stops_at_the_gap_and_draws_bars(tmp_path, drawn):
    quick = replace(named("runtime-2000"), methods=("SVR-PD", "SAGA-PD"), claims=())
    outcome = quick.run(job(tmp_path / "runtime", jobs=2))
    for run in outcome.runs:
        reached = run.trace["bregman"] <= quick.until
        assert not reached[:-1].any()
        if run.setting == TUNED:
            assert reached[-1]
    outcome.draw(tmp_path / "bars.png")
    names = [text.get_text() for text in drawn["bars.png"].axes[0].get_yticklabels()]
    assert names == list(quick.methods)
    for ax in drawn["bars.png"].axes:
        runs = [run for run in outcome.runs if run.setting == ax.get_title()]
        for bar, run in zip(ax.patches, runs, strict=True):
            seconds, gaps = run.trace["seconds"], run.trace["bregman"]
            assert 0 < bar.get_width() <= seconds[-1]
            grey = bar.get_facecolor() == (0.8, 0.8, 0.8, 1.0)
            assert grey == (not (gaps <= quick.until).any())


def test_the_command_lists_refuses_and_runs(tmp_path, monkeypatch):
    def call(*arguments):
        return CliRunner().invoke(app, ["reproduce", *arguments])

    listed = json.loads(call("--list", "--json").stdout)
    assert set(listed) == set(EXPERIMENTS)
    assert call("orcale").exit_code == 2
    assert "oracle" in call("orcale").stderr
    assert call("oracle", "--scale", "huge").exit_code == 2
    small = replace(named("ring"), methods=("SVR-PD",), claims=named("ring").claims[:1])
    monkeypatch.setitem(EXPERIMENTS, "ring", small)
    ran = call("ring", "--scale", "tiny", "--tune-at", "tiny", "--out", str(tmp_path), "--json")
    assert ran.exit_code == 0, ran.output
    said = json.loads(ran.stdout)["experiments"]["ring"]
    assert len(said["verdicts"]) == 1
    assert (tmp_path / "tiny" / "ring" / "ring.html").exists()
    # the claim is about another graph too: its run is kept beside
    assert (tmp_path / "tiny" / "oracle" / "traces" / "tuned-svr-pd.npz").exists()


# --- claims ---------------------------------------------------------------------------------------


def falling(rate, start=1.0, rows=50, step=100.0, floor=0.0):
    """A run that loses `rate` decades in 1000 calls, down to a floor."""
    at = step * np.arange(rows)
    columns = {c: np.zeros(rows) for c in COLUMNS}
    columns |= {"oracle_calls": at, "rounds": at, "seconds": at}
    columns["bregman"] = np.maximum(start * 10 ** (-rate * at / 1000), floor)
    return Trace(columns)


def all_falling(rate, **others):
    names = {"SVR_ES": "SVR-PD, early stopping"}
    given = {names.get(k, k.replace("_", "-")): v for k, v in others.items()}
    rates = dict.fromkeys(LINEUP, rate) | given
    return Curves({m: v if isinstance(v, Trace) else falling(v) for m, v in rates.items()})


def nothing(name, methods):
    raise AssertionError("no other figure is needed")


def test_fastest():
    judge = fastest(("SVR-PD",), ("D2", "EXTRA"), margin=1.5)
    assert judge(all_falling(1.0, SVR_PD=1.6), nothing)[0]
    holds, numbers = judge(all_falling(1.0, SVR_PD=1.2), nothing)
    assert not holds
    assert "SVR-PD" in numbers
    stalled = falling(3.0, floor=0.5)
    assert judge(all_falling(1.0, SVR_PD=1.6, D2=stalled), nothing)[0]


def test_edge_and_oscillation():
    assert edge_fails(all_falling(1, EDGE=falling(1, floor=0.5)), nothing)[0]
    assert not edge_fails(all_falling(1), nothing)[0]
    swinging = falling(1)
    swinging.columns["bregman"] *= np.where(np.arange(50) % 5, 1, 5)
    assert asvr_swings(all_falling(1, ASVR_PD=swinging), nothing)[0]
    assert not asvr_swings(all_falling(1), nothing)[0]


def test_claims_across_figures():
    base = all_falling(1.0, SVR_PD=2.0, SAGA_PD=1.5, LSVR_PD=0.8)
    assert order_stays(base, lambda *_: base)[0]
    turned = Curves({m: falling(3 - 0.2 * k) for k, m in enumerate(LINEUP)})
    back = Curves({m: falling(1 + 0.2 * k) for k, m in enumerate(LINEUP)})
    assert not order_stays(turned, lambda *_: back)[0]
    assert lsvr_catches_up(all_falling(1, LSVR_PD=0.9), lambda *_: base)[0]
    assert not lsvr_catches_up(base, lambda *_: base)[0]
    assert ring_costs_little(all_falling(1), lambda *_: all_falling(1.2))[0]
    assert not ring_costs_little(all_falling(1), lambda *_: all_falling(2.0))[0]
    slow = Curves({m: falling(0.2) for m in LINEUP})
    assert much_slower(slow, lambda *_: all_falling(1.0))[0]
    assert not much_slower(all_falling(0.9), lambda *_: all_falling(1.0))[0]


def test_claims_about_single_methods():
    stuck = falling(1, floor=0.5)
    assert two_do_not_converge(all_falling(1, S_DIGing=stuck, DGD=stuck), nothing)[0]
    assert not two_do_not_converge(all_falling(1, DGD=stuck), nothing)[0]
    assert svr_first_then_d2(all_falling(0.5, SVR_PD=2, SVR_ES=2, D2=1), nothing)[0]
    assert not svr_first_then_d2(all_falling(0.5, SVR_PD=2, D2=1, EDGE=1.5), nothing)[0]
    assert stopping_changes_little(all_falling(1), nothing)[0]
    assert not stopping_changes_little(all_falling(1, SVR_ES=2), nothing)[0]


def test_verdicts_in_words():
    assert str(Verdict("", {PRINTED: True, TUNED: True}, "")) == "holds"
    assert str(Verdict("", {PRINTED: False, TUNED: False}, "")) == "does not hold"
    assert str(Verdict("", {PRINTED: False, TUNED: True}, "")) == "holds only tuned"
    assert named("ring").ring

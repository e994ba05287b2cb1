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
from edgewise.experiments.claims import (
    CAP,
    COARSE,
    LEVELS,
    SPLIT,
    UNREACHED,
    Answer,
    Setting,
    compared,
    fails,
    fastest,
    over_levels,
    summed_up,
)
from edgewise.experiments.experiment import AUTOMATIC, PRINTED, SMALL, TUNED, Job, Scale, Verdict
from edgewise.experiments.figure import FigureProblem, FigureRun
from edgewise.experiments.large_data import asvr_is_ahead_at_first, stopping_changes_little
from edgewise.experiments.lineup import LINEUP, oracle_budget
from edgewise.experiments.looks import LOOKS, look
from edgewise.experiments.oracle import (
    NEVER,
    SAMPLED,
    asvr_swings,
    both_lead,
    dane_leads_the_others,
    early_stopping_leads,
    edge_fails,
    rounds_alike,
    ten_times,
)
from edgewise.experiments.passages import ROUNDS, Curves, Span
from edgewise.experiments.ring import ring_costs_little
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
    seeds=2,
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


def by_cell(outcome):
    cells = {}
    for run in outcome.runs:
        cells.setdefault((run.setting, run.method), []).append(run)
    return cells


def test_every_method_runs_in_every_setting(made):
    _, outcome = made
    cells = by_cell(outcome)
    assert {m: len(cells[PRINTED, m]) for m in ("SVR-PD", "EXTRA")} == {"SVR-PD": 2, "EXTRA": 1}
    assert len(cells) == 9
    assert cells[PRINTED, "SVR-PD"][0].parameters == {"eta": 0.7, "rho": 0.9}
    assert "none is printed" in cells[PRINTED, "EXTRA"][0].parameters["eta"]
    tuned = cells[TUNED, "SAGA-PD"][0].parameters
    assert set(tuned) == {"eta by rule, times", "rho by rule, times"}
    lows = {s: cells[s, "SAGA-PD"][0].trace["bregman"][-1] for s in (PRINTED, TUNED, AUTOMATIC)}
    assert lows[TUNED] < lows[PRINTED]
    starts = [r.trace["bregman"][0] for r in outcome.runs]
    np.testing.assert_allclose(starts, starts[0], rtol=1e-9)  # one problem, one start
    one, other = (r.trace["bregman"] for r in cells[AUTOMATIC, "SAGA-PD"])
    assert not np.array_equal(one[: len(other)], other[: len(one)])  # seeds


def test_as_printed_all_run_for_the_printed_rounds_else_for_calls_too(made):
    _, outcome = made
    budget = oracle_budget(TINY, 20)
    for run in outcome.runs:
        rounds, calls = run.trace["rounds"], run.trace["oracle_calls"]
        floor = run.method == "EXTRA" and run.trace["bregman"][-1] < 1e-12
        if floor:
            assert rounds[-1] <= TINY.rounds
        elif run.setting == PRINTED:
            assert rounds[-1] == TINY.rounds
        else:
            spent = (rounds >= TINY.rounds) & (calls >= budget)
            assert spent[-1]
            assert not spent[:-1].any()


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
        small_figure.run(replace(where, seed=3))


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
        assert len(shown) == 2 * len(by_cell(outcome))  # against calls, and against rounds
        pair = [r.trace["oracle_calls"] for r in by_cell(outcome)[PRINTED, "SVR-PD"]]
        assert np.array_equal(shown[0].get_xdata(), np.median(pair, 0))
        assert {line.get_color() for line in shown} == {LOOKS[m][0] for m in small_figure.methods}
        bands = [ax.collections for ax in figure.axes]
        assert [len(b) for b in bands] == [2] * 6  # where there are several seeds
    with files["csv"].open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(r.trace) for r in outcome.runs)
    assert float(rows[0]["bregman"]) == pytest.approx(outcome.runs[0].trace["bregman"][0], rel=1e-4)
    said = json.loads(files["json"].read_text())
    assert said["verdicts"][0]["verdict"] == "holds as printed; does not hold tuned"
    assert {"seeds", "scale", "edgewise", "jax", "machine", "data"} <= set(said["about"])


def test_runtime_stops_at_the_gap_and_draws_dots(tmp_path, drawn):
    quick = replace(named("runtime-2000"), methods=("SVR-PD", "SAGA-PD"), claims=())
    outcome = quick.run(job(tmp_path / "runtime", jobs=2))
    for run in outcome.runs:
        reached = run.trace["bregman"] <= quick.until
        assert not reached[:-1].any()
        if run.setting == TUNED:
            assert reached[-1]
    outcome.draw(tmp_path / "dots.png")
    names = [text.get_text() for text in drawn["dots.png"].axes[0].get_yticklabels()]
    assert names == list(quick.methods)
    ends = [run.trace["seconds"][-1] for run in outcome.runs]
    for ax in drawn["dots.png"].axes:
        for row, method in enumerate(quick.methods):
            runs = by_cell(outcome)[ax.get_title(), method]
            there = [r.trace["bregman"][-1] <= quick.until for r in runs]
            places = [
                line.get_xdata()[0]
                for line in ax.lines
                if list(line.get_ydata()) == [row] and line.get_marker() != "None"
            ]
            assert len(places) == 1
            # what did not get there stands to the right of all times
            assert (places[0] > max(ends)) == (sum(there) <= len(there) // 2)


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
    assert (tmp_path / "tiny" / "oracle" / "traces" / "tuned-svr-pd-1.npz").exists()


# --- claims ---------------------------------------------------------------------------------------


def falling(rate, start=1.0, rows=50, step=100.0, floor=0.0):
    """A run that loses `rate` decades in 1000 calls, down to a floor."""
    at = step * np.arange(rows)
    columns = {c: np.zeros(rows) for c in COLUMNS}
    columns |= {"oracle_calls": at, "rounds": at, "seconds": at}
    columns["bregman"] = np.maximum(start * 10 ** (-rate * at / 1000), floor)
    return Trace(columns)


def all_falling(rate, **others):
    """Two seeds that are alike."""
    names = {"SVR_ES": "SVR-PD, early stopping", "DANE": "Network-DANE"}
    given = {names.get(k, k.replace("_", "-")): v for k, v in others.items()}
    rates = dict.fromkeys(LINEUP, rate) | given
    return Curves({m: v if isinstance(v, Trace) else falling(v) for m, v in rates.items()})


def asked(judge, *seeds, beside=()):
    return judge(Setting(list(seeds), lambda name, methods: list(beside)))


def test_passages_are_as_exact_as_the_trace():
    run = falling(1.0)  # a tenth every 1000 calls, looks every 100
    run.columns["bregman"][25] = 1.0  # it comes back
    c = Curves({"D2": run, "EXTRA": falling(0.1)})
    assert c.span("D2", 1e-1) == Span(2500, 2600)
    assert c.span("D2", 2e-3) == Span(2600, 2700)
    assert c.span("D2", 2.0) == Span(0, 0)
    assert c.span("EXTRA", 1e-3) == Span(4900, np.inf)
    assert c.span("D2", 1e-1, ROUNDS) == Span(2500, 2600)


@pytest.mark.parametrize(
    ("own", "rival", "found"),
    [
        ((90, 100), (150, 160), Answer(True)),
        ((90, 100), (149, 160), Answer(None, COARSE)),
        ((110, 120), (150, 160), Answer(False)),
        ((90, 100), (200, np.inf), Answer(True)),  # it would have taken more
        ((90, 100), (140, np.inf), Answer(None, CAP)),
        ((200, np.inf), (90, 100), Answer(False)),
        ((50, np.inf), (90, 100), Answer(None, CAP)),
        ((50, np.inf), (90, np.inf), Answer(None, UNREACHED)),
    ],
)
def test_what_takes_less(own, rival, found):
    said = compared(Span(*own), Span(*rival), 1.5)
    assert said[:2] == found[:2]


def test_levels_and_seeds_that_disagree_are_undecided():
    yes, no, maybe = Answer(True, "", 2.0), Answer(False, "", 0.5), Answer(None, CAP)

    def held(*levels):
        return summed_up((1e-2, 1e-3), levels, "")

    assert held([yes, yes, maybe], [yes] * 3).holds is True
    assert held([no] * 3, [maybe] * 3).holds is False
    assert held([yes] * 3, [no] * 3).holds is None
    assert "the level decides, yes at 1e-02, no at 1e-03" in held([yes] * 3, [no] * 3).numbers
    assert held([yes, yes, no], [maybe] * 3).holds is None
    assert SPLIT in held([yes, yes, no], [yes, no, no]).numbers
    assert held([yes, maybe, maybe], [maybe] * 3).holds is None
    assert CAP in held([maybe] * 3, [maybe] * 3).numbers


def test_fastest():
    judge = fastest(("SVR-PD",), ("D2", "EXTRA"), margin=1.5)
    quick, slow = all_falling(1.0, SVR_PD=1.7), all_falling(1.0, SVR_PD=1.2)
    assert asked(judge, quick, quick).holds is True
    assert asked(judge, slow, slow).holds is False
    assert asked(judge, quick, slow).holds is None
    stalled = falling(3.0, floor=0.5)
    assert asked(judge, all_falling(1.0, SVR_PD=1.7, D2=stalled)).holds is True
    # none comes to a hundredth
    assert asked(judge, all_falling(0.1)).holds is None


def test_edge_and_oscillation():
    assert edge_fails(all_falling(1, EDGE=falling(1, floor=0.5))).holds is True
    assert edge_fails(all_falling(1)).holds is False
    assert edge_fails(all_falling(1, EDGE=falling(1, floor=0.05))).holds is None
    swinging = falling(1)
    swinging.columns["bregman"] *= np.where(np.arange(50) % 5, 1, 5)
    assert asvr_swings(all_falling(1, ASVR_PD=swinging)).holds is True
    assert asvr_swings(all_falling(1)).holds is False
    assert asvr_swings(all_falling(0.1)).holds is None  # never low


def test_early_stopping_that_never_fires_is_undecided():
    same, other = all_falling(1, SVR_PD=2, SVR_ES=2), all_falling(1, SVR_PD=2, SVR_ES=2.5)
    assert both_lead(same, 1e-2)[:2] == (None, NEVER)
    assert both_lead(other, 1e-2).holds is True
    assert both_lead(all_falling(1, SVR_PD=0.5), 1e-2).holds is False
    assert stopping_changes_little(same, 1e-2)[:2] == (None, NEVER)
    assert stopping_changes_little(other, 1e-2).holds is True
    assert stopping_changes_little(all_falling(1, SVR_ES=2), 1e-2).holds is False


def test_dane_leads_the_older_ones_or_does_not():
    assert dane_leads_the_others(all_falling(0.3, DANE=1, SVR_PD=3), 1e-2).holds is True
    assert dane_leads_the_others(all_falling(0.3, DANE=1, SVR_PD=1.2), 1e-2).holds is False
    assert dane_leads_the_others(all_falling(1, DANE=0.5, SVR_PD=3), 1e-2).holds is False


def test_rounds_are_alike():
    near = {m: falling(1 if m.endswith("-PD") or "early" in m else 0.9) for m in LINEUP}
    assert rounds_alike(Curves(near)).holds is True
    assert rounds_alike(Curves(near | {"EXTRA": falling(1.2)})).holds is False
    assert rounds_alike(Curves({m: falling(5) for m in LINEUP})).holds is None  # all at the floor
    short = Curves(near | {"EXTRA": falling(1.2, rows=9)})
    assert rounds_alike(short)[:2] == (None, "EXTRA was not run that long")


def test_early_stopping_in_rounds_among_all_and_among_those_that_draw():
    others = all_falling(1, SVR_PD=2, SVR_ES=3, EXTRA=4)
    assert early_stopping_leads(tuple(LINEUP))(others, 1e-2).holds is False
    assert early_stopping_leads(SAMPLED)(others, 1e-2).holds is True
    assert ten_times(others, 1e-2).holds is False


def test_claims_across_figures():
    base = all_falling(1.0, SVR_PD=2.0, SAGA_PD=1.5, LSVR_PD=0.8)
    spread = {m: falling(3 - 0.2 * k) for k, m in enumerate(LINEUP)}
    turned = Curves(spread)
    back = Curves({m: falling(1 + 0.2 * k) for k, m in enumerate(LINEUP)})
    assert order_stays(turned, turned, 1e-2).holds is True
    assert order_stays(turned, back, 1e-2).holds is False
    assert order_stays(all_falling(1), all_falling(1), 1e-2).holds is None  # all alike
    assert lsvr_catches_up(all_falling(1, LSVR_PD=0.9), base, 1e-2).holds is True
    assert lsvr_catches_up(base, base, 1e-2).holds is False
    never = all_falling(1, SVR_PD=2, LSVR_PD=falling(0.1))
    assert lsvr_catches_up(all_falling(1, LSVR_PD=0.9), never, 1e-2).holds is True
    short = all_falling(1, LSVR_PD=falling(0.1, rows=15))
    assert lsvr_catches_up(all_falling(1), short, 1e-2)[:2] == (None, CAP)
    assert ring_costs_little(all_falling(1), all_falling(1.2), 1e-2).holds is True
    assert ring_costs_little(all_falling(1), all_falling(2.0), 1e-2).holds is False
    slow = Curves({m: falling(0.2) for m in LINEUP})
    assert asked(much_slower, slow, beside=[all_falling(1.0)]).holds is True
    assert asked(much_slower, all_falling(0.9), beside=[all_falling(1.0)]).holds is False


def test_a_test_that_most_methods_fail_says_nothing_of_one():
    judge, stuck = fails(("S-DIGing",), tuple(LINEUP)), falling(1, floor=0.5)
    assert asked(judge, all_falling(1, S_DIGing=stuck)).holds is True
    assert asked(judge, all_falling(1)).holds is False
    found = asked(judge, Curves(dict.fromkeys(LINEUP, stuck)))
    assert found.holds is None
    assert "half of all methods" in found.numbers


def test_claims_about_single_methods():
    assert svr_first_then_d2(all_falling(0.5, SVR_PD=2, SVR_ES=2, D2=1), 1e-2).holds is True
    assert svr_first_then_d2(all_falling(0.5, SVR_PD=2, D2=1, EDGE=1.5), 1e-2).holds is False
    assert svr_first_then_d2(all_falling(0.5, SVR_PD=1.1, D2=1), 1e-2).holds is False
    ahead = all_falling(1, ASVR_PD=1.5)
    assert asvr_is_ahead_at_first(ahead, 0.0).holds is True
    assert asvr_is_ahead_at_first(all_falling(1, ASVR_PD=0.5), 0.0).holds is False


def test_levels_are_those_that_are_told():
    told = asked(over_levels(lambda c, e: Answer(True, number=e), "x"), all_falling(1)).numbers
    assert [f"{e:.0e} " in told for e in LEVELS] == [True] * 8
    assert "decided at 8 of 8" in told


def test_verdicts_in_words():
    assert str(Verdict("", {PRINTED: True, TUNED: True}, "")) == "holds"
    assert str(Verdict("", {PRINTED: False, TUNED: False}, "")) == "does not hold"
    assert str(Verdict("", {PRINTED: None}, "")) == "undecided"
    mixed = Verdict("", {PRINTED: None, TUNED: True, AUTOMATIC: False}, "")
    assert str(mixed) == "holds tuned; does not hold automatic; undecided as printed"
    assert named("ring").ring


def test_every_method_looks_like_no_other():
    assert len({LOOKS[m] for m in LINEUP}) == len({LOOKS[m][0] for m in LINEUP}) == len(LINEUP)
    assert look("another") == look("another") != look("one more")

"""Bars and curves of runs under way, and what they say of the time left."""

import sys
import types

import numpy as np
import pytest

import edgewise as ew
from edgewise.errors import MethodError
from edgewise.plotting import notebook
from edgewise.running import progress
from edgewise.running.progress import History, Progress, clock


def history(rounds, tol, residuals, seconds=2.0, every=10):
    made = History(rounds, tol)
    for k, value in enumerate(residuals):
        made.note(100 + seconds * k if k else 0.0, every * k, value)  # the first before compiling
    return made


def test_time_left_goes_on_at_the_rate_of_late():
    falling = 10.0 ** -np.arange(0, 5, 0.5)  # 1e-4.5 after 90 rounds; half a power in 2 seconds
    assert history(10_000, 1e-7, falling).time_left() == "0:10 to 1e-07 at this rate"
    told = history(130, 1e-12, falling).time_left()  # 40 rounds are two powers of ten
    assert told == "0:08 left, residual 3e-07 by then at this rate"
    assert history(130, None, falling).time_left() == "0:08 left at this rate"
    slower = np.r_[falling, falling[-1] * 10 ** (-0.05 * np.arange(1, 11))]
    assert history(10_000, 1e-7, slower).time_left() == "1:20 to 1e-07 at this rate"  # of late


def test_nothing_is_promised_that_cannot_be_known():
    assert history(1000, 1e-6, [1.0, 0.5, 0.2]).time_left() == ""  # too little was seen
    rising = history(190, 1e-6, 2.0 ** np.arange(10)).time_left()
    assert rising == "0:20 left, residual no less by then at this rate"
    assert history(190, 1e-6, [np.nan] * 10).time_left() == "0:20 left at this rate"
    assert [clock(s) for s in (7.4, 754, 3723)] == ["0:07", "12:34", "1:02:03"]


def test_a_terminal_shows_residual_and_time_left(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("COLUMNS", "120")
    with Progress(100, "pdmm", True, tol=1e-9) as bar:
        for k in range(9):
            bar.update(10 * k, 10.0**-k)
    told = capsys.readouterr().err
    assert "residual 1.0e-08" in told
    assert "to 1e-09 at this rate" in told
    with Progress(100, "pdmm", "plot") as bar:  # no notebook, no terminal: nothing
        bar.update(10, 1.0)
    assert capsys.readouterr().err == ""


class Shell:
    """What IPython's display is given in a notebook."""

    kernel = True

    def __init__(self):
        self.shown = []

    def display(self, data, raw, display_id):
        assert raw
        assert display_id
        self.shown.append(data["text/html"])
        return self

    def update(self, data, raw):
        assert raw
        self.shown.append(data["text/html"])


@pytest.fixture
def shell(monkeypatch):
    made = Shell()
    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython, display.display = lambda: made, made.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(notebook, "LEAST_APART", 0.0)
    return made


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    shards = [(rng.standard_normal((6, 3)), rng.standard_normal(6)) for _ in range(4)]
    return ew.Problem(shards, loss=ew.Squared(ridge=0.1)), ew.Graph.ring(4)


def test_a_notebook_has_a_bar_that_goes_when_the_run_is_over(shell, small):
    ew.solve(*small, "pd", rounds=40, record_every=10)
    *during, last = shell.shown
    assert [part.split('value="')[1].split('"')[0] for part in during] == [
        "0",
        "10",
        "20",
        "30",
        "40",
    ]
    assert all("<progress" in part and "residual" in part and "<svg" not in part for part in during)
    assert last == ""
    shell.shown.clear()
    ew.solve(*small, "pd", rounds=40, progress=False)
    assert shell.shown == []


def test_a_notebook_has_a_curve_that_stays(shell, small):
    result = ew.solve(*small, "pd", rounds=40, record_every=10, tol=1e-30, progress="plot")
    grown = [
        part.count(",")
        for part in (p.partition("polyline")[2].partition(">")[0] for p in shell.shown)
    ]
    assert grown == [0, 2, 3, 4, 5, 5]  # a point is no line yet; the last picture is of all
    assert f"{result.trace['residual'][-1]:.1e}" in shell.shown[-1]
    assert "stroke-dasharray" in shell.shown[-1]  # the goal
    assert "at this rate" not in shell.shown[-1]


def test_a_display_that_fails_is_no_harm_to_the_run(shell, small, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython.display"], "display", lambda *_, **__: 1 / 0)
    assert ew.solve(*small, "pd", rounds=20, progress="plot").trace["rounds"][-1] == 20


def test_other_words_are_refused(small):
    with pytest.raises(MethodError, match='give True, False, "plot" or None'):
        ew.solve(*small, "pd", rounds=20, progress="curve")

"""Comparisons against plain runs of `solve`, and what they print."""

import io
from functools import cache

import numpy as np
import pytest
from drawings import legend, lines
from numpy.testing import assert_allclose
from rich.console import Console

import edgewise as ew
from edgewise.errors import MethodError, UnknownName
from edgewise.plotting.axes import LABELS
from edgewise.study.compare import ALL_UNITS, Comparison
from edgewise.study.curves import Curve

V, K, N = 5, 12, 6
GRAPH = ew.Graph.random(V, 7, seed=1)
LEVELS = (1e-2, 1e-5)


@cache
def problem(penalised=False):
    X, y = ew.data.epsilon_like(rows=V * K, features=N, seed=2)
    penalty = ew.L1(1e-2) if penalised else None
    return ew.Problem(ew.split(X, y, nodes=V), loss=ew.Logistic(ridge=0.05), penalty=penalty)


@cache
def plain():
    return ew.compare(
        problem(),
        GRAPH,
        ["saga-pd", "nids", "gt-saga"],
        2000,
        tune=False,
        accuracies=LEVELS,
        seeds=3,
        show=False,
    )


@pytest.mark.parametrize("name", ["saga-pd", "nids", "gt-saga"])
def test_costs_are_those_of_plain_runs(name):
    seeds = 1 if name == "nids" else 3
    assert len(plain().runs[name]) == seeds
    for unit in ("oracle_calls", "rounds", "bytes_sent"):
        for level in LEVELS:
            traces = [run(name, seed) for seed in range(1, seeds + 1)]
            there = [np.flatnonzero(t["bregman"] <= level * t["bregman"][0])[0] for t in traces]
            costs = [t[unit][at] for t, at in zip(traces, there, strict=True)]
            a_round = max(t[unit][2] - t[unit][1] for t in traces)  # looks fall in between
            expected = np.quantile(costs, [0.25, 0.5, 0.75], method="inverted_cdf")
            assert_allclose(plain().cost(name, level, unit), expected, rtol=0.1, atol=a_round)


@cache
def run(name, seed):
    return ew.solve(
        problem(), GRAPH, name, rounds=1500, record_every=1, seed=seed, oracle_budget=2000
    ).trace


def test_tuned_methods_are_no_worse_on_the_seed_that_they_were_tuned_with():
    found = ew.compare(problem(True), GRAPH, ["pg-extra"], 3000, accuracies=LEVELS, show=False)
    rule = ew.compare(
        problem(True), GRAPH, ["pg-extra"], 3000, accuracies=LEVELS, tune=False, show=False
    )
    assert found.cost("pg-extra", 1e-5)[1] <= rule.cost("pg-extra", 1e-5)[1] * 1.001
    assert set(found.tunings) == {"pg-extra"}
    assert rule.tunings == {}


def test_those_that_cannot_take_the_problem_say_why_and_the_others_run():
    found = ew.compare(problem(True), GRAPH, ["extra", "pd"], 200, tune=False, show=False)
    assert list(found.runs) == ["pd"]
    assert "cannot handle a penalty" in found.refused["extra"]
    assert "extra" in text(found.table())


def text(table):
    console = Console(width=120, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def made():
    """Two methods, four seeds of one, whose costs are known."""

    def curve(scale):
        costs = {u: scale * np.array([0.0, 10, 20]) for u in ("oracle_calls", "rounds", "seconds")}
        costs["bytes_sent"] = 1000 * costs["rounds"] / scale  # all the same
        return Curve(costs, np.array([1.0, 1e-2, 1e-4]))

    runs = {"a": [curve(s) for s in (1, 2, 3, 4)], "b": [curve(1.5)]}
    return Comparison(runs, {}, {}, (1e-2, 1e-4, 1e-6), "rounds", 100.0)


def test_medians_quartiles_and_the_best():
    found = made()
    assert_allclose(found.cost("a", 1e-4), [20, 40, 60])
    assert found.best(1e-4) == "b"
    assert found.best(1e-6) is None
    assert found.best(1e-4, "bytes_sent") == "a"
    assert found.cost("a", 1e-6)[1] == np.inf
    assert list(found.to_pandas().columns) == [
        "method",
        "accuracy",
        "unit",
        "lower",
        "median",
        "upper",
    ]
    assert len(found.to_pandas()) == 2 * 3 * 4


def test_tables_mark_the_best_whoever_it_is():
    lines = made().markdown("rounds").splitlines()
    assert lines[0] == "| method | 1e-02 | 1e-04 | 1e-06 |"
    assert lines[2] == "| `b` | **15** | **30** | - |"
    assert lines[3] == "| `a` | 20 (10 to 30) | 40 (20 to 60) | - |"
    assert "10k" in made().markdown("bytes_sent")
    assert "40 (20 to 60)" in text(made().table())


def test_tables_have_the_seconds_and_break_no_header():
    shown = text(made().table("bytes_sent"))
    assert "seconds of compute below" in shown
    row = next(line for line in shown.splitlines() if "40 s" in line)  # the median of a's
    assert "20 s" in row
    assert "seconds of compute below" not in text(made().table("seconds"))
    narrow = Console(width=46, file=io.StringIO())
    narrow.print(made().table("rounds"))
    lines = narrow.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 46
    assert all(word in lines[3] for word in ("method", "1e-02", "1e-04", "1e-06"))


def test_a_method_that_diverged_is_said_to_have():
    costs = {u: np.array([0.0, 10]) for u in ALL_UNITS}
    worse, stuck = Curve(costs, np.array([1.0, 3.0])), Curve(costs, np.array([1.0, 0.5]))
    found = Comparison({"a": [worse], "b": [stuck]}, {}, {}, (1e-2,), "rounds", 10.0)
    assert found.markdown().splitlines()[2:] == ["| `b` | - |", "| `a` | diverged |"]
    assert "diverged: no nearer" in text(found.table())


def test_one_that_diverges_is_no_obstacle():
    methods = {"long": ew.EXTRA(ew.Full(), eta=1e3), "pd": "pd"}
    found = ew.compare(problem(), GRAPH, methods, 1200, tune=False, accuracies=LEVELS, show=False)
    assert found.cost("long", 1e-2)[1] == np.inf
    assert found.best(1e-2) == "pd"


def test_it_prints_and_plots(tmp_path, capsys, drawn):
    found = ew.compare(problem(), GRAPH, ["pd"], 300, tune=False, accuracies=(0.5,), seeds=1)
    assert "oracle calls per node" in capsys.readouterr().out
    found.plot(path=tmp_path / "all.png")
    labels = [ax.get_xlabel() for ax in drawn["all.png"].axes if ax.lines]
    assert labels == [LABELS[unit] for unit in ALL_UNITS]
    panels = [ax for ax in drawn["all.png"].axes if ax.lines]
    scales = {(ax.get_xscale(), ax.get_yscale()) for ax in panels}
    assert scales == {("linear", "log")}  # where linear convergence is a straight line
    assert found.plot("rounds", log_x=True).flat[0].get_xscale() == "log"
    assert [list(lines(ax)) for ax in drawn["all.png"].axes if ax.lines] == [["pd"]] * len(labels)
    plain().plot("bytes_sent", path=tmp_path / "one.png")
    (ax,) = drawn["one.png"].axes
    assert list(lines(ax)) == legend(ax) == list(plain().runs)
    for method, curves in plain().runs.items():
        costs, heights = lines(ax)[method]
        assert costs[-1] == pytest.approx(max(c.costs["bytes_sent"][-1] for c in curves))
        ends = [c.value_at("bytes_sent", costs[-1]) for c in curves]
        assert min(ends) <= heights[-1] <= max(ends)
    with pytest.raises(UnknownName, match="bytes_sent"):
        found.plot("bytes")


def test_what_cannot_work_is_refused():
    with pytest.raises(MethodError, match="two methods are called"):
        ew.compare(problem(), GRAPH, [ew.PrimalDual(ew.SAGA()), ew.PrimalDual(ew.SAGA())], 10)
    with pytest.raises(MethodError, match="accuracies"):
        ew.compare(problem(), GRAPH, ["pd"], 10, accuracies=(2.0,))
    with pytest.raises(MethodError, match="seeds"):
        ew.compare(problem(), GRAPH, ["pd"], 10, seeds=0)
    with pytest.raises(UnknownName, match="did you mean"):
        ew.compare(problem(), GRAPH, ["saga-dp"], 10)

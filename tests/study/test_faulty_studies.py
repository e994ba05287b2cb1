"""Tuning and comparing under faults, against single runs of `solve` that meet the same."""

import io
import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.console import Console

import edgewise as ew
from edgewise.errors import FaultWarning, GraphError, MethodError
from edgewise.methods.catalogue import make
from edgewise.study.curves import Curve
from edgewise.study.runs import STEPS
from edgewise.study.tune import Search

V, N = 5, 4
GRAPH = ew.Graph.random(V, 7, seed=1)
STORM = ew.Faults(drop=0.2, awake=0.5, seed=7)
LEVELS = (1e-2, 1e-4)
UNITS = ("oracle_calls", "rounds", "bytes_sent")


@cache
def problem():
    X, y = ew.data.epsilon_like(rows=60, features=N, seed=2)
    return ew.Problem(ew.split(X, y, nodes=V), loss=ew.Logistic(ridge=0.1))


@cache
def compared():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FaultWarning)  # the table says it
        return ew.compare(
            problem(),
            GRAPH,
            ["pdmm", "saga-pd", "nids"],
            200,
            "rounds",
            tune=False,
            accuracies=LEVELS,
            seeds=2,
            faults=STORM,
            show=False,
        )


@pytest.mark.parametrize("name", ["saga-pd", "nids"])
def test_every_look_is_that_of_a_run_under_the_same_faults(name):
    curves = compared().runs[name]
    assert len(curves) == 2  # of nids too: faults are random
    for k, curve in enumerate(curves, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FaultWarning)
            trace = ew.solve(
                problem(),
                GRAPH,
                name,
                rounds=int(curve.costs["rounds"][-1]),
                record_every=1,
                seed=k,
                faults=replace(STORM, seed=STORM.seed + k),
            ).trace
        at = curve.costs["rounds"].astype(int)
        for unit in UNITS:
            np.testing.assert_array_equal(curve.costs[unit], trace[unit][at])
        assert_allclose(curve.values, (trace["bregman"] / trace["bregman"][0])[at], rtol=1e-9)
        assert curve.costs["bytes_sent"][-1] < 0.7 * at[-1] * 2 * GRAPH.edge_count * N * 8
    assert not np.array_equal(curves[0].values[:5], curves[1].values[:5])


def test_those_that_do_not_heal_run_and_are_shown_to_break():
    found = compared()
    assert list(found.harmed) == ["nids"]
    assert "does not heal" in found.harmed["nids"]
    assert found.best(1e-4) == "pdmm"
    assert np.isfinite(found.cost("saga-pd", 1e-2)).all()
    assert np.isinf(found.cost("nids", 1e-2)).all()
    assert found.ended("nids")[1] > 0.01
    assert found.ended("pdmm")[1] <= 1e-4
    head, _, *lines = found.markdown().splitlines()
    assert head == "| method | 1e-02 | 1e-04 | at the end |"
    (row,) = (line for line in lines if "nids" in line)
    assert row.startswith("| `nids` * | -") or row.startswith("| `nids` * | diverged")
    console = Console(width=100, file=io.StringIO())
    console.print(found.table())
    assert "nids *" in console.file.getvalue()
    assert "*: does not heal" in console.file.getvalue()


def test_a_level_counts_from_where_it_is_kept():
    costs = {"rounds": np.arange(6.0)}
    values = np.array([1.0, 1e-3, 0.5, 1e-2, 1e-4, 1e-5])
    assert Curve(costs, values).cost_to("rounds", 1e-2) < 1
    assert Curve(costs, values, for_good=True).cost_to("rounds", 1e-2) == pytest.approx(3)
    assert Curve(costs, values, for_good=True).cost_to("rounds", 1e-5) == pytest.approx(5)
    back = np.array([1.0, 1e-3, 0.5])
    assert Curve(costs, back, for_good=True).cost_to("rounds", 1e-2) == np.inf


def test_no_run_ends_before_the_last_event():
    wiped = ew.Faults(wipe=(2, 150))
    found = ew.compare(
        problem(), GRAPH, ["pdmm"], 300, "rounds", tune=False, accuracies=LEVELS, faults=wiped
    )
    (curve,) = found.runs["pdmm"]  # nothing is random
    calm = ew.compare(problem(), GRAPH, ["pdmm"], 300, "rounds", tune=False, accuracies=LEVELS)
    assert calm.runs["pdmm"][0].costs["rounds"][-1] < 100
    rounds, values = curve.costs["rounds"], curve.values
    assert values[rounds <= 150][-1] < 1e-6 < values[rounds > 150][0]
    assert found.cost("pdmm", 1e-2)[1] > 150


@pytest.mark.parametrize("name", ["pdmm", "saga-pd"])
def test_cells_are_tuned_under_the_faults(name):
    factors = (0.5, 2.0)
    found = ew.tune(
        problem(), GRAPH, name, 60, "rounds", target=1e-30, factors=factors, seed=3, faults=STORM
    )
    cells = list(zip(*(found.surface[k] for k in found.factors), strict=True))
    search = Search(problem(), GRAPH, make(name).healing(), None)
    assert found.method.heals
    for cell, value in zip(cells, found.surface["divergence"], strict=True):
        seeds = {"seed": 3, "faults": STORM}
        run = ew.solve(problem(), GRAPH, search.cell(cell), rounds=60, record_every=60, **seeds)
        assert_allclose(value, run.trace["bregman"][-1] / run.trace["bregman"][0], rtol=1e-6)
    assert tuple(found.factors.values()) == cells[int(np.argmin(found.surface["divergence"]))]


def test_few_programs_are_compiled_for_all_the_stretches():
    from edgewise.backend import programs
    from edgewise.engines.faulty_executor import run_faulty_rounds

    programs.COMPILED.clear()
    ew.tune(problem(), GRAPH, "pdmm", 60, "rounds", factors=(0.5, 1.0), faults=STORM)
    assert sum(key[0] is run_faulty_rounds for key in programs.COMPILED) <= len(STEPS)


def test_what_cannot_work_is_refused():
    with pytest.warns(FaultWarning, match="does not heal"):
        ew.tune(problem(), GRAPH, "nids", 5, "rounds", factors=(1.0,), faults=STORM)
    for study in (
        lambda **k: ew.compare(problem(), GRAPH, ["pd"], 10, show=False, **k),
        lambda **k: ew.tune(problem(), GRAPH, "pd", 10, **k),
    ):
        with pytest.raises(GraphError, match="no node 9"):
            study(faults=ew.Faults(wipe=(9, 3)))
        with pytest.raises(MethodError, match=r"give edgewise\.Faults"):
            study(faults=0.2)
        with pytest.raises(MethodError, match=r"give edgewise\.MPI\(\)"):
            study(engine="mpi")
        with pytest.raises(MethodError, match="leave one of them out"):
            study(engine=Ranks(), faults=STORM)


class Ranks(ew.MPI):
    """As far as it is asked before anything is run."""

    def __init__(self):
        pass

    def together(self):
        return nullcontext()

"""Couplings in a network with faults: the optimum all the same, or that of those present."""

import numpy as np
import pytest
from coupled_cases import case, solve_by_cvxpy
from example_files import EXAMPLES, example

import edgewise as ew

FAULTS = {
    "loss": {"drop": 0.2},
    "sleep": {"awake": 0.6},
    "delay": {"delay": 3},
    "wipe": {"wipe": (1, 25)},
    "all": {"drop": 0.2, "awake": 0.7, "delay": 2, "wipe": (1, 25)},
}
NAMES = ["equalities", "inequalities", "lasso"]
LEAVES = {"equalities": 2, "inequalities": 0, "lasso": 4}  # the rest is one graph still


def solve(name, faults, method="auto", **options):
    made = case(name)
    options = {"reference": False, "tol": 1e-9, "rounds": 20_000, **options}
    return ew.solve(
        made.problem(), made.graph(), method, between=made.between(), faults=faults, **options
    )


def check(name, result, present=None):
    best = solve_by_cvxpy(case(name), present)
    assert result.converged, result.message
    for x, y in zip(result.X, best.X, strict=True):
        if y is not None:
            assert np.abs(x - y).max() < 1e-6


def few(first, second, kept):
    """Pairs, of which all but these are for `make test-all`."""
    every = [(a, b) for a in first for b in second]
    return [
        pair if pair in kept else pytest.param(*pair, marks=pytest.mark.exhaustive)
        for pair in every
    ]


SOME = [("loss", "inequalities"), ("wipe", "lasso"), ("all", "equalities")]


@pytest.mark.parametrize(("kind", "name"), few(FAULTS, NAMES, SOME))
def test_the_optimum_all_the_same(kind, name):
    check(name, solve(name, ew.Faults(**FAULTS[kind])))


@pytest.mark.parametrize(
    ("method", "name"), few(["pd", "d-admm"], NAMES, [("pd", "lasso"), ("d-admm", "inequalities")])
)
def test_by_name(method, name):
    check(name, solve(name, ew.Faults(**FAULTS["all"]), method, rounds=50_000))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", ["pdmm", "saga-pd", "svr-pd-es", "lsvr-pd"])
def test_by_other_names(method, name):
    test_by_name(method, name)


@pytest.mark.parametrize("name", NAMES)
def test_who_has_left_is_asked_nothing(name):
    gone = LEAVES[name]
    present = [i for i in range(len(case(name).nodes)) if i != gone]
    whole, rest = solve_by_cvxpy(case(name)), solve_by_cvxpy(case(name), present)
    assert max(np.abs(whole.X[i] - rest.X[i]).max() for i in present) > 1e-3, "makes no odds"
    check(name, solve(name, ew.Faults(leave=(gone, 20), drop=0.1)), present)


@pytest.mark.parametrize("name", NAMES)
def test_who_comes_late_is_one_of_them(name):
    check(name, solve(name, ew.Faults(join=(LEAVES[name], 20), drop=0.1)))


def test_leaving_and_coming_back():
    who = LEAVES["equalities"]
    check("equalities", solve("equalities", ew.Faults(leave=(who, 30), join=(who, 60))))


def test_who_leaves_may_take_the_graph_apart():
    """Of consensus that is refused: there is one model. Here each part has its own optimum."""
    problem = ew.Problem(cost=[ew.Quadratic(1.0, np.full(2, -k)) for k in (1.0, 2.0, 3.0)])
    result = ew.solve(
        problem,
        ew.Graph.path(3),
        between=ew.Coupling(),
        faults=ew.Faults(leave=(1, 20)),
        tol=1e-9,
    )
    assert result.converged, result.message
    assert np.allclose(result.X[0], 1)
    assert np.allclose(result.X[2], 3)


# --- optimal power flow, as the issue of couplings has it: untuned, and a fifth of messages lost --


@pytest.mark.parametrize("drop", [0.0, 0.2])
def test_power_flow_of_30_buses(drop, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    module = example("power_flow")
    network = module.Network(module.limited(module.CASE30))
    between = network.between()
    faults = ew.Faults(drop=drop) if drop else None
    result = ew.solve(
        network.problem(), network.graph, between=between, faults=faults, tol=1e-7, rounds=2000
    )
    assert result.converged, result.message
    found, exact = network.read(result, between), module.centralised(network.case)
    assert found["cost"] == pytest.approx(exact["cost"], rel=1e-6)
    for what in ("output", "flow"):
        assert np.abs(found[what] - exact[what]).max() < 1e-4  # MW, of which a unit is 100

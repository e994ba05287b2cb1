"""Sweeps against single runs, and the rule that picks steps against trying each cell alone."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.backend.pytree import pytree
from edgewise.engines.simulator import Simulator
from edgewise.errors import DivergenceWarning, MethodError, UnknownName
from edgewise.gradients import Full
from edgewise.methods.catalogue import make
from edgewise.running.measures import target_of
from edgewise.study.curves import Curve
from edgewise.study.sweep import Sweep
from edgewise.study.tune import Search

V, K, N = 5, 12, 6
GRAPH = ew.Graph.random(V, 7, seed=1)
DOUBLE = np.dtype("float64")


@cache
def problem(penalised=False):
    X, y = ew.data.epsilon_like(rows=V * K, features=N, seed=2)
    shards = ew.split(X, y, nodes=V, how="label", alpha=1.0, seed=0)
    penalty = ew.L1(1e-2) if penalised else None
    return ew.Problem(shards, loss=ew.Logistic(ridge=0.05), penalty=penalty)


@cache
def star(penalised=False):
    return ew.reference(problem(penalised))


# --- sweeps ---------------------------------------------------------------------------------------

SWEPT = {
    "saga-pd": False,
    "svr-pd": False,
    "svr-pd-es": True,
    "lsvr-pd": False,
    "asvr-pd": False,
    "sk-pd": False,
    "edge form": False,
    "dgd": False,
    "d2": False,
    "pg-extra": False,
    "nids": False,
    "gt-svrg": False,
    "network-svrg": False,
    "pmgt-lsvrg": False,
    "edge": False,
    "sdcs": False,
    "pdmm": True,
    "d-admm": True,
}


def versions(name):
    """Three cells of a method, with other steps each."""
    method = ew.PrimalDual(ew.SAGA(), form="edge") if name == "edge form" else make(name)
    search = Search(problem(), GRAPH, method, None)
    return [search.cell((f,) * len(search.names)) for f in (0.5, 1.0, 1.5)]


# a table, a branch, momentum, messages along edges, several phases; more of a kind is exhaustive
QUICKLY_SWEPT = {"saga-pd", "svr-pd-es", "asvr-pd", "edge form", "pmgt-lsvrg"}


@pytest.mark.quick_if(lambda name: name in QUICKLY_SWEPT)
@pytest.mark.parametrize("name", SWEPT)
def test_cells_are_the_runs_that_they_stand_for(name):
    cells, rounds, seed = versions(name), 24, 3
    X0 = np.random.default_rng(0).standard_normal((V, N))
    with jax.enable_x64(True):
        sweep = Sweep(problem(), GRAPH, cells, seed, DOUBLE)
        sweep.executor.steps_at_once = 7  # stretches of their own random bits
        sweep.start(X0)
        assert sweep.form.branching is SWEPT[name]
        sweep.advance(rounds // sweep.phases * sweep.phases)
        assert sweep.round == rounds // sweep.phases * sweep.phases
        calls, apart = sweep.calls(), []
        for k, cell in enumerate(cells):
            single = Simulator(problem(), GRAPH, cell, seed, DOUBLE)
            carry, _ = single.advance(single.start(X0, None), 0, sweep.round)
            own = [a[k] if o else a for a, o in zip(*shared(sweep), strict=True)]
            state = jax.tree.unflatten(sweep.form.carry_tree, own)[0]
            X = np.asarray(single.method.answer(carry[0]))
            assert_allclose(single.method.answer(state), X, atol=1e-12)
            assert calls[k] == np.asarray(carry[0].memory.calls).mean()
            apart.append(X)
    assert np.abs(apart[0] - apart[1]).max() > 1e-6, "the cells are all the same"


def shared(sweep):
    return jax.tree.leaves(sweep.carry), sweep.form.carry_own


def test_what_cells_have_in_common_is_computed_once():
    with jax.enable_x64(True):
        for name in ("saga-pd", "lsvr-pd", "svr-pd", "pd"):
            sweep = Sweep(problem(), GRAPH, versions(name), 0, DOUBLE)
            sweep.start(np.zeros((V, N)))
            sweep.advance(5 * sweep.phases)
            assert sweep.carry[0].memory.calls.shape == (V,), name
            assert sweep.carry[0].X.shape == (3, V, N), name


def test_divergences_are_those_of_a_trace():
    cells = versions("saga-pd")
    with jax.enable_x64(True):
        sweep = Sweep(problem(), GRAPH, cells, 0, DOUBLE)
        sweep.start(np.zeros((V, N)))
        sweep.advance(40 * sweep.phases)
        got = sweep.divergences(target_of(star()))
    for value, cell in zip(got, cells, strict=True):
        run = ew.solve(problem(), GRAPH, cell, rounds=40, record_every=40, reference=star())
        assert_allclose(value, run.trace["bregman"][-1], rtol=1e-9)


# --- curves ---------------------------------------------------------------------------------------


def test_costs_between_looks_are_interpolated():
    curve = Curve({"rounds": np.array([0.0, 10, 20])}, np.array([1.0, 1e-2, 1e-4]))
    assert curve.cost_to("rounds", 1e-2) == pytest.approx(10)
    assert curve.cost_to("rounds", 1e-3) == pytest.approx(15)
    assert curve.cost_to("rounds", 1e-5) == np.inf
    assert curve.cost_to("rounds", 1.0) == 0
    assert curve.value_at("rounds", 15) == pytest.approx(1e-3)
    flat = Curve({"rounds": np.array([0.0, 10])}, np.array([1.0, 0.0]))
    assert 0 < flat.cost_to("rounds", 1e-9) < 1
    lost = Curve({"rounds": np.array([0.0, 10])}, np.array([1.0, np.inf]))
    assert lost.value_at("rounds", 10) == np.inf
    assert lost.cost_to("rounds", 0.5) == np.inf


# --- the rule -------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalised", [False, True])
def test_best_is_what_trying_each_cell_alone_finds(penalised):
    budget, factors = 300, (0.25, 1.0, 4.0)
    found = ew.tune(
        problem(penalised),
        GRAPH,
        "saga-pd",
        budget,
        factors=factors,
        target=1e-30,
        reference=star(penalised),
    )
    alone = {}
    for eta, rho in zip(found.surface["eta"], found.surface["rho"], strict=True):
        search = Search(problem(penalised), GRAPH, make("saga-pd"), None)
        run = ew.solve(
            problem(penalised),
            GRAPH,
            search.cell((eta, rho)),
            rounds=budget,
            oracle_budget=budget,
            record_every=1,
            reference=star(penalised),
        )
        alone[eta, rho] = run.trace["bregman"][-1] / run.trace["bregman"][0]
    surface = dict(
        zip(
            zip(found.surface["eta"], found.surface["rho"], strict=True),
            found.surface["divergence"],
            strict=True,
        )
    )
    for cell, value in alone.items():
        if value < 1e3:
            assert_allclose(surface[cell], value, rtol=1e-6)
    assert tuple(found.factors.values()) == min(alone, key=alone.get)
    assert len(alone) >= 9


def test_the_first_to_the_target_wins():
    found = ew.tune(problem(), GRAPH, "pd", 300, "rounds", target=1e-4, reference=star())
    costs = found.surface["cost"]
    assert np.isfinite(costs).any()
    at = [tuple(f) for f in zip(found.surface["eta"], found.surface["rho"], strict=True)]
    assert at[int(np.argmin(costs))] == tuple(found.factors.values())
    run = ew.solve(
        problem(), GRAPH, found.method, rounds=300, record_every=1, reference=star(), seed=0
    )
    D = run.trace["bregman"] / run.trace["bregman"][0]
    assert abs(np.flatnonzero(D <= 1e-4)[0] - costs.min()) < 0.15 * costs.min() + 1


def test_a_grid_follows_a_best_cell_at_its_edge():
    near = ew.tune(problem(), GRAPH, "nids", 40, "rounds", factors=(0.01, 0.02), reference=star())
    assert near.factors["eta"] > 0.02
    assert near.surface["eta"].min() == 0.01
    down = ew.tune(problem(), GRAPH, "extra", 60, "rounds", factors=(8.0, 16.0), reference=star())
    assert down.factors["eta"] < 8
    assert down.surface["divergence"].min() < 1


def test_diverging_cells_are_told_and_never_best():
    found = ew.tune(problem(), GRAPH, "extra", 80, "rounds", factors=(1.0, 50.0), reference=star())
    assert found.diverged >= 1
    assert found.surface["divergence"].max() > 1
    assert found.factors["eta"] <= 1
    assert "diverged" in found.message
    with pytest.warns(DivergenceWarning, match="all .* cells diverged"):
        ew.tune(problem(), GRAPH, "extra", 60, "rounds", factors=(1e6, 2e6), reference=star())


def test_budgets_in_bytes_and_in_rounds_are_the_same_thing():
    a_round = 2 * GRAPH.edge_count * N * 8
    options = {"target": 1e-30, "reference": star(), "factors": (0.5, 1.0)}
    rounds = ew.tune(problem(), GRAPH, "nids", 30, "rounds", **options)
    sent = ew.tune(problem(), GRAPH, "nids", 30 * a_round, "bytes_sent", **options)
    assert np.array_equal(rounds.surface["divergence"], sent.surface["divergence"])


def test_given_steps_are_where_the_grid_begins():
    method = replace(make("extra"), eta=0.123)
    found = ew.tune(problem(), GRAPH, method, 30, "rounds", factors=(1.0,), reference=star())
    assert_allclose(found.steps["eta"], 0.123)
    assert found.factors == {"eta": 1.0}


def test_results_can_be_used_and_looked_at(tmp_path, drawn):
    found = ew.tune(problem(True), GRAPH, "saga-pd", 200, factors=(0.5, 1, 2), progress=False)
    run = ew.solve(problem(True), GRAPH, found.method, rounds=50, reference=False)
    assert_allclose(np.asarray(run.method.eta)[:, 0], found.steps["eta"])
    assert len(found.to_pandas()) == len(found.surface["cost"]) >= 9
    for name, tuned in (("two", found), ("one", ew.tune(problem(), GRAPH, "nids", 100))):
        tuned.plot(path=tmp_path / f"{name}.png")
        ax, best = drawn[f"{name}.png"].axes[0], list(tuned.factors.values())
        assert ax.get_title() == tuned.message
        if name == "two":  # a map of the grid, and a cross on the best
            (grid,) = ax.collections
            assert np.isfinite(grid.get_array()).sum() == (tuned.surface["divergence"] <= 1).sum()
            assert_allclose(np.ravel(ax.lines[0].get_data()), np.log2(best))
        else:
            assert_allclose(ax.lines[0].get_xdata(), tuned.surface["eta"])
            assert_allclose(ax.lines[1].get_xdata(), best[0])


def test_what_cannot_work_is_refused():
    for wrong in (-1, 0, np.inf, "many"):
        with pytest.raises(MethodError, match="budget"):
            ew.tune(problem(), GRAPH, "pd", wrong)
    with pytest.raises(UnknownName, match="oracle_calls"):
        ew.tune(problem(), GRAPH, "pd", 10, "calls")
    for factors in ((), (0, 1), "big", (1, np.nan)):
        with pytest.raises(MethodError, match="factors"):
            ew.tune(problem(), GRAPH, "pd", 10, factors=factors)
    with pytest.raises(MethodError, match="cannot handle a penalty: use saga-pd or pg-extra"):
        ew.tune(problem(True), GRAPH, "extra", 10)


@pytree()
class Free(Full):
    """Gradients that nobody counts."""

    def __call__(self, p, X, memory, random_bits):
        return super().__call__(p, X, memory, random_bits)[0], memory


def test_a_budget_that_is_never_spent_ends():
    method = ew.PrimalDual(Free())
    options = {"factors": (1.0,), "reference": star(), "target": 1e-6}
    with pytest.raises(MethodError, match=r"spent no oracle_calls in 1,000 .* per=\"rounds\""):
        ew.tune(problem(), GRAPH, method, 10, **options)
    assert "1e-06 after" in ew.tune(problem(), GRAPH, method, 500, "rounds", **options).message

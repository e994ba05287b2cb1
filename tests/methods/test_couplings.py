"""Couplings under loss, by other methods; refusals, and what has no answer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coupled_cases import case

import edgewise as ew
from edgewise.engines.wires import links_of
from edgewise.errors import EdgewiseError
from edgewise.methods.catalogue import make, takes_couplings
from edgewise.methods.edge_matching import Window, matched


def solve(made, method="auto", **options):
    options = {"tol": 1e-9, "rounds": 20_000, **options}
    return ew.solve(made.problem(), made.graph(), method, between=made.between(), **options)


def apart(X, Y):
    return max(np.abs(a - b).max() for a, b in zip(X, Y, strict=True))


@pytest.mark.parametrize("name", ["both", "lasso"])
def test_lost_messages_leave_the_answer(name):
    made = case(name)
    result = solve(made, faults=ew.Faults(drop=0.2, awake=0.7))
    assert result.converged, result.message
    assert apart(result.X, made.optimum.X) < 1e-6


TRIED = {"pd", "saga-pd", "svr-pd-es", "lsvr-pd", "pdmm", "d-admm"}  # test_coupled_optimality.py


@pytest.mark.parametrize("method", ["svr-pd", "sag-pd", "page-pd", "sarah-pd", "sk-pd", "sk-pd-fd"])
def test_other_methods_reach_it(method):
    made = case("shared")
    result = solve(made, method, tol=1e-7 if method == "sk-pd-fd" else 1e-9, rounds=100_000)
    assert result.converged, result.message
    assert apart(result.X, made.optimum.X) < 1e-6


def two(between, cost=None, **options):
    cost = cost or [ew.Quadratic([1.0, 1.0]), ew.Quadratic([1.0])]
    return ew.solve(ew.Problem(cost=cost), ew.Graph.path(2), between=between, **options)


@pytest.mark.parametrize(
    ("between", "words"),
    [
        (ew.Coupling(), "node 1 has 1 unknowns"),
        (ew.Coupling([[1.0]], [[1.0]]), "edge (0, 1): A has 1 columns, and node 0 has 2"),
        ({}, "edge (0, 1) has no coupling"),
        (ew.Coupling([[0.0, 0.0]], [[0.0]], c=1.0), "no two models satisfy"),
        ("equal", "give Coupling"),
    ],
)
def test_what_does_not_fit_is_refused(between, words):
    with pytest.raises(EdgewiseError) as refused:
        two(between)
    assert words in str(refused.value)


def test_every_method_that_says_it_couples_is_tried():
    declared = {name for name in ew.list_methods() if takes_couplings(make(name))}
    assert list(ew.list_methods(couples=True)) == [n for n in ew.list_methods() if n in declared]
    tried = TRIED | {"svr-pd", "sag-pd", "page-pd", "sarah-pd", "sk-pd", "sk-pd-fd"}
    assert declared - tried == {"spd"}  # which is never exact
    made = case("shared")
    near = solve(made, "spd", rounds=3000)
    assert apart(near.X, made.optimum.X) < 0.3
    assert not near.converged
    assert "sampled and stay noisy" in near.message


def test_a_method_without_such_a_form_is_refused():
    with pytest.raises(EdgewiseError, match="extra has no form for couplings"):
        two(ew.Coupling([[1.0, 0.0]], [[1.0]]), method="extra")


@pytest.mark.parametrize("unit", [1.0, 1e-4])
def test_what_nothing_satisfies_never_converges(unit):
    problem = ew.Problem(cost=[ew.Quadratic([1.0])] * 2, penalty=[ew.Box(0, unit)] * 2)
    between = ew.Coupling([[1.0]], [[1.0]], c=5.0 * unit)
    result = ew.solve(problem, ew.Graph.path(2), between=between, tol=1e-6, rounds=500)
    assert not result.converged
    assert "no point satisfies the couplings at (0, 1)" in result.message


def test_a_quadratic_must_be_convex():
    with pytest.raises(EdgewiseError, match="not convex"):
        ew.Quadratic(np.diag([1.0, -1.0]))


def test_edges_that_disagree_are_named_and_others_are_not():
    """Around the triangle 0, 1, 2 differences add up to 3 and not to zero; 2-3 has no part in it,
    and a price none anywhere."""
    problem = ew.Problem(cost=[ew.Quadratic(1.0, np.zeros(1))] * 5)
    graph = ew.Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    tie = ew.Coupling(c=1.0)
    between = {(0, 1): tie, (1, 2): tie, (2, 0): tie, (2, 3): tie, (3, 4): ew.NetworkLasso(0.1)}
    result = ew.solve(problem, graph, between=between, rounds=200)
    assert not result.converged
    assert "no point satisfies the couplings at (0, 1), (0, 2), (1, 2) together" in result.message


def test_dense_couplings_of_nodes_with_data_stay_where_they_arrive():
    """Models were thrown far away, after hundreds of rounds, when minima were inexact."""
    rng = np.random.default_rng(0)
    graph = ew.Graph.random(nodes=8, edges=14, seed=1)
    shards = [(rng.normal(size=(3, 6)), rng.normal(size=3)) for _ in range(8)]
    ties = {
        (int(i), int(j)): ew.Coupling(rng.normal(size=(1, 6)), rng.normal(size=(1, 6)), 1.0)
        for i, j in graph.edges
    }
    problem = ew.Problem(shards, ew.Squared(), ew.Box(-np.inf, np.inf))
    result = ew.solve(problem, graph, between=ties, rounds=2000, record_every=500)
    assert result.converged, result.message
    assert result.violation < 1e-8


def test_short_steps_are_not_taken_for_a_soft_end():
    """A coordinate that only its price holds: weights had followed the stiffness that they caused,
    down, for as long as they were matched, and 11,000 rounds were needed."""
    costs = [ew.Quadratic([1.0, 1.0]), ew.Quadratic([50.0, 0.0], [-50.0, 0.0])]
    problem = ew.Problem(cost=costs, penalty=[ew.L1(0.3), None])
    between, X0 = ew.NetworkLasso(0.1, on=[1]), [np.zeros(2), np.array([1.0, 2.0])]
    options = {"X0": X0, "tol": 1e-7, "rounds": 5000}
    result = ew.solve(problem, ew.Graph.path(2), "pd", between=between, **options)
    assert result.converged, result.message
    assert np.allclose(result.X[1], [1, 0], atol=1e-6)


def test_rows_whose_length_counts_keep_one_weight_when_some_are_still():
    """Else the answer is another: a dual within a ball then does not point along the difference."""
    with jax.enable_x64(True):
        moved = jnp.array([[1e-3, 0.0, 2e-3]])
        window = Window(jnp.zeros((1, 3)), jnp.zeros((1, 3)), moved**2, moved**2 / 4)
        # beside a dual so large, what the others' changes lend the second row is nothing
        lam, a = moved + jnp.array([[0.0, 1e12, 0.0]]), moved / 2
        window = window._replace(lam=window.lam + jnp.array([[0.0, 1e12, 0.0]]))
        links = links_of(np.zeros(1, np.int64), np.arange(1), 1, {"rho": np.ones(1)}, np.float64)
        ones, yes = jnp.ones((1, 3)), jnp.ones((1, 3), bool)
        k, _ = matched(window, lam, a, ones, ones, jnp.array([[10.0]]), links, yes, yes, yes[:, :1])
        assert np.ptp(k) == 0
        assert np.abs(k - 1).min() > 0.1


def test_who_is_held_at_a_bound_leaves_duals_their_digits():
    """Its duals change, it does not move: weights had grown tenfold at every look, to 1e17, until
    rounding of A x was all that was left of the duals."""
    with jax.enable_x64(True):
        lam, a, k = jnp.array([[-8.0, 12.0]]), jnp.array([[-30.0, 1.0]]), jnp.ones((1, 2))
        links = links_of(np.zeros(1, np.int64), np.arange(1), 1, {"rho": np.ones(1)}, np.float64)
        yes, none = jnp.ones((1, 2), bool), jnp.zeros((1, 2))
        for _ in range(20):
            window = Window(lam - 0.1, a, none + 0.1, none)
            looks = jnp.array([[10.0]])
            k, _ = matched(window, lam, a, k, k, looks, links, ~yes, yes, yes[:, :1])
        assert (k > 1e3).all()
        rounding = np.finfo(float).eps * np.abs(k * a)
        assert (rounding < 1e-9 * np.abs(lam)).all()

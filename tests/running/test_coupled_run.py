"""Runs with couplings: checkpoints, warm starts, budgets, what a residual sees, bytes, pictures."""

import re

import jax
import numpy as np
import pytest
from coupled_grid import GRID, coupled_grid, coupled_parts

import edgewise as ew
from edgewise.engines.simulator import Simulator
from edgewise.errors import CheckpointError, ProblemError
from edgewise.problem.coupled import couple
from edgewise.running.coupled_method import choose_coupled

FAULTS = ew.Faults(drop=0.2, awake=0.8, delay=1, seed=4)


def solve(**options):
    problem, given = coupled_grid()
    return ew.solve(problem, GRID, **{"rounds": 40, "record_every": 10, **given, **options})


def test_a_run_that_stopped_goes_on_to_the_identical_result(tmp_path):
    whole = solve(faults=FAULTS)
    solve(faults=FAULTS, rounds=20, checkpoint=tmp_path / "run")
    resumed = solve(faults=FAULTS, checkpoint=tmp_path / "run")
    assert resumed.trace["rounds"].tolist() == [0, 10, 20, 30, 40]
    for column in ("residual", "violation", "objective", "bytes_sent"):
        assert np.array_equal(resumed.trace[column], whole.trace[column])
    assert all(map(np.array_equal, resumed.X, whole.X))
    for edge, multiplier in whole.multipliers.items():
        assert np.array_equal(resumed.multipliers[edge], multiplier)


def test_a_checkpoint_of_other_couplings_or_duals_is_refused(tmp_path):
    solve(rounds=10, checkpoint=tmp_path / "run")
    _, given = coupled_grid()
    edge = (0, 1)
    other = given["between"] | {edge: [ew.Coupling(np.ones((2, 2)), np.ones((2, 3)), 0.3)]}
    with pytest.raises(CheckpointError, match="other couplings or first duals: "):
        solve(between=other, checkpoint=tmp_path / "run")
    duals = given["duals"] | {edge: given["duals"][edge] + 1}
    with pytest.raises(CheckpointError, match="other couplings or first duals: "):
        solve(duals=duals, checkpoint=tmp_path / "run")


def test_a_former_result_is_where_a_run_begins():
    first = solve(rounds=3000, tol=1e-8)
    assert first.converged, first.message
    again = solve(X0=first.X, duals=first, rounds=10)
    assert again.trace["residual"][0] == pytest.approx(first.trace["residual"][-1], rel=1e-6)
    models_alone = solve(X0=first.X, duals=None, rounds=10)
    assert models_alone.trace["residual"][0] > 1e-3


def test_a_run_that_ends_short_says_how_many_rounds_would_do():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    problem = ew.Problem(ew.split(X, X[:, 0] > 0, nodes=6), ew.Logistic(ridge=0.1))
    given = {"between": ew.NetworkLasso(0.3), "record_every": 5}
    short = ew.solve(problem, "ring", "pd", 40, **given)
    assert not short.converged
    rounds = int(re.search(r"twice as many are safe, rounds=(\d+)$", short.message)[1])
    assert ew.solve(problem, "ring", "pd", rounds, tol=1e-6, **given).converged


def test_the_gap_is_to_the_centralised_optimum():
    problem, given = coupled_grid()
    star = ew.reference(problem, graph=GRID, between=given["between"])
    asked = solve(rounds=300, reference=True)
    gap = asked.trace["objective_gap"]
    np.testing.assert_allclose(gap, asked.trace["objective"] - star.objective, atol=1e-12)
    assert abs(gap[-1]) < 1e-4 * abs(gap[0])
    given_one = solve(rounds=20, reference=star)
    assert np.array_equal(given_one.trace["objective_gap"], gap[:3])
    assert np.isnan(solve(rounds=10).trace["objective_gap"]).all(), "only where it is asked for"


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("X0", np.zeros(2), "a vector for each of the 12 nodes, which have 2 to 3 unknowns"),
        ("X0", [np.zeros(2)] * 12, "a vector for each"),
        ("X0", 3.0, "a vector for each"),
        ("reference", 1.0, "with couplings give True, False or"),
        ("reference", ew.CoupledReference([], {}, 0.0, 0.0, 0.0, 1), "another problem"),
        ("X0", [np.full(2 + i % 2, np.inf) for i in range(12)], "not finite"),
        ("duals", {}, r"edge \(0, 1\), which has 2 rows"),
        ("duals", np.zeros((12, 3)), r"edge \(0, 1\)"),
        ("duals", coupled_grid()[1]["duals"] | {(0, 1): [1.0]}, r"edge \(0, 1\), which has 2"),
    ],
)
def test_starts_that_do_not_fit_are_refused(option, value, words):
    with pytest.raises(ProblemError, match=words):
        solve(**{option: value})


def test_a_budget_of_oracle_calls_ends_a_run():
    spent = solve(rounds=1000, oracle_budget=100, record_every=1)
    calls = spent.trace["oracle_calls"]
    assert calls[-2] < 100 <= calls[-1]
    assert spent.message.startswith("oracle budget spent")
    assert not spent.converged


@pytest.mark.parametrize("rho", [1e-12, 1e12])
@pytest.mark.parametrize(
    ("term", "dual"),
    [
        (ew.NetworkLasso(1.0), [1.0, 0.0]),  # as long as it may be, but not along (1, 1)
        (ew.Coupling(np.eye(2), -np.eye(2), c=3.0, sense="<="), [1.0, 0.0]),  # where none holds
        (ew.NetworkRidge(1.0), [1.0, 1.0]),  # half of what the difference asks for
    ],
)
def test_no_weight_hides_a_dual_that_does_not_fit(term, dual, rho):
    """Runs had settled at a wrong point with a residual of 1e-15: rows of one length had weights
    of their own, and the residual went by them."""
    problem = ew.Problem(cost=[ew.Quadratic(1.0, np.zeros(2))] * 2)
    graph = ew.Graph.path(2)
    with jax.enable_x64(True):
        coupled = couple(problem, graph, term)
        method = choose_coupled(coupled, "pdmm", None, None, None).method
        executor = Simulator(coupled, graph, method, 0, np.dtype("float64"))
        duals = np.array([dual, dual])
        state, outbox = executor.start(np.array([[1.0, 1.0], [0.0, 0.0]]), duals)
        weights = np.array([[rho, 1.0], [rho, 1.0]])
        state = state._replace(edges=state.edges._replace(rho=weights))
        natural = np.asarray(executor.edge_report((state, outbox)).nodes["natural"])
    assert np.sqrt(natural.sum()) > 0.2


def large_and_small(what):
    """Three nodes in a row, at 1 each. Much goes on between the first two, and fits together there;
    what is wrong by a hundredth is elsewhere, or in the other row of the same edge."""
    tie = ew.Coupling([[1.0]], [[-1.0]])
    q, between = -np.ones(3), {(0, 1): tie, (1, 2): tie}
    duals = {(0, 1): [0.0], (1, 2): [0.0]}
    if what == "a row of small numbers is not met":
        between = {(0, 1): ew.Coupling([[1e6]], [[-1e6]]), (1, 2): ew.Coupling(c=0.01)}
    elif what == "a node of small gradients is not at rest":
        q += np.array([-1e6, 1e6, 0.01])
        duals[0, 1] = [1e6]
    else:
        q += np.array([-1e6 - 0.01, 1e6 + 0.01, 0.0])
        two = np.ones((2, 1))
        between[0, 1] = ew.Coupling(two, -two, c=[0.0, 1.0], sense="<=")
        duals[0, 1] = [1e6, 0.01]
    return [ew.Quadratic(1.0, q[i : i + 1]) for i in range(3)], between, duals


@pytest.mark.parametrize(
    "what",
    [
        "a row of small numbers is not met",
        "a node of small gradients is not at rest",
        "a small multiplier of a row with room",
    ],
)
def test_what_is_large_hides_nothing_small(what):
    """The residual held all against the largest: 1e-8 here, so that runs said to have converged,
    at violations of a hundredth of a row, were far from the optimum."""
    costs, between, duals = large_and_small(what)
    result = ew.solve(
        ew.Problem(cost=costs),
        ew.Graph.path(3),
        between=between,
        X0=[np.ones(1)] * 3,
        duals=duals,
        rounds=1,
    )
    assert result.trace["residual"][0] > 1e-3


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
def test_a_node_without_edges_finds_its_own_minimum(edges):
    costs = [ew.Quadratic(1.0, np.full(n, -2.0)) for n in (2, 3, 1)][: 3 if edges else 1]
    between = {edge: ew.Shared([0, 1]) for edge in edges}
    result = ew.solve(
        ew.Problem(cost=costs), ew.Graph(len(costs), edges), between=between, tol=1e-9
    )
    assert result.converged, result.message
    assert all(np.allclose(x, 2, atol=1e-8) for x in result.X)


@pytest.mark.parametrize("penalty", [None, ew.NonNegative()])
def test_what_nothing_bounds_never_converges(penalty):
    """Models of 1e16 had hidden the slope in their last digits: residual 0, converged."""
    problem = ew.Problem(cost=[ew.Linear([-1.0]), ew.Linear([-2.0])], penalty=penalty)
    result = ew.solve(problem, ew.Graph.path(2), between=ew.Coupling(), tol=1e-8)
    assert not result.converged
    assert "nothing bounds it" in result.message


def test_bytes_are_those_of_each_edges_own_rows():
    coupled, _ = coupled_parts("pdmm")
    many = coupled.row_counts  # of directed edges
    assert sorted({*many.tolist()}) == [1, 2, 3]
    calm = solve()
    assert calm.trace["bytes_sent"][-1] == 40 * 8 * (3 * many + 1).sum()
    left = solve(faults=ew.Faults(leave=(5, 20)))
    d = GRID.directed
    stays = (d.owner != 5) & (d.other != 5)
    expected = 20 * 8 * ((3 * many + 1).sum() + (3 * many[stays] + 1).sum())
    assert left.trace["bytes_sent"][-1] == expected


def test_a_picture_has_edges_as_wide_as_their_multipliers(tmp_path, drawn):
    result = solve()
    result.plot(tmp_path / "run.png")
    left, right = drawn["run.png"].axes[:2]
    lines = next(c for c in left.collections if hasattr(c, "get_segments"))
    sizes = [np.linalg.norm(result.multipliers[i, j]) for i, j in GRID.edges.tolist()]
    assert np.argmax(lines.get_linewidths()) == np.argmax(sizes)
    assert {line.get_label() for line in right.lines} == {
        "optimality residual",
        "violation, over edges",
    }

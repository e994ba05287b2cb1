"""newton-pd: its iterates in NumPy, the graph's gap, hard data, what is refused."""

from functools import cache

import catalogue as cat
import jax
import jax.numpy as jnp
import newton_numpy as plain
import numpy as np
import pytest
from literal import make_case
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import edgewise as ew
from edgewise.backend import programs
from edgewise.engines.simulator import Simulator
from edgewise.errors import MethodError
from edgewise.methods import curvature, edge_factor, newton_pd
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node.supported_methods import require_method

ROUNDS = 20  # a refresh in round 5 is in use from round 9 on, another from 16
CLOSE = 1e-7  # an entry of a matrix that rounds to another float32 moves models by some 1e-9

# --- iterates -------------------------------------------------------------------------------------


def follow(case, cuts):
    """The library's run beside the transcript's, round by round; the latter's nodes."""
    with jax.enable_x64(True):
        ids = jnp.arange(case.graph.nodes)
        probes = np.array(edge_factor.first_gap(ids, np.dtype("float64")).probes)
        told, nodes = plain.run(case, ROUNDS, probes, cuts)
        sim = Simulator(case.problem, case.graph, ew.NewtonPD(), 0, np.dtype("float64"))
        carry = sim.start(case.X0, None)
        for t, (X, duals, calls, values) in enumerate(told):
            if t:
                carry, _ = sim.advance(carry, t - 1, 1)
            ours = [np.array(a) for a in sim.view(carry)]
            assert_allclose(ours[0], X, atol=CLOSE, rtol=0, err_msg=f"round {t}")
            assert_allclose(ours[1], duals, atol=CLOSE, rtol=0, err_msg=f"round {t}")
            memory = carry[0].memory
            assert memory.calls.tolist() == calls, t
            assert memory.evaluations.tolist() == values, t
        assert memory.bodies.tolist() == [s.bodies for s in nodes]
        assert_allclose(carry[0].gap.estimate, [s.gap for s in nodes], rtol=1e-6)
        assert_allclose(carry[0].balance.gain, [s.gain for s in nodes], rtol=1e-6)
    assert len({s.gain for s in nodes}) > 1, "no factor has changed"
    return told, nodes


def test_iterates_are_those_of_the_docstrings():
    """From far out, where a Newton step goes too far."""
    case = make_case(penalty="none", intercept=True, weighted=True)
    case.X0 = 60 * case.X0
    told, _ = follow(case, np.zeros(case.n))
    asked = (ROUNDS + 1) * case.counts
    assert (told[-1][3] > asked).any(), "no step was halved: this shows less"
    assert (told[-1][3] == asked).any(), "all were"
    assert (told[-1][2] < ROUNDS * case.counts).any(), "no gradient was a model's: this shows less"


def test_iterates_with_an_exact_prox(monkeypatch):
    """The library's inner steps go on until rounding; the transcript goes by coordinates."""
    monkeypatch.setattr(newton_pd, "INNER_TOL", 1e-12)
    monkeypatch.setattr(newton_pd, "INNER_MOST", 10_000)
    case = make_case(penalty="l1", intercept=True, weighted=True)
    programs.forget()  # they have the constants in them
    try:
        told, _ = follow(case, np.array([0.02] * 4 + [0]))
    finally:
        programs.forget()
    assert (told[-1][0] == 0).any(), "no zeros: this shows less"


def test_a_node_stays_where_it_is_until_matrices_have_been_averaged():
    case = make_case(penalty="none", intercept=True, weighted=True)
    with jax.enable_x64(True):
        sim = Simulator(case.problem, case.graph, ew.NewtonPD(), 0, np.dtype("float64"))
        carry = sim.start(case.X0, None)
        for t in range(newton_pd.LEVELS):
            carry, _ = sim.advance(carry, t, 1)
            assert (np.array(sim.view(carry)[0]) == case.X0).all()
        carry, _ = sim.advance(carry, newton_pd.LEVELS, 1)
        assert (np.array(sim.view(carry)[0]) != case.X0).any(1).all()


# --- the graph's gap ------------------------------------------------------------------------------


def test_the_gap_of_a_graph_is_found_on_the_way():
    nodes = 16
    graphs = [
        ew.Graph.ring(nodes),
        ew.Graph.grid(4, 4),
        ew.Graph.random(nodes, 32, seed=0),
        ew.Graph.star(nodes),
        ew.Graph.complete(nodes),
    ]

    @jax.jit
    def walk(A):
        many = A.sum(1)

        def turn(t, gap):
            return edge_factor.next_gap(gap, A @ gap.probes, many, jnp.full(nodes, t + 1))

        first = edge_factor.first_gap(jnp.arange(nodes), A.dtype)
        return jax.lax.fori_loop(0, 64, turn, first).estimate

    for graph in graphs:
        i, j = graph.edges.T
        A = np.zeros((nodes, nodes))
        A[i, j] = A[j, i] = 1
        d = A.sum(1)
        true = np.linalg.eigvalsh(np.eye(nodes) - A / np.sqrt(np.outer(d, d)))[1]
        with jax.enable_x64(True):
            seen = np.array(walk(jnp.asarray(A)))
        assert (seen / true < 1.5).all(), (graph, true, seen)
        assert (seen / true > 1 / 1.5).all(), (graph, true, seen)


# --- hard data, against scikit-learn --------------------------------------------------------------

N = 40
COUNTS = (1, 1, 19, 19)  # two nodes have a sample each


@cache
def table():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 4))
    y = np.where(X @ [1.5, -1, 0.5, 0] + 0.7 * rng.normal(size=N) > 0.3, 1, -1)
    return X, y


def of(kind):
    X, y = table()
    X = X.copy()
    if kind == "a node has one class":
        order = np.argsort(y, kind="stable")
        return X[order], y[order]
    if kind == "a column twice, and a constant one":
        X[:, 3], X[:, 2] = X[:, 0], 1.0
    if kind == "a column times 1e6":
        X[:, 1] *= 1e6
    return X, y


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        ("a node has one class", COUNTS),
        ("a column twice, and a constant one", COUNTS),
        ("a column times 1e6", COUNTS),
        ("two nodes", (20, 20)),
        ("one node", (N,)),
    ],
)
def test_hard_data(kind, counts):
    X, y = of(kind)
    cuts = np.cumsum(counts)[:-1]
    shards = list(zip(np.split(X, cuts), np.split(y, cuts), strict=True))
    if kind == "a node has one class":
        assert any(len(set(part)) == 1 < len(part) for _, part in shards)
    V = len(counts)
    graph = {1: ew.Graph.from_edges([], nodes=1), 2: ew.Graph.path(2)}.get(V, ew.Graph.path(V))
    problem = ew.Problem(shards, ew.Logistic(ridge=1 / N), weights="sample", intercept=True)
    options = {"rounds": 400, "record_every": 400, "reference": False}
    result = ew.solve(problem, graph, "newton-pd", **options)
    model = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-10).fit(X, y)
    size = np.append(np.abs(X).max(0), 1)
    expected = np.append(model.coef_, model.intercept_)
    assert np.abs(expected * size).max() > 0.5
    assert_allclose(result.X * size, np.tile(expected * size, (V, 1)), atol=1e-6)


def test_a_column_that_one_node_knows():
    """No ridge, so that the others have it from neighbours alone, and some are eight hops away."""
    nodes, each = 16, 4
    rng = np.random.default_rng(0)
    X = rng.normal(size=(nodes * each, 2))
    X[each:, 1] = 0
    y = X @ [1, 2] + rng.normal(size=len(X))
    shards = list(zip(np.split(X, nodes), np.split(y, nodes), strict=True))
    options = {"rounds": 600, "record_every": 600, "reference": False}
    result = ew.solve(
        ew.Problem(shards, ew.Squared()), ew.Graph.ring(nodes), "newton-pd", **options
    )
    expected = np.linalg.lstsq(X, y)[0]
    assert_allclose(result.X, np.tile(expected, (nodes, 1)), atol=1e-6)


def test_a_quadratic_loss_needs_hardly_a_pass():
    """Its Hessian tells every gradient; a model is checked against a pass now and then."""
    case = cat.PROBLEMS["lasso"]
    graph, options = cat.GRAPHS["random"], {"rounds": 60, "record_every": 60}
    result = ew.solve(case.problem(), graph, "newton-pd", **options)
    assert result.trace["bregman"][-1] < 1e-10
    assert result.trace["oracle_calls"][-1] / case.problem().counts.mean() < 20


@pytest.mark.parametrize("nodes", [1, 4])
def test_a_gradient_that_points_uphill_is_taken_anew(nodes):
    """All residuals are beyond Huber's kink, where the Hessian says nothing: the model's gradient
    is an old one, and no part of a step along it may be taken."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(60, 1))) + 0.5
    y = 50 * X[:, 0] + rng.normal(size=60)
    problem = ew.Problem(ew.split(X, y, nodes=nodes, seed=0), ew.Huber(ridge=1e-6))
    graph = ew.Graph.from_edges([], nodes=1) if nodes == 1 else ew.Graph.ring(nodes)
    result = ew.solve(problem, graph, "newton-pd", rounds=150, tol=1e-8, record_every=10)
    assert result.converged, result.message
    assert_allclose(result.X, 50, atol=0.3)


def test_a_hessian_that_jumps_tells_no_gradients():
    """With Huber's loss every round takes a pass, with the logistic loss some do."""
    X, y = few()
    passes = []
    for loss, labels in ((ew.Huber(0.1), y), (ew.Logistic(ridge=0.1), np.sign(y))):
        problem = ew.Problem(ew.split(X, labels, nodes=4, seed=0), loss)
        result = ew.solve(problem, ew.Graph.ring(4), "newton-pd", rounds=25, record_every=25)
        passes.append(result.trace["oracle_calls"][-1] / problem.counts.mean())
    # from the fourth round on, and a Hessian at the start
    assert passes[0] >= 1 + 25 - newton_pd.LEVELS
    assert passes[1] < 0.7 * 25


def test_nodes_at_rest_ask_for_nothing():
    """All coefficients are zero from the start: a pass, and nothing more."""
    case = cat.PROBLEMS["l2-logistic"]
    problem = ew.Problem(case.problem().shards, ew.Logistic(), ew.L1(10.0))
    result = ew.solve(problem, cat.GRAPHS["ring"], "newton-pd", rounds=60, record_every=20)
    assert (result.X == 0).all()
    calls = result.trace["oracle_calls"] / problem.counts.mean()
    assert calls[-1] == calls[-2] <= 6


def test_bounds_that_hold_a_coordinate_at_two_nodes():
    """The looser bound holds until duals have grown as much as it takes: by a tilt after some
    hundred rounds, without it after two thousand."""
    V, n = 6, 3
    rng = np.random.default_rng(1)
    X = rng.normal(size=(10 * V, n))
    y = np.sign(X @ rng.normal(size=n) + 0.3 * rng.normal(size=10 * V))
    widths = rng.uniform(0.3, 0.302, (V, n))
    boxes = [ew.Box(-w, w) for w in widths]
    problem = ew.Problem(ew.split(X, y, nodes=V, seed=0), ew.Logistic(ridge=1e-3), boxes)
    graph, options = ew.Graph.random(V, 2 * V), {"reference": False, "record_every": 10}
    result = ew.solve(problem, graph, "newton-pd", rounds=800, tol=1e-6, **options)
    assert result.converged, result.message
    top = widths.min(0)

    def objective(x):
        return np.log1p(np.exp(-y * (X @ x))).mean() + 5e-4 * x @ x

    star = minimize(objective, np.zeros(n), bounds=[*zip(-top, top, strict=True)], tol=1e-15).x
    assert (np.abs(star) == top).sum() == 2, "bounds hold nothing: this shows less"
    assert_allclose(result.X, np.tile(star, (V, 1)), atol=1e-5)


def test_it_rests_where_it_has_arrived():
    """Also through a refresh: from the models alone it would move."""
    case = cat.PROBLEMS["l1-logistic"]

    def run(rounds, **start):
        options = {"rounds": rounds, "record_every": 12, "reference": False, **start}
        return ew.solve(case.problem(), cat.GRAPHS["random"], "newton-pd", **options)

    solved = run(120)
    still = run(12, X0=solved.X, duals=solved)
    assert_allclose(still.X, solved.X, atol=1e-9)
    assert np.abs(run(12, X0=solved.X).X - solved.X).max() > 1e-3


def test_other_losses_are_refused():
    loss = ew.CustomLoss(lambda x, d, y: (d @ x - y) ** 2)
    problem = ew.Problem(cat.parts("number"), loss)
    with pytest.raises(MethodError, match=r"needs Hessians.*use saga-pd"):
        ew.solve(problem, cat.GRAPHS["ring"], "newton-pd", rounds=1, reference=False)


@pytest.mark.parametrize("factor", ["much", -1.0, [1.0, 2.0]])
def test_a_factor_is_a_positive_number(factor):
    problem = cat.PROBLEMS["l2-logistic"].problem()
    with pytest.raises(MethodError, match="factor"):
        ew.solve(problem, cat.GRAPHS["ring"], ew.NewtonPD(factor), rounds=1)


def test_a_step_is_refused():
    """Also by peers, when their network is made."""
    problem = cat.PROBLEMS["l2-logistic"].problem()
    for eta in (0.1, "theory", np.ones(len(problem.counts))):
        with pytest.raises(MethodError, match="no step: leave eta out"):
            ew.solve(problem, cat.GRAPHS["ring"], "newton-pd", rounds=1, eta=eta)
    with pytest.raises(MethodError, match="no step: leave eta out"):
        require_method(Fit(method="newton-pd", eta=0.1), penalised=False)


def few():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3))
    y = X @ [1.0, 2.0, -1.0] + 0.1 * rng.standard_normal(40)
    y[::10] += 50  # outliers, for which steps have to be damped
    return X, y


def test_outliers_at_one_node_and_a_narrow_corner():
    """A node whose samples are all where Huber's loss is straight has a Hessian of zero, and took
    its neighbours along: the run diverged."""
    rng = np.random.default_rng(0)
    V, each, delta = 8, 10, 0.01
    X = rng.normal(size=(V * each, 3))
    y = X @ rng.normal(size=3) + 0.1 * rng.normal(size=V * each)
    y[:each] += 1e3 * rng.choice([-1, 1], each)
    parts = list(zip(np.split(X, V), np.split(y, V), strict=True))
    problem = ew.Problem(parts, ew.Huber(delta))
    result = ew.solve(problem, ew.Graph.path(V), "newton-pd", rounds=500, tol=1e-9, reference=False)
    assert result.converged, result.message
    slopes = np.clip(X @ result.x - y, -delta, delta)
    assert (np.abs(slopes) < delta).sum() >= 3, "too few are near: the optimum is not one point"
    assert_allclose(slopes @ X, 0, atol=1e-7)
    assert_allclose(result.X, np.tile(result.x, (V, 1)), atol=1e-7)


@pytest.mark.parametrize("loss", [ew.Huber(0.3), ew.SmoothedHinge(0.3)])
def test_secants_lie_above_their_losses(loss):
    z, at, y = np.linspace(-4, 4, 161), np.linspace(-4, 4, 41)[:, None], 1.0
    with jax.enable_x64(True):
        bend = np.array(loss.secant(jnp.asarray(at), y))
        parabola = loss.value(at, y) + loss.slope(at, y) * (z - at) + bend * (z - at) ** 2 / 2
        room = np.array(parabola - loss.value(z, y))
    assert room.min() > -1e-12
    # and not higher than need be: each touches the loss in a second point, mirrored at the corner
    middle = 1.0 if isinstance(loss, ew.Huber) else 1 - 0.3 / 2
    mirrored = 2 * middle - at
    touch = (
        loss.value(at, y) + loss.slope(at, y) * (mirrored - at) + bend * (mirrored - at) ** 2 / 2
    )
    assert_allclose(touch, loss.value(mirrored, y), atol=1e-6)


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_units_of_the_labels_do_not_matter(unit):
    X, y = few()
    problem = ew.Problem(ew.split(X, unit * y, nodes=4, seed=0), ew.Huber(0.1 * unit))
    result = ew.solve(problem, ew.Graph.ring(4), "newton-pd", rounds=150, tol=1e-8 * unit)
    assert result.converged
    assert_allclose(result.x / unit, [1.0, 2.0, -1.0], atol=0.2)


def test_neighbours_cannot_end_refreshes_nor_take_a_model_away():
    """One says that it knows of 3e38 refreshes, and that its matrix is -I, of a new version."""
    X, y = few()
    problem = ew.Problem(ew.split(X, y, nodes=4, seed=0), ew.Huber(0.1))
    with jax.enable_x64(True):
        sim = Simulator(problem, ew.Graph.ring(4), ew.NewtonPD(), 0, np.dtype("float64"))
        carry = sim.advance(sim.start(sim.origin(), None), 0, 12)[0]
        state, (sent, duals, news) = carry
        lie = np.array(news)
        lie[0, 4] = 3e38
        lie[0, [1, curvature.HEAD]] = 99
        lie[0, 2] = newton_pd.LEVELS
        lie[0, curvature.HEAD + 1 :] = [-1e6, 0, -1e6, 0, 0, -1e6]
        after = sim.advance((state, (sent, duals, jnp.asarray(lie))), 12, 1)[0][0]
        assert np.isfinite(after.X).all()
        assert np.isfinite(after.Y).all()
        most = len(curvature.REFRESH) + curvature.MOST_REFRESHES
        assert int(after.epoch.max()) <= most


def test_it_can_be_tuned_and_compared():
    X, y = few()
    problem, graph = ew.Problem(ew.split(X, y, nodes=4, seed=0), ew.Huber(0.1)), ew.Graph.ring(4)
    found = ew.tune(problem, graph, "newton-pd", budget=400)
    assert found.method.factor > 0
    custom = ew.CustomLoss(lambda x, d, y: (d @ x - y) ** 2)
    other = ew.Problem(ew.split(X, y, nodes=4, seed=0), custom)
    compared = ew.compare(other, graph, ["newton-pd", "pd"], budget=400, tune=False, show=False)
    assert list(compared.refused) == ["newton-pd"]

"""PDMM and D-ADMM, which solve a local problem every round: their sources' iterates, the optimum,
the costs, and the local solver by itself."""

from functools import cache, partial
from itertools import islice

import argmin_numpy as plain
import catalogue as cat
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from program_constants import constants

import edgewise as ew
from edgewise.engines.simulator import Simulator, run_rounds
from edgewise.errors import MethodError
from edgewise.methods.admm import DADMM
from edgewise.methods.knowledge import whole_network
from edgewise.methods.pdmm import PDMM
from edgewise.methods.subproblem import local_argmin

V, STEPS, RIDGE = cat.NODES, 20, 0.1
GRAPHS = {k: cat.GRAPHS[k] for k in ("ring", "random", "complete")}
METHODS = [PDMM, DADMM]
EACH = cat.PROBLEMS["each-its-own"]


@cache
def problem(how, penalised):
    shards = ew.split(*cat.samples("sign"), nodes=V, how=how, alpha=0.3)
    return ew.Problem(shards, ew.Logistic(ridge=RIDGE), ew.L1(0.03) if penalised else None)


@cache
def optimum(how, penalised):
    return ew.reference(problem(how, penalised)).x


def run(made, graph, method, rounds, **options):
    options = {"record_every": rounds, "reference": False, **options}
    return ew.solve(made, GRAPHS[graph], method, rounds=rounds, **options)


# --- iterates -------------------------------------------------------------------------------------


def parts_of(case):
    """The case's gradient(i, x) and prox(i, x, t), by NumPy, and its smoothness."""
    shards, penalties = cat.parts(case.target), cat.listed(case.penalty, V)

    def gradient(i, x):
        return cat.gradient(case.loss, shards[i], x)

    def prox(i, x, t):
        return cat.prox(penalties[i], x, t)

    curve = 0.25 if isinstance(case.loss, ew.Logistic) else 1.0
    tops = [np.linalg.eigvalsh(X.T @ X / len(X))[-1] for X, _ in shards]
    return gradient, prox, curve * np.array(tops) + case.loss.ridge


def iterates(case, method, X0):
    """x(0)..x(T) of the library, and its calls."""
    with jax.enable_x64(True):
        sim = Simulator(case.problem(), GRAPHS["random"], method, 0, np.dtype("float64"))
        carry = sim.start(X0, None)
        told = [np.array(sim.view(carry)[0])]
        for t in range(STEPS):
            carry, _ = sim.advance(carry, t, 1)
            X, duals = sim.view(carry)
            assert_allclose(duals.sum(0), 0, atol=1e-12)
            told.append(np.array(X))
        return told, np.array(carry[0].memory.calls)


def transcript(method, rho, solve, X0, alpha=None):
    if method is DADMM:
        alpha = plain.apart(GRAPHS["random"], rho, X0) if alpha is None else alpha
        return list(islice(plain.d_admm(GRAPHS["random"], rho, solve, X0, alpha), STEPS + 1))
    return list(islice(plain.pdmm(GRAPHS["random"], rho, solve, X0), STEPS + 1))


RHO = np.random.default_rng(4).uniform(0.05, 0.4, 9)
APART = np.random.default_rng(5).standard_normal((V, cat.FEATURES))


@pytest.mark.parametrize("method", METHODS)
def test_iterates_are_those_of_the_source(method):
    solve = plain.exact(*parts_of(EACH))
    expected = transcript(method, RHO, solve, APART)
    got, _ = iterates(EACH, method(rho=RHO, tol=1e-13), APART)
    assert_allclose(got, expected, atol=1e-10, rtol=0)
    assert np.abs(np.diff(expected, axis=0)).max(axis=(1, 2)).min() > 1e-5, "nothing moves"


def test_from_one_model_for_all_alpha_begins_at_zero_as_printed():
    case, X0 = cat.PROBLEMS["l1-logistic"], np.tile(APART[0], (V, 1))
    solve = plain.exact(*parts_of(case))
    expected = transcript(DADMM, RHO, solve, X0, alpha=np.zeros_like(X0))
    assert_allclose(iterates(case, DADMM(rho=RHO, tol=1e-13), X0)[0], expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("method", METHODS)
def test_unfinished_minima_and_their_calls_are_those_of_plain_loops(method):
    gradient, prox, L = parts_of(EACH)
    solve = plain.Accelerated(gradient, prox, L, EACH.loss.ridge, tol=0.1, most=200)
    expected = transcript(method, RHO / 5, solve, APART)
    got, calls = iterates(EACH, method(eta=1 / L, rho=RHO / 5), APART)
    assert_allclose(got, expected, atol=1e-10, rtol=0)
    assert calls.tolist() == (solve.asked * cat.EACH).tolist()
    assert STEPS < solve.asked.min() < solve.asked.max() < 20 * STEPS


# --- the local solver -----------------------------------------------------------------------------


@jax.jit
def solve_locally(p, X, eta, D, U, tol):
    return local_argmin(p, X, eta, D, U, tol, 500)


def locally(tol, still=()):
    """The minima of each-its-own from APART, or where a node is `still` from its minimum."""
    gradient, prox, L = parts_of(EACH)
    rng = np.random.default_rng(6)
    D, U = rng.uniform(0.05, 1, V), rng.standard_normal((V, cat.FEATURES))
    best = np.array([plain.exact(gradient, prox, L)(i, APART[i], D[i], U[i]) for i in range(V)])
    X = np.array([best[i] if i in still else APART[i] for i in range(V)])
    with jax.enable_x64(True):
        p = EACH.problem().block(None, np.float64)
        args = map(jnp.asarray, (X, 1 / L[:, None], D[:, None], U, tol))
        found, calls = map(np.array, solve_locally(p, *args))
    return X, best, found, calls


@pytest.mark.quick_if(lambda tol: tol in (1.0, 1e-3))
@pytest.mark.parametrize("tol", [1.0, 0.1, 1e-3, 1e-6])
def test_a_local_minimum_is_as_near_as_promised(tol):
    X, best, found, calls = locally(tol)
    error, way = (np.linalg.norm(found - a, axis=1) for a in (best, X))
    assert (error <= tol * way).all()
    assert error.max() > 1e-4 * tol, "nearer than it need be: why pay for that?"
    assert (calls >= 2 * cat.EACH).all()


def test_it_stops_at_rounding():
    _, best, found, calls = locally(1e-300)
    assert_allclose(found, best, atol=1e-13)
    assert calls.max() < 50 * cat.EACH


def test_nodes_that_are_done_ask_no_more_and_stay():
    _, _, found, calls = locally(1e-6)
    _, best, again, less = locally(1e-6, still=(1, 4))
    assert_allclose(again[[1, 4]], best[[1, 4]], atol=1e-14)
    assert (less[[1, 4]] <= 3 * cat.EACH).all()
    others = [0, 2, 3, 5]
    assert (again[others] == found[others]).all()
    assert (less[others] == calls[others]).all()
    assert calls.min() > 5 * cat.EACH
    assert len(set(calls)) > 2


# --- the optimum ----------------------------------------------------------------------------------


GRID = [(graph, how, True) for graph in GRAPHS for how in ("iid", "label")]


@pytest.mark.quick_if(
    lambda graph, how, penalised, **_: (graph, how, penalised) == ("ring", "label", True)
)
@pytest.mark.parametrize(("graph", "how", "penalised"), [*GRID, ("ring", "label", False)])
@pytest.mark.parametrize("method", METHODS)
def test_it_reaches_the_optimum(method, graph, how, penalised):
    result = run(problem(how, penalised), graph, method(), 250)
    assert_allclose(result.X, np.tile(optimum(how, penalised), (V, 1)), atol=1e-8)
    assert_allclose(result.duals.sum(0), 0, atol=1e-12)
    if penalised:
        assert (result.X == 0).any(), "no zeros: this shows little"


@pytest.mark.parametrize("method", METHODS)
def test_a_penalty_of_each_nodes_own(method):
    result = run(EACH.problem(), "random", method(), 2500)
    assert cat.residual(EACH, result.x) < 1e-8
    assert result.trace["residual"][-1] < 1e-9
    assert result.trace["consensus"][-1] < 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_one_node_alone(method):
    single = cat.PROBLEMS["l1-logistic"]
    made = single.problem(nodes=1)
    result = ew.solve(made, cat.GRAPHS["single"], method(), rounds=20, reference=False)
    assert cat.residual(single, result.x, nodes=1) < 1e-8


def test_where_losses_are_flat_pdmm_may_swing_for_ever_and_d_admm_settles():
    """Two nodes with one sample each, in two dimensions, from models that differ."""
    flat = ew.Problem([(np.array([[1.0, 0]]), [1.0]), (np.array([[1.0, 0]]), [2.0])], ew.Squared())
    pair, apart = cat.GRAPHS["pair"], np.array([[0.0, 1], [0, -1]])

    def end(method, rounds):
        return ew.solve(flat, pair, method, rounds=rounds, X0=apart, reference=False).X

    assert_allclose(end(PDMM(tol=1e-12), 200)[:, 1], [1, -1])
    assert_allclose(end(PDMM(tol=1e-12), 201)[:, 1], [-1, 1])
    settled = end(DADMM(tol=1e-12), 200)
    assert_allclose(settled, settled[[1, 0]], atol=1e-8)
    assert_allclose(settled[:, 0], 1.5, atol=1e-8)


# --- warm starts and lost messages ----------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_duals_start_another_run(method):
    """From the optimum and its duals nothing moves; from it alone it does."""
    made = problem("label", True)
    solved = run(made, "ring", "pd", 3000)
    still = run(made, "ring", method(), 6, X0=solved.X, duals=solved)
    assert_allclose(still.X, solved.X, atol=1e-9)
    assert np.abs(run(made, "ring", method(), 6, X0=solved.X).X - solved.X).max() > 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_pdmm_heals_and_d_admm_does_not(method):
    """Three messages in ten are lost; what was heard last stays."""
    made, graph = problem("label", True), GRAPHS["random"]
    with jax.enable_x64(True):
        sim = Simulator(made, graph, method(), 0, np.dtype("float64"))
        state, outbox = sim.start(np.zeros((V, made.size)), None)
        first = sim.network.deliver(("each",), sim.block.links, (spread(sim, outbox),))[0]
        kept = np.random.default_rng(0).random((400, 2 * graph.edge_count, 1)) > 0.3

        def turn(carry, arrived):
            state, outbox, heard = carry
            fresh = sim.network.deliver(("each",), sim.block.links, (spread(sim, outbox),))[0]
            heard = jnp.where(arrived, fresh, heard)
            inbox = heard
            if method.hears == ("rho",):
                inbox = sim.block.links.pull("rho", outbox[0], heard)
            state, outbox = sim.method.step(sim.block, state, (inbox,), None)
            return (state, outbox, heard), None

        carry = (state, outbox, first)
        state = jax.jit(partial(jax.lax.scan, turn))(carry, jnp.asarray(kept))[0][0]
        error = np.abs(np.array(state.X) - optimum("label", True)).max()
    assert method().heals == (error < 1e-8)
    assert error < 1e-8 or error > 1e-3


def spread(sim, outbox):
    """A message per directed edge."""
    return outbox[0] if sim.method.hears == ("each",) else outbox[0][sim.block.links.owner]


# --- costs, sweeps, refusals ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pdmm", "d-admm"])
def test_costs_are_exact(name):
    method = {"pdmm": PDMM, "d-admm": DADMM}[name](tol=1e-9, most=3)
    result = run(problem("iid", True), "random", method, 30, record_every=10)
    at = np.array([0, 10, 20, 30])
    assert list(result.trace["rounds"]) == list(at)
    assert list(result.trace["vectors_sent"]) == list(2 * 9 * at)
    assert list(result.trace["oracle_calls"]) == list(3 * cat.EACH * at)
    named = run(problem("iid", True), "random", name, 30)
    assert 2 * cat.EACH * 30 < named.trace["oracle_calls"][-1] < 8 * cat.EACH * 30


@pytest.mark.parametrize("method", METHODS)
def test_programs_hold_no_data_and_steps_can_be_swept(method):
    etas = jnp.array([0.5, 1.0, 2.0])
    with jax.enable_x64(True):
        sim = Simulator(problem("iid", True), GRAPHS["ring"], method(), 0, np.dtype("float64"))
        carry = sim.start(APART, None)
        none = jnp.zeros((5, 1, V, 0), jnp.uint32)

        def go(method, network, block, carry, eta):
            leaves, tree = jax.tree.flatten(method)
            method = jax.tree.unflatten(tree, [jnp.full((V, 1), eta), *leaves[1:]])
            state = run_rounds(method, network, block, carry, none, None, 1)[0]
            return state.X, state.memory.calls

        args = (sim.method, sim.network, sim.block, carry)
        program = jax.make_jaxpr(go)(*args, etas[0])
        assert not [s for s in constants(program, []) if np.prod(s) >= 5]
        swept = jax.jit(jax.vmap(go, (None, None, None, None, 0)))(*args, etas)
        one = jax.jit(go)
        for k, eta in enumerate(etas):
            X, calls = one(*args, eta)
            assert_allclose(swept[0][k], X, atol=1e-12)
            assert (swept[1][k] == calls).all()
        assert len({int(c.sum()) for c in swept[1]}) == 3


@pytest.mark.parametrize(("method", "factor"), [(PDMM, 2), (DADMM, 1)])
def test_the_weights_rule(method, factor):
    made, graph = problem("label", False), GRAPHS["random"]
    ready, weights = method().prepare(whole_network(made, graph))
    L, d = made.smoothness.mean, graph.degrees
    reach = np.sqrt(np.sqrt(RIDGE * L) / d)
    i, j = graph.edges.T
    assert_allclose(weights["rho"], factor * reach[i] * reach[j])
    assert_allclose(ready.eta[:, 0], 1 / L)
    bare = ew.Problem(made.shards, ew.Logistic())
    L = bare.smoothness.mean
    reach = np.sqrt(0.1 * L / d)
    assert_allclose(
        method().prepare(whole_network(bare, graph))[1]["rho"], factor * reach[i] * reach[j]
    )


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_work_is_refused(method):
    for most in (0, 2.5, True):
        with pytest.raises(MethodError, match="most is"):
            method(most=most)
    for options, message in (
        ({"tol": 0.0}, "tol must be positive"),
        ({"tol": "small"}, "tol='small'"),
        ({"rho": [1.0, 2.0]}, "one per edge"),
        ({"eta": -1.0}, "eta must be positive"),
    ):
        with pytest.raises(MethodError, match=message):
            run(problem("iid", True), "ring", method(**options), 1)

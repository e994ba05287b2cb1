"""EDGE: its iterates with multipliers written out, EXTRA as a special case, the optimum, costs."""

from functools import cache, partial

import edge_numpy as plain
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from literal import make_case
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.backend.random_bits import draw_bits
from edgewise.engines.simulator import Simulator, run_rounds
from edgewise.errors import GraphError, MethodError
from edgewise.methods.edge import EDGE
from edgewise.methods.knowledge import whole_network

V, STEPS, SEED = 6, 20, 5
GRAPHS = {
    "ring": ew.Graph.ring(V),
    "random": ew.Graph.random(V, 9),
    "complete": ew.Graph.complete(V),
    "star": ew.Graph.star(V),
}


@cache
def problem(how):
    X, y = ew.data.epsilon_like(rows=120, features=4)
    shards = ew.split(X, y, nodes=V, how=how, alpha=0.3)
    return ew.Problem(shards, ew.Logistic(ridge=0.1))


def run(method, graph="random", how="label", rounds=30, **options):
    options = {"record_every": rounds, "reference": False, **options}
    return ew.solve(problem(how), GRAPHS[graph], method, rounds=rounds, **options)


def dense(graph, weights):
    W = np.zeros((graph.nodes, graph.nodes))
    W[tuple(graph.edges.T)] = weights
    W += W.T
    return W + np.diag(1 - W.sum(1))


def test_iterates_are_those_with_a_multiplier_per_edge():
    case = make_case(penalty="none", intercept=True, weighted=True)
    weights = np.random.default_rng(0).uniform(0.02, 0.15, case.graph.edge_count)
    eta, beta = 0.3, 0.9
    told, nodes = plain.edge(case, weights, eta, beta, STEPS, SEED)
    method = EDGE(ew.SAGA(), eta, beta, mixing=dense(case.graph, weights))
    with jax.enable_x64(True):
        sim = Simulator(case.problem, case.graph, method, SEED, np.dtype("float64"))
        carry = sim.start(case.X0, None)
        for t, (x, sums) in enumerate(told):
            carry, _ = sim.advance(carry, t, 1)
            X, duals = sim.view(carry)
            assert_allclose(X, x, atol=1e-10, rtol=0)
            assert_allclose(duals, -sums, atol=1e-10, rtol=0)
        calls = np.array(carry[0].memory.calls)
    assert np.abs(told[-1][0] - case.X0).max() > 0.05, "nothing moves: this shows nothing"
    assert calls.tolist() == [node.calls for node in nodes]


def test_with_its_default_weights_it_is_extra():
    """As EXTRA has it with lazy ones; also from models that differ."""
    X0 = np.random.default_rng(1).standard_normal((V, 4))
    ours = run(EDGE(ew.SAGA(), eta=0.5), X0=X0)
    extra = run(ew.EXTRA(ew.SAGA(), eta=0.5), X0=X0)
    assert_allclose(ours.X, extra.X, atol=1e-12)
    assert_allclose(ours.duals, extra.duals, atol=1e-12)
    other = run(EDGE(ew.SAGA(), eta=0.5, beta=0.3), X0=X0)
    assert np.abs(other.X - ours.X).max() > 1e-3


@pytest.mark.quick_if(lambda graph, how: (graph, how) == ("ring", "label"))
@pytest.mark.parametrize("how", ["iid", "label"])
@pytest.mark.parametrize("graph", ["ring", "random", "complete"])
def test_it_reaches_the_optimum(graph, how):
    result = run(EDGE(ew.SAGA()), graph, how, rounds=3500)
    assert_allclose(result.X, np.tile(ew.reference(problem(how)).x, (V, 1)), atol=1e-8)
    assert_allclose(result.duals.sum(0), 0, atol=1e-12)
    with jax.enable_x64(True):
        p, X = problem(how).block(None, np.float64), jnp.asarray(result.X)
        assert_allclose(result.duals, p.full(X) + p.ridge(X), atol=1e-8)


def test_steps_of_each_nodes_own_move_no_optimum():
    eta = np.linspace(0.3, 0.8, V)
    result = run(EDGE(ew.Full(), eta), "ring", rounds=2000)
    assert_allclose(result.X, np.tile(ew.reference(problem("label")).x, (V, 1)), atol=1e-8)


def test_it_is_unstable_where_the_docstring_says():
    """eta (L/2 + 3/4 beta |B|^2) = 1, on squares of curvature L = 1; |B|^2 = 4/3 on this ring."""
    unit = np.sqrt(3) * np.eye(3)
    rng = np.random.default_rng(0)
    squares = ew.Problem([(unit, rng.normal(size=3)) for _ in range(V)], ew.Squared())

    def spread(eta, beta):
        method = EDGE(ew.Full(), eta, beta)
        done = ew.solve(
            squares, GRAPHS["ring"], method, rounds=400, record_every=400, reference=False
        )
        return done.trace["consensus"][-1]

    limit = 1 / 0.8 - 0.5  # of beta, for eta = 0.8
    assert spread(0.8, 0.97 * limit) < 1e-3
    assert spread(0.8, 1.03 * limit) > 10
    for graph in GRAPHS.values():
        ready, _ = EDGE(ew.Full()).prepare(whole_network(squares, graph))
        assert ready.eta[0, 0] * (0.5 + 0.75 * 2 * ready.beta) < 1


def test_it_goes_on_where_it_stopped():
    whole, half = run(EDGE(ew.Full()), rounds=40), run(EDGE(ew.Full()), rounds=20)
    rest = run(EDGE(ew.Full()), rounds=20, X0=half.X, duals=half)
    assert_allclose(rest.X, whole.X, atol=1e-13)
    assert np.abs(whole.X - half.X).max() > 1e-5


@pytest.mark.parametrize(("batch", "name"), [(1, "edge"), (4, None)])
def test_costs_are_exact(batch, name):
    result = run(name or EDGE(ew.SAGA(batch)), how="iid", record_every=10)
    at = np.array([0, 10, 20, 30])
    assert list(result.trace["rounds"]) == list(at)
    assert list(result.trace["vectors_sent"]) == list(2 * 9 * at)
    assert list(result.trace["oracle_calls"]) == list(20 + batch * at)


def test_the_rules():
    steps = ew.SAGA().auto_step(problem("label").smoothness)
    ready, weights = EDGE(ew.SAGA()).prepare(whole_network(problem("label"), GRAPHS["ring"]))
    assert steps.min() < steps.max()
    assert_allclose(ready.eta, np.full((V, 1), steps.min()))
    assert ready.beta == 1 / (4 * steps.min())
    assert_allclose(weights["mixing"], 1 / 3)


def test_steps_can_be_swept():
    etas, betas = np.array([0.1, 0.4, 0.8]), np.array([2.0, 0.5, 0.2])
    with jax.enable_x64(True):
        made = Simulator(problem("iid"), GRAPHS["ring"], EDGE(ew.SAGA()), SEED, np.dtype(float))
        words = draw_bits(jax.random.key(SEED), jnp.arange(V), jnp.arange(12), 1)[:, None]
        carry = made.start(np.ones((V, 4)), None)

        def go(eta, beta):
            method = jax.tree.unflatten(
                jax.tree.structure(made.method), [jnp.full((V, 1), eta), beta]
            )
            rounds = partial(run_rounds, unroll=1)
            return rounds(method, made.network, made.block, carry, words, None)[0].X

        swept = jax.jit(jax.vmap(go))(jnp.asarray(etas), jnp.asarray(betas))
    for eta, beta, X in zip(etas, betas, swept, strict=True):
        alone = run(EDGE(ew.SAGA(), eta, beta), "ring", "iid", 12, X0=np.ones(4), seed=SEED)
        assert_allclose(X, alone.X, atol=1e-12)


def test_what_cannot_work_is_refused():
    with pytest.raises(MethodError, match="give an estimator"):
        EDGE("saga")
    with pytest.raises(MethodError, match="has momentum"):
        EDGE(ew.ASVRG())
    for beta in (-1.0, np.inf, "much"):
        with pytest.raises(MethodError, match="beta"):
            run(EDGE(ew.SAGA(), beta=beta))
    with pytest.raises(GraphError, match="has shape"):
        run(EDGE(ew.SAGA(), mixing=np.eye(3)))
    penalised = ew.Problem(problem("iid").shards, ew.Logistic(ridge=0.1), ew.L1(0.01))
    with pytest.raises(MethodError, match="EDGE cannot handle a penalty"):
        ew.solve(penalised, GRAPHS["ring"], "edge")

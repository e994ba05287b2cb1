"""APAPC, OPAPC and accelerated VR-EXTRA: the iterates of a transcript, an optimum by somebody else,
exact costs, and that they are faster where they are meant to be."""

from functools import cache
from itertools import islice

import accelerated_numpy as plain
import averaging_numpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

import edgewise as ew
from edgewise.backend.random_bits import draw_bits
from edgewise.engines.simulator import Simulator
from edgewise.errors import MethodError, UnknownName
from edgewise.graph.mixing import mixing_weights
from edgewise.methods.catalogue import make
from edgewise.methods.knowledge import whole_network

V, ROWS, N, SEED, T = 8, 120, 4, 5, 20
NAMES = ("apapc", "opapc", "acc-vr-extra")
GRAPHS = {
    "ring": ew.Graph.ring(V),
    "random": ew.Graph.random(V, 12),
    "path": ew.Graph.path(V),
    "complete": ew.Graph.complete(V),
}


@cache
def samples():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((ROWS, N)) * [3.0, 1.0, 0.3, 0.1] + 0.2
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ [1.0, -2.0, 0.5, 3.0] + 0.3 * rng.standard_normal(ROWS) > 0, 1, -1)
    return X, y


@cache
def problem(ridge=0.01, **options):
    shards = ew.split(*samples(), nodes=V, how="label", alpha=0.3)
    return ew.Problem(shards, loss=ew.Logistic(ridge=ridge), **options)


@cache
def optimum(ridge):
    """Of sum_i f_i, by scikit-learn."""
    made = problem(ridge)
    fit = LogisticRegression(
        C=1 / (V * ridge), fit_intercept=False, solver="newton-cholesky", tol=1e-14, max_iter=500
    )
    weight = np.repeat(1 / made.counts, made.counts)
    return fit.fit(made.shards.X, made.shards.y, sample_weight=weight).coef_[0]


def matrix(graph, rule):
    W = np.zeros((V, V))
    W[tuple(graph.edges.T)] = mixing_weights(rule, graph)
    W += W.T
    return W + np.diag(1 - W.sum(1))


def parts(made):
    return [(made.shards.X[made.own(i)], made.shards.y[made.own(i)]) for i in range(V)]


def iterates(made, graph, method, X0):
    """x(0)..x(T) of the library, calls, and the random words."""
    with jax.enable_x64(True):
        sim = Simulator(made, graph, method, SEED, np.dtype("float64"))
        carry, phases = sim.start(X0, None), len(sim.method.phases)
        got = [np.asarray(sim.view(carry)[0])]
        for t in range(T):
            carry, _ = sim.advance(carry, t * phases, phases)
            X, duals = map(np.asarray, sim.view(carry))
            assert_allclose(duals.sum(0), 0, atol=1e-12)
            got.append(X)
        draws = method.random_draws
        words = draw_bits(jax.random.key(SEED), jnp.arange(V), jnp.arange(T), draws)
        return got, np.asarray(carry[0].memory.calls), np.asarray(words)


def assert_same(got, expected):
    assert_allclose(got, expected, atol=1e-12, rtol=0)
    assert np.abs(np.diff(expected, axis=0)).max(axis=(1, 2)).min() > 1e-5, "nothing moves"


@pytest.mark.parametrize("graph", ["random", "path"])
@pytest.mark.parametrize("name", ["apapc", "apapc, theory", "opapc", "opapc, theory"])
def test_apapc_and_opapc_are_as_printed(name, graph):
    made, graph = problem(), GRAPHS[graph]
    name, _, theory = name.partition(", ")
    method = make(name, eta="theory" if theory else None)
    depth = method.prepare(whole_network(made, graph))[0].depth
    assert depth == 1 if name == "apapc" else depth > 1
    X0 = np.random.default_rng(2).standard_normal((V, N))
    got, calls, _ = iterates(made, graph, method, X0)
    gradient = averaging_numpy.Full(parts(made), 0.01, np.zeros((1, 1, 1)))
    W, L = matrix(graph, "metropolis"), made.smoothness.mean.max()
    if name == "apapc":
        expected = plain.apapc(W, gradient, L, 0.01, X0, bool(theory))
    else:
        expected = plain.opapc(W, gradient, L, 0.01, depth, X0, bool(theory))
    assert_same(got, list(islice(expected, T + 1)))
    gradient(T, got[-1])  # the library has gone on to the gradient of the next step
    assert (calls == gradient.calls).all()


@pytest.mark.parametrize("batch", [1, 3])
def test_accelerated_vr_extra_is_as_derived(batch):
    made, graph, eta, mu = problem(), GRAPHS["random"], 0.7, 0.003
    X0 = np.random.default_rng(2).standard_normal((V, N))
    method = ew.AccVRExtra(eta, mu, batch=batch)
    got, calls, words = iterates(made, graph, method, X0)
    if batch == 1:
        gradient = plain.Katyusha(parts(made), 0.01, words)
        W = matrix(graph, "lazy-metropolis")
        assert_same(got, list(islice(plain.acc_vr_extra(W, gradient, eta, mu, X0), T + 1)))
        assert (calls == gradient.calls).all()
    heads = words[:, :, 0] < 2**32 * np.minimum(1, batch / made.counts)
    each = made.counts + 2 * T * np.minimum(batch, made.counts) + made.counts * heads.sum(0)
    assert (calls == each).all()


@pytest.mark.quick_if(lambda graph, **_: graph == "ring")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("ridge", [0.1, 0.001])
def test_they_reach_the_optimum(name, graph, ridge):
    run = ew.solve(
        problem(ridge),
        GRAPHS[graph],
        name,
        rounds=6000,
        record_every=200,
        tol=1e-11,
        progress=False,
    )
    assert_allclose(run.X, np.tile(optimum(ridge), (V, 1)), atol=1e-8)
    assert_allclose(run.duals.sum(0), 0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_without_strong_convexity_too(name):
    """Least squares with nothing to make them strongly convex at any one node."""
    X, _ = samples()
    shards = [(X[i::V][:3], X[i::V][:3] @ np.ones(N) + 0.1 * i) for i in range(V)]
    made = ew.Problem(shards, ew.Squared())
    run = ew.solve(made, GRAPHS["ring"], name, rounds=30000, record_every=1000, tol=1e-10)
    D, y = (np.concatenate(a) for a in zip(*shards, strict=True))
    assert_allclose(run.X, np.tile(np.linalg.lstsq(D, y)[0], (V, 1)), atol=1e-6)


def calls_to(name, made, level, graph="ring", rounds=1500):
    """Infinite where the rounds do not do."""
    run = ew.solve(made, GRAPHS[graph], name, rounds=rounds, record_every=20, progress=False)
    there = np.flatnonzero(run.trace["bregman"] < level * run.trace["bregman"][0])
    return run.trace["oracle_calls"][there[0]] if len(there) else np.inf


def test_they_are_faster_where_condition_numbers_are_bad():
    made = problem(1e-4)
    assert 3 * calls_to("apapc", made, 1e-9) < calls_to("extra", made, 1e-9, rounds=2500)
    slow = calls_to("vr-extra", made, 1e-9, rounds=13000)
    assert 3 * calls_to("acc-vr-extra", made, 1e-9, rounds=5000) < slow


def test_chebyshev_saves_gradients_where_the_graph_is_slow():
    made = problem(0.1)
    assert 1.5 * calls_to("opapc", made, 1e-9, "path") < calls_to("apapc", made, 1e-9, "path")


@pytest.mark.parametrize("name", NAMES)
def test_costs_are_exact(name):
    graph = GRAPHS["path"]
    run = ew.solve(problem(), graph, name, rounds=12, record_every=12, reference=False)
    depth = run.trace["rounds"][-1] if name == "opapc" else 1
    rounds = run.trace["rounds"][-1]
    if name == "opapc":
        values = np.linalg.eigvalsh(np.eye(V) - matrix(graph, "metropolis"))
        depth = int(np.sqrt(values[-1] / values[1]))
        assert depth > 2
        assert rounds == depth * -(-12 // depth)
    if name != "acc-vr-extra":  # whose calls are held to its coins above
        assert run.trace["oracle_calls"][-1] == problem().counts.mean() * (1 + rounds // depth)
    assert run.trace["vectors_sent"][-1] == rounds * 2 * graph.edge_count


@pytest.mark.parametrize("name", NAMES)
def test_a_former_run_or_another_method_starts_it(name):
    made, graph = problem(), GRAPHS["ring"]
    solved = ew.solve(made, graph, "pd", rounds=4000, record_every=4000, reference=False)
    options = {"rounds": 12, "X0": solved.X, "reference": False}
    kept = ew.solve(made, graph, name, duals=solved, **options)
    assert_allclose(kept.X, solved.X, atol=1e-9)
    assert np.abs(ew.solve(made, graph, name, **options).X - solved.X).max() > 1e-4


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ew.APAPC(depth=0), MethodError, "APAPC's depth is 0"),
        (lambda: ew.AccVRExtra(batch=0), MethodError, "AccVRExtra's batch is 0"),
        (lambda: ew.APAPC(ew.ASVRG()), MethodError, "has momentum"),
        (lambda: prepared(ew.APAPC(mu="least")), UnknownName, "unknown rule mu 'least'"),
        (lambda: prepared(ew.APAPC(mu=-1)), MethodError, "mu must be positive"),
        (lambda: prepared(ew.APAPC(mu=np.arange(1, V + 1))), MethodError, "one mu for all"),
        (lambda: prepared(ew.AccVRExtra(eta="theory")), MethodError, "use eta='auto'"),
        (lambda: prepared(ew.AccVRExtra(eta=np.arange(1, V + 1))), MethodError, "one step for all"),
    ],
)
def test_what_cannot_be_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def prepared(method):
    return method.prepare(whole_network(problem(), GRAPHS["ring"]))


@pytest.mark.parametrize("name", NAMES)
def test_a_penalty_is_refused_before_the_start(name):
    with pytest.raises(MethodError, match="cannot handle a penalty"):
        ew.solve(problem(penalty=ew.L1(0.01)), GRAPHS["ring"], name)

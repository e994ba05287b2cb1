"""Many small nodes: passes over all of them at once say what each would say alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import edgewise as ew
from edgewise.centralised import smooth_part as central
from edgewise.problem import passes, smoothness
from edgewise.running.measures import Target, divergences

V, P = 600, 8
EVEN = np.full(V, 30)
UNEVEN = np.where(np.arange(V) % 100 == 7, 300, np.random.default_rng(1).integers(1, 60, V))


def bent(x, d, y):
    return jnp.log1p(jnp.exp(-(2 * y - 1) * (d @ x))) + 0.1 * jnp.sin(x[0])


def make(counts, kind):
    rng = np.random.default_rng(0)
    N = counts.sum()
    X, y = rng.standard_normal((N, P)), rng.integers(0, 2, N)
    weight = rng.random(N) + 0.1
    match kind:
        case "dense":
            return ew.Problem(ew.Shards(X, y, counts), ew.Logistic(ridge=0.1))
        case "narrow":
            shards = ew.Shards(X.astype(np.float32), y, counts)
            return ew.Problem(shards, ew.Logistic(), sample_weight=weight, intercept=True)
        case "sparse":
            thin = sp.csr_array(X * (rng.random(X.shape) < 0.5))
            return ew.Problem(ew.Shards(thin, y, counts), ew.Logistic(), sample_weight=weight)
        case "outputs":
            shards = ew.Shards(X, np.arange(N) % 3, counts)
            return ew.Problem(shards, ew.Multinomial(), intercept=True)
        case "sparse outputs":
            thin = sp.csr_array(X * (rng.random(X.shape) < 0.5))
            return ew.Problem(ew.Shards(thin, np.arange(N) % 3, counts), ew.Multinomial())
        case "custom":
            return ew.Problem(ew.Shards(X, y, counts), ew.CustomLoss(bent), sample_weight=weight)


def sample_by_sample(problem, X):
    """(N, ...) slopes, (V, n) mean gradients and (V,) mean values, ridge apart: each sample's by
    autodiff, added up by NumPy."""
    loss, C = problem.loss, problem.loss.outputs
    D = problem.shards.X.toarray() if sp.issparse(problem.shards.X) else problem.shards.X
    D, y = np.asarray(D, np.float64), problem.labels
    scale = np.ones(len(y)) if problem.scale is None else problem.scale

    def margin(x, d):
        W = x[: C * P].reshape(C, P)
        z = W @ d + (x[C * P :] if problem.intercept else 0.0)
        return z if C > 1 else z[0]

    def value(x, d, y):
        return loss.value(margin(x, d), y) if loss.linear else loss.fn(x, d, y)

    each = np.repeat(np.arange(problem.nodes), problem.counts)
    values, gradients = jax.vmap(jax.value_and_grad(value))(X[each], D, y)
    slopes = jax.vmap(loss.slope)(jax.vmap(margin)(X[each], D), y) if loss.linear else gradients

    def weighed(a):
        return (np.asarray(a).T * scale).T

    def mean(a):
        return (np.add.reduceat(weighed(a), problem.shards.first).T / problem.counts).T

    return weighed(slopes), mean(gradients), mean(values)


KINDS = ["dense", "narrow", "outputs", "sparse outputs", "custom"]


@pytest.mark.quick_if(lambda kind, counts: (counts is EVEN) == (kind in ("narrow", "custom")))
@pytest.mark.parametrize("counts", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_says_what_the_samples_say(kind, counts):
    problem = make(counts, kind)
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        X = jnp.asarray(rng.standard_normal((V, problem.size)))
        block = problem.block(None, np.float64)
        slopes, means, values = sample_by_sample(problem, X)
        before, mean = rng.standard_normal(slopes.shape), rng.standard_normal(means.shape)
        refresh = jax.jit(lambda b, *rest: b.refresh(*rest))
        for due in (np.ones(V, bool), rng.random(V) < 0.4, np.arange(V) == 7, np.zeros(V, bool)):
            table, G = refresh(block, before, mean, X, due)
            own = np.repeat(due, counts)
            assert np.allclose(table[own], slopes[own], rtol=0, atol=1e-12)
            assert np.allclose(G[due], means[due], rtol=0, atol=1e-12)
            assert (np.asarray(table)[~own] == before[~own]).all()
            assert (np.asarray(G)[~due] == mean[~due]).all()
        ridge = 0.5 * (X * block.ridge(X)).sum(1)
        assert np.allclose(jax.jit(lambda b, X: b.values(X))(block, X), values + ridge, atol=1e-12)


@pytest.mark.parametrize("counts", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_the_divergence_is_that_of_the_values(counts):
    problem = make(counts, "narrow")
    rng = np.random.default_rng(3)
    with jax.enable_x64(True):
        X, x = jnp.asarray(rng.standard_normal((V, P + 1))), jnp.asarray(rng.standard_normal(P + 1))
        block, star = problem.block(None, np.float64), jnp.broadcast_to(x, X.shape)
        gradients = sample_by_sample(problem, star)[1]
        found = jax.jit(divergences)(block, X, Target(x, gradients, gradients, x[0]))
        rise = sample_by_sample(problem, X)[2] - sample_by_sample(problem, star)[2]
        assert np.allclose(found, rise - (gradients * (X - x)).sum(1), atol=1e-12)


@pytest.mark.parametrize(
    ("nodes", "counts", "most"),
    [
        (3_000, lambda V: np.full(V, 40), 1),
        (9_000, lambda V: np.full(V, 40), 1),
        (3_000, lambda V: 1 + np.arange(V) % 39, 2 * 3_000 / passes.MOST_CHUNK_NODES + 1),
    ],
)
def test_the_loop_is_short(nodes, counts, most):
    """One look at all nodes where they hold equally many, a chunk of them at a time elsewhere."""
    sizes = counts(nodes)
    X = np.ones((sizes.sum(), 2))
    problem = ew.Problem(ew.Shards(X, X[:, 0], sizes), ew.Squared())
    with jax.enable_x64(True):
        block = problem.block(None, np.float64)
        looks = jax.jit(
            lambda b, due: passes.fold(b, due, lambda part, k: k + 1, 0, np.dtype(np.float64))
        )
        assert 1 <= looks(block, np.ones(nodes, bool)) <= most
        assert looks(block, np.zeros(nodes, bool)) == 0


def test_nothing_is_computed_where_no_node_is_due():
    """XLA moves what does not change in a loop before it, where it would run every round."""
    problem = make(EVEN, "dense")
    with jax.enable_x64(True):
        block = problem.block(None, np.float64)
        X, table, due = jnp.zeros((V, P)), jnp.zeros(EVEN.sum()), jnp.zeros(V, bool)
        refresh = jax.jit(lambda b, *rest: b.refresh(*rest))
        program = refresh.lower(block, table, X, X, due).compile().as_text()
    inside, always = program.split("ENTRY ")
    assert "dot(" in inside
    assert "dot(" not in always


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_node_in_chunks_of_any_length(kind, monkeypatch):
    problem = make(UNEVEN, kind)
    monkeypatch.setattr(central, "CHUNK_NUMBERS", 100 * P)
    x = np.random.default_rng(4).standard_normal(problem.size)
    with jax.enable_x64(True):
        smooth = central.Smooth(problem)
        means = sample_by_sample(problem, jnp.broadcast_to(x, (V, problem.size)))[1]
        assert len(smooth.chunks) > 50
        assert np.allclose(smooth.node_gradients(x), means + smooth.ridge(x), atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "narrow", "sparse"])
def test_many_nodes_find_the_smoothness_that_one_finds(kind, monkeypatch):
    problem = make(UNEVEN, kind)
    monkeypatch.setattr(smoothness, "GROUP_NUMBERS", 1 << 12)
    alone = np.array([problem.smoothness._top(i) for i in range(V)])
    groups = problem.smoothness._groups()
    assert len(groups) > 10
    together = np.concatenate([problem.smoothness._tops(nodes) for nodes in groups])
    assert np.allclose(together, alone, rtol=1e-4 if kind == "narrow" else 1e-12)

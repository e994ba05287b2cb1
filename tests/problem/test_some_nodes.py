"""A problem of some nodes is a part of the whole one, number for number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import edgewise as ew
from edgewise.backend.random_bits import draw_bits
from edgewise.problem.smoothness import Smoothness

V, N, P = 7, 90, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, P)) * RNG.uniform(0.3, 3, (N, 1))
Y = np.array(["no", "yes"])[RNG.integers(0, 2, N)]
WEIGHT = RNG.uniform(0.2, 2, N)


def shards(X=X, y=Y):
    return ew.split(X, y, nodes=V, how="size", seed=1)


def test_some_nodes_draw_the_samples_that_they_draw_among_all():
    whole = ew.Problem(shards(), ew.Logistic(), weights="sample")
    some = whole.only([5, 0, 3]).only([2, 0])  # nodes 3 and 5
    with jax.enable_x64(True):
        drawn = []
        for problem in (whole, some):
            block = problem.block(None, np.float64)
            words = draw_bits(jax.random.key(3), block.ids, jnp.arange(6), 2)
            drawn.append(np.array([block.rows.dense(block.pick(w).rows) for w in words]))
    assert_array_equal(drawn[0][:, [3, 5]], drawn[1])
    assert not np.array_equal(drawn[0][:, [0, 1]], drawn[1])


def bent(x, d, y):
    return jnp.log1p(jnp.exp(-y * (d @ x))) + 0.1 * jnp.sin(x[0] * d[1])


def in_parts(problem, halves, look):
    """look(Smoothness) at each part, with gathers that put together what the parts hand in.
    What they hand in does not depend on what they get, but for the counts."""

    def put(told):
        out = np.zeros(problem.nodes, told[0].dtype)
        for nodes, own in zip(halves, told, strict=True):
            assert own.shape == (len(nodes),)
            out[nodes] = own
        return out

    handed = []
    for nodes in halves:
        mine = []

        def note(own, mine=mine):
            mine.append(own)
            return problem.counts if len(mine) == 1 else np.ones(problem.nodes)

        look(Smoothness(problem.only(nodes), note))
        handed.append(mine)
    assert len({len(mine) for mine in handed}) == 1  # or some would wait for ever
    gathered = [put(told) for told in zip(*handed, strict=True)]
    out = []
    for nodes in halves:
        replies = iter(gathered)
        local = problem.only(nodes)
        out.append(look(Smoothness(local, lambda own, replies=replies: next(replies))))
    return out


CASES = {
    "dense": (X, ew.Logistic(ridge=0.1), {}),
    "intercept": (X, ew.Squared(), {"intercept": True}),
    "float32": (X.astype(np.float32), ew.Logistic(), {"intercept": True}),
    "weighted": (X, ew.Logistic(), {"weights": "sample", "sample_weight": WEIGHT}),
    "sparse": (sp.csr_array(np.where(X > 0.5, X, 0)), ew.Logistic(), {"sample_weight": WEIGHT}),
    "custom": (X, ew.CustomLoss(bent, ridge=0.2), {"sample_weight": WEIGHT}),
    "sparse custom": (sp.csr_array(np.where(X > 0.5, X, 0)), ew.CustomLoss(bent), {}),
    "given": (X, ew.CustomLoss(bent, smoothness=3.0), {"sample_weight": WEIGHT}),
}


def assert_parts_know_the_whole(problem, halves):
    def look(s):
        assert (s.nodes, s.size) == (problem.nodes, problem.size)
        assert_array_equal(s.counts, problem.counts)
        return s.sample, s.mean, s.expected(3)

    whole = look(problem.smoothness)
    for part in in_parts(problem, halves, look):
        for mine, all_of_it in zip(part, whole, strict=True):
            assert_allclose(mine, all_of_it, rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_parts_gather_the_smoothness_of_the_whole(case):
    D, loss, options = CASES[case]
    labels = Y if loss.linear and not isinstance(loss, ew.Squared) else np.where(Y == "no", -1, 1)
    problem = ew.Problem(shards(D, labels), loss, **options)
    assert_parts_know_the_whole(problem, [[0, 1, 2, 3], [4, 5, 6]])
    assert_parts_know_the_whole(problem, [[6, 1, 3], [0], [5, 2, 4]])


@pytest.mark.parametrize("loss", [ew.Squared(), ew.CustomLoss(lambda x, d, y: (d @ x - y) ** 2)])
def test_a_node_without_curvature_takes_the_largest_of_all_nodes(loss):
    flat = X.copy()
    flat[:10] = 0
    problem = ew.Problem(ew.Shards(flat, X[:, 0], np.full(9, 10)), loss)
    L = problem.smoothness.sample
    assert L[0] == L.max()
    largest = 1 + int(np.argmax(L[1:]))
    others = [i for i in range(1, 9) if i != largest]
    assert_parts_know_the_whole(problem, [[0, *others[:3]], [largest, *others[3:]]])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_parts_of_many_small_nodes(kind):
    """600 together go the way of many; 100 of them alone would not."""
    nodes = 600
    counts = 1 + np.arange(nodes) % 7
    rows = np.random.default_rng(2).standard_normal((counts.sum(), 5)).astype(np.float32)
    problem = ew.Problem(ew.Shards(kind(rows), rows[:, 0], counts), ew.Squared(), intercept=True)
    assert_parts_know_the_whole(problem, [np.arange(100), np.arange(100, nodes)])


def test_large_nodes_are_worked_on_in_parts(monkeypatch):
    """Whichever thread does which, and however many nodes are here: BLAS on many threads would add
    up float32 in another order."""
    nodes, rows, columns = 9, 500, 2000
    halves = [np.arange(3), np.arange(3, nodes)]
    D = np.random.default_rng(5).standard_normal((nodes * rows, columns), np.float32)
    shards = ew.Shards(D, D[:, 0], np.full(nodes, rows))
    problem = ew.Problem(shards, ew.Squared())
    assert_parts_know_the_whole(problem, halves)
    monkeypatch.setattr("edgewise.problem.smoothness.PART_NUMBERS", 100_000)
    cut = ew.Problem(shards, ew.Squared())
    assert_parts_know_the_whole(cut, halves)
    assert_allclose(cut.smoothness.mean, problem.smoothness.mean, rtol=1e-5)
    thin = ew.Problem(ew.Shards(sp.csr_array(D), D[:, 0], shards.counts), ew.Squared())
    assert_allclose(thin.smoothness.mean, problem.smoothness.mean, rtol=1e-5)
    assert len(cut.smoothness._parts(4)) == len(thin.smoothness._parts(4)) == 10

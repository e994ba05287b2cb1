"""Clipped gradients: how much one sample can move them, whatever it is; and what is added."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import edgewise as ew
from edgewise.backend.numpy_program import NumpyProgram
from edgewise.engines.native.gpu import on_gpu
from edgewise.gradients.private import PrivateGradient, clipped_means, normals

CLIP, N, K = 0.7, 4, 6
RNG = np.random.default_rng(0)
LOSSES = {
    "logistic": (ew.Logistic(ridge=0.1), lambda r: r.choice([-1.0, 1.0], K)),
    "squared": (ew.Squared(), lambda r: 30 * r.standard_normal(K)),
    "huber": (ew.Huber(2.0), lambda r: 30 * r.standard_normal(K)),
    "multinomial": (ew.Multinomial(), lambda r: r.permutation([0, 1, 2, 0, 1, 2])),
    "custom": (
        ew.CustomLoss(lambda x, d, y: jnp.exp(jnp.abs(x @ d - y)), smoothness=1.0),
        lambda r: r.standard_normal(K),
    ),
}


def mean_of(rows, labels, loss, X, sparse=False, **options):
    """(n,) the clipped mean at the model X, of one node's samples."""
    rows = sp.csr_array(rows) if sparse else rows
    classes = [-1.0, 1.0] if isinstance(loss, ew.Logistic) else None
    classes = [0, 1, 2] if isinstance(loss, ew.Multinomial) else classes
    with jax.enable_x64(True):
        problem = ew.Problem([(rows, labels)], loss, classes=classes, **options)
        args = problem.block(None, np.float64), X[None], np.float64(CLIP)
        return NumpyProgram(clipped_means, args)(*args)[0]  # nothing is compiled


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("sparse", "intercept"), [(False, True), (True, False)])
def test_no_sample_moves_the_sum_by_more_than_the_clip(name, sparse, intercept):
    loss, label = LOSSES[name]
    options = {} if name == "custom" else {"intercept": intercept}
    size = N * (3 if name == "multinomial" else 1)
    size += 0 if name == "custom" else intercept * (3 if name == "multinomial" else 1)
    moved = []
    for trial, size_of_rows in enumerate([1e-2, 1, 1, 10, 10, 1e3]):
        rng = np.random.default_rng(trial)
        rows, labels = rng.standard_normal((K, N)) * size_of_rows, label(rng)
        X = 3 * rng.standard_normal(size)
        without = rows.copy()
        without[0] = 0
        there = mean_of(rows, labels, loss, X, sparse, **options)
        # the sample alone, as the mean of one: what it adds is that, K times as small
        own = mean_of(rows[:1], labels[:1], loss, X, sparse, **options)
        moved.append(np.linalg.norm(own))
        rest = mean_of(rows[1:], labels[1:], loss, X, sparse, **options)
        np.testing.assert_allclose(K * there, own + (K - 1) * rest, rtol=1e-9, atol=1e-12)
        if not (intercept or name == "custom"):
            gone = mean_of(without, labels, loss, X, sparse, **options)
            np.testing.assert_allclose(K * gone, (K - 1) * rest, rtol=1e-9, atol=1e-12)
    assert max(moved) <= CLIP * (1 + 1e-12)
    assert max(moved) > 0.99 * CLIP  # large rows are clipped, and to no less


def test_short_gradients_stay_as_they_are():
    rows, labels = 0.1 * RNG.standard_normal((K, N)), RNG.choice([-1.0, 1.0], K)
    X = RNG.standard_normal(N)
    found = mean_of(rows, labels, ew.Logistic(), X)
    plain = -(labels / (1 + np.exp(labels * (rows @ X)))) @ rows / K
    np.testing.assert_allclose(found, plain, rtol=1e-12)


def test_a_gradient_that_is_no_number_counts_as_zero():
    overflow = ew.CustomLoss(lambda x, d, y: jnp.exp(1e4 * y * (x @ d) ** 2), smoothness=1.0)
    rows = np.concatenate([np.ones((1, N)), np.zeros((K - 1, N))])
    found = mean_of(rows, np.ones(K), overflow, np.ones(N))
    np.testing.assert_array_equal(found, 0)


def test_noise_is_normal_of_the_deviation_that_was_paid_for():
    counts = np.array([4, 8] * 200)
    shards = [(np.zeros((k, 3)), np.ones(k)) for k in counts]
    estimator = PrivateGradient(3, CLIP, 2.5, 1.0, 1.0)
    assert estimator.random_draws == 6
    bits = RNG.integers(0, 2**32, (len(counts), 6), np.uint32)
    X = np.zeros((len(counts), 3))
    with jax.enable_x64(True):
        for weights, share in (("node", 1 / counts), ("sample", np.full(len(counts), 1 / 6))):
            block = ew.Problem(shards, ew.Squared(), weights=weights).block(None, np.float64)
            run = jax.jit(lambda p, X, bits: estimator(p, X, estimator.init(p, X), bits))
            G, memory = run(block, X, bits)  # whose clipped means are zero
            scaled = np.asarray(G) / (2.5 * CLIP * share)[:, None]
            assert stats.kstest(scaled.ravel(), "norm").pvalue > 1e-3
            assert memory.calls.tolist() == counts.tolist()


def test_normals_at_the_ends_of_their_bits():
    ends = np.array([0, 1, 2**31, 2**32 - 1], np.uint32)
    bits = np.stack(np.meshgrid(ends, ends, ends), -1).reshape(-1, 3)
    with jax.enable_x64(True):
        made = np.asarray(normals(jnp.asarray(bits)))
    assert np.isfinite(made).all()
    assert 9.3 < np.abs(made).max() < 9.5


def test_the_block_of_a_gpu_clips_as_others_do():
    """Its rows are read where they lie, and taken by number; so many nodes go in chunks."""
    V = 300
    rows, labels = RNG.standard_normal((2 * V, N)), RNG.choice([-1.0, 1.0], 2 * V)
    with jax.enable_x64(True):
        problem = ew.Problem(ew.split(rows, labels, nodes=V), ew.Logistic())
        p, X = problem.block(None, np.float64), jnp.ones((V, N))
        found = [jax.jit(clipped_means)(block, X, CLIP) for block in (p, on_gpu(p))]
    np.testing.assert_array_equal(*found)

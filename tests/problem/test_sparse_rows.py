"""Sparse rows answer as the dense ones that they stand for, whatever their lengths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import edgewise as ew
from edgewise.problem.rows import group_size, make_rows

FEATURES = 60
LENGTHS = {  # entries of each row, and the size of the groups that they are kept in
    "long": ([40, 0, 33, 9, 60, 24, 17, 41, 8, 0], 8),
    "short": ([4, 3, 8, 0, 4, 7, 11, 4], 4),
    "pairs": ([2, 2, 0, 2, 4, 1, 2, 2], 2),
    "single": ([1, 1, 1, 0, 1, 1], 1),
    "empty": ([0, 0, 0], 8),
}
OUTPUTS = [(), (3,)]  # of a scalar loss, and of one with three classes


def matrix(lengths, seed=0):
    rng = np.random.default_rng(seed)
    X = np.zeros((len(lengths), FEATURES))
    for row, length in zip(X, lengths, strict=True):
        row[rng.choice(FEATURES, length, replace=False)] = rng.standard_normal(length)
    return X


@pytest.fixture(params=LENGTHS)
def both(request):
    """A dense matrix, and its sparse rows in stretches of two or three."""
    X = matrix(LENGTHS[request.param][0])
    with jax.enable_x64(True):
        yield X, make_rows(sp.csr_array(X), 3 if len(X) % 2 else 2, np.float64, FEATURES)


@pytest.mark.parametrize("name", LENGTHS)
def test_groups_are_as_large_as_rows_are_long(name):
    lengths, size = LENGTHS[name]
    assert group_size(np.array(lengths)) == size


def test_filling_up_costs_at_most_a_quarter():
    rng = np.random.default_rng(0)
    for longest in (1, 2, 3, 5, 8, 13, 30, 100):
        lengths = rng.integers(0, longest + 1, 200)
        g = group_size(lengths)
        assert (-(-lengths // g) * g).sum() <= 1.25 * lengths.sum()


@pytest.mark.parametrize("outputs", OUTPUTS)
def test_picked_rows(both, outputs):
    X, rows = both
    rng = np.random.default_rng(1)
    at = rng.integers(0, len(X), (4, 5))  # some twice: their gradients must add up
    W, s = rng.standard_normal((4, *outputs, FEATURES)), rng.standard_normal((4, 5, *outputs))
    taken = rows.take(jnp.asarray(at))
    assert_array_equal(rows.dense(taken), X[at])
    margins = np.einsum("vbp,v...p->vb...", X[at], W)
    assert_allclose(rows.dot(taken, jnp.asarray(W)), margins, atol=1e-13)
    gradients = np.einsum("vb...,vbp->v...p", s, X[at])
    assert_allclose(rows.spread(taken, jnp.asarray(s)), gradients, atol=1e-13)


@pytest.mark.parametrize("outputs", OUTPUTS)
def test_stretches_of_rows(both, outputs):
    X, rows = both
    rng = np.random.default_rng(2)
    w, s = rng.standard_normal((*outputs, FEATURES)), rng.standard_normal((rows.tile, *outputs))
    for start in range(len(X) - rows.tile + 1):
        own, slab = X[start : start + rows.tile], rows.slab(jnp.asarray(start))
        assert_array_equal(slab.dense(), own)
        assert_allclose(slab.dot(jnp.asarray(w)), own @ w.T, atol=1e-13)
        assert_allclose(slab.spread(jnp.asarray(s)), s.T @ own, atol=1e-13)


def test_a_column_outside_a_row_is_not_touched():
    """Groups are filled up with a row's own columns: elsewhere a model may be anything."""
    X = matrix(LENGTHS["long"][0])
    with jax.enable_x64(True):
        rows = make_rows(sp.csr_array(X), len(X), np.float64, FEATURES)
        for k in np.flatnonzero((X != 0).any(1)):
            w = jnp.where(X[k] != 0, 1.0, jnp.nan)
            first, after = rows.starts[k], rows.starts[k + 1]
            assert np.isfinite(w[rows.columns[first:after]]).all()


def test_what_is_stored_is_of_the_order_of_the_entries():
    X = sp.random_array((400, 5000), density=0.01, format="csr", rng=np.random.default_rng(0))
    with jax.enable_x64(True):
        rows = make_rows(sp.csr_array(X), 100, np.float64, 5000)
        held = sum(a.nbytes for a in jax.tree.leaves(rows))
    assert held < 16 * X.nnz  # 8 a value, 4 a column, and a little for the groups


def test_narrow_data_stay_narrow_and_products_do_not():
    X = matrix(LENGTHS["long"][0]).astype(np.float32)
    with jax.enable_x64(True):
        rows = make_rows(sp.csr_array(X), 5, np.float64, FEATURES)
        assert rows.values.dtype == np.float32
        w = jnp.linspace(0, 1, FEATURES)
        z = rows.dot(rows.take(jnp.arange(10)[None]), w[None])[0]
        assert z.dtype == np.float64
        assert_allclose(z, X.astype(np.float64) @ np.asarray(w), rtol=1e-12, atol=1e-13)
        slab = rows.slab(jnp.asarray(5))
        assert_allclose(slab.dot(w), X[5:].astype(np.float64) @ np.asarray(w), rtol=1e-12)
        assert slab.spread(jnp.ones(5)).dtype == np.float64


@pytest.mark.parametrize("method", ["pd", "saga-pd"])
def test_rows_of_very_uneven_lengths_in_a_run(method):
    """Long rows among short ones, so that groups of eight and full passes are in play."""
    rng = np.random.default_rng(4)
    X = matrix(np.r_[rng.integers(1, 30, 35), [60, 0, 60, 1, 55]], seed=4)
    y = np.where(rng.random(40) < 0.5, -1, 1)
    runs = [
        ew.solve(
            ew.Problem(ew.split(kind(X), y, nodes=4), ew.Logistic(ridge=0.1), ew.L1(1e-3)),
            ew.Graph.ring(4),
            method,
            rounds=60,
            record_every=30,
            reference=False,
        )
        for kind in (np.asarray, sp.csr_array)
    ]
    assert_allclose(runs[0].X, runs[1].X, atol=1e-11)
    assert_allclose(runs[0].trace["residual"], runs[1].trace["residual"], rtol=1e-8)

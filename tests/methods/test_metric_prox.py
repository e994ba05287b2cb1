"""The prox of a penalty in the metric of a matrix: its conditions of optimality, units, zeros."""

from functools import cache

import catalogue as cat
import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.methods import newton_pd
from edgewise.methods.class_blocks import ClassBlocks
from edgewise.methods.metric_prox import make_solver, newton_step
from edgewise.problem.stacked_penalties import stack

PENALTIES = [
    ew.L1(1.5),
    ew.ElasticNet(1.5, 0.2),
    ew.Box(-0.2, 0.3),
    ew.L2Ball(0.5),
    ew.GroupL2(1.5, cat.GROUPS),
    ew.NoPenalty(),
    ew.SquaredL2(0.7),
    ew.Simplex(1.0),
    ew.HalfSpace(cat.NORMAL, -0.5),
    ew.L1(1.5),  # units of columns that differ by up to 1e4
]
V, n = len(PENALTIES), cat.FEATURES
WHOLE = ClassBlocks(1, False)


@cache
def metric():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(V, n, 2 * n))
    M = root @ root.transpose(0, 2, 1) / n
    unit = np.ones((V, n))
    unit[-1] = [1e2, 1, 1e-2, 1, 1]
    M, r = unit[:, :, None] * M * unit[:, None], unit * rng.normal(size=(V, n))
    return M, rng.normal(size=(V, n)) / unit, r


@jax.jit
def go(penalty, M, X, r, tol, most):
    solver = make_solver(M[:, None], penalty, WHOLE, X)
    return newton_step(penalty, solver, X, r, jnp.zeros_like(X), tol, most, WHOLE)


def step(tol, most):
    with jax.enable_x64(True):
        return tuple(np.array(a) for a in go(stack(PENALTIES, V, n), *metric(), tol, most))


def test_the_prox_in_a_metric():
    """u is where it should be if and only if -r - M (u - X) is in the subdifferential of h at u,
    so if the prox of h takes u plus that to u."""
    M, X, r = metric()
    u, Y, length = step(1e-13, 20_000)
    pull = -r - np.einsum("vij,vj->vi", M, u - X)
    size = np.sqrt(M[:, range(n), range(n)])  # of a coordinate
    for h, at, v, y, s in zip(PENALTIES, u, pull, Y, size, strict=True):
        t = 1 / s[0] ** 2 if not isinstance(h, ew.L1 | ew.ElasticNet | ew.Box) else 1 / s**2
        assert_allclose(s * cat.prox(h, at + t * v, t), s * at, atol=1e-7, err_msg=str(h))
        if not isinstance(h, ew.NoPenalty | ew.SquaredL2):
            assert_allclose(y / s, v / s, atol=1e-7, err_msg=str(h))
    assert (u[[0, 1, 4, 9]] == 0).any(1).sum() >= 2, "no exact zeros: this shows less"
    assert_allclose(u[5], X[5] - np.linalg.solve(M[5], r[5]), atol=1e-8)
    for h, m, way, long in zip(PENALTIES, M, u - X, length, strict=True):
        m = m + (h.lam * np.eye(n) if isinstance(h, ew.SquaredL2) else 0)
        assert_allclose(long, np.sqrt(way @ m @ way), rtol=1e-6, err_msg=str(h))
    assert np.linalg.norm(u[3]) <= 0.5 + 1e-15
    assert (u[2] <= 0.3).all()


def test_the_prox_that_a_round_makes_is_near_and_feasible():
    M, X, _ = metric()
    (exact, *_), (u, *_) = step(1e-13, 20_000), step(newton_pd.INNER_TOL, newton_pd.INNER_MOST)

    def length(a):
        return np.sqrt(np.einsum("vi,vij,vj->v", a, M, a))

    assert (length(u - exact) <= 0.1 * length(exact - X)).all()
    assert np.linalg.norm(u[3]) <= 0.5 + 1e-15
    assert (np.abs(u[2] - 0.05) <= 0.25 + 1e-15).all()


def test_quadratic_penalties_alone_take_one_solve():
    M, X, r = metric()
    lam = np.linspace(0.2, 2, V)
    with jax.enable_x64(True):
        u = np.array(go(stack([ew.SquaredL2(a) for a in lam], V, n), M, X, r, 0.5, 1)[0])
    for i in range(V):
        both = M[i] + lam[i] * np.eye(n)
        assert_allclose(both @ u[i], M[i] @ X[i] - r[i], atol=1e-7 * np.abs(both).max())


def test_float32_and_columns_that_say_the_same():
    """Rounding takes such a matrix below zero."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(V, 4, n)).astype(np.float32)
    rows[:, :, 1], rows[:, :, 2] = rows[:, :, 0], 3 * rows[:, :, 4]
    M = np.einsum("vki,vkj->vij", rows, rows)
    _, X, r = (np.float32(a) for a in metric())
    penalty = stack(PENALTIES, V, n)
    u, Y, _ = go(penalty, M, X, np.einsum("vij,vj->vi", M, r), newton_pd.INNER_TOL, 1000)
    assert u.dtype == np.float32
    assert np.isfinite(u).all()
    assert np.isfinite(Y).all()


def test_classes_in_blocks():
    """Blocks mean one matrix, M = W' diag(M_b) W: products, solves and the prox are its."""
    C, f, rng = 3, 2, np.random.default_rng(4)
    blocks = ClassBlocks(C, intercepts=True)
    root = rng.normal(size=(2, C + 1, f, 2 * f))
    M = root @ root.transpose(0, 1, 3, 2)
    X, r = rng.normal(size=(2, 2, C * f))
    penalties = [ew.L1(0.8), ew.NoPenalty()]
    with jax.enable_x64(True):
        W = np.array(blocks.split(jnp.eye(C * f))).reshape(C * f, -1).T
        assert_allclose(W.T @ W, np.eye(C * f), atol=1e-15)
        assert_allclose(
            W[:f].sum(0), np.array([4, -2, -2, 2, -1, -1]) / 3 * [0.5, 0.5, 0.5, 1, 1, 1]
        )
        big = np.zeros((2, (C + 1) * f, (C + 1) * f))
        for b in range(C + 1):
            big[:, b * f : (b + 1) * f, b * f : (b + 1) * f] = M[:, b]
        whole = W.T @ big @ W
        assert_allclose(blocks.times(jnp.asarray(M), X), np.einsum("vij,vj->vi", whole, X))
        penalty = stack(penalties, 2, C * f)
        solver = make_solver(jnp.asarray(M), penalty, blocks, jnp.asarray(X))
        u, *_ = newton_step(penalty, solver, X, r, jnp.zeros_like(X), 1e-13, 20_000, blocks)
    u = np.array(u)
    pull = -r - np.einsum("vij,vj->vi", whole, u - X)
    assert_allclose(cat.prox(penalties[0], u[0] + 0.3 * pull[0], 0.3), u[0], atol=1e-7)
    assert_allclose(pull[1], 0, atol=1e-7)

"""SkPD's constants, by enumeration: every coordinate that a node may draw."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import edgewise as ew
from edgewise.study import theory

PAIR = ew.Graph.ring(2)
rng = np.random.default_rng(5)


def alike(n=8):
    """Where the constants are nearly attained: the loss of a node is equally curved everywhere."""
    return ew.Problem([(np.eye(n), row) for row in rng.standard_normal((2, n))], ew.Squared())


def logistic(n=5, K=9):
    X, y = rng.standard_normal((2, K, n)), rng.choice([-1, 1], (2, K))
    y[:, 0], y[:, 1] = 1, -1
    return ew.Problem(list(zip(X, y, strict=True)), ew.Logistic(ridge=0.03))


ask = jax.jit(lambda gradient, block, X, memory, words: gradient(block, X, memory, words))


def slack(start, c, X, H):
    """Right minus left side of Assumption 2 at models X with memories H, per node."""
    g, n, star = start.gradient, start.problem.size, start.star.gradients
    drawn, kept = [], []
    with jax.enable_x64(True):
        memory = g.init(start.block, jnp.asarray(X))._replace(H=jnp.asarray(H))
        for j in range(n):
            words = np.full((2, 1), np.ceil(j * 2**32 / n), np.uint32)
            G, after = ask(g, start.block, jnp.asarray(X), memory, jnp.asarray(words))
            drawn.append(np.asarray(G))
            kept.append(np.asarray(after.H))
        whole = np.asarray(start.block.full(jnp.asarray(X)) + start.block.ridge(jnp.asarray(X)))
    np.testing.assert_allclose(np.mean(drawn, 0), whole, atol=1e-12)
    second = ((np.array(drawn) - star) ** 2).sum(2).mean(0)
    later = ((np.array(kept) - star) ** 2).sum(2).mean(0)
    D, phi = theory.Start(start.problem, PAIR, "saga-pd", X0=X).from_f, ((H - star) ** 2).sum(1)
    return np.minimum(
        2 * c.A * D + c.B * phi + 2 * c.sigma2 - second,
        (1 - c.varrho) * phi + 2 * c.C * D - later,
    )


@pytest.mark.parametrize("make", [alike, logistic])
def test_the_constants_hold_at_random_points(make):
    start = theory.Start(make(), PAIR, "sk-pd")
    c = theory.constants(start)
    for spread in (0.01, 1.0, 10.0):
        X = start.star.x + spread * rng.standard_normal(start.X.shape)
        for far in (0.0, 0.1, 3.0):
            H = start.star.gradients + far * spread * rng.standard_normal(start.X.shape)
            assert (slack(start, c, X, H) >= -1e-10 * (1 + spread**2)).all()


@pytest.mark.parametrize("field", ["A", "B", "C"])
def test_no_constant_can_be_halved(field):
    """At x* + u with a memory as far on the other side, so that every change counts twice."""
    start = theory.Start(alike(), PAIR, "sk-pd")
    c, u = theory.constants(start), rng.standard_normal(start.X.shape)
    with jax.enable_x64(True):
        at = np.asarray(start.block.full(jnp.asarray(start.star.x + u)))
    there = (start.star.x + u, 2 * start.star.gradients - at)
    assert (slack(start, c, *there) >= -1e-12).all()
    assert (slack(start, c._replace(**{field: getattr(c, field) / 2}), *there) < -1e-3).all()

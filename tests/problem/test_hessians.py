"""Hessians of nodes' mean losses: against differences of gradients, which NumPy works out."""

import catalogue as cat
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from literal import make_case
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.problem import passes

UNEVEN = (5, 9, 2, 12, 7, 1, 8)
LOSSES = {
    "logistic": ew.Logistic(ridge=0.1),
    "squared": ew.Squared(),
    "huber": ew.Huber(delta=0.5),
    "multinomial": ew.Multinomial(),
}
WAYS = {"a node at a time": {}, "chunks": {"MANY_NODES": 2}, "in place": {"MUCH_DATA": 0}}


def central_differences(gradient, x, step=1e-5):
    """(n, n)"""
    return np.array(
        [(gradient(x + step * e) - gradient(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    )


def blocks_of(H, node, intercept):
    """(b, f, f): the whole; or one per class, weights and intercept, and the mean of all pairs of
    classes times how many classes there are."""
    if node.outputs == 1:
        return H[None]
    p = (len(H) - node.outputs * intercept) // node.outputs
    at = [
        np.append(
            np.arange(c * p, (c + 1) * p), [node.outputs * p + c] if intercept else []
        ).astype(int)
        for c in range(node.outputs)
    ]
    own = [H[np.ix_(a, a)] for a in at]
    pairs = [H[np.ix_(a, b)] for a in at for b in at]
    return np.array([*own, np.mean(pairs, 0) * node.outputs])


@pytest.mark.parametrize(
    ("name", "intercept", "weighted", "sparse", "way"),
    [
        ("logistic", True, True, False, "a node at a time"),
        ("squared", False, False, True, "chunks"),
        ("huber", True, False, False, "in place"),
        ("multinomial", True, True, False, "chunks"),
        ("multinomial", False, False, True, "a node at a time"),
        ("multinomial", True, True, False, "in place"),
    ],
)
def test_hessians(name, intercept, weighted, sparse, way, monkeypatch):
    """Against differences of NumPy's gradients; who is not due keeps what there was."""
    for constant, number in WAYS[way].items():
        monkeypatch.setattr(passes, constant, number)
    even = way == "in place"
    like = "squared" if name == "huber" else name
    counts = (6,) * 7 if even else UNEVEN
    case = make_case(like, "none", intercept, weighted, sparse, counts=counts)
    nodes, loss = [case.node(i) for i in range(7)], LOSSES[name]
    made = ew.Problem(case.problem.shards, loss, intercept=intercept)
    scale = np.concatenate([node.weight for node in nodes])
    X = case.X0
    due = np.ones(7, bool) if even else np.arange(7) % 3 != 1
    with jax.enable_x64(True):
        block = made.block(None, np.float64)._replace(scale=jnp.asarray(scale))
        old = jnp.full((7, *blocks_of(np.eye(case.n), nodes[0], intercept).shape), 3.5)
        H = np.array(jax.jit(lambda b, *a: b.hessians(*a))(block, old, X, jnp.asarray(due)))

    def gradient(node):
        outputs = node.outputs

        def of(x):
            w, bias = node.split(x)
            z = node.d @ np.reshape(w, (outputs, -1)).T + bias
            y = node.y.astype(int) if outputs > 1 else node.y
            s = cat.slopes(loss, z if outputs > 1 else z[:, 0], y)
            s = s.reshape(node.K, outputs) * node.weight[:, None]
            by_weight = (s.T @ node.d).ravel() / node.K
            return np.append(by_weight, s.mean(0)) if intercept else by_weight

        return of

    assert np.abs(X).max() > 0.5
    for node, x, found, asked in zip(nodes, X, H, due, strict=True):
        expected = 3.5
        if asked:
            expected = blocks_of(central_differences(gradient(node), x), node, intercept)
        assert_allclose(found, np.broadcast_to(expected, found.shape), atol=2e-9)

"""What docs/theory.md says of PDMM with a matrix on every edge, in NumPy."""

import numpy as np
import pytest

V, n = 5, 3
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3)]
BOTH = EDGES + [(j, i) for i, j in EDGES]


def definite(rng):
    root = rng.normal(size=(n, 2 * n))
    return root @ root.T / n


class Network:
    """Quadratic F_i(x) = <x, Q_i x> / 2 - <b_i, x>, Q_i of low rank, and matrices on edges."""

    def __init__(self, seed, curved=1.0):
        rng = np.random.default_rng(seed)
        rank_one = rng.normal(size=(V, n, 1))
        self.Q = curved * rank_one @ rank_one.transpose(0, 2, 1)
        self.b = curved * rng.normal(size=(V, n))
        self.P = {}
        for i, j in EDGES:
            self.P[i, j] = self.P[j, i] = definite(rng)
        self.D = [sum(self.P[e] for e in BOTH if e[0] == i) for i in range(V)]

    def models(self, m):
        """argmin F_i - <sum_j m_ji, x> + |x|^2_D / 2"""
        heard = [sum(m[j, i] for i, j in BOTH if i == k) for k in range(V)]
        return [
            np.linalg.solve(Q + D, b + u)
            for Q, D, b, u in zip(self.Q, self.D, self.b, heard, strict=True)
        ]

    def T(self, m):
        x = self.models(m)
        return {(i, j): 2 * self.P[i, j] @ x[i] - m[j, i] for i, j in BOTH}

    def size(self, m):
        return sum(m[e] @ np.linalg.solve(self.P[e], m[e]) for e in BOTH)

    def solution(self):
        return np.linalg.solve(self.Q.sum(0), self.b.sum(0))

    def round(self, x, lam, theta):
        """Models and duals; duals alone are averaged."""
        new = self.models({(i, j): self.P[i, j] @ x[i] - lam[i, j] for i, j in BOTH})
        fresh = {(i, j): -lam[j, i] + self.P[i, j] @ (x[j] - new[i]) for i, j in BOTH}
        return new, {e: (1 - theta) * lam[e] + theta * fresh[e] for e in BOTH}


def noise(seed):
    rng = np.random.default_rng(seed)
    return {e: rng.normal(size=n) for e in BOTH}


def minus(a, b):
    return {e: a[e] - b[e] for e in BOTH}


@pytest.mark.parametrize("seed", range(3))
def test_the_map_is_nonexpansive_and_its_averages_converge(seed):
    net, m, other = Network(seed), noise(seed), noise(seed + 10)
    moved = net.size(minus(net.T(m), net.T(other)))
    assert moved < net.size(minus(m, other))
    for _ in range(4000):
        image = net.T(m)
        m = {e: 0.4 * m[e] + 0.6 * image[e] for e in BOTH}
    for x in net.models(m):
        np.testing.assert_allclose(x, net.solution(), atol=1e-9)


def test_where_losses_are_flat_duals_alone_do_not_stop_the_swapping():
    """Two nodes, no loss: averaged messages settle, models of averaged duals swap."""
    net = Network(0, curved=0.0)
    net.P = {e: np.eye(n) * (e in ((0, 1), (1, 0))) for e in BOTH}
    net.D = [np.eye(n)] * V
    x, lam = np.arange(V * n).reshape(V, n) * 1.0, {e: np.zeros(n) for e in BOTH}
    first = x
    for _ in range(50):
        x, lam = net.round(x, lam, 0.6)
    np.testing.assert_allclose(x[:2], first[:2])
    x, lam = net.round(x, lam, 0.6)
    np.testing.assert_allclose(x[:2], first[1::-1])
    m = {e: np.arange(n) * (1.0 + e[0]) * (e in ((0, 1), (1, 0))) for e in BOTH}
    for _ in range(50):
        image = net.T(m)
        m = {e: 0.4 * m[e] + 0.6 * image[e] for e in BOTH}
    settled = net.models(m)
    np.testing.assert_allclose(settled[0], settled[1], atol=1e-12)

"""Gradient tracking, PMGT and Network-DANE: one mixing matrix, loops, plain NumPy.

PMGT and Network-DANE follow public code that names those papers, GT-SAGA's order another public
code of it, VR-DIGing public notes on the paper. The listings of S-DIGing and GT-SVRG were not at
hand: those follow their abstracts and what is commonly known of them.

Shared with the library are only the random bits. Each gives the iterates x(1)..x(T), and the
nodes, whose oracle has counted what it was asked.
"""

import jax
import numpy as np
from literal import draw, heads

from edgewise.backend.random_bits import draw_bits


def metropolis(graph):
    """The mixing matrix, from the rule as printed."""
    V = graph.nodes
    W = np.zeros((V, V))
    degree = [sum(i in e for e in graph.edges.tolist()) for i in range(V)]
    for i, j in graph.edges.tolist():
        W[i, j] = W[j, i] = 1 / (1 + max(degree[i], degree[j]))
    return W + np.diag(1 - W.sum(1))


def noise(case, rounds, words, seed):
    with jax.enable_x64(True):
        ids, at = np.arange(case.graph.nodes, dtype=np.int32), np.arange(rounds)
        return np.asarray(draw_bits(jax.random.key(seed), ids, at, words))


class Saga:
    def __init__(self, node, x):
        self.node, self.stored = node, [node.sample(x, k) for k in range(node.K)]
        self.first = sum(self.stored) / node.K + node.ridge_part(x)

    def __call__(self, x, words):
        (k,) = draw(words, self.node.K)
        new = self.node.sample(x, k)
        g = new - self.stored[k] + sum(self.stored) / self.node.K + self.node.ridge_part(x)
        self.stored[k] = new
        return g


class Svrg:
    """tau(k) = x(k) where the length divides k, else tau(k-1)."""

    def __init__(self, node, x, length):
        self.node, self.length, self.k, self.tau, self.mean = node, length, 0, x, node.mean(x)
        self.first = self.mean + node.ridge_part(x)

    def __call__(self, x, words):
        self.k += 1
        if self.k % self.length == 0:
            self.tau, self.mean = x, self.node.mean(x)
        (k,) = draw(words, self.node.K)
        change = self.node.sample(x, k) - self.node.sample(self.tau, k)
        return change + self.mean + self.node.ridge_part(x)


class Lsvrg:
    """Here the snapshot is renewed after the gradient, with probability 1/K."""

    def __init__(self, node, x):
        self.node, self.w, self.mean = node, x, node.mean(x)
        self.first = self.mean + node.ridge_part(x)

    def __call__(self, x, words):
        (k,) = draw(words[1:], self.node.K)
        change = self.node.sample(x, k) - self.node.sample(self.w, k)
        g = change + self.mean + self.node.ridge_part(x)
        if heads(words[0], 1 / self.node.K):
            self.w, self.mean = x, self.node.mean(x)
        return g


def gradient_tracking(case, estimator, eta, steps, seed):
    """x(k+1) = W x(k) - alpha y(k); y(k+1) = W y(k) + g(k+1) - g(k); y(0) = g(0) = grad f(x(0))."""
    W, V, x = metropolis(case.graph), case.graph.nodes, case.X0
    nodes = [case.node(i) for i in range(V)]
    oracle = [estimator(nodes[i], x[i]) for i in range(V)]
    words = noise(case, steps + 1, 1, seed)
    g = y = np.array([o.first for o in oracle])
    told = []
    for k in range(steps):
        x = W @ x - eta * y
        new = np.array([oracle[i](x[i], words[k + 1, i]) for i in range(V)])
        y, g = W @ y + new - g, new
        told.append(x)
    return told, nodes


def vr_diging(case, eta, steps, seed):
    """Li, Lin, Fang 2020: x <- x - (eta g + U lambda + V^2 x), lambda <- lambda + U x, for DIGing
    with U = I - W and V^2 = I - W^2. From lambda = -W x(0); for x(0) alike at all nodes that is
    lambda = 0, for U has those in its null space."""
    W, V, x = metropolis(case.graph), case.graph.nodes, case.X0
    nodes = [case.node(i) for i in range(V)]
    oracle = [Lsvrg(nodes[i], x[i]) for i in range(V)]
    words = noise(case, steps, 2, seed)
    U, squared = np.eye(V) - W, np.eye(V) - W @ W
    dual, told = -W @ x, []
    for k in range(steps):
        g = np.array([oracle[i](x[i], words[k, i]) for i in range(V)])
        x = x - (eta * g + U @ dual + squared @ x)
        dual = dual + U @ x
        told.append(x)
    return told, nodes


def fast_mix(W, x, depth):
    sigma = np.linalg.svd(W)[1][1]
    omega = (1 - np.sqrt(1 - sigma**2)) / (1 + np.sqrt(1 - sigma**2))
    old = now = x
    for _ in range(depth):
        old, now = now, (1 + omega) * W @ now - omega * old
    return now


def pmgt(case, estimator, eta, steps, depth, words, seed):
    """x <- FastMix(prox(x - eta s)); s <- FastMix(s + v(t+1) - v(t)); from s = v = grad f."""
    W, V, x = metropolis(case.graph), case.graph.nodes, case.X0
    nodes = [case.node(i) for i in range(V)]
    oracle = [estimator(nodes[i], x[i]) for i in range(V)]
    # a step has 2 depth rounds; the gradient is asked for at the end of the first half
    drawn = noise(case, 2 * depth * steps, words, seed)[depth - 1 :: 2 * depth]
    v = s = np.array([o.first for o in oracle])
    told = []
    for t in range(steps):
        x = np.array([case.prox[i](x[i] - eta * s[i], eta) for i in range(V)])
        x = fast_mix(W, x, depth)
        new = np.array([oracle[i](x[i], drawn[t, i]) for i in range(V)])
        s, v = fast_mix(W, s + new - v, depth), new
        told.append(x)
    return told, nodes


def network_dane(case, local, steps):
    """y = W x; s = W s + grad f(y) - grad f(y before); x = local(i, node, y, s, grad f(y), t)."""
    W, V, x = metropolis(case.graph), case.graph.nodes, case.X0
    nodes = [case.node(i) for i in range(V)]

    def gradients(y):
        return np.array([nodes[i].mean(y[i]) + nodes[i].ridge_part(y[i]) for i in range(V)])

    s = last = gradients(x)
    told = []
    for t in range(steps):
        y = W @ x
        s, last = W @ s - last, gradients(y)
        s = s + last
        x = np.array([local(i, nodes[i], y[i], s[i], last[i], t) for i in range(V)])
        told.append(x)
    return told, nodes


def gradient_steps(eta, mu, inner):
    """Gradient descent on f(z) - <grad f(y) - s, z> + mu/2 |z - y|^2 from y."""

    def local(i, node, y, s, at_y, t):
        z = y - eta * s
        for _ in range(inner - 1):
            z = z - eta * (node.mean(z) + node.ridge_part(z) - at_y + s + mu * (z - y))
        return z

    return local


def svrg_steps(eta, mu, inner, words):
    """Network-SVRG: the same with one sample a step."""

    def local(i, node, y, s, at_y, t):
        z = y - eta * s
        for word in words[t, i]:
            (k,) = draw([word], node.K)
            change = node.sample(z, k) - node.sample(y, k) + node.ridge_part(z - y)
            z = z - eta * (change + s + mu * (z - y))
        return z

    return local


def newton_step(mu):
    """The exact minimiser, for squared losses."""

    def local(i, node, y, s, at_y, t):
        H = node.d.T @ node.d / node.K + (node.ridge + mu) * np.eye(len(y))
        return y - np.linalg.solve(H, s)

    return local

"""Decentralised communication sliding as listed by its authors: a whole Laplacian, y kept, sums at
the end, plain NumPy; shared with the library are only the random bits.

Order of steps and the strongly convex settings are those of public code that names the paper, but
with V(x, u) = |x - u|^2 / 2, for which C = 1; the convex settings are from memory, and a test holds
both against the conditions that such primal-dual proofs need.
"""

import numpy as np


def strongly_convex(mu, norm):
    """(alpha, theta, eta, tau) of k and (lambda, beta) of t and eta."""

    def outer(k):
        return k / (k + 1), k + 1, k * mu / 2, 4 * norm**2 / ((k + 1) * mu)

    def inner(t, eta):
        return t, (t + 1) * mu / (2 * eta) + (t - 1) / 2

    return outer, inner


def convex(norm):
    return lambda k: (1, 1, 2 * norm, norm), lambda t, eta: (t + 1, t / 2)


def dcs(L, nodes, prox, settings, T, X0, words, first=1):
    """Yields the answer after k = 1, 2, ...; `words` (k, V, T, w); starts at k = first."""
    outer, inner = settings
    V = len(nodes)
    before = now = hat = X0  # x(-1) = x(0) = xhat(0)
    y = np.zeros_like(X0)
    weighted, thetas = np.zeros_like(X0), 0
    for k, drawn in enumerate(words):
        alpha, theta, eta, tau = outer(k + first)
        tilde = alpha * (hat - before) + now
        y = y + L @ tilde / tau
        w = L @ y
        pairs = [slide(nodes[i], prox[i], inner, T, eta, w[i], now[i], drawn[i]) for i in range(V)]
        before, now, hat = now, np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
        weighted, thetas = weighted + theta * hat, thetas + theta
        yield weighted / thetas


def slide(gradient, prox, inner, T, eta, w, x, drawn):
    """The CS procedure: the last u, and the weighted mean."""
    u, total, weights = x, 0, 0
    for t in range(1, T + 1):
        weight, beta = inner(t, eta)
        h = gradient(u, drawn[t - 1])
        u = prox((eta * x + eta * beta * u - w - h) / (eta + eta * beta), 1 / (eta + eta * beta))
        total, weights = total + weight * u, weights + weight
    return u, total / weights

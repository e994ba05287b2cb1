"""APAPC, OPAPC and accelerated VR-EXTRA: a matrix W, one iteration after another, plain NumPy.

The first two as their authors print them, Chebyshev's polynomial by its recursion; the third in the
variables lambda and U of its derivation (`edgewise.methods.acc_vr_extra`). Each yields x(0), x(1),
... as (V, n). Nothing here is shared with the library.
"""

import numpy as np
from averaging_numpy import SGD


def accelerated_gossip(N, x, T, c2, c3):
    """x - P(N) x for a polynomial of degree T, by a_{i+1} = 2 c2 a_i - a_{i-1}."""
    before, now, a, b = x, c2 * (x - c3 * N @ x), 1.0, c2
    for _ in range(T - 1):
        before, now = now, 2 * c2 * (now - c3 * N @ now) - before
        a, b = b, 2 * c2 * b - a
    return x - now / b


def opapc(W, gradient, L, mu, T, X, theory=False):
    """Algorithm 2 with T rounds; T = 1 is Algorithm 1. `theory`: steps as printed, else twice."""
    N = np.eye(len(W)) - W
    values = np.linalg.eigvalsh(N)
    chi = values[-1] / values[1]
    c1, c2 = (np.sqrt(chi) - 1) / (np.sqrt(chi) + 1), (chi + 1) / (chi - 1)
    c3 = 2 * chi / ((1 + chi) * values[-1])
    tau = min(1, (1 + c1**T) / (2 * np.sqrt(L / mu) * (1 - c1**T)))
    eta = (1 if theory else 2) / (4 * tau * L)
    theta = (1 + c1 ** (2 * T)) / (eta * (1 + c1**T) ** 2)
    x, x_f, z, k = X, X, np.zeros_like(X), 0
    while True:
        yield x
        x_g = tau * x + (1 - tau) * x_f
        g = gradient(k, x_g)
        half = (x - eta * (g - mu * x_g + z)) / (1 + eta * mu)
        z = z + theta * accelerated_gossip(N, half, T, c2, c3)
        new = (x - eta * (g - mu * x_g + z)) / (1 + eta * mu)
        x, x_f, k = new, x_g + 2 * tau / (2 - tau) * (new - x), k + 1


def apapc(W, gradient, L, mu, X, theory=False):
    """Algorithm 1, with the eigenvalues of I - W itself."""
    N = np.eye(len(W)) - W
    values = np.linalg.eigvalsh(N)
    tau = min(1, np.sqrt(values[-1] / values[1] * mu / L) / 2)
    eta = (1 if theory else 2) / (4 * tau * L)
    theta = 1 / (eta * values[-1])
    x, x_f, z, k = X, X, np.zeros_like(X), 0
    while True:
        yield x
        x_g = tau * x + (1 - tau) * x_f
        g = gradient(k, x_g)
        half = (x - eta * (g - mu * x_g + z)) / (1 + eta * mu)
        z = z + theta * N @ half
        new = (x - eta * (g - mu * x_g + z)) / (1 + eta * mu)
        x, x_f, k = new, x_g + 2 * tau / (2 - tau) * (new - x), k + 1


class Katyusha(SGD):
    """grad f(y, k) - grad f(w, k) + grad f(w) at the snapshots w, which the method sets."""

    def __call__(self, t, Y, w):
        return np.array([self.one(t, i, Y[i], w[i]) + self.ridge * Y[i] for i in range(len(Y))])

    def one(self, t, i, y, w):
        picks = [self.pick(word, i) for word in self.words[t, i, 1:]]
        self.calls[i] += 2 * len(picks)
        moved = [self.sample(i, k, y) - self.sample(i, k, w) for k in picks]
        return np.mean(moved, axis=0) + self.mean(i, w)

    def heads(self, t, i):
        return int(self.words[t, i, 0]) < 2**32 * (self.words.shape[2] - 1) / self.counts[i]

    @property
    def counts(self):
        return np.array([len(y) for _, y in self.shards])


def acc_vr_extra(W, gradient, eta, mu, X):
    values, vectors = np.linalg.eigh((np.eye(len(W)) - W) / 2)
    U = vectors @ np.diag(np.sqrt(np.maximum(values, 0))) @ vectors.T
    batch, K = gradient.words.shape[2] - 1, gradient.counts
    t = min(0.5, np.sqrt(K.mean() * mu * eta / batch))
    c = mu * eta / t
    x = z = w = X
    dual, k = np.zeros_like(X), 0
    gradient.calls += K
    while True:
        yield x
        y = t * z + w / 2 + (1 / 2 - t) * x
        dual = dual + t * U @ z
        new = (c * y + z - (eta * gradient(k, y, w) + U @ dual + t * U @ U @ z) / t) / (1 + c)
        due = np.array([gradient.heads(k, i) for i in range(len(X))])
        gradient.calls += due * K
        w = np.where(due[:, None], x, w)
        x, z, k = y + t * (new - z), new, k + 1

"""The methods that average with their neighbours, as their authors print them: a whole matrix W,
one iteration after another, plain NumPy. Each yields x(0), x(1), ... as (V, n).

`gradient(t, X)` is the stacked gradients at X with the random draws of iteration t, and is asked
once per iteration, in order. Nothing here is shared with the library.
"""

import numpy as np


def dgd(W, gradient, eta, X, prox=None):
    """Lian et al. 2017, Algorithm 1: gradient at x(t), average, step."""
    t = 0
    while True:
        yield X
        X = W @ X - eta * gradient(t, X)
        t += 1


def extra(W, gradient, eta, X, prox=None):
    """Shi et al. 2015 (EXTRA), Algorithm 1, with the matrices W and (I + W)/2."""
    identity = np.eye(len(W))
    yield X
    G = gradient(0, X)
    before, now, k = X, W @ X - eta * G, 0
    while True:
        yield now
        new = gradient(k + 1, now)
        after = (identity + W) @ now - (identity + W) / 2 @ before - eta * (new - G)
        before, now, G, k = now, after, new, k + 1


def pg_extra(W, gradient, eta, X, prox):
    """Shi et al. 2015 (PG-EXTRA), Algorithm 1, with the matrices W and (I + W)/2."""
    half = (np.eye(len(W)) + W) / 2
    yield X
    G = gradient(0, X)
    Z = W @ X - eta * G
    before, now, k = X, prox(Z, eta), 0
    while True:
        yield now
        new = gradient(k + 1, now)
        Z = W @ now + Z - half @ before - eta * (new - G)
        before, now, G, k = now, prox(Z, eta), new, k + 1


def vr_extra(W, gradient, eta, X, prox=None):
    """Li, Lin, Fang 2020: x <- x - (eta s + U lambda + V^2 x), lambda <- lambda + U x, where
    U^2 = V^2 = (I - W)/2; from lambda = U x."""
    values, vectors = np.linalg.eigh((np.eye(len(W)) - W) / 2)
    U = vectors @ np.diag(np.sqrt(np.maximum(values, 0))) @ vectors.T
    dual, t = U @ X, 0
    while True:
        yield X
        X = X - (eta * gradient(t, X) + U @ dual + U @ U @ X)
        dual, t = dual + U @ X, t + 1


def nids(W, gradient, eta, X, prox):
    """Li, Shi, Yan 2019, Algorithm 1, one step eta for all, c = 1/(2 eta)."""
    c = 1 / (2 * eta)
    mixed = np.eye(len(W)) - c * eta * (np.eye(len(W)) - W)
    yield X
    G = gradient(0, X)
    Z = X - eta * G
    before, now, k = X, prox(Z, eta), 1
    while True:
        yield now
        new = gradient(k, now)
        Z = Z - now + mixed @ (2 * now - before - eta * new + eta * G)
        before, now, G, k = now, prox(Z, eta), new, k + 1


def d2(W, gradient, eta, X, prox=None):
    """Tang et al. 2018, Algorithm 1."""
    yield X
    G = gradient(0, X)
    before, now, t = X, W @ (X - eta * G), 1
    while True:
        yield now
        new = gradient(t, now)
        half = 2 * now - before - eta * new + eta * G
        before, now, G, t = now, W @ half, new, t + 1


# --- the problem: logistic losses with a ridge, which is never estimated -------------------------


def slope(x, D, y):
    return -y / (1 + np.exp(y * (D @ x)))


class Full:
    def __init__(self, shards, ridge, words):
        self.shards, self.ridge, self.words = shards, ridge, words  # words (T, V, w)
        self.calls = np.zeros(len(shards), int)

    def __call__(self, t, X):
        return np.array([self.one(t, i, X[i]) + self.ridge * X[i] for i in range(len(X))])

    def one(self, t, i, x):
        self.calls[i] += len(self.shards[i][1])
        return self.mean(i, x)

    def mean(self, i, x):
        D, y = self.shards[i]
        return slope(x, D, y) @ D / len(y)


class SGD(Full):
    """One sample, the one that the random word falls on."""

    def one(self, t, i, x):
        self.calls[i] += 1
        return self.sample(i, self.pick(self.words[t, i, 0], i), x)

    def pick(self, word, i):
        return int(word) * len(self.shards[i][1]) >> 32

    def sample(self, i, k, x):
        D, y = self.shards[i]
        return slope(x, D[k], y[k]) * D[k]


class LSVRG(SGD):
    """g = grad f(x, k) - grad f(s, k) + grad f(s); then s <- x with probability 1/K."""

    snapshots = None

    def __call__(self, t, X):
        if self.snapshots is None:
            self.snapshots = X.copy()
            self.calls += [len(y) for _, y in self.shards]
        return super().__call__(t, X)

    def one(self, t, i, x):
        K, s = len(self.shards[i][1]), self.snapshots[i].copy()
        k = self.pick(self.words[t, i, 1], i)
        self.calls[i] += 2
        if int(self.words[t, i, 0]) < 2**32 / K:
            self.snapshots[i] = x
            self.calls[i] += K
        return self.sample(i, k, x) - self.sample(i, k, s) + self.mean(i, s)


def soft_threshold(strength):
    return lambda Z, t: np.sign(Z) * np.maximum(np.abs(Z) - t * strength, 0)

"""PDMM and decentralised ADMM as public codes of them read: an edge at a time, plain NumPy.

Each yields x(0), x(1), ... as (V, n). `solve(i, x, D, U)` is argmin f_i + h_i - <U, x> + D/2 |x|^2,
from x. Nothing here is shared with the library.
"""

import numpy as np


def pdmm(graph, rho, solve, x):
    """A_ij = 1 for i < j, else -1: x_i = argmin f_i + sum_j <A_ij z_ij, x> + rho/2 |x|^2,
    y_ij = z_ij + 2 rho A_ij x_i, z_ij <- y_ji; from duals of zero."""
    weight = both_ways(graph, rho)
    A = {(i, j): 1 if i < j else -1 for i, j in weight}
    z = {(i, j): -A[i, j] * weight[i, j] * x[j] for i, j in weight}
    while True:
        yield x
        new = []
        for i in range(graph.nodes):
            mine = [e for e in weight if e[0] == i]
            U = -sum(A[e] * z[e] for e in mine)
            new.append(solve(i, x[i], sum(weight[e] for e in mine), U))
        x = np.array(new)
        y = {(i, j): z[i, j] + 2 * weight[i, j] * A[i, j] * x[i] for i, j in weight}
        z = {(i, j): y[j, i] for i, j in weight}


def d_admm(graph, c, solve, x, alpha):
    """grad f_i(x) + alpha_i + 2 c |N_i| x - c (|N_i| x_i + sum_j x_j) = 0 gives the new x_i, then
    alpha_i <- alpha_i + c (|N_i| x_i - sum_j x_j); here with a c per edge."""
    weight = both_ways(graph, c)
    while True:
        yield x
        new = []
        for i in range(graph.nodes):
            mine = [e for e in weight if e[0] == i]
            U = sum(weight[e] * (x[i] + x[e[1]]) for e in mine) - alpha[i]
            new.append(solve(i, x[i], 2 * sum(weight[e] for e in mine), U))
        x = np.array(new)
        alpha = alpha + apart(graph, c, x)


def apart(graph, c, x):
    """sum_j c_ij (x_i - x_j) at every node i."""
    total = np.zeros_like(x)
    for (i, j), w in both_ways(graph, c).items():
        total[i] += w * (x[i] - x[j])
    return total


def both_ways(graph, weights):
    out = {}
    for (i, j), w in zip(graph.edges.tolist(), weights, strict=True):
        out[i, j] = out[j, i] = w
    return out


def exact(gradient, prox, L):
    """Plain proximal gradient steps, until nothing moves but by rounding."""

    def solve(i, x, D, U):
        t = 1 / (L[i] + D)
        for _ in range(2000):
            before, x = x, prox(i, x - t * (gradient(i, x) - U + D * x), t)
            if np.abs(x - before).max() < 1e-15:
                break
        return x

    return solve


class Accelerated:
    """The library's inexact rule once more: momentum, and a stop when the bound on the error is
    `tol` of the way. Counts gradients."""

    def __init__(self, gradient, prox, L, ridge, tol, most):
        self.gradient, self.prox, self.L, self.ridge = gradient, prox, L, ridge
        self.tol, self.most, self.asked = tol, most, np.zeros(len(L), int)

    def __call__(self, i, x, D, U):
        t, mu = 1 / (self.L[i] + D), D + self.ridge
        momentum = (1 - np.sqrt(t * mu)) / (1 + np.sqrt(t * mu))
        z = y = x
        for _ in range(self.most):
            self.asked[i] += 1
            before, z = z, self.prox(i, y - t * (self.gradient(i, y) - U + D * y), t)
            bound = 2 * np.linalg.norm(z - y) / (t * mu)
            y = z + momentum * (z - before)
            if bound <= self.tol * np.linalg.norm(z - x):
                break
        return z

"""Push-SAGA and Push-DIGing as printed: a whole column-stochastic matrix, plain NumPy. Shared with
the library are only the random words. Each gives z(1)..z(T)."""

import numpy as np


def column_stochastic(arcs, nodes):
    B = np.eye(nodes)
    for sender, receiver in arcs:
        B[receiver, sender] = 1
    for sender in range(nodes):
        B[:, sender] /= 1 + sum(1 for s, _ in arcs if s == sender)
    return B


def push(B, oracles, words, eta, X, steps, step_first):
    z = x = X
    y = np.ones((len(X), 1))
    g = w = np.array([o.first for o in oracles])
    told = []
    for t in range(steps):
        x = B @ (x - eta * w) if step_first else B @ x - eta * w
        y = B @ y
        z = x / y
        new = np.array([o(z[i], words[t, i]) for i, o in enumerate(oracles)])
        w, g = B @ w + new - g, new
        told.append(z)
    return told


class Whole:
    def __init__(self, node, x):
        self.node, self.first = node, node.mean(x) + node.ridge_part(x)

    def __call__(self, x, words):
        return self.node.mean(x) + self.node.ridge_part(x)

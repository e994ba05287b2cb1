"""EDGE with a multiplier per edge and the matrix B written out, in plain NumPy.

The source's listing was not at hand: this is the augmented Lagrangian of the method's docstring,
descended in x and ascended in y. Shared with the library are only the random bits.
"""

import numpy as np
from tracking_numpy import Saga, noise


def incidence(graph, weights):
    """(E, V) rows sqrt(w_ij) (e_i - e_j): B^T B is the weighted Laplacian."""
    B = np.zeros((len(graph.edges), graph.nodes))
    for e, (i, j) in enumerate(graph.edges.tolist()):
        B[e, i], B[e, j] = np.sqrt(weights[e]), -np.sqrt(weights[e])
    return B


def edge(case, weights, eta, beta, steps, seed):
    """x <- x - eta (g + B^T y + beta B^T B x); y <- y + beta B x; from y = beta B x."""
    B, V, x = incidence(case.graph, weights), case.graph.nodes, case.X0
    nodes = [case.node(i) for i in range(V)]
    oracle = [Saga(nodes[i], x[i]) for i in range(V)]
    words = noise(case, steps, 1, seed)
    y = beta * B @ x
    told = []
    for k in range(steps):
        g = np.array([oracle[i](x[i], words[k, i]) for i in range(V)])
        x = x - eta * (g + B.T @ y + beta * B.T @ B @ x)
        y = y + beta * B @ x
        told.append((x, B.T @ y - beta * B.T @ B @ x))  # the sums before the last ascent
    return told, nodes

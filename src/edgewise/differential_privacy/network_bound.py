"""What one node learns of another that is no neighbour of its, where nodes average models (DGD).

A node v sees what its neighbours send, and no other message. Noise that other nodes add on the way
then hides a sample of node u as well. The bound here is of the kind that Muffliato (Cyffers, Even,
Bellet, Massoulie 2022) calls pairwise network privacy. Theirs is of averaging, whose inputs stay as
they are, and is added up over gradient steps, as we read its summary and its authors' code; in
between, nodes that v does not see go on with models that a sample has changed. So gradients count
here too, by the argument that Cyffers, Bellet, Basu 2023 take from Feldman et al. 2018 for noisy
fixed-point iterations: maps that move no two points apart, and noise that makes up for what is left
between them.

Run twice, with a sample at u and without it, and let the noise of the second run be that of the
first plus shifts, chosen round after round so that v sees the same. With W the mixing weights and
b_w the distance between the two models of node w, in units of what the sample moves u's by,

    b_w <- sum_j W_wj b_j + [w = u] - s_w

as x_w - (eta / W_ww) grad f_w(x_w) moves no two points apart: clipped losses of margins are convex,
and eta <= 2 W_ww / L_w. A shift s_w >= 0 is free to choose, but for v and its neighbours: there
b_w = 0, as v sees them. In each round the shifts are what a Gaussian mechanism with mu^2 = sum_w
(s_w sigma_u / sigma_w)^2 / z^2 tells; rounds add up their squares. Shifts are a part of each
node's b_w that stays the same in all rounds; those of least cost in a steady state, with what is
left at the end forgiven in several ways, are tried, and the least sum over the rounds is the bound.
"""

import numpy as np

from edgewise.graph.graph import Graph

PATIENCE = (0.0, 1.0, 3.0)  # of a steady state, rounds over these are forgotten
SHORT = (0.8, 0.5)  # the same for few rounds


def mixing_matrix(graph: Graph, weights: np.ndarray) -> np.ndarray:
    """(V, V) W of the edges' weights."""
    W = np.zeros((graph.nodes, graph.nodes))
    i, j = graph.edges.T
    W[i, j] = W[j, i] = weights
    W[np.diag_indices(graph.nodes)] = 1 - W.sum(1)
    return W


def releases_between(
    W: np.ndarray, seen: np.ndarray, u: int, rounds: int, noise: np.ndarray
) -> float:
    """How many of u's releases all that somebody sees comes to: `rounds`, or fewer. seen: (V,) the
    nodes whose models are seen; noise: (V,) deviations."""
    if seen[u]:
        return float(rounds)
    source = np.zeros(len(W))
    source[u] = 1.0
    scale = noise[u] / noise
    kept = [1 - part / rounds for part in PATIENCE] + list(SHORT)
    return min(cost(W, seen, source, scale, rounds, keep) for keep in kept if keep > 0)


def cost(
    W: np.ndarray, seen: np.ndarray, source: np.ndarray, scale: np.ndarray, rounds: int, keep: float
) -> float:
    """(squares of shifts, added up over all rounds) with parts that a steady state asks for."""
    from scipy.optimize import nnls  # no peer needs it

    moved = np.eye(len(W)) - keep * W
    left = np.zeros(len(W))
    left[~seen] = nnls(scale[:, None] * moved[:, ~seen], scale * source)[0]
    shift = np.maximum(source - moved @ left, 0)
    both = shift + left
    part = np.where(seen | (both == 0), 1.0, shift / np.where(both == 0, 1, both))
    b, total = np.zeros(len(W)), 0.0
    for _ in range(rounds):
        b = W @ b + source
        total += float(np.square(part * b * scale).sum())
        b = (1 - part) * b
    return total

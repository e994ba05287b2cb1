"""PDMM with couplings in the classical y/z form, an edge end at a time, plain NumPy.

    x_i       = argmin F_i(x) + sum_j z_ij' A_ij x + rho/2 |A_ij x - c/2|^2
    y_ij      = z_ij + 2 rho (A_ij x_i - c/2)
    z         <- (1 - theta) z + theta R(y)

R of the paper (Heusdens and Zhang, arXiv 2309.12897): y is exchanged for "=", z_ij = y_ji; for "<="
so where y_ij + y_ji > 0, else z_ij = -y_ij. For a price phi it is 2 prox - identity of
phi*(l) over both ends' l, of weight rho: `half_way` below has the l. Nothing here is shared with
the library.

`minimise(i, x, P, u)` is argmin F_i(x) + u'x + x'Px/2, from x: exact, or a model of F_i.
"""

from typing import NamedTuple

import numpy as np


class Term(NamedTuple):
    """phi(A x_i + B x_j - c). kind: "=" or "<=", one per row; or "2" (w |d|), "1" (w |d|_1),
    "square" (w |d|^2), "huber" (that up to |d| = delta, then a line)."""

    i: int
    j: int
    A: np.ndarray
    B: np.ndarray
    c: np.ndarray
    kind: object
    weight: float = 0.0
    delta: float = 0.0

    @property
    def is_price(self):
        return isinstance(self.kind, str)


def half_way(term, rho, m):
    """argmin_l phi*(l) + |l - m|^2 / rho, m the mean of both y."""
    w = term.weight
    if not term.is_price:
        return np.where([s == "=" for s in term.kind], m, np.maximum(m, 0))
    if term.kind == "1":
        return np.clip(m, -w, w)
    if term.kind == "2":
        return into_ball(m, w)
    curved = m / (1 + rho / (4 * w))  # phi* = |l|^2 / (4 w)
    return curved if term.kind == "square" else into_ball(curved, 2 * w * term.delta)


def into_ball(m, radius):
    norm = np.linalg.norm(m)
    return m if norm <= radius else m * (radius / norm)


def exchange(term, rho, mine, other):
    """The new z of the end whose y is `mine`."""
    if term.is_price:
        return 2 * half_way(term, rho, (mine + other) / 2) - mine
    swap = np.array([s == "=" for s in term.kind]) | (mine + other > 0)
    return np.where(swap, other, -mine)


def pdmm(terms, rho, minimise, x, theta=1.0):
    """Yields x(0), x(1), ...: lists of an array per node. rho: one per term. From duals of zero:
    lambda = z + rho (A x - c/2) = 0."""
    x = [np.array(a, float) for a in x]
    ends = {}  # (term, which end): node, matrix
    for e, t in enumerate(terms):
        ends[e, 0], ends[e, 1] = (t.i, t.A), (t.j, t.B)
    half = {k: terms[k[0]].c / 2 for k in ends}
    z = {k: -rho[k[0]] * (M @ x[i] - half[k]) for k, (i, M) in ends.items()}
    while True:
        yield x
        y = {k: z[k] + 2 * rho[k[0]] * (M @ x[i] - half[k]) for k, (i, M) in ends.items()}
        for k in ends:
            e, end = k
            told = exchange(terms[e], rho[e], y[k], y[e, 1 - end])
            z[k] = (1 - theta) * z[k] + theta * told
        new = []
        for i in range(len(x)):
            P, u = np.zeros((len(x[i]),) * 2), np.zeros(len(x[i]))
            for k, (owner, M) in ends.items():
                if owner == i:
                    P += rho[k[0]] * M.T @ M
                    u += M.T @ (z[k] - rho[k[0]] * half[k])
            new.append(minimise(i, x[i], P, u))
        x = new


# --- local steps ----------------------------------------------------------------------------------


def exact(gradient, prox, L):
    """Of F_i = f_i + h_i, by plain proximal gradient steps until nothing moves but by rounding."""

    def minimise(i, x, P, u):
        return descend(lambda x: gradient(i, x) + u + P @ x, prox, i, x, L[i] + top(P))

    return minimise


def kept(gradient, prox, eta):
    """The paper's linear model of f_i, with what the edges add in full."""

    def minimise(i, x0, P, u):
        g, H = gradient(i, x0) + u - x0 / eta[i], np.eye(len(x0)) / eta[i] + P
        if prox is None:
            return np.linalg.solve(H, -g)
        return descend(lambda x: g + H @ x, prox, i, x0, top(H))

    return minimise


def majorised(gradient, prox, eta):
    """The same with |P| in the place of P: one prox."""

    def minimise(i, x, P, u):
        t = 1 / (1 / eta[i] + top(P))
        there = x - t * (gradient(i, x) + u + P @ x)
        return there if prox is None else prox(i, there, t)

    return minimise


def top(P):
    return np.linalg.eigvalsh(P)[-1]


def descend(gradient, prox, i, x, L):
    """With momentum, which begins again where it leads astray."""
    y, k, still = x, 0, 0
    for _ in range(20000):
        before, there = x, y - gradient(y) / L
        x = there if prox is None else prox(i, there, 1 / L)
        k = 0 if (y - x) @ (x - before) > 0 else k + 1
        still = still + 1 if np.abs(x - y).max() <= 2e-15 * max(1, np.abs(x).max()) else 0
        if still == 3:
            break
        y = x + k / (k + 3) * (x - before)
    return x

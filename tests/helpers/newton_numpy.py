"""newton-pd, node by node and edge by edge, as its docstrings have it: plain NumPy, no haste.

Shared with the library are the constants, which are tuned, and the random probes of the first
round. All messages arrive. `literal.Node` has the losses and counts what it is asked; Hessians are
written out here, one sample at a time.
"""

from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np

from edgewise.methods import (
    curvature,
    damping,
    edge_factor,
    lazy_gradient,
    metric_prox,
    newton_pd,
)


def hessian(node, x):
    """Of the mean loss, ridge apart: K calls."""
    w, bias = node.split(x)
    total = np.zeros((len(x), len(x)))
    for d, y, a in zip(node.d, node.y, node.weight, strict=True):
        node.calls += 1
        bend = 1.0
        if node.loss == "logistic":
            p = 1 / (1 + np.exp(-y * (w @ d + bias)))
            bend = p * (1 - p)
        d = np.append(d, 1) if node.intercept else d
        total += a * bend * np.outer(d, d)
    return total / node.K


def mean_loss(node, x):
    """Ridge apart: K losses."""
    return node.value(x) - node.ridge_part(x) @ x / 2


@dataclass
class Told:
    """What a node tells all its neighbours."""

    version: int
    level: int
    matrix: np.ndarray
    probes: np.ndarray


@dataclass
class Place:
    """A node, and what it holds."""

    node: Any
    x: np.ndarray
    y: np.ndarray  # what it last said of its model
    probes: np.ndarray
    duals: dict = field(default_factory=dict)  # lambda_ij by j
    A: Any = None  # own averaged matrix, in use
    used: int = 0  # its version
    theirs: dict = field(default_factory=dict)  # A_j by j
    change: float = 0.0
    gap: float = edge_factor.FIRST_GUESS
    gain: float = 1.0
    refreshes: int = 0
    apart: float = 0.0
    moved: float = 0.0
    bodies: int = 0
    halved: bool = False
    anchor: Any = None  # where its last whole gradient is from
    g: Any = 0.0  # that
    error: float = 1.0  # of the model of the gradient, over the way from the anchor
    reach: float = 0.0  # how long that way was
    step: float = 0.0  # how long the last step was
    begun: bool = False  # whether there has been a whole gradient
    size: float = 0.0  # of the largest


def as_told(A):
    """A little more on the diagonal, in float32."""
    A = A + curvature.SHARED_JITTER * np.diag(np.diag(A))
    return A.astype(np.float32).astype(float)


def told_at_first(s):
    """The factor times the Hessian with its ridge, tilted; a part of the last diagonal at least."""
    H = s.H + np.diag(s.node.ridge_part(np.ones(len(s.x))))
    H = s.gain * newton_pd.EDGE_FACTOR / np.sqrt(s.gap) * H
    H = H * np.sqrt(np.outer(s.tilt, s.tilt))
    if s.A is not None:
        least = curvature.CARRIED * np.diag(s.A)
        H = H + np.diag(np.maximum(least - np.diag(H), 0))
    return as_told(H)


def due(t):
    later = [ceil(curvature.REFRESH_FROM * 1.5**k) for k in range(9)]
    return t in curvature.REFRESH or t in later


def see_gap(s, heard, t):
    """A step of the lazy walk; in rounds 2, 4, 8, ... by how much it slows."""
    mean = sum(heard) / len(heard) if heard else s.probes
    new = ((s.probes + mean) / 2).astype(np.float32).astype(float)
    change = np.sqrt(np.mean((new - s.probes) ** 2))
    s.probes = new
    if t not in [2**k for k in range(1, 12)]:
        return
    if t >= 4 and edge_factor.NOISE < change < s.change:
        slower = (change / s.change) ** (2 / t)
        least = max(s.gap / 4, edge_factor.SMALLEST_GAP)
        s.gap = max(2 * (1 - slower) - edge_factor.EARLY / t, least)
    if t == 4 and change <= edge_factor.NOISE:
        s.gap = 1.0
    s.change = change


def descend(M, x, r, cuts):
    """argmin_u <r, u - x> + |u - x|^2_M / 2 + sum_k cuts_k |u_k|, a coordinate at a time."""
    u = x.copy()
    if not cuts.any():
        return x - np.linalg.solve(M, r)
    for _ in range(100_000):
        before = u.copy()
        for k in range(len(u)):
            slope = r[k] + M[k] @ (u - x)
            z = u[k] - slope / M[k, k]
            u[k] = np.sign(z) * max(abs(z) - cuts[k] / M[k, k], 0)
        if np.abs(u - before).max() < 1e-15:
            return u
    raise AssertionError("no end")


def size_in(M, u):
    return np.sqrt(max(u @ M @ u, 0))


def gradient(s, M, cuts):
    """At s.x, by the model or by a pass; whether by a pass; whether the model was poor. Beyond the
    way that was seen the model is not known."""
    between = s.x - s.anchor
    way = size_in(M, between)
    model = s.g + s.H @ between
    at_anchor = s.begun and (between == 0).all()
    foreseen = (s.error if way <= s.reach else 1.0) * way
    if at_anchor or foreseen < lazy_gradient.ENOUGH * s.step:
        return model, False, False
    s.g, s.anchor = s.node.mean(s.x), s.x.copy()
    inverse = np.linalg.inv(M + inner_weight(M, cuts))
    error = size_in(inverse, s.g - model)
    s.size = max(s.size, size_in(inverse, s.g))
    rounding = lazy_gradient.ROUNDING * np.finfo(float).eps * s.size
    told, right, s.begun = s.begun and way > 0, error < rounding, True
    if told:
        ratio = max(0 if right else error / way, lazy_gradient.FORGET * s.error)
        s.error = min(max(ratio, lazy_gradient.LEAST_ERROR), 1.0)
        s.reach = max(way, s.reach) if right else way
    return s.g, True, told and not right and s.error > lazy_gradient.POOR


def inner_weight(M, cuts):
    """The diagonal of the library's inner steps, which is in the inverse that it has at hand."""
    if not cuts.any():
        return 0 * M
    d = np.diag(M)
    eigenvalues = np.linalg.eigvalsh(M / np.sqrt(np.outer(d, d)))
    return np.diag(max(np.exp(np.log(eigenvalues).mean()), 1e-4) * d)


def part_of_the_way(s, r, g, D, target, cuts):
    """1, or halved until f_i + h_i + the edges' terms fall enough; and the loss there."""
    way, node = target - s.x, s.node
    rise = cuts @ (np.abs(target) - np.abs(s.x))
    part = 1.0
    for _ in range(damping.HALVINGS + 1):
        there = mean_loss(node, s.x + part * way)
        quadratic = way @ (D @ way + node.ridge_part(way)) / 2
        change = there - s.loss + part * ((r - g) @ way + rise) + part**2 * quadratic
        penalty = cuts @ np.abs(s.x)
        sizes = abs(s.loss) + penalty + np.abs((r - g) * way).sum() + quadratic
        slack = 64 * np.finfo(float).eps * sizes
        if change <= damping.ARMIJO * part * (r @ way + rise) + slack:
            return part, there
        part /= 2
    return 0.0, s.loss


def run(case, rounds, probes, cuts):
    """[(X, duals, calls, evaluations) after 0 rounds, after 1, ...], and the nodes at the end.

    cuts: (n,) of an l1 penalty, the same at all nodes; the prox is exact."""
    V, neighbours = case.graph.nodes, case.neighbours()
    degree = {i: len(neighbours[i]) for i in range(V)}
    nodes = [Place(case.node(i), case.X0[i].copy(), case.X0[i].copy(), probes[i]) for i in range(V)]
    news = []
    for i, s in enumerate(nodes):
        s.node.mean(s.x)  # counted as the library counts it: a Hessian is a call a sample
        s.node.calls = 0
        s.H, s.loss, s.anchor = hessian(s.node, s.x), mean_loss(s.node, s.x), s.x.copy()
        s.tilt, s.still, s.far = np.ones(case.n), np.ones(case.n, bool), np.zeros(case.n)
        s.duals = {j: np.zeros(case.n) for j in neighbours[i]}
        s.bodies = degree[i]
        news.append(Told(1, 0, told_at_first(s), s.probes))
    told = [moment(case, nodes)]
    for t in range(1, rounds + 1):
        y = [s.y for s in nodes]
        duals = [dict(s.duals) for s in nodes]
        new = []
        for i, s in enumerate(nodes):
            new.append(turn(i, s, t, y, duals, news, neighbours[i], degree, cuts))
        news = new
        told.append(moment(case, nodes))
    return told, nodes


def moment(case, nodes):
    between = [
        sum((s.duals[j] - nodes[j].duals[i]) / 2 for j in s.duals) for i, s in enumerate(nodes)
    ]
    calls = [s.node.calls for s in nodes]
    values = [s.node.evaluations * s.node.K for s in nodes]
    return np.array([s.x for s in nodes]), np.array(between), calls, values


def turn(i, s, t, y, duals, news, near, degree, cuts):
    """A round of node i; what it tells next."""
    # matrices count once they have been averaged
    if news[i].level >= newton_pd.LEVELS and news[i].version != s.used:
        s.A, s.used = news[i].matrix, news[i].version
    for j in near:
        if news[j].level >= newton_pd.LEVELS:
            s.theirs[j] = news[j].matrix
    known = (s.used > 0 and len(s.theirs) > 0) or not near
    n, here = len(s.x), s.x
    P = {j: np.zeros((n, n)) for j in near}
    if known:
        for j in s.theirs:
            P[j] = (s.A + s.theirs[j]) / 2 / np.sqrt(degree[i] * degree[j])
    D = sum(P.values(), np.zeros((n, n)))

    s.halved = poor = False
    if known:
        curved = s.H + np.diag(s.node.ridge_part(np.ones(n))) + D
        M = curved + metric_prox.JITTER * np.diag(np.diag(curved))
        g, _, poor = gradient(s, M, cuts)
        r = g + s.node.ridge_part(here)
        for j in near:
            r = r + duals[j][i] + P[j] @ (here - y[j])
        target = descend(M, here, r, cuts)
        s.step = size_in(M, target - here)
        part, s.loss = part_of_the_way(s, r, g, D, target, cuts)
        s.halved = part < 1
        s.step *= part
        s.error = 1.0 if s.halved else s.error
        s.x = target if part == 1 else here + part * (target - here)
        R = newton_pd.RELAXATION
        for j in near:
            fresh = -duals[j][i] + P[j] @ (y[j] - s.x)
            s.duals[j] = (1 - R) * s.duals[j] + R * fresh
        s.y = (1 - R) * s.y + R * s.x
    else:
        s.loss = mean_loss(s.node, here)  # asked for, and nothing comes of it
    if (due(t) and s.error > lazy_gradient.STALE) or s.halved or poor:
        s.H = hessian(s.node, s.x)

    see_gap(s, [news[j].probes for j in near], t)
    s.apart += sum((y[j] - here) @ P[j] @ (y[j] - here) for j in near)
    s.moved += (s.x - here) @ D @ (s.x - here)
    far = sum(((y[j] - here) ** 2 for j in near), np.zeros(n))
    s.still, s.far = s.still & (s.x == here), np.maximum(s.far, far)
    mine = news[i]
    if due(t):
        s.refreshes += 1
        if s.refreshes > 1 and s.apart > 0 and s.moved > 0:
            ratio = (s.apart / s.moved / edge_factor.EVEN) ** edge_factor.BALANCE
            s.gain *= min(max(ratio, edge_factor.LEAST_CHANGE), edge_factor.MOST_CHANGE)
            s.gain = min(max(s.gain, 1 / edge_factor.MOST_GAIN), edge_factor.MOST_GAIN)
        if s.refreshes > 1 and s.apart > 0:
            held = s.still & (far > 0) & (far >= edge_factor.HELD * s.far)
            change = np.where(held, edge_factor.TILT_UP, edge_factor.TILT_DOWN)
            s.tilt = np.clip(s.tilt * change, 1, edge_factor.MOST_TILT)
        s.apart = s.moved = 0.0
        s.still, s.far = np.ones(n, bool), np.zeros(n)
        s.bodies += len(near)
        return Told(mine.version + 1, 0, told_at_first(s), s.probes)
    if mine.level >= newton_pd.LEVELS:
        return Told(mine.version, mine.level, mine.matrix, s.probes)
    s.bodies += len(near)
    weight = {j: 1 / (1 + max(degree[i], degree[j])) for j in near}
    average = (1 - sum(weight.values())) * mine.matrix
    average = average + sum(weight[j] * news[j].matrix for j in near)
    return Told(mine.version + 1, mine.level + 1, as_told(average), s.probes)

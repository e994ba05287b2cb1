"""The paper's algorithms, transcribed literally: per-edge duals, loops, plain NumPy, no haste.

Nothing here is shared with the library but the random bits (`edgewise.backend.random_bits`), for
randomness is not what these transcriptions check. Each estimator is a generator that reads like
the paper's listing: it yields g(t), and is sent x(t+1) with the bits of the next round. Oracle
calls are counted where the oracle is asked, so that nobody has to reason about them.

One reading: the ridge is known to the node, so it is never estimated; f(x, k) is the rest.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any

import jax
import numpy as np
import scipy.sparse as sp

import edgewise as ew
from edgewise.backend.random_bits import draw_bits

QUICK = {"xla_backend_optimization_level": 0}  # for programs that are compiled to run but once

# --- losses: a sample's value and gradient -------------------------------------------------------


def logistic_value(w, bias, d, y):
    return np.log1p(np.exp(-y * (w @ d + bias)))


def logistic_gradient(w, bias, d, y):
    slope = -y / (1 + np.exp(y * (w @ d + bias)))
    return slope * d, slope


def squared_value(w, bias, d, y):
    return (w @ d + bias - y) ** 2 / 2


def squared_gradient(w, bias, d, y):
    return (w @ d + bias - y) * d, w @ d + bias - y


def multinomial_value(W, bias, d, y):
    z = W @ d + bias
    return np.log(np.exp(z).sum()) - z[int(y)]


def multinomial_gradient(W, bias, d, y):
    z = W @ d + bias
    slope = np.exp(z) / np.exp(z).sum()
    slope[int(y)] -= 1
    return np.outer(slope, d), slope


def bilinear(x, d, y):
    """A custom loss whose model is twice as long as a row, written for JAX and NumPy alike."""
    p = d.shape[0]
    return 0.5 * ((d @ x[:p]) * (d @ x[p:]) - y) ** 2


def bilinear_gradient(x, d, y):
    p = len(d)
    u, v = d @ x[:p], d @ x[p:]
    return (u * v - y) * np.concatenate([v * d, u * d])


LOSSES = {
    "logistic": (logistic_value, logistic_gradient),
    "squared": (squared_value, squared_gradient),
    "multinomial": (multinomial_value, multinomial_gradient),
}


class Node:
    """What one node knows, and an oracle that counts what it is asked."""

    def __init__(self, loss, d, y, weight, ridge, intercept, outputs):
        self.loss, self.d, self.y, self.weight, self.ridge = loss, d, y, weight, ridge
        self.intercept, self.outputs = intercept, outputs
        self.calls = self.evaluations = 0
        self.answer = lambda x: x

    @property
    def K(self):
        return len(self.y)

    def split(self, x):
        """Weights and intercepts."""
        size = self.outputs * self.d.shape[1]
        w, bias = x[:size], x[size:] if self.intercept else np.zeros(self.outputs)
        return (w, bias[0]) if self.outputs == 1 else (w.reshape(self.outputs, -1), bias)

    def sample(self, x, k):
        """grad f(x, k): one call."""
        self.calls += 1
        if self.loss == "bilinear":
            return self.weight[k] * bilinear_gradient(x, self.d[k], self.y[k])
        w, bias = LOSSES[self.loss][1](*self.split(x), self.d[k], self.y[k])
        return self.weight[k] * (np.append(w, bias) if self.intercept else w.ravel())

    def mean(self, x):
        """grad f(x), ridge apart: K calls."""
        return sum(self.sample(x, k) for k in range(self.K)) / self.K

    def ridge_part(self, x):
        kept = np.ones(len(x))
        if self.intercept:
            kept[-self.outputs :] = 0
        return self.ridge * kept * x

    def uncounted(self, x):
        """grad f(x), ridge included, off the record."""
        before = self.calls
        g = self.mean(x) + self.ridge_part(x)
        self.calls = before
        return g

    def coordinate(self, x, j):
        """One entry of the gradient: one call, of its own unit."""
        self.calls += 1
        return self.uncounted(x)[j]

    def value(self, x):
        self.evaluations += 1
        total = 0.0
        for d, y, a in zip(self.d, self.y, self.weight, strict=True):
            if self.loss == "bilinear":
                total += a * bilinear(x, d, y)
            else:
                total += a * LOSSES[self.loss][0](*self.split(x), d, y)
        return total / self.K + self.ridge_part(x) @ x / 2


# --- random draws from words ---------------------------------------------------------------------


def draw(words, K):
    """Floyd's sample of min(b, K) of 0..K-1 without replacement."""
    b = min(len(words), K)
    chosen = []
    for j, word in enumerate(words[:b]):
        last = K - b + j
        k = int(word) * (last + 1) >> 32
        chosen.append(last if k in chosen else k)
    return chosen


def heads(word, probability):
    return int(word) < probability * 2**32


# --- estimators ----------------------------------------------------------------------------------


def full(node, x):
    x, _ = yield
    while True:
        x, _ = yield node.mean(x) + node.ridge_part(x)


def sgd(node, x, batch=1):
    x, words = yield
    while True:
        picked = draw(words, node.K)
        g = sum(node.sample(x, k) for k in picked) / len(picked)
        x, words = yield g + node.ridge_part(x)


def saga(node, x, batch=1):
    """Algorithm SAGA-PD, with a stored gradient vector per sample."""
    stored = [node.sample(x, k) for k in range(node.K)]
    x, words = yield
    while True:
        picked = draw(words, node.K)
        new = {k: node.sample(x, k) for k in picked}
        g = sum(new[k] - stored[k] for k in picked) / len(picked) + sum(stored) / node.K
        for k in picked:
            stored[k] = new[k]
        x, words = yield g + node.ridge_part(x)


def svrg(node, x, batch=1, first=None, longest=None, stop=0.0):
    """Algorithm SVR-PD: epochs double, the snapshot is the mean of x(1)..x(m).

    With `stop`: an epoch also ends, though not before its first m_1 iterates, once it has gained
    less than `stop` times the path it walked.
    """
    shortest = first or max(node.K // 4, 1)
    longest = longest or 2 * node.K
    m, snapshot = shortest, x
    mean = node.mean(snapshot)
    x, words = yield
    while True:
        start, path, iterates = x, 0.0, []
        for _ in range(m):
            picked = draw(words, node.K)
            change = sum(node.sample(x, k) - node.sample(snapshot, k) for k in picked)
            before = x
            x, words = yield change / len(picked) + mean + node.ridge_part(x)
            iterates.append(x)
            path += np.linalg.norm(x - before)
            if len(iterates) >= shortest and np.linalg.norm(x - start) < stop * path:
                break
        snapshot = sum(iterates) / len(iterates)
        mean = node.mean(snapshot)
        m = min(2 * m, longest)


def lsvrg(node, x, batch=1):
    """Algorithm LSVR-PD: s <- x(t) with probability 1/K."""
    snapshot = x
    mean = node.mean(snapshot)
    x, words = yield
    while True:
        picked = draw(words[1:], node.K)
        change = sum(node.sample(x, k) - node.sample(snapshot, k) for k in picked)
        g = change / len(picked) + mean + node.ridge_part(x)
        if heads(words[0], 1 / node.K):
            snapshot = x
            mean = node.mean(snapshot)
        x, words = yield g


def asvrg_schedule(K, batch, momentum=0.5, ask=None, floor=None, length=None):
    """(beta, p, rounds) of one epoch after another: steady, or the paper's where there is a floor,
    with beta_1 = 1/2, p_s = beta_s, m_s = K / beta_s. How to choose a steady beta is not for here:
    how many calls there are does not depend on it."""
    if floor is None:
        p = 0.5 if ask is None else ask
        m = K / batch if length is None else length
        while True:
            yield momentum, p, ceil(m)
    beta = momentum
    p = beta if ask is None else ask
    m = K if length is None else length
    while True:
        yield beta, p, ceil(m / beta)
        before, beta = beta, max(floor, (np.sqrt(beta**4 + 4 * beta**2) - beta**2) / 2)
        p = p * beta / before


def asvrg(node, y, batch=1, **schedule):
    """Algorithm ASVR-PD; what is sent in is y, and the answer is x = (1 - beta) s + beta y."""
    epochs = asvrg_schedule(node.K, batch, **schedule)
    snapshot = y
    mean = node.mean(snapshot)
    beta, p, m = next(epochs)
    node.answer = lambda y, s=snapshot, b=beta: (1 - b) * s + b * y
    y, words = yield
    while True:
        points = []
        for _ in range(m):
            x = node.answer(y)
            g = mean
            if heads(words[0], p):
                picked = draw(words[1:], node.K)
                change = sum(node.sample(x, k) - node.sample(snapshot, k) for k in picked)
                g = g + change / len(picked) / p
            y, words = yield g + node.ridge_part(x)
            points.append(node.answer(y))
        snapshot = sum(points) / len(points)
        mean = node.mean(snapshot)
        beta, p, m = next(epochs)
        node.answer = lambda y, s=snapshot, b=beta: (1 - b) * s + b * y


def sega(node, x, batch=1, difference=None):
    """Algorithm SkPD: coordinates of the gradient, exact or by forward differences."""
    h = np.zeros(len(x))
    x, words = yield
    while True:
        picked = draw(words, len(x))
        if difference is not None:
            here = node.value(x)
        seen = {}
        for j in picked:
            if difference is None:
                seen[j] = node.coordinate(x, j)
            else:
                node.calls += 1
                ahead = x.copy()
                ahead[j] += difference
                seen[j] = (node.value(ahead) - here) / difference
        g = h.copy()
        for j in picked:
            g[j] += len(x) / len(picked) * (seen[j] - h[j])
        h = h.copy()
        for j in picked:
            h[j] = seen[j]
        x, words = yield g


# --- (primup)-(dualup) ---------------------------------------------------------------------------


@dataclass
class Case:
    """One problem twice: for the library, and for the loops here."""

    problem: Any
    graph: Any
    eta: np.ndarray  # (V,)
    rho: np.ndarray  # (E,) in the order of graph.edges
    prox: list  # prox(x, t) of each node
    X0: np.ndarray  # (V, n)
    node: Any  # i -> a new Node

    @property
    def n(self):
        return self.X0.shape[1]

    @property
    def counts(self):
        return np.array([self.node(i).K for i in range(len(self.eta))])

    def neighbours(self):
        return {
            i: [int(k) for e in self.graph.edges if i in e for k in e if k != i]
            for i in range(self.graph.nodes)
        }

    def antisymmetric(self, sums, seed=0):
        """lambda[i, j] = -lambda[j, i] with the given sums at the nodes, and some circulation."""
        E = len(self.graph.edges)
        incidence = np.zeros((self.graph.nodes, E))
        for e, (i, j) in enumerate(self.graph.edges):
            incidence[i, e], incidence[j, e] = 1, -1
        any_flow = np.random.default_rng(seed).normal(size=(E, self.n))
        flow = any_flow + np.linalg.pinv(incidence) @ (sums - incidence @ any_flow)
        duals = {}
        for e, (i, j) in enumerate(self.graph.edges):
            duals[int(i), int(j)], duals[int(j), int(i)] = flow[e], -flow[e]
        return duals


@dataclass
class Moment:
    """The state after a round."""

    X: np.ndarray  # (V, n) the answer
    duals: np.ndarray  # (V, n) sum_j (m_ji - m_ij) / 2 with m_ij = rho_ij x_i - lambda_ij
    calls: np.ndarray  # (V,)
    evaluations: np.ndarray  # (V,)


def words_for(seed, nodes, rounds, words):
    """(rounds, V, words) as Python-friendly integers."""
    with jax.enable_x64(True):
        drawn = draw_bits(jax.random.key(seed), np.arange(nodes), np.arange(rounds), words)
        return np.asarray(drawn).astype(np.uint64)


def run(
    case, estimator, rounds, words, seed=0, X0=None, duals=None, local=None, enough=0.0, **options
):
    """[Moment after 0 rounds, after 1, ...]; `words` is how many a node gets for each gradient.

    `local` is how many steps each node takes between two messages, one where it is None; it takes
    no more once one moves it by at most `enough` gamma D times the way since the last message. It
    looks eight times a round, evenly, or after every step.
    """
    V, neighbours = case.graph.nodes, case.neighbours()
    rho = {}
    for (i, j), r in zip(case.graph.edges, case.rho, strict=True):
        rho[int(i), int(j)] = rho[int(j), int(i)] = r
    x = {i: np.array((case.X0 if X0 is None else X0)[i]) for i in range(V)}
    lam = {edge: np.zeros(case.n) if duals is None else duals[edge] for edge in rho}
    nodes = {i: case.node(i) for i in range(V)}
    gradients = {i: estimator(nodes[i], x[i], **options) for i in range(V)}
    for g in gradients.values():
        next(g)
    local = [1] * V if local is None else [int(tau) for tau in local]
    noise = words_for(seed, V, rounds, words * max(local))
    told = []

    def message(i, j):
        return rho[i, j] * x[i] - lam[i, j]

    def tell():
        sums = [sum((message(j, i) - message(i, j)) / 2 for j in neighbours[i]) for i in range(V)]
        told.append(
            Moment(
                np.array([nodes[i].answer(x[i]) for i in range(V)]),
                np.array(sums),
                np.array([nodes[i].calls for i in range(V)]),
                np.array([nodes[i].evaluations for i in range(V)]),
            )
        )

    tell()
    for t in range(rounds):
        new_x, new_lam = {}, {}
        for i in range(V):
            eta, D = case.eta[i], sum(rho[i, j] for j in neighbours[i])
            gamma = 1 / (1 / eta + D)
            heard = sum(rho[i, j] * x[j] - lam[j, i] for j in neighbours[i])
            new_x[i] = x[i]
            for k in range(local[i]):
                before = new_x[i]
                g = gradients[i].send((before, noise[t, i, k * words : (k + 1) * words]))
                new_x[i] = case.prox[i](gamma / eta * (before - eta * g) + gamma * heard, gamma)
                move, way = np.linalg.norm(new_x[i] - before), np.linalg.norm(new_x[i] - x[i])
                if (k + 1) % ceil(local[i] / 8) == 0 and move <= enough * gamma * D * way:
                    break
            for j in neighbours[i]:
                new_lam[i, j] = -lam[j, i] + rho[i, j] * (x[j] - new_x[i])
        x, lam = new_x, new_lam
        tell()
    return told


# --- small problems ------------------------------------------------------------------------------

COUNTS = (5, 9, 2, 12, 7, 1, 8)  # unequal, and some smaller than a batch of three


def soft(lam, free):
    def prox(x, t):
        kept = np.sign(x) * np.maximum(np.abs(x) - t * lam, 0)
        return np.concatenate([kept[: len(x) - free], x[len(x) - free :]])

    return prox


def ball(radius):
    return lambda x, t: x * min(1.0, radius / np.linalg.norm(x))


def half_space(a, b):
    return lambda x, t: x - max(a @ x - b, 0) / (a @ a) * a


def make_case(
    loss="logistic",
    penalty="l1",
    intercept=False,
    weighted=False,
    sparse=False,
    counts=COUNTS,
    graph=None,
    features=4,
    ridge=0.05,
    seed=1,
):
    rng = np.random.default_rng(seed)
    V = len(counts)
    parts = []
    for K in counts:
        d = rng.normal(size=(K, features)) / np.sqrt(features)
        if sparse:
            d *= rng.random(d.shape) < 0.6
        y = rng.normal(size=K)
        parts.append([d, y])
    if loss == "logistic":
        for part in parts:
            part[1] = np.where(part[1] > 0, 1.0, -1.0)
        parts[0][1][:2] = [-1, 1]
    if loss == "multinomial":
        for part in parts:
            part[1] = np.digitize(part[1], [-0.4, 0.4]).astype(float)
        parts[0][1][:3] = [0, 1, 2]
    outputs = 3 if loss == "multinomial" else 1
    free = outputs if intercept else 0
    kept = features * (2 if loss == "bilinear" else outputs)
    n = kept + free
    raw = [rng.uniform(0.5, 2, K) if weighted else np.ones(K) for K in counts]
    weight = [w * len(w) / w.sum() for w in raw]  # means become weighted means
    if penalty == "l1":
        penalties, prox = ew.L1(0.02), [soft(0.02, free)] * V
    elif penalty == "constraints":  # another set at each node; they all hold a neighbourhood of 0
        lower, upper = -0.3 * np.ones(kept), np.linspace(0.2, 0.4, kept)
        a = np.linspace(-1, 2, kept)
        kinds = [
            (ew.Box(lower, upper), lambda x, t: np.minimum(np.maximum(x, lower), upper)),
            (ew.L2Ball(0.3), ball(0.3)),
            (ew.L1(0.01), soft(0.01, 0)),
            (ew.HalfSpace(a, 0.1), half_space(a, 0.1)),
            (ew.L2Ball(0.5), ball(0.5)),
            (ew.NoPenalty(), lambda x, t: x),
            (ew.HalfSpace(-a, 0.2), half_space(-a, 0.2)),
        ]
        penalties, prox = [k[0] for k in kinds], [k[1] for k in kinds]
    else:
        penalties, prox = None, [lambda x, t: x] * V
    library_loss = {
        "logistic": lambda: ew.Logistic(ridge=ridge),
        "squared": lambda: ew.Squared(ridge=ridge),
        "multinomial": lambda: ew.Multinomial(ridge=ridge),
        "bilinear": lambda: ew.CustomLoss(bilinear, smoothness=1.0, size=kept, ridge=ridge),
    }[loss]()
    problem = ew.Problem(
        [(sp.csr_array(d) if sparse else d, y) for d, y in parts],
        library_loss,
        penalties,
        sample_weight=np.concatenate(raw) if weighted else None,
        intercept=intercept,
    )
    graph = ew.Graph.random(nodes=V, edges=V + 4, seed=3) if graph is None else graph
    return Case(
        problem,
        graph,
        eta=rng.uniform(0.2, 0.6, V),
        rho=rng.uniform(0.2, 1.0, len(graph.edges)),
        prox=prox,
        X0=0.5 * rng.normal(size=(V, n)),
        node=lambda i: Node(loss, *parts[i], weight[i], ridge, intercept, outputs),
    )

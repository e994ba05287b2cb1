"""Ten small problems with couplings, as raw arrays: for Edgewise, for CVXPY, and for plain NumPy.

All are feasible (what is asked of models is made from models that obey it) and have one optimum.
Where there are inequalities, some hold with equality at the optimum and some do not.
"""

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from couplings_numpy import Term

import edgewise as ew


class Penalty(NamedTuple):
    """kind: "l1" (weight), "box" (lower, upper), "budget" (a, b, lower, upper)."""

    kind: str
    args: tuple


@dataclass
class Node:
    """x'Qx/2 + q'x, and the mean over samples of a loss."""

    Q: np.ndarray
    q: np.ndarray
    X: Any = None
    y: Any = None
    penalty: Penalty | None = None
    linear: bool = False  # say Linear(q)
    none: bool = False  # data only: no cost

    @property
    def n(self):
        return len(self.q)


@dataclass
class Case:
    nodes: list
    terms: list  # in the order in which an edge's list is given
    loss: str | None = None  # "squared", "logistic"
    ridge: float = 0.0  # of the loss
    sparse: bool = False
    for_all: Any = None  # what is said of all edges at once, instead of an edge at a time

    @property
    def sizes(self):
        return [node.n for node in self.nodes]

    @property
    def edges(self):
        return sorted({(min(t.i, t.j), max(t.i, t.j)) for t in self.terms})

    def graph(self):
        return ew.Graph(len(self.nodes), self.edges)

    # --- for Edgewise

    def problem(self):
        costs = [cost_of(node) for node in self.nodes]
        penalties = [penalty_of(node.penalty) for node in self.nodes]
        if self.loss is None:
            return ew.Problem(cost=costs, penalty=penalties)
        loss = {"squared": ew.Squared, "logistic": ew.Logistic}[self.loss](ridge=self.ridge)
        shards = [None if node.X is None else (node.X, node.y) for node in self.nodes]
        if all(node.none for node in self.nodes):
            return ew.Problem(shards, loss, penalty=penalties)
        return ew.Problem(shards, loss, penalty=penalties, cost=costs)

    def between(self):
        if self.for_all is not None:
            return self.for_all()
        said = {}
        for t in self.terms:
            said.setdefault((t.i, t.j), []).append(self.coupling(t))
        return {edge: parts[0] if len(parts) == 1 else parts for edge, parts in said.items()}

    def coupling(self, t):
        if t.is_price:
            on = np.flatnonzero(t.A.any(0))
            on = None if t.A.shape == t.B.shape and len(on) == t.A.shape[1] else on
            if t.kind == "square":
                return ew.NetworkRidge(t.weight, on)
            if t.kind == "huber":
                return ew.NetworkHuber(t.weight, t.delta, on)
            return ew.NetworkLasso(t.weight, on, norm=int(t.kind))
        wrap = sp.csr_array if self.sparse else np.asarray
        one = set(t.kind)
        return ew.Coupling(
            wrap(t.A), wrap(t.B), t.c, sense=one.pop() if len(one) == 1 else list(t.kind)
        )

    # --- for plain NumPy

    def gradient(self, i, x):
        node = self.nodes[i]
        g = node.Q @ x + node.q
        if node.X is None:
            return g
        z = node.X @ x
        slope = z - node.y if self.loss == "squared" else -node.y / (1 + np.exp(node.y * z))
        return g + node.X.T @ slope / len(z) + self.ridge * x

    def curvature(self, i):
        node = self.nodes[i]
        H = node.Q + 0.0
        if node.X is not None:
            most = 1.0 if self.loss == "squared" else 0.25
            H = H + most * node.X.T @ node.X / len(node.X) + self.ridge * np.eye(node.n)
        return np.linalg.eigvalsh(H)[-1]

    @property
    def L(self):
        return np.array([self.curvature(i) for i in range(len(self.nodes))])

    def prox(self, i, x, t):
        return prox(self.nodes[i].penalty, x, t)

    def violation(self, X):
        """The largest of all rows."""
        rows = [row_excess(t, X) for t in self.terms if not t.is_price]
        return max((r.max(initial=0) for r in rows), default=0.0)

    # --- by CVXPY

    @property
    def optimum(self):
        return solve_by_cvxpy(self)


def row_excess(t, X):
    d = t.A @ X[t.i] + t.B @ X[t.j] - t.c
    return np.where([s == "=" for s in t.kind], np.abs(d), np.maximum(d, 0))


def cost_of(node):
    if node.none:
        return None
    if node.linear:
        return ew.Linear(node.q)
    diagonal = np.count_nonzero(node.Q - np.diag(np.diag(node.Q))) == 0
    return ew.Quadratic(np.diag(node.Q) if diagonal else node.Q, node.q)


def penalty_of(penalty):
    if penalty is None:
        return None
    name = {"l1": "L1", "box": "Box", "budget": "Budget"}[penalty.kind]
    return getattr(ew, name)(*penalty.args)


def prox(penalty, x, t):
    if penalty is None:
        return x
    if penalty.kind == "l1":
        return np.sign(x) * np.maximum(np.abs(x) - t * penalty.args[0], 0)
    if penalty.kind == "box":
        return np.clip(x, *penalty.args)
    a, b, lower, upper = penalty.args
    return onto_budget(np.asarray(a, float), b, lower, upper, x)


def onto_budget(a, b, lower, upper, x):
    """clip(x - nu a) with a nu at which a.x is b; a.x falls with nu, along lines between breaks."""
    with np.errstate(divide="ignore", invalid="ignore"):
        breaks = np.concatenate([(x - lower) / a, (x - upper) / a, [-1e4, 1e4]])
    breaks = np.sort(breaks[np.isfinite(breaks)])
    total = np.clip(x - breaks[:, None] * a, lower, upper) @ a
    k = np.clip(np.searchsorted(-total, -b), 1, len(breaks) - 1)
    nu = (breaks[k - 1] + breaks[k]) / 2
    at = np.clip(x - nu * a, lower, upper)
    inner = (x - nu * a > lower) & (x - nu * a < upper) & (a != 0)
    if inner.any():
        nu = (a[inner] @ x[inner] + a[~inner] @ at[~inner] - b) / (a[inner] @ a[inner])
        at[inner] = x[inner] - nu * a[inner]
    return at


# --- CVXPY ----------------------------------------------------------------------------------------


class Optimum(NamedTuple):
    X: list
    objective: float
    multipliers: list  # one array per term
    active: np.ndarray  # of all "<=" rows: whether they hold with equality


TIGHT = {
    "tol_gap_abs": 1e-12,
    "tol_gap_rel": 1e-12,
    "tol_feas": 1e-12,
    "tol_ktratio": 1e-9,
    "max_iter": 500,
}
SOLVED = {}


def solve_by_cvxpy(case, present=None):
    """`present`: only these nodes, and the edges between them."""
    key = id(case), None if present is None else tuple(present)
    if key not in SOLVED:
        there = range(len(case.nodes)) if present is None else present
        SOLVED[key] = case, by_cvxpy(case, set(there))
    return SOLVED[key][1]


def by_cvxpy(case, there):
    x = [cp.Variable(node.n) for node in case.nodes]
    cost, rules, held = 0, [], []
    for i in there:
        node = case.nodes[i]
        cost += cp.quad_form(x[i], cp.psd_wrap(node.Q)) / 2 + node.q @ x[i]
        if node.X is not None:
            z = node.X @ x[i]
            if case.loss == "squared":
                cost += cp.sum_squares(z - node.y) / (2 * len(node.y))
            else:
                cost += cp.sum(cp.logistic(cp.multiply(-node.y, z))) / len(node.y)
            cost += case.ridge / 2 * cp.sum_squares(x[i])
        if node.penalty is not None:
            kind, args = node.penalty
            if kind == "l1":
                cost += args[0] * cp.norm1(x[i])
            else:
                lower, upper = (np.broadcast_to(b, node.n) for b in args[-2:])
                below, above = np.isfinite(lower), np.isfinite(upper)
                if below.any():
                    rules.append(x[i][below] >= lower[below])
                if above.any():
                    rules.append(x[i][above] <= upper[above])
            if kind == "budget":
                rules.append(args[0] @ x[i] == args[1])
    for t in case.terms:
        if not {t.i, t.j} <= there:
            held.append(None)
            continue
        d = cp.Variable(len(t.c))
        tie = t.A @ x[t.i] + t.B @ x[t.j] - t.c == d  # its dual is that of the coupling
        rules.append(tie)
        held.append(tie)
        if not t.is_price:
            equal = np.array([s == "=" for s in t.kind])
            rules += [d[equal] == 0] if equal.any() else []
            rules += [d[~equal] <= 0] if not equal.all() else []
        elif t.kind == "square":
            cost += t.weight * cp.sum_squares(d)
        elif t.kind == "huber":  # CVXPY's huber is of numbers: w times that of |d|, above |d|
            above = cp.Variable()
            rules.append(cp.norm2(d) <= above)
            cost += t.weight * cp.huber(above, t.delta)
        else:
            cost += t.weight * (cp.norm1(d) if t.kind == "1" else cp.norm2(d))
    program = cp.Problem(cp.Minimize(cost), rules)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as near as rounding lets it is near enough
        program.solve(solver=cp.CLARABEL, **TIGHT)
    assert program.status in ("optimal", "optimal_inaccurate"), program.status
    X = [x[i].value if i in there else None for i in range(len(x))]
    active = []
    for t in case.terms:
        if not t.is_price and {t.i, t.j} <= there:
            d = t.A @ X[t.i] + t.B @ X[t.j] - t.c
            active += [v > -1e-6 for v, s in zip(d, t.kind, strict=True) if s == "<="]
    multipliers = [None if h is None else np.atleast_1d(h.dual_value) for h in held]
    return Optimum(X, float(program.value), multipliers, np.array(active, bool))


# --- the ten --------------------------------------------------------------------------------------


def quadratic(rng, n, curved=None):
    """Curvatures of 0.5 to 2 or so."""
    if curved is not None:
        return Node(np.diag(np.full(n, float(curved))), rng.normal(size=n))
    M = rng.normal(size=(n, n))
    return Node(np.eye(n) / 2 + M @ M.T / n, 2 * rng.normal(size=n))


def with_data(rng, n, loss, rows=8, cost=True):
    X = rng.normal(size=(rows, n))
    truth = rng.normal(size=n)
    y = X @ truth + 0.3 * rng.normal(size=rows)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    curve = 0.3 * np.eye(n) if cost else np.zeros((n, n))
    return Node(curve, np.zeros(n), X, y, none=not cost)


def feasible(node, rng):
    """A model that the node's constraints allow."""
    return prox(node.penalty, rng.normal(size=node.n), 0.0)


def tied(rng, nodes, points, i, j, rows, sense="="):
    """Random rows that `points` obey."""
    A, B = rng.normal(size=(rows, nodes[i].n)), rng.normal(size=(rows, nodes[j].n))
    return Term(i, j, A, B, A @ points[i] + B @ points[j], (sense,) * rows)


def bounded(rng, case, points, i, j, rows):
    """Rows <= that `points` obey: every other one is broken by the optimum without them, the rest
    are far from it."""
    A, B = rng.normal(size=(rows, case.nodes[i].n)), rng.normal(size=(rows, case.nodes[j].n))
    now = case.optimum.X
    here, there = A @ points[i] + B @ points[j], A @ now[i] + B @ now[j]
    wanted = np.where(np.arange(rows) % 2 == 0, 1, -1)  # that there - here should have
    flip = np.where(np.sign(there - here) == wanted, 1, -1)
    A, B, here, there = A * flip[:, None], B * flip[:, None], here * flip, there * flip
    c = np.where(wanted > 0, here + (there - here) / 2, here + 0.3)
    return Term(i, j, A, B, np.round(c, 6), ("<=",) * rows)


def same(i, j, nodes, on, kind, **price):
    """The difference in some coordinates."""
    A, B = np.eye(nodes[i].n)[on], -np.eye(nodes[j].n)[on]
    return Term(i, j, A, B, np.zeros(len(A)), kind, **price)


def equalities():
    rng = np.random.default_rng(0)
    nodes = [quadratic(rng, n) for n in (1, 3, 2, 5)]
    points = [feasible(node, rng) for node in nodes]
    pairs = [(0, 1, 1), (2, 1, 2), (1, 3, 2), (0, 3, 1)]  # of (2, 1) the first named is the later
    return Case(nodes, [tied(rng, nodes, points, i, j, m) for i, j, m in pairs])


def inequalities():
    rng = np.random.default_rng(1)
    nodes = [quadratic(rng, n) for n in (2, 1, 4, 3, 2)]
    points = [feasible(node, rng) for node in nodes]
    free = Case(nodes, [])
    pairs = [(0, 1, 2), (1, 2, 1), (2, 3, 2), (3, 4, 2), (4, 0, 1)]
    return Case(nodes, [bounded(rng, free, points, i, j, m) for i, j, m in pairs])


def both():
    """Both senses in one coupling; l1, box and none; a list on an edge."""
    rng = np.random.default_rng(2)
    nodes = [quadratic(rng, n) for n in (3, 2, 4, 2)]
    nodes[0].penalty = Penalty("l1", (0.4,))
    nodes[2].penalty = Penalty("box", (-0.5, 0.6))
    points = [feasible(node, rng) for node in nodes]
    first = [tied(rng, nodes, points, i, j, 1) for i, j in ((0, 1), (1, 2), (2, 3))]
    free = Case(nodes, first)
    terms = []
    for t in first:
        b = bounded(rng, free, points, t.i, t.j, 2)
        A, B, c = np.vstack([t.A, b.A]), np.vstack([t.B, b.B]), np.append(t.c, b.c)
        terms.append(Term(t.i, t.j, A, B, c, t.kind + b.kind))
    return Case(nodes, [*terms, same(0, 1, nodes, [0, 1], "2", weight=0.3)])


def deficient():
    """Rows twice, rows of zeros, and columns that nothing asks of."""
    rng = np.random.default_rng(3)
    nodes = [quadratic(rng, n) for n in (2, 3, 1)]
    nodes[1].penalty = Penalty("l1", (0.2,))
    points = [feasible(node, rng) for node in nodes]
    t, s = (tied(rng, nodes, points, i, j, 1) for i, j in ((0, 1), (1, 2)))
    b = bounded(rng, Case(nodes, [t, s]), points, 0, 2, 2)
    twice = np.array([[1.0], [2.0], [0.0]])
    s.A[:, 0] = 0
    s = s._replace(c=s.A @ points[1] + s.B @ points[2])
    return Case(
        nodes,
        [
            Term(t.i, t.j, twice * t.A, twice * t.B, (twice * t.c)[:, 0], ("=",) * 3),
            s,
            Term(b.i, b.j, b.A[[0, 1, 0]], b.B[[0, 1, 0]], b.c[[0, 1, 0]], ("<=",) * 3),
        ],
    )


def sparse():
    """Each row is about one coordinate of either end, and matrices are scipy's."""
    rng = np.random.default_rng(4)
    nodes = [quadratic(rng, n) for n in (5, 4, 5, 3)]
    nodes[3].penalty = Penalty("box", (np.full(3, -0.4), np.full(3, np.inf)))
    points = [feasible(node, rng) for node in nodes]
    terms = []
    for i, j in ((0, 1), (1, 2), (2, 3), (0, 3)):
        A, B = (np.zeros((3, nodes[k].n)) for k in (i, j))
        for r in range(3):
            A[r, rng.integers(A.shape[1])] = rng.uniform(0.5, 1.5)
            B[r, rng.integers(B.shape[1])] = -rng.uniform(0.5, 1.5)
        c = A @ points[i] + B @ points[j]
        c[2] += 0.2
        terms.append(Term(i, j, A, B, c, ("=", "=", "<=")))
    return Case(nodes, terms, sparse=True)


def lasso():
    """Some models are the same at the optimum, some are not."""
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(2, 3))
    nodes = []
    for i in range(5):
        X = rng.normal(size=(8, 3))
        y = X @ centres[i // 3] + 0.1 * rng.normal(size=8)
        nodes.append(Node(np.zeros((3, 3)), np.zeros(3), X, y, none=True))
    pairs = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]
    terms = [same(i, j, nodes, [0, 1, 2], "2", weight=0.25) for i, j in pairs]
    return Case(nodes, terms, "squared", 0.1, for_all=lambda: ew.NetworkLasso(0.25))


def lasso_of_some():
    """|.|_1 of two coordinates, a weight per edge, models of unequal length."""
    rng = np.random.default_rng(6)
    nodes = [quadratic(rng, n) for n in (2, 4, 3, 2)]
    nodes[1].penalty = Penalty("l1", (0.2,))
    weights = {(0, 1): 0.3, (0, 3): 0.8, (1, 2): 0.5, (2, 3): 0.2}
    terms = [same(i, j, nodes, [0, 1], "1", weight=w) for (i, j), w in weights.items()]

    def for_all():
        return ew.NetworkLasso(np.array(list(weights.values())), on=[0, 1], norm=1)

    return Case(nodes, terms, for_all=for_all)


def squares_and_huber():
    """A ridge, Huber where it is a line and where it is a square, and a row <=, two on one edge."""
    rng = np.random.default_rng(7)
    nodes = [quadratic(rng, n) for n in (2, 3, 2, 1)]
    points = [feasible(node, rng) for node in nodes]
    terms = [
        same(0, 1, nodes, [0, 1], "square", weight=0.7),
        same(1, 2, nodes, [0, 1], "huber", weight=0.5, delta=0.2),
        same(0, 2, nodes, [0, 1], "huber", weight=0.3, delta=9.0),
        same(2, 3, nodes, [0], "square", weight=0.4),
    ]
    return Case(nodes, [*terms, bounded(rng, Case(nodes, terms), points, 2, 3, 2)])


def shared():
    """Partial consensus of logistic models; a node without data is among them."""
    rng = np.random.default_rng(8)
    nodes = [with_data(rng, n, "logistic") for n in (3, 5, 2)] + [quadratic(rng, 4)]
    nodes[1].penalty = Penalty("l1", (0.05,))
    terms = [same(i, j, nodes, [0, 1], ("=", "=")) for i, j in ((0, 1), (1, 2), (2, 3), (0, 3))]
    return Case(nodes, terms, "logistic", for_all=lambda: ew.Shared([0, 1]))


def dispatch():
    """What areas make and trade: linear costs, budgets, and lines with limits."""
    rng = np.random.default_rng(9)
    nodes = []
    for i in range(4):  # a generator, and the flows to both neighbours on a ring
        price = 1.0 + i
        a, b = np.array([1.0, -1.0, -1.0]), 0.5 + 0.1 * i
        lower, upper = np.array([0, -0.6, -0.6]), np.array([1.5 - 0.2 * i, 0.6, 0.6])
        Q, q = np.diag([0.5 + 0.1 * i, 0.05, 0.05]), np.array([price, 0, 0])
        nodes.append(Node(Q, q, penalty=Penalty("budget", (a, b, lower, upper))))
    terms = []
    for i, j in ((0, 1), (1, 2), (2, 3), (0, 3)):  # flow out of one is minus flow out of the other
        A, B = np.zeros((2, 3)), np.zeros((2, 3))
        k, m = (2, 1) if (i, j) != (0, 3) else (1, 2)
        A[0, k] = B[0, m] = 1
        A[1, 0], B[1, 0] = 1, 1
        terms.append(Term(i, j, A, B, np.array([0.0, 2.0 if i else 1.35]), ("=", "<=")))
    point = rng.uniform(-0.3, 0.3, 2)
    nodes.append(Node(np.zeros((2, 2)), np.array([0.4, -0.3]), linear=True))
    nodes[-1].penalty = Penalty("box", (-1.0, 1.0))
    A, B = rng.normal(size=(2, 3)), np.eye(2) + 0.1 * rng.normal(size=(2, 2))
    flow = np.array([0.9, 0.2, 0.1])
    terms.append(Term(1, 4, A, B, A @ flow + B @ point, ("=", "=")))
    return Case(nodes, terms)


MAKERS = [
    equalities,
    inequalities,
    both,
    deficient,
    sparse,
    lasso,
    lasso_of_some,
    squares_and_huber,
    shared,
    dispatch,
]
NAMES = [maker.__name__ for maker in MAKERS]


@cache
def case(name):
    return dict(zip(NAMES, MAKERS, strict=True))[name]()

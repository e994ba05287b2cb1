"""Methods, problems and graphs to test, and what they are tested against.

Everything that judges a run is computed here in NumPy, SciPy or CVXPY from the data themselves,
never by Edgewise: losses, gradients, proximal maps, subdifferentials, the optimum.
"""

import itertools
import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.optimize import lsq_linear
from scipy.special import expit, logsumexp, softmax

import edgewise as ew

NODES, EACH, FEATURES = 6, 10, 5
GROUPS = [0, 0, 1, 1, 1]
NORMAL = np.array([1.0, 1.0, -0.5, 2.0, 1.0])


# --- data: heterogeneous, rows of norm one, always the same --------------------------------------


@cache
def samples(target: str, count: int = NODES * EACH) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(count, FEATURES)) + np.linspace(-0.5, 0.5, count)[:, None]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    z = X @ np.array([2.0, -1.5, 0.0, 0.5, 1.0]) + 0.5 * rng.normal(size=count)
    noise = rng.normal(size=count)
    if target == "sign":
        return X, np.where(z > 0, 1, -1)
    if target == "class":
        return X, np.digitize(z, [-0.7, 0.7])
    return X, z + (np.abs(noise) > 1.5) * 3 * noise  # some far out


def parts(target: str, nodes: int = NODES, count: int = NODES * EACH) -> list[Any]:
    X, y = samples(target, count)
    return list(zip(np.array_split(X, nodes), np.array_split(y, nodes), strict=True))


# --- problems ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    loss: Any
    penalty: Any = field(default_factory=ew.NoPenalty)  # one, or a list with one per node

    @property
    def target(self) -> str:
        kinds = {"Logistic": "sign", "SmoothedHinge": "sign", "Multinomial": "class"}
        return kinds.get(type(self.loss).__name__, "number")

    def problem(self, nodes: int = NODES, count: int = NODES * EACH, **options: Any) -> ew.Problem:
        return ew.Problem(parts(self.target, nodes, count), self.loss, self.penalty, **options)


LOGISTIC, SQUARED = ew.Logistic(ridge=0.1), ew.Squared(ridge=0.1)
PROBLEMS = {
    "l2-logistic": Case(LOGISTIC),
    "l1-logistic": Case(LOGISTIC, ew.L1(0.03)),
    "lasso": Case(ew.Squared(), ew.L1(0.03)),
    "ridge": Case(SQUARED),
    "multinomial": Case(ew.Multinomial(ridge=0.1)),
    "huber": Case(ew.Huber(delta=0.5, ridge=0.1)),
    "hinge": Case(ew.SmoothedHinge(width=0.5, ridge=0.1)),
    "elastic-net": Case(ew.Squared(), ew.ElasticNet(0.03, 0.1)),
    "squared-l2": Case(ew.Logistic(), ew.SquaredL2(0.1)),
    "group": Case(SQUARED, ew.GroupL2(0.05, GROUPS)),
    "box": Case(LOGISTIC, ew.Box(-0.2, np.linspace(0.1, 0.5, FEATURES))),
    "non-negative": Case(SQUARED, ew.NonNegative()),
    "simplex": Case(LOGISTIC, ew.Simplex(1.0)),
    "l1-ball": Case(SQUARED, ew.L1Ball(0.8)),
    "l2-ball": Case(SQUARED, ew.L2Ball(0.5)),
    "half-space": Case(LOGISTIC, ew.HalfSpace(NORMAL, -0.1)),
    # Another term at every node. Each set's interior meets the others, and every term but
    # NoPenalty bears on the answer: test_reference checks that its subgradient there is not zero.
    "each-its-own": Case(
        SQUARED,
        [
            ew.L1(0.2),
            ew.Box(-0.9, 0.25),
            ew.HalfSpace(NORMAL, -0.2),
            ew.GroupL2(0.05, GROUPS),
            ew.L2Ball(0.7),
            ew.NoPenalty(),
        ],
    ),
    "each-its-own-too": Case(
        SQUARED,
        [
            ew.L1Ball(0.9),
            ew.ElasticNet(0.1, 0.2),
            ew.NonNegative(),
            ew.SquaredL2(0.3),
            ew.NoPenalty(),
            ew.Box(-0.1, 0.5),
        ],
    ),
}
DIFFERENT = [name for name, case in PROBLEMS.items() if isinstance(case.penalty, list)]

GRAPHS = {
    "ring": ew.Graph.ring(NODES),
    "random": ew.Graph.random(nodes=NODES, edges=9, seed=1),
    "complete": ew.Graph.complete(NODES),
    "star": ew.Graph.star(NODES),
    "wide-star": ew.Graph.star(70),  # more neighbours than have slots: summed edge by edge
    "single": ew.Graph.from_edges([], nodes=1),
    "pair": ew.Graph.path(2),
}

# Rounds that are enough here for a residual of 1e-10, with room: about twice what is needed.
EXACT = {
    "pd": 4000,
    "saga-pd": 4000,
    "svr-pd": 4000,
    "svr-pd-es": 4000,
    "lsvr-pd": 4000,
    "asvr-pd": 16000,
    "sag-pd": 4000,
    "page-pd": 4000,
    "sarah-pd": 4000,
    "sk-pd": 8000,
    "newton-pd": 300,
}


# --- losses and penalties, once more -------------------------------------------------------------


def margins(loss: Any, X: np.ndarray, x: np.ndarray) -> np.ndarray:
    return X @ x if not isinstance(loss, ew.Multinomial) else X @ x.reshape(-1, X.shape[1]).T


def values(loss: Any, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    match loss:
        case ew.Logistic():
            return np.logaddexp(0, -y * z)
        case ew.Squared():
            return (z - y) ** 2 / 2
        case ew.Huber(delta=d):
            r = np.abs(z - y)
            return np.where(r <= d, r**2 / 2, d * r - d**2 / 2)
        case ew.SmoothedHinge(width=w):
            short = 1 - y * z
            return np.where(short <= 0, 0, np.where(short < w, short**2 / (2 * w), short - w / 2))
        case ew.Multinomial():
            return logsumexp(z, axis=1) - z[np.arange(len(y)), y]
    raise AssertionError(loss)


def slopes(loss: Any, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    match loss:
        case ew.Logistic():
            return -y * expit(-y * z)
        case ew.Squared():
            return z - y
        case ew.Huber(delta=d):
            r = z - y
            return np.where(np.abs(r) <= d, r, d * np.sign(r))
        case ew.SmoothedHinge(width=w):
            return -y * np.minimum(np.maximum(1 - y * z, 0) / w, 1)
        case ew.Multinomial():
            return softmax(z, axis=1) - np.eye(z.shape[1])[y]
    raise AssertionError(loss)


def value(loss: Any, part: Any, x: np.ndarray) -> float:
    """f_i(x)"""
    X, y = part
    return values(loss, margins(loss, X, x), y).mean() + loss.ridge / 2 * x @ x


def gradient(loss: Any, part: Any, x: np.ndarray) -> np.ndarray:
    X, y = part
    s = slopes(loss, margins(loss, X, x), y)
    return (s.T @ X / len(y)).ravel() + loss.ridge * x


def penalty_value(h: Any, x: np.ndarray) -> float:
    match h:
        case ew.L1(lam=lam):
            return lam * np.abs(x).sum()
        case ew.SquaredL2(lam=lam):
            return lam / 2 * x @ x
        case ew.ElasticNet(l1=a, l2=b):
            return a * np.abs(x).sum() + b / 2 * x @ x
        case ew.GroupL2(lam=lam, groups=g):
            return sum(lam * np.sqrt((g == k).sum()) * np.linalg.norm(x[g == k]) for k in set(g))
    return 0.0  # sets: x is in them


def project_on_simplex(x: np.ndarray, radius: float) -> np.ndarray:
    best = None
    for size in range(1, len(x) + 1):  # the support holds the largest entries
        cut = (np.sort(x)[-size:].sum() - radius) / size
        if np.sort(x)[-size] - cut > 0:
            best = cut
    return np.maximum(x - best, 0)


def prox(h: Any, x: np.ndarray, t: float) -> np.ndarray:
    match h:
        case ew.NoPenalty():
            return x
        case ew.L1(lam=lam):
            return np.sign(x) * np.maximum(np.abs(x) - t * lam, 0)
        case ew.SquaredL2(lam=lam):
            return x / (1 + t * lam)
        case ew.ElasticNet(l1=a, l2=b):
            return np.sign(x) * np.maximum(np.abs(x) - t * a, 0) / (1 + t * b)
        case ew.GroupL2(lam=lam, groups=g):
            out = np.zeros_like(x)
            for k in set(g):
                norm, cut = np.linalg.norm(x[g == k]), t * lam * np.sqrt((g == k).sum())
                out[g == k] = x[g == k] * max(0, 1 - cut / norm) if norm else 0
            return out
        case ew.Box(lower=lower, upper=upper):
            return np.minimum(np.maximum(x, lower), upper)
        case ew.NonNegative():
            return np.maximum(x, 0)
        case ew.Simplex(radius=r):
            return project_on_simplex(x, r)
        case ew.L1Ball(radius=r):
            inside = np.abs(x).sum() <= r
            return x if inside else np.sign(x) * project_on_simplex(np.abs(x), r)
        case ew.L2Ball(radius=r):
            return x * min(1, r / max(np.linalg.norm(x), 1e-300))
        case ew.HalfSpace(a=a, b=b):
            return x - max(0, a @ x - b) / (a @ a) * a
    raise AssertionError(h)


def subdifferential(h: Any, x: np.ndarray, near: float = 1e-8) -> tuple[np.ndarray, list[Any]]:
    """The subdifferential of h at x as {base + sum_k theta_k direction_k}: the base, and
    (direction, least theta, most theta) for each k."""
    unit = np.eye(len(x))
    zero, sign = np.abs(x) < near, np.sign(x)
    none = np.zeros_like(x)
    match h:
        case ew.NoPenalty():
            return none, []
        case ew.L1(lam=lam):
            return lam * sign * ~zero, [(e, -lam, lam) for e in unit[zero]]
        case ew.SquaredL2(lam=lam):
            return lam * x, []
        case ew.ElasticNet(l1=a, l2=b):
            return a * sign * ~zero + b * x, [(e, -a, a) for e in unit[zero]]
        case ew.GroupL2(lam=lam, groups=g):
            norms = np.array([np.linalg.norm(x[g == k]) for k in g])
            assert norms.min() > near, "a group that is zero has a ball, which is no polytope"
            return lam * np.sqrt([(g == k).sum() for k in g]) * x / norms, []
        case ew.Box(lower=lower, upper=upper):
            at_lower, at_upper = np.abs(x - lower) < near, np.abs(x - upper) < near
            return none, [
                *((-e, 0, np.inf) for e in unit[at_lower]),
                *((e, 0, np.inf) for e in unit[at_upper]),
            ]
        case ew.NonNegative():
            return none, [(-e, 0, np.inf) for e in unit[zero]]
        case ew.Simplex():
            free = (np.ones_like(x), -np.inf, np.inf)
            return none, [free, *((-e, 0, np.inf) for e in unit[zero])]
        case ew.L1Ball(radius=r):
            if np.abs(x).sum() < r - near:
                return none, []
            corners = itertools.product(*([-1, 1] if flat else [0] for flat in zero))
            return none, [(sign * ~zero + np.array(c), 0, np.inf) for c in corners]
        case ew.L2Ball(radius=r):
            return none, [(x, 0, np.inf)] if np.linalg.norm(x) > r - near else []
        case ew.HalfSpace(a=a, b=b):
            return none, [(a, 0, np.inf)] if a @ x > b - near else []
    raise AssertionError(h)


# --- verdicts ------------------------------------------------------------------------------------


def listed(penalty: Any, nodes: int) -> list[Any]:
    return penalty if isinstance(penalty, list) else [penalty] * nodes


def residual(case: Case, x: np.ndarray, nodes: int = NODES, count: int = NODES * EACH) -> float:
    """How far zero is from sum_i grad f_i(x) + (the subdifferential of h_i at x).

    With one penalty for all by its proximal map, which a small change of x changes little; else
    by bounded least squares over the sum of the subdifferentials.
    """
    shards = parts(case.target, nodes, count)
    total = sum(gradient(case.loss, part, x) for part in shards)
    if not isinstance(case.penalty, list):
        t = 0.1 / nodes
        return float(np.linalg.norm(x - prox(case.penalty, x - t * total, t * nodes)) / t)
    outside = sum(np.linalg.norm(x - prox(h, x, 1.0)) for h in case.penalty if is_set(h))
    each = [subdifferential(h, x) for h in case.penalty]
    base = total + sum(b for b, _ in each)
    terms = [term for _, more in each for term in more]
    directions, least, most = (np.array(a, float) for a in zip(*terms, strict=True))
    fit = lsq_linear(directions.T, -base, (least, most), method="bvls", tol=1e-15)
    return float(np.linalg.norm(directions.T @ fit.x + base) + outside)


def is_set(h: Any) -> bool:
    return isinstance(
        h, ew.Box | ew.NonNegative | ew.Simplex | ew.L1Ball | ew.L2Ball | ew.HalfSpace
    )


def objective(case: Case, X: np.ndarray) -> float:
    """sum_i f_i(x_i) + h_i(x_i)"""
    terms = zip(parts(case.target, len(X)), listed(case.penalty, len(X)), X, strict=True)
    return sum(value(case.loss, part, x) + penalty_value(h, x) for part, h, x in terms)


# --- the optimum by CVXPY ------------------------------------------------------------------------


def cvxpy_loss(loss: Any, X: np.ndarray, y: np.ndarray, x: cp.Variable) -> Any:
    mean = 1 / len(y)
    ridge = loss.ridge / 2 * cp.sum_squares(x)
    if isinstance(loss, ew.Multinomial):
        Z = X @ cp.reshape(x, (x.size // X.shape[1], X.shape[1]), order="C").T
        picked = cp.sum(cp.multiply(Z, np.eye(Z.shape[1])[y]))
        return mean * (cp.sum(cp.log_sum_exp(Z, axis=1)) - picked) + ridge
    z = X @ x
    match loss:
        case ew.Logistic():
            return mean * cp.sum(cp.logistic(cp.multiply(-y, z))) + ridge
        case ew.Squared():
            return mean / 2 * cp.sum_squares(z - y) + ridge
        case ew.Huber(delta=d):
            return mean / 2 * cp.sum(cp.huber(z - y, d)) + ridge
        case ew.SmoothedHinge(width=w):
            short = cp.pos(1 - cp.multiply(y, z))
            return mean / (2 * w) * cp.sum(cp.huber(short, w)) + ridge
    raise AssertionError(loss)


def cvxpy_penalty(h: Any, x: cp.Variable) -> tuple[Any, list[Any]]:
    """What it adds to the objective, and its constraints."""
    match h:
        case ew.NoPenalty():
            return 0, []
        case ew.L1(lam=lam):
            return lam * cp.norm1(x), []
        case ew.SquaredL2(lam=lam):
            return lam / 2 * cp.sum_squares(x), []
        case ew.ElasticNet(l1=a, l2=b):
            return a * cp.norm1(x) + b / 2 * cp.sum_squares(x), []
        case ew.GroupL2(lam=lam, groups=g):
            terms = [np.sqrt((g == k).sum()) * cp.norm2(x[np.flatnonzero(g == k)]) for k in set(g)]
            return lam * sum(terms), []
        case ew.Box(lower=lower, upper=upper):
            return 0, [x >= lower, x <= upper]
        case ew.NonNegative():
            return 0, [x >= 0]
        case ew.Simplex(radius=r):
            return 0, [x >= 0, cp.sum(x) == r]
        case ew.L1Ball(radius=r):
            return 0, [cp.norm1(x) <= r]
        case ew.L2Ball(radius=r):
            return 0, [cp.norm2(x) <= r]
        case ew.HalfSpace(a=a, b=b):
            return 0, [a @ x <= b]
    raise AssertionError(h)


def cvxpy_solve(shards: list[Any], loss: Any, penalty: Any) -> np.ndarray:
    features = shards[0][0].shape[1]
    outputs = len({*np.concatenate([y for _, y in shards])})
    x = cp.Variable(features * (outputs if isinstance(loss, ew.Multinomial) else 1))
    several = isinstance(penalty, list)
    terms = [cvxpy_penalty(h, x) for h in (penalty if several else [penalty])]
    h = sum(h for h, _ in terms) * (1 if several else len(shards))
    smooth = sum(cvxpy_loss(loss, X, y, x) for X, y in shards)
    goal = cp.Problem(cp.Minimize(smooth + h), [c for _, more in terms for c in more])
    tight = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "inaccurate": tighter than it can always reach
        goal.solve(solver="CLARABEL", **tight)
    return np.array(x.value)


@cache
def optimum(name: str, nodes: int = NODES, count: int = NODES * EACH) -> np.ndarray:
    case = PROBLEMS[name]
    return cvxpy_solve(parts(case.target, nodes, count), case.loss, case.penalty)

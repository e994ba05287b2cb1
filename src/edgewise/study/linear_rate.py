"""Linear rates where losses are strongly convex: a certificate for a whole class of problems.

The paper proves 1/T for convex losses and leaves strongly convex ones open. For smooth problems
without a penalty, and steps that every edge of a node sees alike, eta_i D_i = 1/kappa with
D_i = sum_j rho_ij, this finds a factor per round, and a proof of it that NumPy checks.

With D^(1/2) x for x the round is, in the coordinates of an eigenvector of D^(-1/2) A D^(-1/2) with
eigenvalue a, and for s = (x, u, u_old) less their values at the optimum,

    x' = (kappa x + u - g) / (kappa + 1),   u' = u_old + 2 a x' - 2 x,   u_old' = u

with g the change of the gradient: s' = A s + B (g + w), w the estimator's noise. Of g only this is
used: (g - m x)(l x - g) >= 0 summed over nodes, which an orthogonal change of coordinates leaves as
it is, so that the proof falls apart into one small matrix inequality per eigenvalue. Look for
matrices P_a > 0 with

    (A s + B g)' P_a (A s + B g) - r s' P_a s + alpha (g - m x)(l x - g) + noise <= 0

for all s and g. Then sum_a s_a' P_a s_a + sum_i tau_i T_i falls by r a round in expectation, and
with it |x_i - x*|^2 and the trace's `bregman`. For SAGA and loopless SVRG (b samples of K_i) T_i is
the mean squared error of the remembered gradients, and with Q the mean squared change of a sample's
gradient, Q <= L_s <g - ridge x, x> as samples are smooth and convex,

    E|w|^2 <= (p (Q - |g - ridge x|^2) + q T) / b,   (p - 1)(q - 1) >= 1
    E T_i' <= (1 - b/K_i) T_i + (b/K_i) Q

`quadratics` is the factor on the worst quadratic problem of the class, where all nodes have the
same curvature along some direction: no certificate can be below it. For whole gradients the two are
equal to the solver's accuracy wherever we looked, so the certificate is tight.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.errors import InputError, MethodError
from edgewise.gradients import LSVRG, SAGA, Full
from edgewise.graph.graph import Graph
from edgewise.methods.catalogue import make
from edgewise.methods.contract import Method
from edgewise.methods.knowledge import whole_network
from edgewise.methods.primal_dual import PrimalDual
from edgewise.problem.problem import Problem

EVEN = 1e-6  # relative spread of eta_i D_i that still counts as none
LEAST = 1e-4  # eigenvalue of P_a, where the noise's weight is one
CURVATURES = 200  # at which quadratics are looked at


@dataclass(frozen=True)
class Class:
    """Problems that differ in nothing that the proof uses; lengths are those where D = 1."""

    modes: np.ndarray  # eigenvalues of the weighted graph, one of each
    kappa: float
    strong: float  # m
    smooth: float  # l
    sample: float = 0.0  # L_s of a sample's loss, ridge apart
    ridge: tuple[float, float] = (0.0, 0.0)  # least and largest, once scaled
    share: float = 1.0  # b / K_i where it is least
    batch: int | None = None  # None: whole gradients


@dataclass(frozen=True)
class Proof:
    """V = sum_a s_a' P_a s_a + sum_i (tau / share_i) T_i falls by the factor r a round."""

    P: tuple[np.ndarray, ...]  # by mode, of (x, u, u_old), or of (x, u) at 1 and -1
    tau: float


@dataclass(frozen=True)
class LinearRate:
    """A certified factor by which squared distances and divergences shrink a round."""

    factor: float
    quadratics: float  # the worst quadratic problem of the class has this one
    of: Class
    proof: Proof

    def rounds(self, part: float) -> float:
        """Rounds to this part of the start, but for a constant."""
        return float(np.log(part) / np.log(self.factor))


def linear_rate(
    problem: Problem, graph: Graph, method: Method | str, strong: Any = None
) -> LinearRate:
    """The certificate for this problem's class. `strong` is the strong convexity of the f_i, one
    number or (V,), at least the loss's ridge, which is the default. Raises MethodError where the
    proof does not apply, or where no certificate of this form is found."""
    kind = class_of(problem, graph, make(method) if isinstance(method, str) else method, strong)
    low = worst_quadratic(kind)
    factor, proof = certified(kind, low)
    return LinearRate(factor, low, kind, proof)


def balanced_steps(
    problem: Problem, graph: Graph, gradient: Any = None, kappa: float = 5.0
) -> tuple[np.ndarray, float]:
    """(V,) eta and rho with eta_i D_i = 1/kappa everywhere and no eta_i above the rule's: on
    regular graphs with nodes alike what "auto" gives. Irregular ones pay by shorter steps."""
    most = np.asarray((SAGA() if gradient is None else gradient).auto_step(problem.smoothness))
    degrees = np.bincount(np.asarray(graph.edges).ravel(), minlength=graph.nodes)
    rho = float((1 / (kappa * most * degrees)).max())
    return 1 / (kappa * rho * degrees), rho


def class_of(problem: Problem, graph: Graph, method: Method, strong: Any = None) -> Class:
    known = whole_network(problem, graph)
    prepared, weights = method.prepare(known)
    gradient: Any = prepared.gradient
    if not isinstance(prepared, PrimalDual) or getattr(prepared, "local", None) is not None:
        raise MethodError("linear rates are proved for pd, saga-pd and lsvr-pd: give one of these")
    if type(gradient) not in (Full, SAGA, LSVRG):
        raise MethodError(
            f"no proof covers {type(gradient).__name__}: use Full(), SAGA() or LSVRG()"
        )
    if problem.penalised:
        raise MethodError("with a penalty rates need not be linear: leave it out, or use a ridge")
    eta, rho = np.asarray(prepared.eta)[:, 0], np.asarray(weights["rho"])
    A = np.zeros((graph.nodes, graph.nodes))
    i, j = np.asarray(graph.edges).T
    A[i, j] = A[j, i] = rho
    D = A.sum(1)
    kappa = 1 / (eta * D)
    if np.ptp(kappa) > EVEN * kappa.max():
        raise MethodError(
            f"the proof needs eta_i sum_j rho_ij alike at all nodes, here 1/{kappa.min():.3g} to "
            f"1/{kappa.max():.3g}: take eta, rho from edgewise.study.linear_rate.balanced_steps"
        )
    smoothness, ridge = problem.smoothness, float(problem.loss.ridge)
    convex = np.broadcast_to(ridge if strong is None else np.asarray(strong, np.float64), D.shape)
    if convex.min() <= 0 or (convex < ridge).any():
        raise MethodError(
            "the loss has no ridge, so nothing says that it is strongly convex: give ridge=, or "
            "strong= with at least the ridge"
        )
    low, high = float((convex / D).min()), float((smoothness.mean / D).max())
    modes = np.linalg.eigvalsh(A / np.sqrt(np.outer(D, D)))
    modes = np.unique(np.round(np.clip(modes, -1, 1), 10))
    if type(gradient) is Full:
        return Class(modes, float(kappa.mean()), low, high)
    batch = np.minimum(gradient.batch, problem.counts)
    return Class(
        modes,
        float(kappa.mean()),
        low,
        high,
        float(((smoothness.sample - ridge) / D).max()),
        (float(ridge / D.max()), float(ridge / D.min())),
        # a loopless snapshot is new with probability 1/K_i whatever the batch
        float(((batch if type(gradient) is SAGA else 1) / problem.counts).min()),
        int(batch.min()),
    )


def dynamics(a: float, kappa: float) -> tuple[np.ndarray, np.ndarray]:
    """s' = A s + B g. At a = 1 and a = -1 a sum of the state stays zero for ever, u + u_old - 2 x
    and u - u_old + 2 x: it is taken out, or nothing could shrink."""
    c = 1 / (kappa + 1)
    move = c * np.array([kappa, 1.0, 0.0])
    A = np.stack([move, 2 * a * move + [-2, 0, 1], [0, 1, 0]])
    B = np.array([-c, -2 * a * c, 0.0])
    if abs(abs(a) - 1) > 1e-9:
        return A, B
    known = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0 if a > 0 else 1.0]])
    return (A @ known)[:2], B[:2]


def worst_quadratic(kind: Class) -> float:
    worst = 0.0
    for a in kind.modes:
        A, B = dynamics(float(a), kind.kappa)
        for h in np.linspace(kind.strong, kind.smooth, CURVATURES):
            step = A.copy()
            step[:, 0] += B * h
            worst = max(worst, float(np.abs(np.linalg.eigvals(step)).max()) ** 2)
    return worst


def rule_of_thumb(kind: Class) -> float:
    """min(m / (kappa + 1/2), 2 (1 - a_2) / l, (1 + a_V) / kappa): what 1 - r is for whole
    gradients, or at most twice as much. By expansion of the slow eigenvalues; not proved, and held
    by every class that was tried. a_2 is the largest eigenvalue below 1, a_V the least above -1."""
    below, above = kind.modes[kind.modes < 1 - 1e-9], kind.modes[kind.modes > -1 + 1e-9]
    slow = 2 * (1 - below.max(initial=-1)) / kind.smooth
    swing = (1 + above.min(initial=1)) / kind.kappa
    return float(min(kind.strong / (kind.kappa + 0.5), slow, swing))


def certified(kind: Class, low: float) -> tuple[float, Proof]:
    """The least factor with a proof, to a hundredth of what it is below one."""
    search = Search(kind)
    good, bad = 1 - 1e-9, low
    proof = search.proof(good)
    if proof is None:
        raise MethodError(
            "no certificate of this form: steps are too long, or the condition is beyond what the "
            "solver resolves. Shorter steps (eta) or more of a ridge help"
        )
    while good - bad > 0.01 * (1 - good):
        middle = 1 - float(np.sqrt((1 - good) * (1 - bad)))
        found = search.proof(middle)
        good, bad, proof = (good, middle, proof) if found is None else (middle, bad, found)
    return good, proof


def semidefinite_programming() -> Any:
    try:
        import cvxpy
    except ImportError as missing:
        raise InputError(
            f"linear rates need cvxpy ({missing}): pip install 'edgewise[theory]'"
        ) from missing
    return cvxpy


class Search:
    """For one class: the matrix inequalities as a semidefinite programme, compiled once."""

    def __init__(self, kind: Class) -> None:
        cvxpy = self.cvxpy = semidefinite_programming()
        self.kind = kind
        self.parts = [ModeTerms(kind, *dynamics(float(a), kind.kappa)) for a in kind.modes]
        self.r = cvxpy.Parameter(nonneg=True)
        self.slack = cvxpy.Variable()
        self.alpha = cvxpy.Variable(nonneg=True)
        self.p = cvxpy.Variable(nonneg=True)
        self.q = cvxpy.Variable(nonneg=True)
        self.tau = cvxpy.Variable(nonneg=True)
        self.P = [cvxpy.Variable((len(t.B), len(t.B)), symmetric=True) for t in self.parts]
        limits = [self.slack >= -1, self.alpha <= 1e6]
        noisy = kind.batch is not None
        if noisy:  # of P's scale the noise's weight is the measure: max_a B' P_a B = 1
            limits += [cvxpy.bmat([[self.p - 1, 1], [1, self.q - 1]]) >> 0]
            limits += [self.tau * (1 - self.r - kind.share) + kind.share * self.q / kind.batch <= 0]
        for t, P in zip(self.parts, self.P, strict=True):
            size = np.eye(len(t.B) + 1)
            limits += [t.left(P, self.r, self.alpha, self.p, self.tau) << self.slack * size]
            limits += [LEAST * np.eye(len(t.B)) << P]
            limits += [t.B @ P @ t.B <= 1] if noisy else [cvxpy.trace(P) <= 100]
        self.programme = cvxpy.Problem(cvxpy.Minimize(self.slack), limits)

    def proof(self, r: float) -> Proof | None:
        """A proof of r, if one is found. What the solver says is not believed: its matrices are put
        into the inequalities, with p, q and tau made to fit exactly."""
        self.r.value = r
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of inaccuracy: see above
                self.programme.solve(solver=self.cvxpy.CLARABEL)
        except self.cvxpy.SolverError:
            return None
        if self.slack.value is None:
            return None
        k = self.kind
        P = tuple((M.value + M.value.T) / 2 for M in self.P)
        p = tau = 0.0
        if k.batch is not None:
            if r + k.share <= 1:
                return None
            weight = max(float(t.B @ M @ t.B) for t, M in zip(self.parts, P, strict=True))
            p = max(float(self.p.value), 1 + 1e-9)
            q = weight * (1 + 1 / (p - 1))
            p *= weight
            tau = k.share * q / k.batch / (r + k.share - 1)
        alpha = max(float(self.alpha.value), 0.0)
        holds = all(
            np.linalg.eigvalsh(M)[0] > 0
            and np.linalg.eigvalsh(t.left(M, r, alpha, p, tau))[-1] <= 0
            for t, M in zip(self.parts, P, strict=True)
        )
        return Proof(P, tau) if holds else None


class ModeTerms:
    """The left side of one eigenvalue's inequality, of (s, g)."""

    def __init__(self, kind: Class, A: np.ndarray, B: np.ndarray) -> None:
        n = len(B)
        self.B, self.step, self.kind = B, np.column_stack([A, B]), kind
        self.keep = np.hstack([np.eye(n), np.zeros((n, 1))])
        x, g = np.eye(n + 1)[0], np.eye(n + 1)[-1]
        self.sector = product(g - kind.strong * x, kind.smooth * x - g)
        least, most = kind.ridge
        own = g - least * x  # the samples' part of the change, where the ridge is least
        self.inner = product(own, x)
        # -|g_s|^2 for any ridge between the two is at most this
        self.spread = 2 * (most - least) * self.inner - product(own, own)

    def left(self, P: Any, r: Any, alpha: Any, p: Any, tau: Any) -> Any:
        left = self.step.T @ P @ self.step - r * (self.keep.T @ P @ self.keep)
        left = left + alpha * self.sector
        if self.kind.batch is None:
            return left
        left = left + (p / self.kind.batch + tau) * self.kind.sample * self.inner
        return left + (p / self.kind.batch) * self.spread


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray((np.outer(a, b) + np.outer(b, a)) / 2)

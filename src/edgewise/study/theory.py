"""The lemmas in numbers: constants, steps and bounds for convex losses, strongly convex or not.

Every method without epochs fits one template. With D_i = D_{f_i}(x_i, x*) and some phi_i >= 0 that
the estimator's memory defines, let

    E|g_i - grad f_i(x*)|^2 <= 2 A_i D_i + B_i phi_i + 2 sigma_i^2
    E phi_i'                <= (1 - varrho_i) phi_i + 2 C_i D_i

Then, for eta_i <= 1 / (2 A_i + 2 B_i C_i / varrho_i) and Delta^t the trace's `bregman`,

    (1/T) sum_{t=1..T} Delta^t <= Upsilon^1 / T + 2 sum_i sigma_i^2 eta_i
    Upsilon^1 = Psi^1 + sum_i |x_i^1 - x*|^2 / eta_i + 2 sum_i D_{h_i}(x_i^1, x*)
                + sum_i B_i eta_i phi_i^1 / varrho_i
    Psi^1 = sum_{(i,j)} |rho_ij (x_i^1 - x*) - (lambda_ij^1 - lambda_ij*)|^2 / (2 rho_ij)

x^1 is the start, the trace's row of round 0. With W_1 the largest of |x_i^1 - x*|^2,
|lambda_ij^1 - lambda_ij*|^2 and D_{f_i+h_i}(x_i^1, x*), all of Upsilon^1 but its last term is at
most W_1 (2 sum_e (rho_e + 1/rho_e) + sum_i 1/eta_i + 2V): the paper's form, for a rho per edge.

Some of the paper's steps weigh K_i against L_i and so change with the units of the loss: "theory"
always means the largest step the analysis allows. `bound(Start(problem, graph, "saga-pd"), 1000)`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.centralised.reference import reference as find_reference
from edgewise.engines.wires import edge_duals
from edgewise.errors import MethodError, UnknownName
from edgewise.gradients import ASVRG, LSVRG, SAGA, SEGA, SGD, SVRG, Full
from edgewise.graph.graph import Graph
from edgewise.methods.catalogue import make
from edgewise.methods.contract import Method
from edgewise.methods.knowledge import whole_network
from edgewise.problem.block import Block, Pick
from edgewise.problem.problem import Problem
from edgewise.running.measures import Target, divergences


class Start:
    """A run about to begin. A name brings "theory" steps; X0 as for `solve`; duals are zero."""

    def __init__(
        self,
        problem: Problem,
        graph: Graph,
        method: Method | str,
        X0: Any = None,
        reference: Any = None,
    ) -> None:
        chosen = make(method, "theory", "theory") if isinstance(method, str) else method
        prepared, weights = chosen.prepare(whole_network(problem, graph))
        self.problem = problem
        self.gradient: Any = prepared.gradient
        self.eta, self.rho = np.asarray(prepared.eta)[:, 0], np.asarray(weights["rho"])
        self.star = star = find_reference(problem) if reference is None else reference
        self.L, self.counts = problem.smoothness.sample, problem.counts.astype(np.float64)
        shape = (problem.nodes, problem.size)
        with jax.enable_x64(True):
            p = self.block = problem.block(None, np.float64)
            X = (
                p.penalty.prox(jnp.zeros(shape), jnp.asarray(self.eta[:, None]))
                if X0 is None
                else X0
            )
            X = jnp.broadcast_to(jnp.asarray(X, np.float64), shape)
            target = Target(*map(jnp.asarray, (star.x, star.gradients, star.subgradients, 0.0)))
            change = p.penalty.value(X) - p.penalty.value(jnp.broadcast_to(target.x, shape))
            change -= (target.subgradients * (X - target.x)).sum(1)
            self.from_f = np.asarray(node_divergences(p, X, target))  # (V,) D_{f_i}(x_i, x*)
            self.from_h = np.maximum(np.asarray(change), 0)  # (V,) D_{h_i}(x_i, x*)
        self.X = np.asarray(X)
        self.distance: np.ndarray = ((self.X - star.x) ** 2).sum(1)  # (V,)
        d = graph.directed  # least optimal duals: sum_j lambda_ij* = grad f_i(x*) + v_i*
        self.duals = edge_duals(graph, star.gradients + star.subgradients)  # (2E, n)
        rho = self.rho[d.edge][:, None]
        moved = rho * (self.X - star.x)[d.owner] + self.duals
        self.psi = float((moved**2 / (2 * rho)).sum())

    @property
    def w1(self) -> float:
        duals = (self.duals**2).sum(1).max(initial=0)
        return float(max(self.distance.max(), duals, (self.from_f + self.from_h).max()))

    def terms(self, tight: bool) -> tuple[float, float, float]:
        """Psi + sum_i |x_i - x*|^2 / eta_i, Delta and sum_i D_{h_i}; or what W_1 makes of them."""
        if tight:
            far = self.psi + (self.distance / self.eta).sum()
            return float(far), float((self.from_f + self.from_h).sum()), float(self.from_h.sum())
        weight = float(2 * (self.rho + 1 / self.rho).sum() + (1 / self.eta).sum())
        return self.w1 * weight, self.w1 * len(self.X), self.w1 * len(self.X)

    def require_step(self, most: np.ndarray) -> None:
        over = float((self.eta / most).max())
        if over > 1 + 1e-9:
            raise MethodError(f"eta is {over:.3g} times what the bound allows: use eta='theory'")

    def gradients(self, X: np.ndarray) -> np.ndarray:
        """(N, n) of the samples' losses at their nodes' models, or one for all; ridge apart, as in
        the estimators, which take it as it is."""
        with jax.enable_x64(True):
            each = np.repeat(np.broadcast_to(X, self.X.shape), self.problem.counts, 0)
            return np.asarray(sample_gradients(self.block, jnp.asarray(each)))

    def mean(self, each: np.ndarray) -> np.ndarray:
        """Means over every node's samples."""
        return np.asarray((np.add.reduceat(each, self.problem.shards.first).T / self.counts).T)


node_divergences = jax.jit(divergences)


@jax.jit
def sample_gradients(p: Block, X: Array) -> Array:
    at, ones = jnp.arange(X.shape[0])[:, None], jnp.ones_like(X[:, 0])
    one = Pick(at, ones[:, None], ones, p.rows.take(at))
    return p.spread(one, p.slopes(one, X))


class Constants(NamedTuple):
    """Of the template above, each (V,)."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    varrho: np.ndarray
    sigma2: np.ndarray
    phi1: np.ndarray


def pd(s: Start) -> Constants:
    """|grad f_i(x) - grad f_i(x*)|^2 <= 2 L D, with the L of the whole f_i."""
    L = s.problem.smoothness.mean
    return Constants(L, 0 * L, 0 * L, 1 + 0 * L, 0 * L, 0 * L)


def spd(s: Start) -> Constants:
    """Twice the change since the optimum; twice a batch's variance there, without replacement."""
    L, K = s.L, s.counts
    b = np.minimum(s.gradient.batch, K)
    each = s.gradients(s.star.x)
    apart = each - np.repeat(s.mean(each), s.problem.counts, 0)
    sigma2 = s.mean((apart**2).sum(1)) * (K - b) / (b * np.maximum(K - 1, 1))
    return Constants(2 * L, 0 * L, 0 * L, 1 + 0 * L, sigma2, 0 * L)


def saga(s: Start) -> Constants:
    """phi = mean_k |grad f(x_k, k) - grad f(x*, k)|^2; b of the table's K_i rows change a round."""
    L, share = s.L, np.minimum(s.gradient.batch, s.counts) / s.counts
    phi1 = s.mean(((s.gradients(s.X) - s.gradients(s.star.x)) ** 2).sum(1))
    return Constants(2 * L, 2 + 0 * L, share * L, share, 0 * L, phi1)


def lsvr(s: Start) -> Constants:
    """phi = D_{f_i}(snapshot, x*). E|g - grad f_i(x*)|^2 <= 4 L D + 4 L phi, hence B = 4 L; and
    E phi' = (1 - 1/K) phi + D / K, hence C = 1 / (2 K). The paper prints B = 2 L, which fails, and
    C = 1/K: the product B C, and with it the step, is the same."""
    L, K = s.L, s.counts
    return Constants(2 * L, 4 * L, 1 / (2 * K), 1 / K, 0 * L, s.from_f)


def sk(s: Start) -> Constants:
    """phi = |h - grad f_i(x*)|^2 from h = 0: W_1 says nothing about it. L is that of the whole
    f_i; with b coordinates a round n becomes n/b."""
    if not s.gradient.oracle.exact:
        raise MethodError("no bound holds for finite differences: use SEGA(ExactCoordinates())")
    L = s.problem.smoothness.mean
    n = s.problem.size / min(s.gradient.batch, s.problem.size) + 0 * L
    return Constants(2 * n * L, 2 * n, L / n, 1 / n, 0 * L, (s.star.gradients**2).sum(1))


Rule = Callable[[Start], Constants]
TEMPLATE: dict[Any, Rule] = {Full: pd, SGD: spd, SAGA: saga, LSVRG: lsvr, SEGA: sk}


def constants(start: Start) -> Constants:
    kind = type(start.gradient)
    if kind not in TEMPLATE:
        raise MethodError(f"{kind.__name__} does not fit the template: see theory.epoch_bound")
    return TEMPLATE[kind](start)


def largest_step(c: Constants) -> np.ndarray:
    """(V,) eta_i = 1 / (2 A_i + 2 B_i C_i / varrho_i)."""
    return np.asarray(1 / (2 * c.A + 2 * c.B * c.C / c.varrho))


def bound(start: Start, rounds: int, tight: bool = True) -> float:
    """On the expected mean of the first `rounds` values of `bregman`, recorded in every round; by
    Upsilon^1 itself or, not tight, by W_1 as in the paper."""
    c = constants(start)
    start.require_step(largest_step(c))
    distances, _, from_h = start.terms(tight)
    memory = (c.B * start.eta * c.phi1 / c.varrho).sum()
    return float((distances + 2 * from_h + memory) / rounds + 2 * (c.sigma2 * start.eta).sum())


def epoch_bound(start: Start, epochs: int, tight: bool = True) -> float:
    """On the snapshots' expected divergence after S = `epochs` epochs of svr-pd or asvr-pd.

    svr-pd, m doubling, eta <= 1/(6L): 2^-S (Delta_1 + 3 Upsilon_1 / (2 m_1)), Upsilon without phi.
    The paper's proof takes means over t = 0..m-1; for the algorithm's 1..m put
    Upsilon - (4/3) Delta, which is never negative either, in the place of Upsilon.

    asvr-pd, with Q = Psi + sum_i |y_i - x*|^2 / eta_i, epochs of n_s rounds, w_s = 2 n_s / beta_s:
    w_s Delta_{s+1} + Q_{s+1} <= w_s (1 - beta_s) Delta_s + Q_s, so
    Delta_{S+1} <= (w_1 (1 - beta_1) Delta_1 + Q_1) / w_S, times w_s (1 - beta_s) / w_{s-1} for
    each s > 1 where that exceeds one (n_s is rounded up). With n_s = m / beta_s and beta_1 = 1/2
    this is beta_S^2 / (2 m) (4 m Delta_1 + Q_1): 4 m, where the paper has m.
    """
    kind = type(start.gradient)
    if kind not in EPOCHS or epochs < 1:
        raise MethodError(f"{kind.__name__}, {epochs} epochs: use SVRG or ASVRG, one or more")
    return EPOCHS[kind](start, epochs, tight)


def svr_epochs(start: Start, epochs: int, tight: bool) -> float:
    g, counts = start.gradient, start.problem.counts
    require_alike(start, g.first is not None)
    m = max(int(counts[0]) // 4, 1) if g.first is None else int(g.first)
    longest = 2 * int(counts.min()) if g.longest is None else int(g.longest)
    if g.stop or m * 2 ** (epochs - 1) > longest:
        raise MethodError("the bound needs epochs that double: set longest=10**9 and stop=0")
    start.require_step(1 / (6 * start.L))
    distances, divergence, from_h = start.terms(tight)
    return (divergence + 1.5 * (distances + 2 * from_h) / m) / 2**epochs


def asvr_epochs(start: Start, epochs: int, tight: bool) -> float:
    g, counts = start.gradient, start.problem.counts
    require_alike(start, g.length is not None and g.floor is not None)
    if np.ptp(g.momentum) > 0 or np.ptp(g.ask) > 0:
        raise MethodError("momentum differs between nodes: give one momentum= and one ask=")
    beta, ask = float(np.ravel(g.momentum)[0]), float(np.ravel(g.ask)[0])
    usual = counts[0] / (g.batch if g.floor is None else 1)
    total, divergence, _ = start.terms(tight)
    m, w = usual if g.length is None else g.length, np.inf
    for s in range(epochs):
        start.require_step(ask * (1 - beta) / (beta * (1 + ask * (1 - beta)) * start.L))
        before, w = w, 2 * np.ceil(m if g.floor is None else m / beta) / beta
        total *= max(1.0, w * (1 - beta) / before)
        total += 0.0 if s else w * (1 - beta) * divergence
        after = (np.sqrt(beta**4 + 4 * beta**2) - beta**2) / 2
        after = beta if g.floor is None else max(float(g.floor), after)
        beta, ask = after, ask * after / beta
    return float(total / w)


def require_alike(start: Start, fixed: bool) -> None:
    """That all nodes' epochs are of one length."""
    if not fixed and np.ptp(start.problem.counts) > 0:
        raise MethodError("epochs differ between nodes: give first=, or length= and floor=")


# by the class itself: what a lemma says of SVRG need not hold for a class that inherits from it
EPOCHS: dict[Any, Callable[[Start, int, bool], float]] = {SVRG: svr_epochs, ASVRG: asvr_epochs}


def oracle_complexity(name: str, V: int, E: int, K: int, L: float, epsilon: float) -> float:
    """Table 2: the order, with W_1 = 1, of the oracle calls per node to a divergence of epsilon.

    Corrected for saga-pd and lsvr-pd, whose 1/eta + 4 eta L K is 4 sqrt(L K) at the best step where
    K >= 16 L, and 8 L + K/2 elsewhere: of the order of L + sqrt(L K), not the lesser of the two.
    """
    smooth = (E + V * L) / epsilon
    table = smooth + V * np.sqrt(L * K) / epsilon
    calls = {
        "pd": K * smooth,
        "saga-pd": table,
        "lsvr-pd": table,
        "svr-pd": smooth + K * np.log(smooth),
        "asvr-pd": np.sqrt(K * (E + V * (K + L)) / epsilon),
    }
    if name not in calls:
        raise UnknownName("method", name, calls)
    return float(calls[name])

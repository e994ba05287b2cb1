"""Decentralised communication sliding, with whole (DCS) or sampled (SDCS) gradients."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError, whole_number
from edgewise.gradients.contract import Estimator, Exactness
from edgewise.graph.mixing import laplacian, largest_eigenvalue
from edgewise.methods.averaging import Averaging
from edgewise.methods.contract import Messages, Weights
from edgewise.methods.knowledge import Knowledge
from edgewise.problem.block import Block, Links


class State(NamedTuple):
    X: Array  # (v, n) the answer: the mean of all xhat with the weights theta
    U: Array  # (v, n) x(k), the last inner iterate
    W: Array  # (v, n) w = L y; goes to minus the dual
    eta: Array  # (v, 1) eta_k, which grows where mu > 0
    total: Array  # (v, 1) the thetas so far
    memory: Any  # the estimator's


@pytree("inner")
class DCS(Averaging):
    """Lan, Lee, Zhou: "Communication-efficient algorithms for decentralized and stochastic
    optimization", Math. Programming 2020, arXiv:1701.03961. With L = I - W, iteration k is

        v = L (x(k-1) + alpha_k (xhat(k-1) - x(k-2))),    y <- y + v / tau_k,    w = L y
        u_t = argmin <g(u_{t-1}) + w, u> + h(u) + eta_k/2 (|u - x(k-1)|^2 + beta_t |u - u_{t-1}|^2)

    for t = 1..inner from u_0 = x(k-1); x(k) is the last u, xhat(k) their mean with the weights
    lambda_t, the answer that of all xhat with theta_k. Two rounds: of the point, and of v, not y,
    so that w <- w + L v / tau. Their convex (mu = 0) and strongly convex settings are both, with
    lambda_t = t + 1 for mu = 0, else t (docs/methods/dcs.md says what was read where),

        eta_k = 1/eta + (k-1) mu/2,    theta_k = eta_k + mu/2,    alpha_k = eta_k / theta_k,
        tau_k = 2 |L|^2 / theta_k,     beta_t = (lambda_t - 1)/2 + (lambda_t + 1) mu / (2 eta_k)

    eta: theirs is "theory" (2/mu, or 1/(2 |L|) for mu = 0); "auto", the estimator's step, enters
    that sequence later. mu: by rule the ridge, 0 with an intercept. h: their X_i. inner: their T.
    Sublinear on every problem: not for high accuracy, nor where gradients are dear."""

    gradient: Estimator
    eta: Any = "auto"
    mixing: Any = "metropolis"
    mu: Any = "auto"
    inner: int = 10
    dual: Any = None  # 1 / (2 |L|^2), found from the mixing

    phases = ("relay", "slide")
    takes_penalty = True
    solves_subproblem = True
    streams = False  # a round takes many samples, a stream brings one batch

    @property
    def random_draws(self) -> int:
        return self.inner * int(self.gradient.random_draws)

    @property
    def exactness(self) -> Exactness:
        return "slowly"

    def prepare(self, k: Knowledge) -> tuple["DCS", Weights]:
        whole_number("DCS's inner", self.inner, 1, MethodError)
        need = "DCS needs an eigenvalue of the whole network"
        network = k.whole(need, "use saga-pd")
        ready, weights = super().prepare(k)
        norm = largest_eigenvalue(laplacian(network.graph, weights["mixing"])) or 1.0  # 1: no edges
        mu = k.strong_convexity if isinstance(self.mu, str) and self.mu == "auto" else self.mu
        if isinstance(mu, str) or np.ndim(mu) or not 0 <= mu < np.inf:
            raise MethodError(f"DCS(mu={mu!r}): give 'auto', or one number, zero or more")
        one = np.ones_like(ready.eta)
        if isinstance(self.eta, str) and self.eta == "theory":
            ready = replace(ready, eta=2 / mu * one if mu else one / (2 * norm))
        return replace(ready, mu=mu * one, dual=one / (2 * norm**2)), weights

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        W, first = jnp.zeros_like(X) if duals is None else -duals, 1 / self.eta
        return State(X, X, W, first, 0 * first, self.gradient.init(p, X)), (X,)

    def relay(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        return s, inbox  # -v, and the pull of that is L v

    def slide(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        draws = random_bits.reshape(len(random_bits), self.inner, self.gradient.random_draws)
        theta = s.eta + self.mu / 2
        W = s.W + theta * self.dual * inbox[0]

        def descend(t: Array, carry: Any) -> Any:
            U, Xhat, weights, memory = carry
            G, memory = self.gradient(p, U, memory, draws[:, t])
            weight = jnp.where(self.mu > 0, t + 1, t + 2).astype(U.dtype)  # lambda
            pulls = 1 + (weight - 1) / 2 + (weight + 1) * self.mu / (2 * s.eta)  # 1 + beta
            U = p.penalty.prox(U + ((s.U - U) - (G + W) / s.eta) / pulls, 1 / (s.eta * pulls))
            weights += weight
            return U, Xhat + weight / weights * (U - Xhat), weights, memory

        U, Xhat, _, memory = lax.fori_loop(0, self.inner, descend, (s.U, s.U, 0 * s.eta, s.memory))
        X = s.X + theta / (s.total + theta) * (Xhat - s.X)
        ahead = U + theta / (theta + self.mu / 2) * (Xhat - s.U)  # eta_{k+1} is theta_k
        return State(X, U, W, theta, s.total + theta, memory), (ahead,)

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        return -s.W  # at rest 0 is in grad f + w + the subdifferential of h

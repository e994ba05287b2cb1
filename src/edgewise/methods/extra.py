"""EXTRA, PG-EXTRA and VR-EXTRA: one update, with or without a prox, with any estimator."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.contract import Estimator
from edgewise.methods.averaging import Averaging
from edgewise.methods.contract import Messages
from edgewise.problem.block import Block, Links


class State(NamedTuple):
    X: Array  # (v, n) models
    C: Array  # (v, n) half the sum of all pulls before this round's; goes to eta times the dual
    memory: Any  # the estimator's


@pytree("proximal")
class EXTRA(Averaging):
    """Shi, Ling, Wu, Yin 2015, their second matrix (I + W)/2. From z(1) = W x(0) - eta g(0),

        z(k+2) = W x(k+1) + z(k+1) - (I + W)/2 x(k) - eta (g(k+1) - g(k)),    x = prox_{eta h}(z)

    Added up over k, with the pull P_i = sum_j w_ij (x_j - x_i), that is what is computed here:

        x <- prox_{eta h}(x + C + P - eta g),    C <- C + P/2,    from C = 0

    W: mixing, eta: eta, g: gradient, h: the problem's penalty. EXTRA(Full()) is EXTRA, and has no
    prox (then z = x); proximal=True makes it PG-EXTRA ("A proximal gradient algorithm for
    decentralized composite optimization", 2015); EXTRA(LSVRG()) is VR-EXTRA (Li, Lin, Fang 2020:
    x <- x - (eta g + U lambda + U^2 x), lambda <- lambda + U x, U^2 = (I - W)/2). There we start
    from lambda = U x, so that with exact gradients it is EXTRA; samples are drawn uniformly, and
    a snapshot is new with probability 1/K_i whatever the batch (theirs: batch/K_i).

    Converges for eta < (1 + least eigenvalue of W) / L: at 1/L with the lazy default, while a W
    with negative eigenvalues needs a shorter step. Not for networks that lose messages: C never
    forgets an error. NIDS takes W as it is.
    """

    gradient: Estimator
    eta: Any = "auto"
    mixing: Any = "lazy-metropolis"
    proximal: bool = False

    takes_penalty = property(lambda self: self.proximal)

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        C = jnp.zeros_like(X) if duals is None else self.eta * duals
        return State(X, C, self.gradient.init(p, X)), (X,)

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        G, memory = self.gradient(p, s.X, s.memory, random_bits)
        X = s.X + s.C + inbox[0] - self.eta * G
        X = p.penalty.prox(X, self.eta) if self.proximal else X
        return State(X, s.C + 0.5 * inbox[0], memory), (X,)

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        """(v, n) C / eta: at rest P = 0 and x = prox_{eta h}(x + C - eta g), so that C/eta - g is
        in the subdifferential of h. A run that starts from it goes on as if never stopped."""
        return s.C / self.eta

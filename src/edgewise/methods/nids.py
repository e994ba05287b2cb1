"""NIDS: exact, proximal, with a step that the network has no say in."""

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
    A: Array  # (v, n) x - eta g, both of the last round
    C: Array  # (v, n) half the sum of all pulls so far; goes to eta times the dual
    begun: Array  # (v, 1) zero before the first gradient, then one
    memory: Any  # the estimator's


@pytree()
class NIDS(Averaging):
    """Li, Shi, Yan 2019, Algorithm 1, one step for all nodes and c = 1/(2 eta). With
    x = prox_{eta h}(z) and z(1) = x(0) - eta g(0),

        z(k+1) = z(k) - x(k) + (I + W)/2 (2 x(k) - x(k-1) - eta (g(k) - g(k-1)))

    Added up over k, with a = x - eta g, the vector sent y(k) = x(k) + a(k) - a(k-1), and its pull
    Q_i = sum_j w_ij (y_j - y_i), that is what is computed here:

        C <- C + Q/2,    x <- prox_{eta h}(a + C),    a <- x - eta g(x),    from C = 0

    W: mixing, eta: eta, g: gradient, h: the problem's penalty. Messages hold gradients, so the
    first round only takes one: after t rounds x is their x(t-1), and the first two messages are
    zeros, for their first step is without neighbours. Their steps per node are left out.

    Converges for eta < 2/L on any W. Not for networks that lose messages: C never forgets an
    error. Proved for exact gradients only.
    """

    gradient: Estimator
    eta: Any = "auto"
    mixing: Any = "metropolis"

    takes_penalty = True

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        C = jnp.zeros_like(X) if duals is None else self.eta * duals
        begun = jnp.zeros((X.shape[0], 1), X.dtype)
        return State(X, X, C, begun, self.gradient.init(p, X)), (jnp.zeros_like(X),)

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        C = s.C + 0.5 * inbox[0]
        X = jnp.where(s.begun > 0, p.penalty.prox(s.A + C, self.eta), s.X)
        G, memory = self.gradient(p, X, s.memory, random_bits)
        A = X - self.eta * G
        return State(X, A, C, jnp.ones_like(s.begun), memory), (s.begun * (X + A - s.A),)

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        """(v, n) C / eta: at rest x = prox_{eta h}(x - eta g + C), so that C/eta - g is in the
        subdifferential of h."""
        return s.C / self.eta

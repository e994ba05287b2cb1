"""D2: stochastic gradient descent that does not mind how the nodes' data differ."""

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
    Y: Array  # (v, n) x + C - eta g, what was sent
    C: Array  # (v, n) the sum of all pulls so far; goes to eta times the dual
    memory: Any  # the estimator's


@pytree()
class D2(Averaging):
    """Tang, Lian, Yan, Zhang, Liu 2018, Algorithm 1. From x(1) = W (x(0) - eta g(0)),

        x(t+1) = W (2 x(t) - x(t-1) - eta (g(t) - g(t-1)))

    Added up over t, with y the vector sent, y(0) = x(0) - eta g(0), and its pull
    Q_i = sum_j w_ij (y_j - y_i), that is what is computed here:

        C <- C + Q,    x <- y + Q,    y <- x + C - eta g(x),    from C = 0

    W: mixing, eta: eta, g: gradient. Messages hold gradients, so the first one is zeros and the
    first round only takes a gradient: after t rounds x is their x(t-1). That the first step is
    averaged too is as in public code (relaysgd); other code leaves it out. Needs a W whose least
    eigenvalue is above -1/3, hence the lazy default.

    Not for an exact answer from SGD(): it ends at a noise floor of order eta (but not, as DGD, at
    one that grows with how the data differ); and not for a penalty, of which it knows nothing.
    """

    gradient: Estimator
    eta: Any = "auto"
    mixing: Any = "lazy-metropolis"

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        C = jnp.zeros_like(X) if duals is None else self.eta * duals
        return State(X, X, C, self.gradient.init(p, X)), (jnp.zeros_like(X),)

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        C, X = s.C + inbox[0], s.Y + inbox[0]
        G, memory = self.gradient(p, X, s.memory, random_bits)
        Y = X + C - self.eta * G
        return State(X, Y, C, memory), (Y,)

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        """(v, n) C / eta: at rest the pull is zero and x = x + C - eta g."""
        return s.C / self.eta

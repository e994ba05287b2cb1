"""EDGE: gradient descent on an augmented Lagrangian over edges, ascent on its multipliers."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.contract import Estimator
from edgewise.methods.contract import Messages, MethodDefaults, Weights, require_estimator
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.steps import common_step, mixing_of, per_node, positive
from edgewise.problem.block import Block, Links


class State(NamedTuple):
    X: Array  # (v, n) models
    Q: Array  # (v, n) B^T y before this round's ascent: each node's sum of multipliers
    memory: Any  # the estimator's


@pytree()
class EDGE(MethodDefaults):
    """After Wang, Li: "Edge-based stochastic gradient algorithm for distributed optimization", IEEE
    Trans. Network Science and Engineering 2020. Its listing could not be read. This is our own
    derivation from what is known of it: an augmented Lagrangian whose constraint B x = 0 comes
    from a weighted Laplacian B^T B, one multiplier y_e an edge, and SAGA for the gradient g,

        L(x, y) = f(x) + y^T B x + (beta/2) |B x|^2
        x <- x - eta (g + B^T y + beta B^T B x)
        y <- y + beta B x                                          (x new)

    Row e = (i, j) of B is sqrt(w_ij) (e_i - e_j). Only Q = B^T y enters, and B^T B x is minus the
    pull P_i = sum_j w_ij (x_j - x_i), so that one vector an edge and round suffices:

        Q <- Q - beta P,    x <- x - eta (g + Q - beta P)

    from Q = 0, which is y(0) = beta B x(0). eta: eta, beta: beta, w: mixing, g: gradient. With
    beta = 1/(4 eta) and Metropolis weights these are the iterates of EXTRA with lazy ones.

    eta "auto" is the least of the nodes' own, beta "auto" 1/(4 eta). With exact gradients of
    quadratics it is stable where eta (L/2 + (3/4) beta |B|^2) < 1, L the largest curvature, and
    |B|^2 < 2 for mixing weights on any graph: so for eta < 5/(4 L). The source's own steps are not
    known to us.

    Not where messages get lost (Q never forgets), nor with a penalty; saga-pd takes both.
    """

    gradient: Estimator
    eta: Any = "auto"
    beta: Any = "auto"
    mixing: Any = "metropolis"

    def __post_init__(self) -> None:
        require_estimator(self, self.gradient)

    hears = ("mixing",)
    tunes = ("eta", "beta")

    def prepare(self, k: Knowledge) -> tuple["EDGE", Weights]:
        if isinstance(self.eta, str):
            eta = np.full(len(k.degrees), common_step("EDGE", self.eta, self.gradient, k))
        else:
            eta = per_node("eta", self.eta, k)
        auto = isinstance(self.beta, str) and self.beta == "auto"
        beta = float(positive("beta", 1 / (4 * eta.max()) if auto else self.beta, 1, "run")[0])
        weights = mixing_of("EDGE", self.mixing, k)
        ready = replace(self, eta=eta[k.own, None], beta=beta, mixing=None)
        return ready, {"mixing": weights}

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        Q = jnp.zeros_like(X) if duals is None else -duals
        return State(X, Q, self.gradient.init(p, X)), (X,)

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        G, memory = self.gradient(p, s.X, s.memory, random_bits)
        ascent = -self.beta * inbox[0]
        Q = s.Q + ascent
        X = s.X - self.eta * (G + Q + ascent)
        return State(X, Q, memory), (X,)

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        """(v, n) -Q: at rest g + Q = 0, and Q adds up to zero over all nodes. A run that starts
        from it goes on as if never stopped."""
        return -s.Q

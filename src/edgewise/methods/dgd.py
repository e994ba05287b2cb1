"""Decentralised (stochastic) gradient descent."""

from typing import Any, NamedTuple

from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.contract import Estimator, Exactness
from edgewise.methods.averaging import Averaging
from edgewise.methods.contract import Messages
from edgewise.problem.block import Block


class State(NamedTuple):
    X: Array  # (v, n) models
    memory: Any  # the estimator's


@pytree()
class DGD(Averaging):
    """Average with the neighbours, and step down one's own gradient:

        x_i <- sum_j w_ij x_j - eta g_i = x_i + sum_j w_ij (x_j - x_i) - eta g_i

    w: mixing (a rule's name or a (V, V) matrix), eta: eta, g_i: gradient, at the x_i from before
    averaging. Nedic, Ozdaglar 2009; with SGD() it is D-PSGD, Lian et al. 2017, Algorithm 1, whose
    two orders of averaging and gradient are the same. Stable for eta < (1 + least eigenvalue of
    W) / L, so the default W is lazy: none of its eigenvalues is negative.

    Not where the answer must be exact: it ends at a distance of order eta from the optimum, the
    farther the more the nodes' data differ, even with exact gradients.
    """

    gradient: Estimator
    eta: Any = "auto"
    mixing: Any = "lazy-metropolis"

    data_by_gradient = True

    @property
    def exactness(self) -> Exactness:
        return "no"

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        return State(X, self.gradient.init(p, X)), (X,)

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        G, memory = self.gradient(p, s.X, s.memory, random_bits)
        X = s.X + inbox[0] - self.eta * G
        return State(X, memory), (X,)

"""Decentralised (stochastic) gradient descent, and what all averaging methods check."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.block import Block, Links
from edgewise.errors import MethodError
from edgewise.mixing import mixing_weights
from edgewise.pytree import pytree
from edgewise.steps import local_steps

if TYPE_CHECKING:
    from edgewise.graph import Graph
    from edgewise.problem import Problem


class State(NamedTuple):
    X: Array  # (v, n) models
    memory: Any  # the estimator's


@pytree()
class DGD:
    """Average with the neighbours, and step down one's own gradient:

        x_i <- sum_j w_ij x_j - eta g_i = x_i + sum_j w_ij (x_j - x_i) - eta g_i

    w: mixing (a rule's name or a (V, V) matrix), eta: eta, g_i: gradient, at the x_i from before
    averaging. Nedic, Ozdaglar 2009; with SGD() it is D-PSGD, Lian et al. 2017, Algorithm 1, whose
    two orders of averaging and gradient are the same. Stable for eta < (1 + least eigenvalue of
    W) / L, so the default W is lazy: none of its eigenvalues is negative.

    Not where the answer must be exact: it ends at a distance of order eta from the optimum, the
    farther the more the nodes' data differ, even with exact gradients.
    """

    gradient: Any
    eta: Any = "auto"
    mixing: Any = "lazy-metropolis"

    hears = ("mixing",)
    phases = ("step",)
    takes_penalty = False
    heals = False

    def __post_init__(self) -> None:
        require_estimator(self)

    @property
    def words(self) -> int:
        return int(self.gradient.words)

    def prepare(self, problem: "Problem", graph: "Graph") -> tuple["DGD", dict[str, Any]]:
        weights = {"mixing": mixing_weights(self.mixing, graph)}
        return replace(self, eta=common_step(self, problem), mixing=None), weights

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, tuple[Array, ...]]:
        return State(X, self.gradient.init(p, X)), (X,)

    def step(
        self, p: Block, s: State, inbox: tuple[Array, ...], words: Array
    ) -> tuple[State, tuple[Array, ...]]:
        G, memory = self.gradient(p, s.X, s.memory, words)
        X = s.X + inbox[0] - self.eta * G
        return State(X, memory), (X,)

    def answer(self, s: State) -> Array:
        return s.X

    def duals(
        self, links: Links, s: State, inbox: tuple[Array, ...], outbox: tuple[Array, ...]
    ) -> Array:
        """There are none."""
        return jnp.zeros_like(s.X)


def require_estimator(method: Any) -> None:
    name, gradient = type(method).__name__, method.gradient
    if not (callable(gradient) and hasattr(gradient, "init")):
        raise MethodError(f"{name}({gradient!r}): give an estimator, such as Full() or SGD()")
    if hasattr(gradient, "point"):
        other = type(gradient).__name__
        raise MethodError(
            f"{name} cannot take {other}, which has momentum: use PrimalDual({other}())"
        )


def common_step(method: Any, problem: "Problem") -> np.ndarray:
    """(V, 1) one step for all: a rule's least; with unequal ones nodes would weigh unequally."""
    steps = local_steps(method.eta, method.gradient, problem)
    if not isinstance(method.eta, str) and steps.min() < steps.max():
        name = type(method).__name__
        raise MethodError(f"{name} needs one step for all nodes, eta has several: give one number")
    return np.full((problem.nodes, 1), steps.min())

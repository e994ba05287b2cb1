"""What the methods that average with their neighbours share."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.errors import MethodError
from edgewise.graph.mixing import mixing_weights
from edgewise.methods.steps import local_steps
from edgewise.problem.block import Links

if TYPE_CHECKING:
    from edgewise.graph.graph import Graph
    from edgewise.problem.problem import Problem


class Averaging:
    """One vector an edge and round, one step for all nodes, any estimator without momentum."""

    gradient: Any
    eta: Any
    mixing: Any

    hears: tuple[str, ...] = ("mixing",)
    phases: Any = ("step",)
    heals = False

    def __post_init__(self) -> None:
        require_estimator(self)

    @property
    def random_draws(self) -> int:
        return int(self.gradient.random_draws)

    def prepare(self, problem: "Problem", graph: "Graph") -> tuple[Any, dict[str, Any]]:
        weights = {"mixing": mixing_weights(self.mixing, graph)}
        ready: Any = self
        return replace(ready, eta=common_step(self, problem), mixing=None), weights

    def answer(self, s: Any) -> Array:
        return s.X

    def duals(self, links: Links, s: Any, inbox: Any, outbox: Any) -> Array:
        """(v, n) zeros where there are none."""
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

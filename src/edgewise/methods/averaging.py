"""What the methods that average with their neighbours share."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import MethodError
from edgewise.gradients.contract import Estimator
from edgewise.graph.mixing import mixing_weights
from edgewise.methods.contract import Defaults, Weights, require_estimator
from edgewise.methods.steps import local_steps

if TYPE_CHECKING:
    from edgewise.graph.graph import Graph
    from edgewise.problem.problem import Problem


class Averaging(Defaults):
    """One vector an edge and round, one step for all nodes, any estimator without momentum."""

    gradient: Estimator
    eta: Any
    mixing: Any

    hears: tuple[str, ...] = ("mixing",)

    def __post_init__(self) -> None:
        require_estimator(self, self.gradient)

    def prepare(self, problem: "Problem", graph: "Graph") -> tuple[Any, Weights]:
        weights = {"mixing": mixing_weights(self.mixing, graph)}
        ready: Any = self
        return replace(ready, eta=common_step(self, problem), mixing=None), weights


def common_step(method: Any, problem: "Problem") -> np.ndarray:
    """(V, 1) one step for all: a rule's least; with unequal ones nodes would weigh unequally."""
    steps = local_steps(method.eta, method.gradient, problem)
    if not isinstance(method.eta, str) and steps.min() < steps.max():
        name = type(method).__name__
        raise MethodError(f"{name} needs one step for all nodes, eta has several: give one number")
    return np.full((problem.nodes, 1), steps.min())

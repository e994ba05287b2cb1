"""What the methods that average with their neighbours share."""

from dataclasses import replace
from typing import Any, cast

import numpy as np

from edgewise.gradients.contract import Estimator
from edgewise.methods.contract import MethodDefaults, Weights, require_estimator
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.steps import common_step, mixing_of


class Averaging(MethodDefaults):
    """One vector an edge and round, one step for all nodes, any estimator without momentum."""

    gradient: Estimator
    eta: Any
    mixing: Any

    hears: tuple[str, ...] = ("mixing",)

    def __post_init__(self) -> None:
        require_estimator(self, self.gradient)

    def prepare(self, k: Knowledge) -> tuple[Any, Weights]:
        name, ready = type(self).__name__, cast(Any, self)
        eta = np.full((len(k.own), 1), common_step(name, self.eta, self.gradient, k))
        weights = {"mixing": mixing_of(name, self.mixing, k)}
        return replace(ready, eta=eta, mixing=None), weights

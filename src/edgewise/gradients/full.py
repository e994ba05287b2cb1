from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.contract import EstimatorDefaults
from edgewise.gradients.memory import Calls
from edgewise.gradients.private import PrivateGradient
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures


@pytree()
class Full(EstimatorDefaults):
    """The exact gradient, K_i calls a step. For few samples, or as a yardstick."""

    random_draws: ClassVar[int] = 0

    def auto_step(self, s: Curvatures) -> np.ndarray:
        return 1 / s.mean

    def theory_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (2 * s.mean)

    def init(self, p: Block, X: Array) -> Calls:
        return Calls(jnp.zeros(X.shape[0], jnp.int64))

    def __call__(self, p: Block, X: Array, m: Calls, random_bits: Array) -> tuple[Array, Calls]:
        return p.full(X) + p.ridge(X), Calls(m.calls + p.counts)

    def private(self, **noise: Any) -> PrivateGradient:
        return PrivateGradient(**noise)

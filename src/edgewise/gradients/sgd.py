from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.contract import Exactness
from edgewise.gradients.memory import Batched, Calls, weighted
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures


@pytree("batch")
class SGD(Batched):
    """The mean gradient of `batch` samples, from a finite set or from a stream.

    g = (1/b) sum_{k in B} grad f(x, k). Its variance never falls: with a constant step the answer
    stays a distance of order eta from the optimum. The only estimator that needs no K.
    """

    batch: int = 1
    streams: ClassVar[bool] = True

    @property
    def exactness(self) -> Exactness:
        return "no"

    def auto_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (4 * s.expected(self.batch))

    def theory_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (4 * s.sample)

    def init(self, p: Block, X: Array) -> Calls:
        return Calls(jnp.zeros(X.shape[0], jnp.int64))

    def __call__(self, p: Block, X: Array, m: Calls, random_bits: Array) -> tuple[Array, Calls]:
        pick = p.pick(random_bits)
        G = p.spread(pick, weighted(pick, p.slopes(pick, X))) + p.ridge(X)
        return G, Calls(m.calls + pick.batch)

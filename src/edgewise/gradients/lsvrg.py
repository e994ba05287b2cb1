import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.memory import (
    Batched,
    Memory,
    change,
    coin,
    remember,
    retake,
    weighted,
)
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures


@pytree("batch")
class LSVRG(Batched):
    """Loopless SVRG (Kovalev, Horvath, Richtarik 2019): a coin per node decides on a new snapshot.

    g = grad f(x, k) - grad f(s, k) + grad f(s); then s <- x with probability 1/K_i. Two calls per
    sample, and K_i more at the nodes whose coin came up. No memory for slopes where the loss is
    a custom one.
    """

    compiled_as = "lsvrg"

    batch: int = 1

    @property
    def random_draws(self) -> int:
        return self.batch + 1

    def auto_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (3 * s.expected(self.batch))

    def theory_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (8 * s.sample)

    def init(self, p: Block, X: Array) -> Memory:
        return remember(p, X, keep_table=p.loss.linear)

    def __call__(self, p: Block, X: Array, m: Memory, random_bits: Array) -> tuple[Array, Memory]:
        pick = p.pick(random_bits[:, 1:])
        G = p.spread(pick, weighted(pick, change(p, m, X, pick)[1])) + m.mean + p.ridge(X)
        counted = m._replace(calls=m.calls + 2 * pick.batch)
        return G, retake(p, counted, X, coin(random_bits[:, 0], 1 / p.counts))

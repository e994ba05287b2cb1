import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.memory import coin
from edgewise.gradients.recursive import LastEstimate, Recursive
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures

NEVER = 1 << 62  # steps


@pytree("batch")
class PAGE(Recursive):
    """Li, Bao, Zhang, Richtarik 2021: the last estimate, corrected, or by a coin a whole gradient.

    g = grad f(x) with probability p = b / (K_i + b), and in the first step; else
    g = g_before + (1/b) sum_{k in B} (grad f(x, k) - grad f(x_before, k)), B of `batch` samples
    drawn without replacement. A coin per node, as in loopless SVRG. Given the past the correction
    is right on average, but g_before need not have been: biased. 2 b calls a step, K_i at heads:
    at most 3 b on average. Two vectors a node, no number per sample, for a custom loss too.

    Made for losses that are not convex, where no method takes fewer calls in the worst case: by its
    paper the step is 1 / (L (1 + sqrt(K_i) / b)). Ours is longer. Outside docs/theory.md.
    """

    batch: int = 1

    @property
    def random_draws(self) -> int:
        return self.batch + 1

    def auto_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (3 * s.expected(self.batch))

    def due(self, p: Block, m: LastEstimate, random_bits: Array) -> Array:
        return coin(random_bits[:, 0], self.batch / (p.counts + self.batch)) | (m.left == 0)

    def steps_between(self, p: Block) -> Array:
        return jnp.full_like(p.counts, NEVER)

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError, whole_number
from edgewise.gradients.recursive import LastEstimate, Recursive
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures


@pytree("batch", "length")
class SARAH(Recursive):
    """Nguyen, Liu, Scheinberg, Takac 2017: the last estimate, corrected, and a whole gradient every
    `length` steps.

    g = grad f(x) at the start of an epoch, then
    g = g_before + (1/b) sum_{k in B} (grad f(x, k) - grad f(x_before, k)) for `batch` samples k
    drawn without replacement. An epoch goes on from its last iterate; the paper's from one drawn at
    random. `length` is K_i / b by default, rounded up, and each node counts its own. Biased as PAGE
    is, which has a coin in the place of epochs. 2 b calls a step, K_i at the start of an epoch; two
    vectors a node.

    Not with long epochs: its errors add up until the next whole gradient. Outside docs/theory.md.
    """

    batch: int = 1
    length: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length is not None:
            whole_number("SARAH's length", self.length, 1, MethodError)

    def auto_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (3 * s.expected(self.batch))

    def due(self, p: Block, m: LastEstimate, random_bits: Array) -> Array:
        return m.left == 0

    def steps_between(self, p: Block) -> Array:
        if self.length is None:
            return -(-p.counts // self.batch)
        return jnp.full_like(p.counts, self.length)

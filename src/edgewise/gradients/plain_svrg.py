import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.memory import Draw, Memory, Sampled, change, remember, retake, weighted
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures


@pytree("batch", "length")
class PlainSVRG(Sampled):
    """Johnson, Zhang 2013, as in GT-SVRG: every `length` calls (default 2 K_i) the snapshot becomes
    the iterate itself, not a mean. Two calls per sample and step, K_i per epoch."""

    compiled_as = "plain-svrg"

    batch: int = 1
    length: int | None = None

    def auto_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (3 * s.expected(self.batch))

    def theory_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (8 * s.sample)

    def init(self, p: Block, X: Array) -> Memory:
        done = jnp.zeros_like(p.counts)
        return remember(p, X, keep_table=p.loss.linear)._replace(extra=done)

    def draw(self, p: Block, X: Array, m: Memory, random_bits: Array) -> tuple[Draw, Memory]:
        over = m.extra >= (2 * p.counts if self.length is None else self.length)
        m = retake(p, m, X, over)._replace(extra=jnp.where(over, 0, m.extra) + 1)
        pick = p.pick(random_bits)
        slopes = weighted(pick, change(p, m, X, pick)[1])
        return Draw(pick, slopes, m.mean), m._replace(calls=m.calls + 2 * pick.batch)

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.memory import Draw, Memory, Sampled, change, remember, weighted
from edgewise.problem.block import Block, match
from edgewise.problem.contract import Curvatures


@pytree("batch")
class SAG(Sampled):
    """Le Roux, Schmidt, Bach 2012 (Schmidt, Le Roux, Bach 2017): the mean of all samples' last
    slopes, as they are.

    x_k <- x for `batch` samples k drawn without replacement, then g = mean_j grad f(x_j, j). SAGA
    would weigh what has changed by 1 / batch, this weighs it by 1 / K_i. So it is biased,
    E g = (b/K) grad f(x) + (1 - b/K) (the mean before), and has less noise. Costs and memory are
    SAGA's: one call per sample and step, a number per sample, a whole gradient for a custom loss.

    Not where a bound is wanted: the paper's analysis, and docs/theory.md, take unbiased estimates.
    Its mean lags by some K_i / batch steps, so that a step much above the automatic one makes runs
    swing.
    """

    batch: int = 1

    carries_sums = True

    def auto_step(self, s: Curvatures) -> np.ndarray:
        return 2 / (3 * s.expected(self.batch))

    def init(self, p: Block, X: Array) -> Memory:
        return remember(p, X, keep_table=True)

    def draw(self, p: Block, X: Array, m: Memory, random_bits: Array) -> tuple[Draw, Memory]:
        pick = p.pick(random_bits)
        new, delta = change(p, m, X, pick)
        part = (pick.batch / p.counts).astype(X.dtype)[:, None]
        slopes = weighted(pick, delta) * match(part[:, 0], delta)
        draw = Draw(pick, slopes, m.mean, jnp.ones_like(part), new)
        return draw, m._replace(calls=m.calls + pick.batch)

    def summed_anew(self, p: Block, m: Memory) -> Memory:
        return m._replace(mean=p.table_means(m.table, m.mean))

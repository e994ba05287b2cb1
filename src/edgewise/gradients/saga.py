import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.memory import Draw, Memory, Sampled, change, remember, weighted
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures


@pytree("batch")
class SAGA(Sampled):
    """Defazio, Bach, Lacoste-Julien 2014: remembers every sample's last slope.

    g = grad f(x, k) - grad f(x_k, k) + mean_j grad f(x_j, j), then x_k <- x, for `batch` samples k
    drawn without replacement. One call per sample and step; memory one number per sample for a
    generalised linear loss, but a whole gradient per sample for a custom one.
    """

    compiled_as = "saga"

    batch: int = 1

    carries_sums = True

    def auto_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (3 * s.expected(self.batch))

    def local_step(self, s: Curvatures) -> np.ndarray:
        """With mu the ridge, 1 / (2 L + min(L, 2 mu K)), as its analyses for convex and for
        strongly convex functions have it. Losses whose curvature falls away take twice that at
        most, 1 / min(3 L, L + mu K), and never less; squared loss would diverge with it where a
        row is much longer than the others: what is remembered of it is old when it is drawn."""
        L, muK = s.expected(self.batch), s.ridge * s.counts
        if s.saturates:
            return 1 / np.minimum(3 * L, L + muK)
        return 1 / (2 * L + np.minimum(L, 2 * muK))

    def theory_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (8 * s.sample)

    def init(self, p: Block, X: Array) -> Memory:
        return remember(p, X, keep_table=True)

    def draw(self, p: Block, X: Array, m: Memory, random_bits: Array) -> tuple[Draw, Memory]:
        pick = p.pick(random_bits)
        new, delta = change(p, m, X, pick)
        part = (pick.batch / p.counts).astype(X.dtype)[:, None]
        draw = Draw(pick, weighted(pick, delta), m.mean, part, new)
        return draw, m._replace(calls=m.calls + pick.batch)

    def summed_anew(self, p: Block, m: Memory) -> Memory:
        return m._replace(mean=p.table_means(m.table, m.mean))

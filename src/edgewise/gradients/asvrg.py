from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.block import Block
from edgewise.gradients.memory import Memory, change, coin, remember, retake, weighted
from edgewise.pytree import pytree
from edgewise.smoothness import Smoothness


class Momentum(NamedTuple):
    center: Array  # (v, n) the snapshot s
    total: Array  # (v, n) sum of the epoch's points
    done: Array  # (v,) how many there were
    beta: Array  # (v,) beta_s
    ask: Array  # (v,) p_s


@pytree("batch")
class ASVRG:
    """Accelerated SVRG with negative momentum (paper, Algorithm 5; after Shang et al. 2018).

    The method's iterate is y; the gradient is asked for, and the answer is, at
    x = (1 - beta) s + beta y. A node asks the oracle with probability p only, and then scales the
    change by 1/p. After m / beta iterates s becomes the mean of the x and
    beta <- max(floor, (sqrt(beta^4 + 4 beta^2) - beta^2) / 2), p likewise in proportion.
    """

    momentum: Any = 0.5
    ask: Any = None
    floor: Any = 0.2
    length: Any = None
    batch: int = 1
    exact: ClassVar[bool] = True

    @property
    def words(self) -> int:
        return self.batch + 1

    def auto_step(self, s: Smoothness) -> np.ndarray:
        return 2 / s.expected(self.batch)

    def theory_step(self, s: Smoothness) -> np.ndarray:
        return 2 / (5 * s.sample)

    def init(self, p: Block, Y: Array) -> Memory:
        beta = jnp.full(p.counts.shape, self.momentum, Y.dtype)
        ask = beta if self.ask is None else jnp.full(p.counts.shape, self.ask, Y.dtype)
        m = Momentum(Y, -Y, jnp.full_like(p.counts, -1), beta, ask)
        return remember(p, Y, keep_table=p.loss.linear)._replace(extra=m)

    def __call__(self, p: Block, Y: Array, m: Memory, words: Array) -> tuple[Array, Memory]:
        e: Momentum = m.extra
        total, done = e.total + self.point(m, Y), e.done + 1
        length = p.counts if self.length is None else self.length
        over = done >= jnp.ceil(length / e.beta)
        mean = total / jnp.maximum(done, 1).astype(Y.dtype)[:, None]
        m = retake(p, m, mean, over)
        next_beta = (jnp.sqrt(e.beta**4 + 4 * e.beta**2) - e.beta**2) / 2
        beta = jnp.where(over, jnp.maximum(self.floor, next_beta), e.beta)
        ask = e.ask * (beta / e.beta)
        m = m._replace(
            extra=Momentum(
                jnp.where(over[:, None], mean, e.center),
                jnp.where(over[:, None], 0, total),
                jnp.where(over, 0, done),
                beta,
                ask,
            )
        )
        pick = p.pick(words[:, 1:])
        hit = coin(words[:, 0], ask)
        delta = weighted(pick, change(p, m, self.point(m, Y), pick)[1])
        G = (hit / ask)[:, None] * p.spread(pick, delta) + m.mean + p.ridge(self.point(m, Y))
        return G, m._replace(calls=m.calls + 2 * pick.batch * hit)

    def point(self, m: Memory, Y: Array) -> Array:
        beta = m.extra.beta[:, None]
        return (1 - beta) * m.extra.center + beta * Y

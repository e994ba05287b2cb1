from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.block import Block
from edgewise.gradients.memory import Memory, change, remember, retake, weighted
from edgewise.pytree import pytree
from edgewise.smoothness import Smoothness
from edgewise.rows import row_dot


class Epoch(NamedTuple):
    total: Array  # (v, n) sum of the epoch's iterates
    done: Array  # (v,) how many there were
    length: Array  # (v,) m_s
    last: Any  # (v, n) the iterate before, where epochs may stop early; else None


@pytree("batch", "first", "longest", "stop")
class SVRG:
    """SVRG++ (Allen-Zhu, Yuan 2016): epochs that double, each around a fixed snapshot s.

    g = grad f(x, k) - grad f(s, k) + grad f(s). After m iterates the snapshot becomes their mean
    (x(1)..x(m), as in the paper's algorithm) and m <- min(2 m, longest). Defaults: m starts at
    K_i / 4 and is at most 2 K_i. With `stop` > 0 a node also ends its epoch as soon as its last
    move is shorter than `stop` times its distance from the snapshot: what is left to gain around
    this snapshot is small. Two calls per sample and step, K_i per epoch.
    """

    batch: int = 1
    first: int | None = None
    longest: int | None = None
    stop: float = 0.0
    exact: ClassVar[bool] = True

    @property
    def words(self) -> int:
        return self.batch

    def auto_step(self, s: Smoothness) -> np.ndarray:
        return 1 / (3 * s.expected(self.batch))

    def theory_step(self, s: Smoothness) -> np.ndarray:
        return 1 / (6 * s.sample)

    def init(self, p: Block, X: Array) -> Memory:
        first = jnp.maximum(p.counts // 4, 1) if self.first is None else self.first
        length = jnp.broadcast_to(jnp.asarray(first, p.counts.dtype), p.counts.shape)
        # the starting point is no iterate of the first epoch: it is taken away here, added below
        epoch = Epoch(-X, jnp.full_like(p.counts, -1), length, X if self.stop else None)
        return remember(p, X, keep_table=p.loss.linear)._replace(extra=epoch)

    def __call__(self, p: Block, X: Array, m: Memory, words: Array) -> tuple[Array, Memory]:
        e: Epoch = m.extra
        total, done = e.total + X, e.done + 1
        mean = total / jnp.maximum(done, 1).astype(X.dtype)[:, None]
        over = done >= e.length
        if self.stop:
            over |= (done > 0) & self.slow(X, e.last, mean)
        m = retake(p, m, mean, over)
        longest = 2 * p.counts if self.longest is None else self.longest
        m = m._replace(
            extra=Epoch(
                jnp.where(over[:, None], 0, total),
                jnp.where(over, 0, done),
                jnp.where(over, jnp.minimum(2 * e.length, longest), e.length),
                X if self.stop else None,
            )
        )
        pick = p.pick(words)
        G = p.spread(pick, weighted(pick, change(p, m, X, pick)[1])) + m.mean + p.ridge(X)
        return G, m._replace(calls=m.calls + 2 * pick.batch)

    def slow(self, X: Array, last: Array, mean: Array) -> Array:
        move, away = X - last, X - mean
        return row_dot(move, move) < self.stop**2 * row_dot(away, away)

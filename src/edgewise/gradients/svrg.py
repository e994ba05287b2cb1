from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError, whole_number
from edgewise.gradients.memory import Draw, Memory, Sampled, change, remember, retake, weighted
from edgewise.problem.block import Block, match
from edgewise.problem.contract import Curvatures
from edgewise.problem.rows import row_dot


class Epoch(NamedTuple):
    total: Array  # (v, n) sum of the epoch's iterates
    done: Array  # (v,) how many there were
    length: Array  # (v,) m_s
    journey: Any  # where epochs may stop early; else None


class Journey(NamedTuple):
    start: Array  # (v, n) the epoch's first iterate
    last: Array  # (v, n) the iterate before
    path: Array  # (v,) how far all its moves went together


@pytree("batch", "first", "longest", "stop")
class SVRG(Sampled):
    """SVRG++ (Allen-Zhu, Yuan 2016): epochs that double, each around a fixed snapshot s.

    g = grad f(x, k) - grad f(s, k) + grad f(s). After m iterates the snapshot becomes their mean
    (x(1)..x(m), as in the paper's algorithm) and m <- min(2 m, longest). Defaults: m starts at
    K_i / 4 and is at most 2 K_i. With `stop` > 0 a node also ends an epoch, though not before its
    K_i / 4 iterates (or `first`), as soon as the distance gained since it began is less than
    `stop` times the length of the path walked: it is going round in circles. The paper's test is
    not given; this one is local and has no scale. Two calls per sample and step, K_i per epoch.
    """

    compiled_as = "svrg"

    batch: int = 1
    first: int | None = None
    longest: int | None = None
    stop: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("first", "longest"):
            if getattr(self, name) is not None:
                whole_number(f"SVRG's {name}", getattr(self, name), 1, MethodError)
        if not isinstance(self.stop, int | float) or not 0 <= self.stop < 1:
            raise MethodError(f"SVRG(stop={self.stop!r}): give 0 (never) or a fraction below 1")

    def auto_step(self, s: Curvatures) -> np.ndarray:
        return 2 / (3 * s.expected(self.batch))

    def theory_step(self, s: Curvatures) -> np.ndarray:
        return 1 / (6 * s.sample)

    def init(self, p: Block, X: Array) -> Memory:
        length = self.shortest(p)
        # the starting point is no iterate of the first epoch: it is taken away here, added below
        journey = Journey(X, X, jnp.zeros(X.shape[0], X.dtype)) if self.stop else None
        epoch = Epoch(-X, jnp.full_like(p.counts, -1), length, journey)
        return remember(p, X, keep_table=p.loss.linear)._replace(extra=epoch)

    def draw(self, p: Block, X: Array, m: Memory, random_bits: Array) -> tuple[Draw, Memory]:
        draw, m = self.draw_unsummed(p, X, m, random_bits)
        total = jnp.where(draw.over[:, None], 0, m.extra.total + X)
        return draw, m._replace(extra=m.extra._replace(total=total))

    def draw_unsummed(
        self, p: Block, X: Array, m: Memory, random_bits: Array
    ) -> tuple[Draw, Memory]:
        e: Epoch = m.extra
        done = e.done + 1
        most = jnp.maximum(done, 1).astype(X.dtype)[:, None]
        over, journey = done >= e.length, e.journey
        if self.stop:
            journey, lost = self.travel(X, journey)
            over |= (done >= self.shortest(p)) & lost
            fresh = Journey(X, X, jnp.zeros_like(journey.path))
            journey = jax.tree.map(lambda a, b: jnp.where(match(over, a), a, b), fresh, journey)
        m = retake(p, m, lambda of: (of(e.total) + of(X)) / of(most), over)
        longest = 2 * p.counts if self.longest is None else self.longest
        m = m._replace(
            extra=Epoch(
                e.total,
                jnp.where(over, 0, done),
                jnp.where(over, jnp.minimum(2 * e.length, longest), e.length),
                journey,
            )
        )
        pick = p.pick(random_bits)
        slopes = weighted(pick, change(p, m, X, pick)[1])
        draw = Draw(pick, slopes, m.mean, over=over)
        return draw, m._replace(calls=m.calls + 2 * pick.batch)

    @property
    def looks_at_models(self) -> bool:
        return self.stop > 0

    def shortest(self, p: Block) -> Array:
        first = jnp.maximum(p.counts // 4, 1) if self.first is None else self.first
        return jnp.broadcast_to(jnp.asarray(first, p.counts.dtype), p.counts.shape)

    def travel(self, X: Array, j: Journey) -> tuple[Journey, Array]:
        """The journey with X on it, and whether it leads nowhere."""
        move, gained = X - j.last, X - j.start
        path = j.path + jnp.sqrt(row_dot(move, move))
        return Journey(j.start, X, path), jnp.sqrt(row_dot(gained, gained)) < self.stop * path

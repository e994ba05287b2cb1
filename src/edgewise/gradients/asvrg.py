from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError
from edgewise.gradients.memory import Batched, Memory, change, coin, remember, retake, weighted
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures


class Momentum(NamedTuple):
    center: Array  # (v, n) the snapshot s
    total: Array  # (v, n) sum of the epoch's points
    done: Array  # (v,) how many there were
    beta: Array  # (v,) beta_s
    ask: Array  # (v,) p_s


@pytree("batch")
class ASVRG(Batched):
    """Accelerated SVRG with negative momentum (paper, Algorithm 5; after Shang et al. 2018).

    The method's iterate is y; the gradient is asked for, and the answer is, at
    x = (1 - beta) s + beta y:  g = (hit / p) (grad f(x, k) - grad f(s, k)) + grad f(s), where hit
    has probability p. After an epoch s becomes the mean of its x. 2 `batch` calls per hit, K_i per
    epoch. `momentum` is beta_1, `ask` p_1, `length` m; each node counts its own epochs.

    floor=None, the default, keeps beta where it starts, so nothing stalls, nothing is restarted:
    beta = sqrt(K_i mu / batch) within [0.1, 0.5] with mu = max(ridge / (3 L_i), 1e-4) (Katyusha's,
    with what convexity is known or usual), p = 1/2, epochs of m = K_i / batch rounds: one takes
    off at best a share beta of the error, so the printed K_i / beta rounds are too many.
    eta = 3 p / (2 beta L); from 2 p / (beta L) on the coin would be unstable in mean square.

    floor=0.0 is the paper's: beta_1 = 1/2, p_s = beta_s, epochs of m / beta_s rounds with m = K_i,
    beta <- max(floor, (sqrt(beta^4 + 4 beta^2) - beta^2) / 2), and eta="theory", 2 / (5 L). Its
    experiments start from momentum=0.99, ask=0.2; how p goes on is not said: here p ~ beta.
    Not for strongly convex problems (SAGA needs fewer calls), nor for exact zeros: x is a mean.
    """

    compiled_as = "asvrg"

    momentum: Any = None
    ask: Any = None
    floor: Any = None
    length: Any = None
    batch: int = 1

    accelerated: ClassVar[bool] = True

    @property
    def random_draws(self) -> int:
        return self.batch + 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, most in (("momentum", 1), ("ask", 1), ("floor", 1), ("length", np.inf)):
            given = getattr(self, name)
            low = -1e-300 if name == "floor" else 0
            if given is not None and not np.all((np.asarray(given) > low) & (given <= most)):
                raise MethodError(f"ASVRG({name}={given!r}): give positive numbers up to {most}")

    def tuned(self, s: Curvatures) -> "ASVRG":
        """With beta_1 and p_1 in numbers, one per node."""
        beta, ask = self.momentum, self.ask
        if beta is None and self.floor is None:
            convexity = np.maximum(s.ridge / (3 * s.expected(self.batch)), 1e-4)
            beta = np.sqrt(s.counts * convexity / self.batch).clip(0.1, 0.5)
        beta = np.broadcast_to(0.5 if beta is None else beta, s.counts.shape)
        ask = (0.5 if self.floor is None else beta) if ask is None else ask
        return replace(self, momentum=beta, ask=np.broadcast_to(ask, s.counts.shape))

    def auto_step(self, s: Curvatures) -> np.ndarray:
        now = self.tuned(s)
        return np.asarray(1.5 * now.ask / (now.momentum * s.expected(self.batch)))

    def theory_step(self, s: Curvatures) -> np.ndarray:
        return 2 / (5 * s.sample)

    def init(self, p: Block, Y: Array) -> Memory:
        # the starting point is none of the epoch's: it is taken away here, added below
        m = Momentum(Y, -Y, jnp.full_like(p.counts, -1), self.momentum, self.ask)
        return remember(p, Y, keep_table=p.loss.linear)._replace(extra=m)

    def __call__(self, p: Block, Y: Array, m: Memory, random_bits: Array) -> tuple[Array, Memory]:
        e: Momentum = m.extra
        total, done = e.total + self.point(m, Y), e.done + 1
        steady = self.floor is None
        length = p.counts / (self.batch if steady else 1) if self.length is None else self.length
        over = done >= jnp.ceil(length if steady else length / e.beta)
        mean = total / jnp.maximum(done, 1).astype(Y.dtype)[:, None]
        m = retake(p, m, mean, over)
        beta = jnp.where(over, self.decayed(e.beta), e.beta)
        center, total = jnp.where(over[:, None], mean, e.center), jnp.where(over[:, None], 0, total)
        ask, done = e.ask * (beta / e.beta), jnp.where(over, 0, done)
        m = m._replace(extra=Momentum(center, total, done, beta, ask))
        pick, X = p.pick(random_bits[:, 1:]), self.point(m, Y)
        hit = coin(random_bits[:, 0], m.extra.ask)
        delta = p.spread(pick, weighted(pick, change(p, m, X, pick)[1]))
        G = (hit / m.extra.ask)[:, None] * delta + m.mean + p.ridge(X)
        return G, m._replace(calls=m.calls + 2 * pick.batch * hit)

    def decayed(self, beta: Array) -> Array:
        after = (jnp.sqrt(beta**4 + 4 * beta**2) - beta**2) / 2
        return beta if self.floor is None else jnp.maximum(self.floor, after)

    def point(self, m: Memory, Y: Array) -> Array:
        beta = m.extra.beta[:, None]
        return (1 - beta) * m.extra.center + beta * Y

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError
from edgewise.gradients.contract import Exactness
from edgewise.gradients.finite_difference import ExactCoordinates
from edgewise.gradients.memory import Batched
from edgewise.problem.block import Block, choose
from edgewise.problem.contract import Curvatures


class Sketch(NamedTuple):
    H: Array  # (v, n) the coordinates last seen
    calls: Array  # (v,) coordinates asked for so far
    evaluations: Array  # (v,) function values asked for so far


@pytree("batch")
class SEGA(Batched):
    """Hanzely, Mishchenko, Richtarik 2018: sees `batch` coordinates of the gradient at a time.

    g = h + (n/b) sum_j e_j (grad_j f(x) - h_j), then h_j <- grad_j f(x), from h = 0. A call is one
    coordinate; `oracle` is where they come from: `ExactCoordinates()` or, from function values
    alone, `FiniteDifference()`. For models so large that a whole gradient is out of reach; needs
    steps about n/b times shorter.
    """

    compiled_as = "sega"

    oracle: Any = ExactCoordinates()
    batch: int = 1

    @property
    def samples(self) -> int | None:
        return None  # its coordinates are of whole gradients

    @property
    def exactness(self) -> Exactness:
        return "yes" if self.oracle.exact else "to 1e-7"

    def auto_step(self, s: Curvatures) -> np.ndarray:
        return self.batch / (s.size * s.mean)

    def theory_step(self, s: Curvatures) -> np.ndarray:
        return self.batch / (8 * s.size * s.mean)

    def init(self, p: Block, X: Array) -> Sketch:
        none = jnp.zeros(X.shape[0], jnp.int64)
        return Sketch(jnp.zeros_like(X), none, none)

    def __call__(self, p: Block, X: Array, m: Sketch, random_bits: Array) -> tuple[Array, Sketch]:
        v, n = X.shape
        if not callable(self.oracle):
            raise MethodError(f"SEGA(oracle={self.oracle!r}): give ExactCoordinates() or alike")
        if self.batch > n:
            raise MethodError(f"SEGA(batch={self.batch}): the model has only {n} coordinates")
        at, size = choose(random_bits, jnp.full(v, n))
        seen = self.oracle(p, X, at)
        node = jnp.arange(v)[:, None]
        change = seen - m.H[node, at]
        G = m.H.at[node, at].add(change * (n / size).astype(X.dtype)[:, None])
        spent = m.evaluations + self.oracle.evaluations(self.batch)
        return G, Sketch(m.H.at[node, at].set(seen), m.calls + size, spent)

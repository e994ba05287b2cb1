"""What the recursive estimators share: each estimate is the last one, corrected."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from edgewise.gradients.memory import Batched, weighted
from edgewise.problem.block import Block


class LastEstimate(NamedTuple):
    G: Array  # (v, n) the last estimate, ridge apart
    X: Array  # (v, n) where it was made
    left: Array  # (v,) steps until a whole gradient is due; zero before the first
    calls: Array  # (v,) sample gradients asked for so far


class Recursive(Batched):
    """g <- g + (1/b) sum_{k in B} (grad f(x, k) - grad f(x_before, k)), from g = grad f(x) and, now
    and then, anew from there: K_i calls then, 2 `batch` otherwise, the first step's K_i included.
    Memory: two vectors a node, whatever the loss."""

    def init(self, p: Block, X: Array) -> LastEstimate:
        none = jnp.zeros_like(p.counts)
        return LastEstimate(jnp.zeros_like(X), X, none, none)

    def due(self, p: Block, m: LastEstimate, random_bits: Array) -> Array:
        """(v,) whether the whole gradient is taken."""
        raise NotImplementedError

    def steps_between(self, p: Block) -> Array:
        """(v,) after how many steps it is, at the latest."""
        raise NotImplementedError

    def __call__(
        self, p: Block, X: Array, m: LastEstimate, random_bits: Array
    ) -> tuple[Array, LastEstimate]:
        due = self.due(p, m, random_bits)
        due = due if p.active is None else due & p.active
        pick = p.pick(random_bits[:, -self.batch :])
        moved = p.spread(pick, weighted(pick, p.slopes(pick, X) - p.slopes(pick, m.X)))
        G = p.refresh(None, m.G + moved, X, due)[1]
        left = jnp.where(due, self.steps_between(p), m.left) - 1
        calls = m.calls + jnp.where(due, p.counts, 2 * pick.batch)
        return G + p.ridge(X), LastEstimate(G, X, left, calls)

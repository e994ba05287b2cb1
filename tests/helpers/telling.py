"""A method that tells news, every number of which matters to what its neighbours come to."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.methods.contract import MethodDefaults

HEAD, EVERY = 2, 3  # numbers; rounds from one body to the next


class Calls(NamedTuple):
    calls: Array  # (v,)


class State(NamedTuple):
    X: Array  # (v, n)
    told: Array  # (v, n) where it was when it last told a body
    memory: Calls


@pytree()
class Telling(MethodDefaults):
    """x_i = 0.2 x_i - 0.1 g_i + mean_j (0.2 x_j + 0.1 y_ji + (0.3 + a_j / 9) b_j)
    y_ij = x_i - y_ji

    b_j, the body, is where node j was a_j rounds ago; a_j is in the head."""

    eta: Any = 0.1
    gradient = None
    heals = True
    hears = ("each", "each", "news")
    news_head = HEAD

    def message_sizes(self, size, outputs):
        return size, size, HEAD + size

    def prepare(self, k):
        return Telling(np.full((len(k.own), 1), 0.1)), {}

    def init(self, p, X, duals):
        along = X[p.links.owner]
        Y = along if duals is None else along - duals
        age = jnp.zeros(len(X), int)
        return State(X, X, Calls(age)), (along, Y, self.news(age, X))

    def news(self, age, told):
        head = jnp.stack([age == 0, age], 1)
        return jnp.concatenate([head, told], 1).astype(jnp.float32)

    def step(self, p, s, inbox, random_bits):
        x, y, told = inbox
        weight = 0.3 + told[:, 1:HEAD].astype(x.dtype) / 9
        heard = 0.2 * x + 0.1 * y + weight * told[:, HEAD:].astype(x.dtype)
        degrees = p.links.gather(jnp.ones_like(x[:, :1]), len(s.X))
        X = 0.2 * s.X - 0.1 * p.full(s.X) + p.links.gather(heard, len(s.X)) / degrees
        calls = s.memory.calls + 1
        age = calls % EVERY
        last = jnp.where(age[:, None] == 0, X, s.told)
        along = X[p.links.owner]
        return State(X, last, Calls(calls)), (along, along - y, self.news(age, last))

"""A method that tells news: gradient descent on models that neighbours are told of now and then."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.backend.pytree import pytree
from edgewise.gradients.full import Full
from edgewise.methods.contract import MethodDefaults
from edgewise.methods.steps import node_steps

HEAD = 2  # whether a body comes with it, and the node's clock


class Spent(NamedTuple):
    calls: jax.Array  # (v,)
    bodies: jax.Array  # (v,) sent, or about to be


class State(NamedTuple):
    X: jax.Array  # (v, n) models
    news: jax.Array  # (v, 3 + n) float32: flag and clock; the clock when the body was made, model
    seen: jax.Array  # (e, n) the last model that each neighbour told
    clocks: jax.Array  # (e, n) what came beside it
    square: jax.Array  # (v, n, n) a sum of x x', so that there is something of this shape
    memory: Spent


@pytree("every", "padding")
class Bulletin(MethodDefaults):
    """A model is told where it has moved by more than `moved`, and every so many rounds anyway.
    Along each edge the node's clock goes, whose number is that of the news beside it."""

    eta: Any = "auto"
    moved: Any = 0.04
    every: int = 7
    padding: int = 0  # numbers before the model, for large bodies

    hears = ("each", "news")
    heals = True
    gradient = None
    news_head = HEAD

    def message_sizes(self, size, outputs):
        return size, HEAD + 1 + self.padding + size

    def prepare(self, k):
        eta = node_steps(self.eta, Full(), k)[k.own]
        return replace(self, eta=eta[:, None]), {"rho": np.ones(len(k.edges))}

    def init(self, p, X, duals):
        v = len(X)
        news = self.told(jnp.ones(v), jnp.ones(v), jnp.ones(v), X)
        square = jnp.zeros((*X.shape, X.shape[1]), X.dtype)
        memory = Spent(jnp.zeros(v, jnp.int64), degrees(p, v))
        none = jnp.zeros_like(X[p.links.owner])
        state = State(X, news, none, none, square, memory)
        return state, (ticks(p, news, X), news)

    def step(self, p, s, inbox, random_bits):
        heard = inbox[1]
        known, there = heard[:, HEAD:][:, :1] > 0, heard[:, -s.X.shape[1] :].astype(s.X.dtype)
        pull = jnp.where(known, there - s.X[p.links.owner], 0)
        degree = degrees(p, len(s.X))
        X = s.X + 0.5 * p.links.gather(pull, len(s.X)) / jnp.maximum(degree, 1)[:, None]
        X = X - 0.1 * self.eta * (p.full(s.X) + p.ridge(s.X))
        clock, last = s.news[:, 1] + 1, s.news[:, -s.X.shape[1] :]
        due = (jnp.abs(X - last).max(1) > self.moved) | (clock % self.every == 0)
        made = jnp.where(due, clock, s.news[:, HEAD])
        news = self.told(due, clock, made, jnp.where(due[:, None], X, last))
        square = s.square + X[:, :, None] * X[:, None]
        memory = Spent(s.memory.calls + p.counts, s.memory.bodies + jnp.where(due, degree, 0))
        new = State(X, news, there, inbox[0], square, memory)
        return new, (ticks(p, news, X), news)

    def told(self, flag, clock, made, X):
        marks, padding = jnp.stack([flag, clock, made], 1), jnp.zeros((len(X), self.padding))
        return jnp.concatenate([marks, padding, X], 1, dtype=jnp.float32)


def degrees(p, nodes):
    return p.links.gather(jnp.ones((len(p.links.owner), 1), jnp.int64), nodes)[:, 0]


def ticks(p, news, X):
    """(e, n) along each edge the clock."""
    return jnp.broadcast_to(
        news[p.links.owner, 1:2].astype(X.dtype), (len(p.links.owner), X.shape[1])
    )

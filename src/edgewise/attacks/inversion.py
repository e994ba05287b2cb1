"""A node's gradients, from what goes in and what comes out: its step is public, affine in them.

The attacker runs the node's step itself, with an estimator that says what it is told in the place
of the node's own, and solves for what makes the model come out as the node told it. The block has
no samples: a step that wanted one would fail.
"""

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from edgewise.attacks.recording import Recording
from edgewise.backend.pytree import pytree
from edgewise.engines.wires import ReceivedMessages
from edgewise.errors import MethodError
from edgewise.gradients.contract import EstimatorDefaults
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures

TRIES = 2, 48  # without a prox; with one, l1's is affine only where the model is not zero
CLOSE = 1e-9


class Given(NamedTuple):
    G: Array  # (v, n)
    calls: Array  # (v,)


@pytree()
class Told(EstimatorDefaults):
    """An estimator that says what its memory holds."""

    random_draws: ClassVar[int] = 0

    def auto_step(self, nodes: Curvatures) -> np.ndarray:
        raise NotImplementedError  # the step is the node's own, known from its greeting

    def init(self, p: Block, X: Array) -> Given:
        return Given(jnp.zeros_like(X), jnp.zeros(len(X), jnp.int64))

    def __call__(self, p: Block, X: Array, m: Given, random_bits: Array) -> tuple[Array, Given]:
        return m.G, m


def can_invert(recording: Recording) -> bool:
    """Whether the method is an estimator and one affine step."""
    method = recording.method
    if method.gradient is None or method.phases != ("step",) or "news" in method.hears:
        return False
    try:
        replace(recording.executor.own_method, gradient=Told())
    except MethodError:  # it goes with whole gradients alone
        return False
    return True


def node_gradients(recording: Recording, heard: tuple[np.ndarray, ...]) -> np.ndarray:
    """(rounds, V, n) g_i(t), NaN where a prox hides a coordinate, from what came in along each edge
    and the models of `recording`. Of local training: the gradient that would have led where the
    steps of a round did. Row i needs no other than node i's own edges and model."""
    made = recording.executor
    empty = made.block._replace(rows=None, labels=None, scale=None, offset=None)
    method = replace(made.own_method, gradient=Told())
    out = invert(
        method,
        empty,
        jnp.asarray(recording.models),
        tuple(jnp.asarray(h[:-1]) for h in heard),
        tuple(jnp.asarray(a[:-1]) for a in recording.sent),
        tries=TRIES[recording.problem.penalised],
    )
    return np.array(out)


@partial(jax.jit, static_argnames="tries")
def invert(
    method: Any, p: Block, X: Array, heard: tuple[Array, ...], own: tuple[Array, ...], tries: int
) -> Array:
    state, _ = method.init(p, X[0], None)
    bits = jnp.zeros((X.shape[1], 0), jnp.uint32)
    one = jnp.ones_like(X[0])

    def round(state: Any, now: Any) -> tuple[Any, Array]:
        target, heard, own = now
        inbox = ReceivedMessages(heard).deliver(method.hears, p.links, own)

        def after(G: Array) -> Any:
            given = state._replace(memory=state.memory._replace(G=G))
            return method.step(p, given, inbox, bits)[0]

        def model(G: Array) -> Array:
            return method.answer(after(G))

        slope = push(method, p, state, inbox, bits, one)

        def closer(k: Array, G: Array) -> Array:
            here = model(G)
            held = (here == 0) & (target != 0)  # by the prox: further and further, to get off it
            return G + jnp.where(held, 2.0**k, 1.0) * (target - here) / slope

        G = lax.fori_loop(0, tries, closer, jnp.zeros_like(one))
        way = 1e-4 * jnp.maximum(jnp.abs(G), 1e-3)
        here = model(G)
        size = jnp.maximum(jnp.abs(target).max(1, keepdims=True), CLOSE)
        told = jnp.abs(here - target) < CLOSE * size
        told &= (model(G + way) != here) & (model(G - way) != here)
        return after(G), jnp.where(told, G, jnp.nan)

    return lax.scan(round, state, (X[1:], heard, own))[1]


@pytree()
class Free:
    """No penalty at all."""

    def prox(self, X: Array, t: Any) -> Array:
        return X


def push(method: Any, p: Block, state: Any, inbox: Any, bits: Array, one: Array) -> Array:
    """(v, n) how much the model changes with each coordinate of the gradient."""
    without: Any = Free()
    p = p._replace(penalty=without)

    def model(G: Array) -> Array:
        given = state._replace(memory=state.memory._replace(G=G))
        return method.answer(method.step(p, given, inbox, bits)[0])

    return model(one) - model(0 * one)

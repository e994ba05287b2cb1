"""Batches taken apart: rows fitted to what the batches of many rounds have added to a gradient.

A batch hides a row among others only from who does not know which samples are in it. Peers draw by
the seed of the fit, which all know, so each round says of known samples: their rows, times how much
their slopes have changed since they were last drawn, add up to this. The models at which the slopes
were taken are known as well. A node's rows are the unknowns of a least-squares problem with more
equations than unknowns once rounds are many.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import minimize

MOST_UNKNOWNS = 60_000  # numbers of a node's rows
MOST_TERMS = 30_000_000  # rounds times batch times columns
STEPS = 1000


def slopes_need_no_labels(loss: Any) -> bool:
    """Whether how much a slope changes with the margin is alike for all labels."""
    if not loss.linear or loss.outputs != 1:
        return False
    z, one = jnp.linspace(-2.0, 2.0, 5), jnp.ones(5)
    both = [np.asarray(loss.slope(z, y * one)) for y in (1.0, -1.0)]
    return bool(np.allclose(np.diff(both[0]), np.diff(both[1])))


def last_drawn(drawn: np.ndarray, count: int) -> np.ndarray:
    """(T, b) the round in which each of the samples was drawn before; 0: the first pass."""
    out, seen = np.zeros_like(drawn), np.zeros(count, int)
    for t, batch in enumerate(drawn):
        out[t] = seen[batch]
        seen[batch] = t
    return out


def fitted_rows(
    loss: Any,
    values: np.ndarray,
    drawn: np.ndarray,
    X: np.ndarray,
    count: int,
    most: int,
    intercept: bool,
    seed: int,
) -> np.ndarray | None:
    """(count, n) rows of a node, an intercept's 1 included, from what SAGA's batches added (T, n),
    and the models X (T, n); None where that is too much to solve for, or labels are in the way.
    Signs are those of a random start where a loss does not tell them. `most`: samples of any node,
    so that one program serves all."""
    T, n = values.shape
    unknown = n - intercept
    if count * unknown > MOST_UNKNOWNS or T * drawn.shape[1] * n > MOST_TERMS:
        return None
    if not slopes_need_no_labels(loss):
        return None
    size = min(drawn.shape[1], count)
    share = np.where(np.arange(drawn.shape[1]) < size, 1 / size, 0.0)
    length = np.linalg.norm(values, axis=1)
    sound = length > 1e-9 * length.max(initial=0)
    weight = np.where(sound, 1 / np.where(sound, length, 1), 0)
    rng = np.random.default_rng(seed)
    # of the right size: what is added is about a slope's change times a row, over the batch
    start = rng.normal(size=(most, unknown)) / np.sqrt(unknown)
    given = (loss, values, drawn, last_drawn(drawn, count), X, weight, share)
    known = jax.tree.map(jnp.asarray, given)

    def misfit(flat: Any) -> Any:
        rows = jnp.asarray(flat.reshape(start.shape))
        value, slope = value_and_slope(rows, *known, intercept=intercept)
        return float(value), np.asarray(slope).ravel()

    options: Any = {"maxiter": STEPS, "maxfun": 2 * STEPS, "maxcor": 20}
    found = minimize(misfit, start.ravel(), (), jac=True, method="L-BFGS-B", options=options)
    rows = found.x.reshape(start.shape)[:count]
    return np.c_[rows, np.ones(count)] if intercept else rows


def misfit_of(
    rows: Array,
    loss: Any,
    values: Array,
    drawn: Array,
    last: Array,
    X: Array,
    weight: Array,
    share: Array,
    intercept: bool,
) -> Array:
    D = rows
    if intercept:
        D = jnp.concatenate([rows, jnp.ones((len(rows), 1))], 1)
    picked = D[drawn]  # (T, b, n)
    y = jnp.ones(drawn.shape)
    new = loss.slope(jnp.einsum("tbn,tn->tb", picked, X), y)
    old = loss.slope(jnp.einsum("tbn,tbn->tb", picked, X[last]), y)
    made = jnp.einsum("tb,tbn->tn", share * (new - old), picked)
    return 0.5 * (((made - values) * weight[:, None]) ** 2).sum()


value_and_slope = jax.jit(jax.value_and_grad(misfit_of), static_argnames="intercept")

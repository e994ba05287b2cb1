"""Gradients as attackers work them out, whatever the method."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from edgewise.attacks.curvature_news import (
    first_step_gradients,
    minimum_gradients,
    tells_hessians,
)
from edgewise.attacks.inversion import can_invert, node_gradients
from edgewise.attacks.recording import Recording
from edgewise.attacks.views import View
from edgewise.methods.pdmm import PDMM


class Seen(NamedTuple):
    values: np.ndarray  # (T, V, n) a node's gradients, ridge apart; NaN where a prox hides them
    ridge: np.ndarray  # (T, V, n) what was taken off
    at: np.ndarray  # (T, V, n) the models that they were taken at
    whole: np.ndarray  # (V,) nothing was guessed
    single: bool  # of few samples each, by an estimator whose rules are known
    heard: np.ndarray  # (rounds + 1, e, n) what came in along the edges, of the first vector
    true: np.ndarray  # (V, n) whole gradients at the first models, to score by


def gradients_seen(recording: Recording, view: View) -> Seen | None:
    """None where the method has no inverse here."""
    r, X = recording, recording.models
    exact = view.whole
    if can_invert(r):
        made, at = node_gradients(r, view.heard), X[:-1]
        single = r.method.gradient.samples is not None and getattr(r.method, "times", 1) == 1
    elif isinstance(r.method, PDMM):
        made, at, single = minimum_gradients(r, view.heard[0]), X[1:], False
    elif tells_hessians(r):
        made = first_step_gradients(r)[None]
        at, single = X[:1], False
    else:
        return None
    ridge = ridges(r, at)
    true = whole_gradients(r, at[0])
    return Seen(made - ridge, ridge, at, exact, single, view.heard[0], true)


def ridges(r: Recording, X: np.ndarray) -> np.ndarray:
    p = r.executor.block
    return np.stack([np.array(p.ridge(jnp.asarray(x))) for x in X])


def whole_gradients(r: Recording, X: np.ndarray) -> np.ndarray:
    return np.array(r.executor.block.full(jnp.asarray(X)))

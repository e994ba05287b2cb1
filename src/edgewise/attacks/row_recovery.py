"""Rows of a node's data, from its gradients: in linear models that of a sample is a multiple of its
row.

What single samples add is told from what changes slowly by the estimator's own public rules. Which
samples were drawn is known too: peers draw by the seed of the fit, their number and the round.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.attacks.recording import Recording
from edgewise.backend.random_bits import draw_by_numpy
from edgewise.gradients import LSVRG, SAGA, SGD, SVRG
from edgewise.problem.block import choose

WINDOW = 9  # rounds, whose median stands for what changes slowly where no rule tells it
SOUND = 1e-9  # part of the largest change below which one is rounding


class Changes(NamedTuple):
    """What the samples of each round added to a node's gradient."""

    values: np.ndarray  # (T, n) a sum of multiples of rows
    drawn: np.ndarray | None  # (T, b) which samples' they are; None: the attacker does not know


def draws(recording: Recording) -> np.ndarray | None:
    """(rounds, V, b) samples of each node's own that were drawn in each round; None where a round
    takes all, or several batches."""
    method, gradient = recording.method, recording.method.gradient
    batch = getattr(gradient, "batch", None)
    if batch is None or not isinstance(gradient, SAGA | SGD | SVRG | LSVRG):
        return None
    if getattr(method, "times", 1) > 1:
        return None
    ids, rounds = np.arange(recording.graph.nodes), np.arange(recording.rounds)
    count = gradient.random_draws if gradient is not None else 0
    bits = draw_by_numpy(recording.executor.seed, ids, rounds, count)[..., count - batch :]
    counts = jnp.asarray(recording.problem.counts)
    return np.array(each_round(jnp.asarray(bits), counts)[0])


each_round = jax.jit(jax.vmap(choose, (0, None)))


def changes(
    gradient: Any, G: np.ndarray, count: int, drawn: np.ndarray | None, exact: bool
) -> Changes:
    """Of a node's gradients (T, n), ridge apart. `exact`: nothing else is in them, so that sums may
    go on from round to round."""
    if isinstance(gradient, SGD):
        return Changes(G, drawn)
    if isinstance(gradient, SAGA) and exact:
        part, mean, out = min(gradient.batch, count) / count, G[0], np.empty_like(G)
        for t, g in enumerate(G):
            out[t] = g - mean
            mean = mean + part * out[t]
        return Changes(out, drawn)
    slow = np.stack([running_median(G[:, c]) for c in range(G.shape[1])], 1)
    out = G - slow
    if exact and isinstance(gradient, SVRG):  # the first epoch's mean is the first gradient
        first = max(count // 4, 1) if gradient.first is None else gradient.first
        out[:first] = G[:first] - G[0]
    return Changes(out, drawn)


def running_median(a: np.ndarray) -> np.ndarray:
    from scipy.ndimage import median_filter

    return np.asarray(median_filter(a, WINDOW, mode="nearest"))


def guesses(seen: Changes, count: int) -> np.ndarray:
    """(m, n) candidate rows, each up to a factor."""
    size = np.linalg.norm(seen.values, axis=1)
    sound = size > SOUND * size.max(initial=0)
    values = seen.values[sound]
    if not len(values):
        return np.zeros((0, seen.values.shape[1]))
    if seen.drawn is None:
        return values
    return strongest(values, seen.drawn[sound], count)


def strongest(values: np.ndarray, drawn: np.ndarray, count: int) -> np.ndarray:
    """(count, n) of each sample the direction that the rounds in which it was drawn share most."""
    out = np.zeros((count, values.shape[1]))
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    for k in range(count):
        mine = unit[(drawn == k).any(1)]
        if len(mine):
            out[k] = np.linalg.svd(mine, full_matrices=False)[2][0]
    return out

"""Was this person among the samples? Asked of half of each node's samples, which a run of its own
is given, and of the other half, which it is not."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from edgewise.data.shards import Shards
from edgewise.problem.problem import Problem


def halves(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the members and of the others, of every node as many."""
    rng = np.random.default_rng(seed)
    inside, outside = [], []
    for i in range(problem.nodes):
        rows = np.arange(problem.shards.samples)[problem.own(i)]
        rows = rng.permutation(rows)
        half = len(rows) // 2
        inside.append(np.sort(rows[:half]))
        outside.append(np.sort(rows[half : 2 * half]))
    return np.concatenate(inside), np.concatenate(outside)


def of_members(problem: Problem, rows: np.ndarray) -> Problem:
    """The problem with these of its samples alone."""
    held = problem.shards
    shards = held if isinstance(held, Shards) else held.whole
    counts = np.bincount(nodes_of(problem, rows), minlength=problem.nodes)
    kept = Shards(shards.X[rows], shards.y[rows], counts, columns=shards.columns)
    offset = None if problem.offset is None else problem.offset[rows]
    weights = None if problem.case_weights is None else problem.case_weights[rows]
    mode = "sample" if problem._weights.by_sample else "node"
    return Problem(
        kept,
        problem.loss,
        problem.penalty,
        weights=mode,
        sample_weight=weights,
        intercept=problem.intercept,
        classes=problem.classes,
        offset=offset,
    )


def nodes_of(problem: Problem, rows: np.ndarray) -> np.ndarray:
    """(k,) whose samples they are."""
    return np.searchsorted(problem.shards.first, rows, side="right") - 1


def rows_with_intercept(problem: Problem, rows: np.ndarray) -> np.ndarray:
    X = problem.shards.X[rows]
    dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return np.c_[dense, np.ones(len(rows))] if problem.intercept else dense


def likelihoods(problem: Problem, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(k,) minus the losses of samples at a model: members' tend to be higher."""
    z = rows_with_intercept(problem, rows) @ x
    if problem.offset is not None:
        z = z + problem.offset[rows]
    loss: Any = problem.loss
    return -np.asarray(loss.value(jnp.asarray(z), jnp.asarray(problem.labels[rows])))


def alignment(values: np.ndarray, D: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """(k,) of candidate rows: how well the best of a node's changes (T, n) points along each."""
    size = np.linalg.norm(values / scale, axis=1)
    sound = size > 1e-9 * size.max(initial=0)
    if not sound.any():
        return np.zeros(len(D))
    E, C = values[sound] / scale / size[sound, None], D / scale
    return np.abs(C @ E.T).max(1) / np.maximum(np.linalg.norm(C, axis=1), 1e-300)


def pull_along(problem: Problem, G: np.ndarray, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(k,) of candidate samples: how much of a node's whole gradients (T, n) theirs at the same
    models make up, in the mean over rounds."""
    D, y = rows_with_intercept(problem, rows), problem.labels[rows]
    loss: Any = problem.loss
    s = np.asarray(loss.slope(jnp.asarray(D @ X.T), jnp.asarray(y)[:, None]))
    size = np.abs(s) * np.linalg.norm(D, axis=1, keepdims=True)
    told = np.linalg.norm(G, axis=1)
    cosines = s * (D @ G.T) / np.maximum(size * told, 1e-300)
    return cosines.mean(1)

"""The paper's problem: logistic regression on the epsilon data, or on rows like it."""

import jax
import numpy as np
from jax import Array
from sklearn.preprocessing import normalize

from edgewise.data import Shards
from edgewise.data.arrays import aligned_empty
from edgewise.data.loading import load
from edgewise.data.synthetic import fill_epsilon_like
from edgewise.errors import InputError
from edgewise.experiments.experiment import Scale
from edgewise.graph.graph import Graph
from edgewise.problem.losses import CustomLoss, Logistic
from edgewise.problem.problem import Problem

SEED = 0  # of data and graph


def problem_of(scale: Scale, K: int, ridge: float, path: str | None) -> Problem:
    """V nodes with K samples each, rows of length 1, labels -1 and 1."""
    shape = (scale.nodes * K, scale.features)
    X, y = aligned_empty(shape, scale.dtype), aligned_empty(shape[:1], scale.dtype)
    if path is None:
        fill_epsilon_like(X, y, seed=SEED)
    else:
        fill_from(path, X, y)
    return Problem(Shards(X, y, np.full(scale.nodes, K)), Logistic(ridge=ridge))


def to_the_letter(problem: Problem) -> Problem:
    """The same, but the ridge is part of every sample's loss, as the paper writes its f_i(x, xi),
    and not put in exactly. What is remembered of a sample is then a whole vector, and SAGA's and
    ASVRG's estimates have the ridge's gradient from where they last looked."""
    ridge = float(problem.loss.ridge)

    def of_a_sample(x: Array, d: Array, c: Array) -> Array:
        return jax.nn.softplus(-c * (d @ x)) + ridge / 2 * (x @ x)

    return Problem(problem.shards, CustomLoss(of_a_sample, smoothness=0.25 + ridge))


def fill_from(path: str, X: np.ndarray, y: np.ndarray) -> None:
    """Rows of a file drawn at random, as many columns as are wanted, each row of length 1."""
    rows, labels = load(path, dense=True)
    if rows.shape[0] < len(X) or rows.shape[1] < X.shape[1]:
        raise InputError(
            f"{path} has {rows.shape[0]} rows of {rows.shape[1]} features and this takes "
            f"{len(X)} of {X.shape[1]}: give a larger file, or --scale small"
        )
    drawn = np.random.default_rng(SEED).permutation(rows.shape[0])[: len(X)]
    X[:] = normalize(rows[drawn, : X.shape[1]])
    y[:] = np.where(labels[drawn] > 0, 1, -1)


def graph_of(scale: Scale, ring: bool) -> Graph:
    if ring:
        return Graph.ring(scale.nodes)
    return Graph.random(scale.nodes, scale.edges, seed=SEED)


def source(path: str | None) -> str:
    return "rows like epsilon's (edgewise.data.epsilon_like)" if path is None else path

"""How likely a node's labels are, at a model and without one."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.inference.node_sums import (
    case_weights,
    held_labels,
    margins,
    samples_of,
)
from edgewise.inference.sums import Sums
from edgewise.problem.problem import Problem
from edgewise.problem.whole_nodes import is_whole

LINKS: dict[str, Callable[[float], float]] = {
    "identity": lambda mean: mean,
    "log": np.log,
    "logit": lambda mean: np.log(mean) - np.log1p(-mean),
}


def null_margin(problem: Problem, sums: Sums) -> float | None:
    """The intercept of a model that has nothing else, where it is a formula."""
    loss: Any = problem.loss
    if not problem.free or getattr(problem, "offset", None) is not None:
        return None
    mean = sums.number("response") / sums.number("weight")
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = float(LINKS[loss.link](mean))
    return margin if np.isfinite(margin) else None


def likelihood_sums(
    problem: Problem, i: int, x: np.ndarray, phi: float, null: float | None
) -> np.ndarray:
    """(3,) log-likelihood at x, and of the null model, and that model's deviance."""
    loss: Any = problem.loss
    if is_whole(loss):
        return whole_likelihood(problem, i, x)
    of = samples_of(problem, i)
    live = of.weight > 0
    y, w = of.y[live], of.weight[live]
    z = margins(problem, of, x)[live]
    out = [loss.log_likelihood(z, y, phi, w).sum(), 0.0, 0.0]
    if null is not None:
        at = np.full(len(y), null)
        out[1:] = [loss.log_likelihood(at, y, phi, w).sum(), w @ loss.deviance(at, y)]
    return np.array(out)


def whole_likelihood(problem: Problem, i: int, x: np.ndarray) -> np.ndarray:
    """The row has weights of mean one: what they were is put back."""
    loss: Any = problem.loss
    w, y = case_weights(problem, i), held_labels(problem, i)
    dying = w[(y > 0)].sum() * np.log(w.mean())
    with jax.enable_x64(True):
        row, label = jnp.asarray(problem.shards.X[i]), jnp.asarray(problem.labels[i])
        at, none = (
            -w.sum() * float(loss.fn(jnp.asarray(a), row, label)) - dying
            for a in (x, np.zeros_like(x))
        )
    return np.array([at, none, 0.0])

"""What a node adds to the sums that standard errors are made of: d x d matrices and some numbers,
of its own samples, all at one model.

With e_k = (factor of sample k) / K_i, what a sample counts in the objective, w_k its case weight,
s_k the slope of its loss, h_k the slope's derivative and d_k its features with a last 1 for the
intercept:

    hessian   sum_k e_k h_k d_k d_k'         expected  the same, with the mean of h_k over labels
    meat      sum_k e_k^2 / w_k s_k^2 d_k d_k'   (cases)   or   sum_k e_k^2 s_k^2 d_k d_k'
    between   g_i g_i', with g_i = sum_k e_k s_k d_k, the node's gradient

A loss of a whole node has no meat: its samples are not apart.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.data.arrays import is_sparse, row_blocks
from edgewise.errors import ProblemError
from edgewise.inference.sums import NUMBERS, Sums
from edgewise.problem.penalty_terms import terms_of
from edgewise.problem.problem import Problem
from edgewise.problem.whole_nodes import is_whole

BLOCK = 1 << 22  # numbers of d x d Hessians at a time


class Samples(NamedTuple):
    """Of one node, as its likelihood takes them."""

    X: Any  # (K, p)
    y: np.ndarray  # (K,) as the loss has encoded them
    offset: np.ndarray | float
    weight: np.ndarray  # (K,) case weights
    counts: np.ndarray  # (K,) e


def samples_of(problem: Problem, i: int) -> Samples:
    own = problem.own(i)
    K = own.stop - own.start
    factor = np.ones(K) if problem.scale is None else problem.scale[own]
    offset = getattr(problem, "offset", None)
    return Samples(
        problem.shards.X[own],
        problem.labels[own],
        0.0 if offset is None else np.asarray(offset, np.float64)[own],
        case_weights(problem, i),
        np.asarray(factor, np.float64) / K,
    )


def case_weights(problem: Problem, i: int) -> np.ndarray:
    """(K_i,) as they were given, or ones; of a loss of whole nodes those of the samples held."""
    given, held = problem.case_weights, problem.held
    first, count = int(held.first[i]), int(held.counts[i])
    return np.ones(count) if given is None else given[first : first + count]


def margins(problem: Problem, samples: Samples, x: np.ndarray) -> np.ndarray:
    w, b = x[: x.size - problem.free], x[x.size - problem.free :].sum()
    return np.asarray(samples.X @ w) + b + samples.offset


def node_sums(problem: Problem, i: int, x: np.ndarray, cases: bool = True) -> Sums:
    """cases: weights are numbers of cases; else precisions, or trials of a sample."""
    with jax.enable_x64(True):
        if problem.loss.linear:
            return linear_sums(problem, i, x, cases)
        if is_whole(problem.loss):
            return whole_sums(problem, i, x)
        return plain_sums(problem, i, x, cases)


def linear_sums(problem: Problem, i: int, x: np.ndarray, cases: bool) -> Sums:
    loss: Any = problem.loss
    of, d = samples_of(problem, i), problem.size
    z = margins(problem, of, x)
    value, slope, bend = pointwise(loss, z, of.y)
    likelihood = hasattr(loss, "log_likelihood")
    usual = expected_curvature(loss, z) if likelihood else bend
    e, w = of.counts, of.weight
    live = w > 0
    share = np.divide(e**2, w, out=np.zeros_like(e), where=live) if cases else e**2
    H, E, M = (weighted(of.X, each, d) for each in (e * bend, e * usual, share * slope**2))
    g = times(of.X, e * slope, d)
    numbers = common_numbers(problem, i, of, cases) | {"objective": float(e @ value)}
    if likelihood:
        numbers |= {
            "response": float(w @ loss.response(of.y)),
            "pearson": float(w @ loss.pearson(z, of.y)),
            "deviance": float(w @ loss.deviance(z, of.y)),
        }
    return Sums(H, E, M, np.outer(g, g), g, in_order(numbers))


def pointwise(loss: Any, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the shape of z, the loss at each margin, its slope, and the slope's derivative."""
    size = rounded_up(z.size)  # of few lengths, or every node's would be compiled
    at, label = (
        jnp.asarray(np.resize(np.append(a.ravel(), a.ravel()[:1]), size))
        for a in (z, np.broadcast_to(y, z.shape))
    )
    slope, bend = jax.jvp(lambda a: loss.slope(a, label), (at,), (jnp.ones_like(at),))
    made = (np.asarray(a)[: z.size].reshape(z.shape) for a in (loss.value(at, label), slope, bend))
    value, slope, bend = made
    return value, slope, bend


def rounded_up(size: int) -> int:
    """To a power of two."""
    return 1 << max(size - 1, 1).bit_length()


def expected_curvature(likelihood: Any, z: np.ndarray) -> np.ndarray:
    """(K,) (d mean / d z)^2 / variance: the mean of the Hessian over labels."""
    mean = likelihood.mean(z)
    rate = {"identity": np.ones_like(mean), "log": mean, "logit": mean * (1 - mean)}
    return np.asarray(rate[likelihood.link] ** 2 / likelihood.variance(mean))


def weighted(X: Any, a: np.ndarray, d: int) -> np.ndarray:
    """(d, d) sum_k a_k d_k d_k', d_k with a last 1 where d is one more than X has columns."""
    p = X.shape[1]
    M = np.zeros((d, d))
    if is_sparse(X):
        scaled = X.multiply(a[:, None]).tocsr()
        M[:p, :p] = (X.T @ scaled).toarray()
    else:
        for rows in row_blocks(X):
            block = np.asarray(X[rows], np.float64)
            M[:p, :p] += block.T @ (block * a[rows, None])
    if d > p:
        M[:p, p] = M[p, :p] = np.asarray(X.T @ a)
        M[p, p] = a.sum()
    return (M + M.T) / 2


def times(X: Any, a: np.ndarray, d: int) -> np.ndarray:
    g = np.asarray(X.T @ a, np.float64)
    return np.append(g, a.sum()) if d > X.shape[1] else g


def plain_sums(problem: Problem, i: int, x: np.ndarray, cases: bool) -> Sums:
    """Of a loss of one's own, by its derivatives."""
    fn: Any = problem.loss.fn  # type: ignore[union-attr]
    of = samples_of(problem, i)
    D = np.asarray(of.X.toarray() if is_sparse(of.X) else of.X, np.float64)
    e, w = of.counts, of.weight
    values, S = (np.asarray(a) for a in each_sample(fn, x, D, of.y))
    H = np.zeros((x.size, x.size))
    stretch = max(BLOCK // x.size**2, 1)
    for begin in range(0, len(e), stretch):
        part = slice(begin, begin + stretch)
        H += np.asarray(total_hessians(fn, x[None], D[part], of.y[part], e[part])[0])
    share = np.divide(e**2, w, out=np.zeros_like(e), where=w > 0) if cases else e**2
    g = S.T @ e
    numbers = common_numbers(problem, i, of, cases) | {"objective": float(e @ values)}
    return Sums(H, H, S.T @ (S * share[:, None]), np.outer(g, g), g, in_order(numbers))


@partial(jax.jit, static_argnums=0)
def each_sample(fn: Any, x: Any, D: Any, y: Any) -> Any:
    """(K,) losses and (K, d) gradients."""
    return jax.vmap(jax.value_and_grad(fn), (None, 0, 0))(x, D, y)


def total(fn: Any, x: Any, D: Any, y: Any, e: Any) -> Any:
    return e @ jax.vmap(fn, (None, 0, 0))(x, D, y)


@partial(jax.jit, static_argnums=0)
def total_gradients(fn: Any, X: Any, D: Any, y: Any, e: Any) -> Any:
    """(B,) sums and (B, d) gradients at (B, d) models."""
    return jax.vmap(lambda x: jax.value_and_grad(total, 1)(fn, x, D, y, e))(X)


@partial(jax.jit, static_argnums=0)
def total_hessians(fn: Any, X: Any, D: Any, y: Any, e: Any) -> Any:
    """(B, d, d)"""
    return jax.vmap(lambda x: jax.hessian(total, 1)(fn, x, D, y, e))(X)


def whole_sums(problem: Problem, i: int, x: np.ndarray) -> Sums:
    """Of a loss of the node's samples together."""
    loss: Any = problem.loss
    e = 1.0 if problem.scale is None else float(problem.scale[i])
    at = loss.fn, x[None], problem.shards.X[i : i + 1], problem.labels[i : i + 1], np.array([e])
    f, g = (np.asarray(a)[0] for a in total_gradients(*at))
    H = np.asarray(total_hessians(*at))[0]
    w = case_weights(problem, i)
    y = held_labels(problem, i)
    numbers = {
        "nodes": 1.0,
        "samples": float((w > 0).sum()),
        "weight": float(w.sum()),
        "cases": float(w.sum()),
        "events": float(w @ (y > 0)),
        "counted": e,
        "proportion": e**2 / w.sum(),
        "quadratic": quadratic_of(problem, i),
        "objective": float(f),
    }
    none = np.zeros_like(H)
    return Sums(H, H, none, np.outer(g, g), g, in_order(numbers))


def held_labels(problem: Problem, i: int) -> np.ndarray:
    """(K_i,) as they came, of a loss of whole nodes."""
    first = int(problem.held.first[i])
    return np.asarray(problem.held.y[first : first + int(problem.held.counts[i])], np.float64)


def common_numbers(problem: Problem, i: int, of: Samples, cases: bool) -> dict[str, float]:
    e, w = of.counts, of.weight
    live = w > 0
    return {
        "nodes": 1.0,
        "samples": float(live.sum()),
        "weight": float(w.sum()),
        "cases": float(w.sum()) if cases else float(live.sum()),
        "counted": float(e.sum()),
        "proportion": float((e[live] ** 2 / w[live]).sum()),
        "quadratic": quadratic_of(problem, i),
    }


def quadratic_of(problem: Problem, i: int) -> float:
    """lam of the lam/2 |x|^2 in the node's penalty."""
    every = problem.penalty
    l2 = terms_of(every[i] if isinstance(every, list | tuple) else every).l2
    return 0.0 if l2 is None else float(np.asarray(l2))


def in_order(numbers: dict[str, float]) -> np.ndarray:
    return np.array([numbers.get(name, 0.0) for name in NUMBERS])


def stacked_slopes(problem: Problem, i: int, models: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(B, d, d) Hessians and (B, d) gradients of the node's loss at (B, d) models."""
    with jax.enable_x64(True):
        if not problem.loss.linear:
            return stacked_derivatives(problem, i, models)
        of, d = samples_of(problem, i), problem.size
        D = np.asarray(of.X.toarray() if is_sparse(of.X) else of.X, np.float64)
        D = np.column_stack([D, np.ones(len(D))]) if problem.free else D
        z = models @ D.T + of.offset
        _, slope, bend = pointwise(problem.loss, z, of.y)
        pairs = (D[:, :, None] * D[:, None, :]).reshape(len(D), d * d)
        return ((bend * of.counts) @ pairs).reshape(-1, d, d), (slope * of.counts) @ D


def stacked_derivatives(
    problem: Problem, i: int, models: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    fn: Any = problem.loss.fn  # type: ignore[union-attr]
    own, scale = problem.own(i), problem.scale
    e = np.ones(own.stop - own.start) if scale is None else scale[own]
    rows: Any = problem.shards.X[own]
    D = np.asarray(rows.toarray() if is_sparse(rows) else rows, np.float64)
    many = rounded_up(len(models))
    at = fn, np.resize(models, (many, models.shape[1])), D, problem.labels[own], e / len(e)
    H, g = total_hessians(*at), total_gradients(*at)[1]
    return np.asarray(H)[: len(models)], np.asarray(g)[: len(models)]


def require_sums(problem: Problem) -> None:
    """Raises ProblemError where there are no such sums."""
    if problem.stream is not None:
        raise ProblemError("a stream has no end, and so no standard errors: fit shards")
    if problem.unequal or problem.cost is not None:
        raise ProblemError(
            "standard errors are of one model of samples that nodes hold: costs, and nodes of "
            "unequal sizes, have none"
        )
    if problem.loss.outputs != 1:
        raise ProblemError(
            f"{type(problem.loss).__name__} has {problem.loss.outputs} outputs, and standard "
            "errors are for losses of one: fit one class against another, or against the rest, "
            "with Logistic"
        )
    if not problem.convex:
        raise ProblemError(
            f"{type(problem.loss).__name__} is not convex, so that the model is one stationary "
            "point of several: there are no standard errors"
        )

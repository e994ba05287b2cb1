"""Whether a model of classes gets better for ever as it grows: without a ridge or a penalty there
is no best one then.

That is so where some direction is wrong about no sample and right about one at least. In tables it
is mostly a level, or a missing cell's own column, that one of the classes never has.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from edgewise.problem.contract import LinearLoss
from edgewise.problem.problem import Problem

FAR = 30.0  # a margin beyond those that some losses want
MOST_NUMBERS = 100_000  # of data at most, for a linear programme of them
SECONDS = 3.0  # for that
FEW = 3  # columns that may be left out
GROWS = "without a mistake, and nothing keeps the model small, so that it grows for ever"
WRONG = 1e-9  # of the largest margin, which is rounding


class Growth(NamedTuple):
    """That there is no best model, and why."""

    cause: str  # nothing where there is one, or it cannot be told
    few: bool = False  # columns that could be left out


def growth(p: Problem, rows: Any, x: np.ndarray, named: Callable[[int], str]) -> Growth:
    """Of a problem of classes without a penalty, at the model x."""
    if np.any(np.asarray(p.loss.ridge)) or not p.loss.linear or not never_zero(p.loss):
        return Growth("")
    if np.isfinite(x).all() and falls_for_ever(p, p.loss, rows, x):
        return Growth(f"the classes can be told apart {GROWS}")
    telling = telling_columns(p, rows)
    if len(telling):
        few, which = len(telling) <= FEW, f"{named(int(telling[0]))} tells"
        if not few:
            which = f"{len(telling)} columns, {named(int(telling[0]))} for one, tell"
        return Growth(f"{which} the class of some samples {GROWS}", few)
    if apart := told_apart(p, p.loss, rows):
        what = "the classes" if apart == "all" else "some samples"
        return Growth(f"{what} can be told apart {GROWS}")
    return Growth("")


def falls_for_ever(p: Problem, loss: LinearLoss, rows: Any, x: np.ndarray) -> bool:
    """Whether the model x is right about every sample, and the loss never zero."""
    C = loss.outputs
    W, b = x[: x.size - p.free].reshape(C, -1), x[x.size - p.free :]
    z = np.asarray(rows @ W.T) + (b if p.free else 0)
    if C > 1:
        right = z[np.arange(len(z)), p.labels.astype(int)]
        z[np.arange(len(z)), p.labels.astype(int)] = -np.inf
        return bool((right - z.max(1) > 0).all())
    sure = z[:, 0] * p.labels > 0
    far, labels = jnp.asarray(FAR * np.sign(z[:, 0])), jnp.asarray(p.labels)
    sure &= np.abs(np.asarray(loss.slope(far, labels))) > 0
    return bool(sure.all())


def never_zero(loss: LinearLoss) -> bool:
    """A loss that is zero beyond a margin has a minimum all the same."""
    C = loss.outputs
    z = jnp.full(1, FAR) if C == 1 else FAR * (2 * jnp.eye(1, C) - 1)
    right = jnp.ones(1) if C == 1 else jnp.zeros(1, int)
    return bool((np.abs(np.asarray(loss.slope(z, right))) > 0).any())


def telling_columns(p: Problem, rows: Any) -> np.ndarray:
    """Columns that in all samples of some class are at their end, zero where there is no intercept,
    and elsewhere are not: their coefficients for that class grow for ever."""
    sparse = hasattr(rows, "indptr")
    X = sp.csr_array(rows) if sparse else np.asarray(rows)
    low, high = (np.asarray(e.toarray() if sparse else e).ravel() for e in (X.min(0), X.max(0)))
    ends = [np.zeros(X.shape[1])] if sparse or not p.free else [low, high]
    telling = np.zeros(X.shape[1], bool)
    for label in np.unique(p.labels):
        own = X[p.labels == label]
        for end in ends:
            away = (own != 0).sum(0) if sparse else (own != end).any(0)
            telling |= (np.asarray(away).ravel() == 0) & ((low == end) | (high == end))
    if not p.free:  # to one side of zero
        telling &= (low >= 0) | (high <= 0)
    return np.flatnonzero(telling & (low < high))


def told_apart(p: Problem, loss: LinearLoss, rows: Any) -> str:
    """'all' where some model puts all samples of two classes on their own sides, 'some' where it
    puts some there and the others between, by a linear programme; nothing else, and where that
    takes long."""
    from scipy.optimize import linprog  # 0.1 s that only those pay who ask

    if loss.outputs > 1 or rows.shape[0] * rows.shape[1] > MOST_NUMBERS:
        return ""
    A: Any = sp.csr_array(rows)
    size = np.asarray(abs(A).max(0).toarray()).ravel()
    A = A @ sp.diags_array(1 / np.where(size > 0, size, 1))
    if p.free:
        A = sp.hstack([A, sp.csr_array(np.ones((A.shape[0], 1)))])
    sides = sp.csr_array(sp.diags_array(p.labels) @ A)
    N, n = sides.shape
    # margins t from 0 to 1, as many of them as can be
    given: dict[str, Any] = {
        "A_ub": sp.hstack([-sides, sp.eye_array(N)]),
        "b_ub": np.zeros(N),
        "bounds": [(None, None)] * n + [(0, 1)] * N,
        "options": {"time_limit": SECONDS, "primal_feasibility_tolerance": 1e-10},
    }
    found = linprog(np.r_[np.zeros(n), -np.ones(N)], **given)
    if found.status != 0:
        return ""
    margins = sides @ found.x[:n]
    most = margins.max(initial=0)
    if not most > 0.5 or margins.min() < -WRONG * most:
        return ""
    return "all" if margins.min() > 0.5 else "some"

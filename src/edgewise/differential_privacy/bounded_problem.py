"""A problem as a private run may see it: rows no longer than a constant, and curvatures that are
bounds by constants too, as steps are made of them and peers tell them."""

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from edgewise.data.arrays import is_sparse
from edgewise.data.folders import FolderShards
from edgewise.data.shards import Shards
from edgewise.differential_privacy.budget import DP
from edgewise.errors import ProblemError
from edgewise.problem.problem import Problem
from edgewise.problem.smoothness import ReportedSmoothness, squared_row_norms
from edgewise.problem.whole_nodes import is_whole


def require_clippable(problem: Problem, known_fills: bool = False) -> None:
    """Raises ProblemError unless a sample's part in what a node sends is one gradient. known_fills:
    what stands in for missing cells was agreed on before, not looked up."""
    name, what = type(problem.loss).__name__, ""
    prepared = problem.preparation
    if problem.stream is not None:
        what = "a stream has no fixed samples to account for: hold them"
    elif is_whole(problem.loss):
        what = f"{name} is of all of a node's samples together, and one's part cannot be clipped"
    elif problem.cost is not None or problem.couples:
        what = "costs and couplings say what data they are made of, unclipped: leave them out"
    elif problem.case_weights is not None:
        what = "sample_weight, and trials, let one sample count more than another: leave them out"
    elif problem.scaling is not None and (
        np.any(problem.scaling.centre != 0) or np.any(problem.scaling.scale != 1)
    ):
        what = (
            "the columns were scaled by means and spreads of these very data, which tell of each "
            "sample: scale by constants that were known before"
        )
    elif prepared is not None and prepared.fills and not known_fills:
        what = (
            "missing cells were filled with means, medians or levels of these very data, which the "
            "model file tells: leave such rows out (missing='drop'), or fill in constants before"
        )
    elif problem.loss.linear and not np.isfinite(problem.loss.curvature()):
        what = f"the curvature of {name} has no bound that is public, and steps need one"
    elif not problem.loss.linear and problem.loss.smoothness is None:
        what = (
            f"how curved {name} is would be looked up in the data: give it smoothness=, a constant"
        )
    if what:
        raise ProblemError(f"this cannot be accounted for under differential privacy: {what}")


def row_norm_of(problem: Problem, budget: DP) -> float:
    """As given, or by the loss's largest slope."""
    if budget.row_norm is not None:
        return budget.row_norm
    steepest = float(getattr(problem.loss, "steepest", np.inf))
    if np.isfinite(steepest):
        return budget.clip / steepest
    raise ProblemError(
        f"slopes of {type(problem.loss).__name__} have no bound, so that the clip says nothing of "
        "how long a row may be: give DP(row_norm=), a constant"
    )


def bounded(problem: Problem, row_norm: float) -> Problem:
    """The same with longer rows scaled down, and with public smoothness."""
    made = copy(problem)
    shards: Any = problem.shards
    shards = shards.whole if isinstance(shards, FolderShards) else shards
    if problem.loss.linear:
        shards = replace(shards, X=shortened(without_repeats(shards.X), row_norm))
    made.shards = made.held = shards
    made.__dict__["smoothness"] = public_smoothness(made, row_norm)
    return made


def without_repeats(X: Any) -> Any:
    """Entries of one place, which a sparse row may have several of, as the one that they add up to:
    the row's length is told by its entries."""
    if not is_sparse(X):
        return X
    made = X.copy()
    made.sum_duplicates()
    return made


def shortened(X: Any, most: float) -> Any:
    """The rows, dense or CSR, none longer."""
    factor = np.minimum(1, most / np.sqrt(np.maximum(squared_row_norms(X), 1e-300)))
    if (factor == 1).all():
        return X
    if is_sparse(X):
        made = X.copy()
        made.data *= np.repeat(factor, np.diff(X.indptr)).astype(X.dtype)
        return made
    return X * factor.astype(X.dtype)[:, None]


def public_smoothness(problem: Problem, row_norm: float) -> ReportedSmoothness:
    """Of rows no longer than this, whichever they are."""
    counts, loss = problem.counts, problem.loss
    share = shares(problem) * counts
    if loss.linear:
        own = share * loss.curvature() * np.full(len(counts), row_norm**2 + problem.intercept)
        bias = share * loss.curvature() * float(problem.intercept)
    else:
        own = share * float(loss.smoothness or 1.0)
        bias = np.zeros(len(counts))
    own = own + float(loss.ridge)
    saturates = bool(getattr(loss, "saturates", False))
    known = float(loss.ridge), problem.size, saturates
    return ReportedSmoothness(counts, own, own, np.asarray(bias, float), *known)


def shares(problem: Problem) -> np.ndarray:
    """(V,) a_i/K_i: what a sample counts in its node's f_i. Of the numbers of samples alone."""
    if problem.scale is None:
        return 1.0 / problem.counts
    assert isinstance(problem.shards, Shards)
    return np.asarray(problem.scale[problem.shards.first] / problem.counts)

"""The dispersion of negative binomial counts, found along with their model."""

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma

from edgewise.errors import DataError, ProblemError
from edgewise.graph.graph import Graph
from edgewise.problem.families import NegativeBinomial
from edgewise.problem.problem import Problem
from edgewise.running.network_sum import sum_over
from edgewise.running.result import Result
from edgewise.running.run_folders import weights_of
from edgewise.running.solve import solve

LEAST, MOST = 1e-6, 1e4
FITS = 30


@dataclass(frozen=True)
class DispersionFit:
    """A model and its dispersion, the most likely together."""

    dispersion: float
    result: Result  # of the last fit
    problem: Problem = field(repr=False)  # with that dispersion in its loss
    fits: int  # runs of `solve`
    sums: int  # over the network
    rounds: int  # of all runs and sums
    converged: bool


def fit_dispersion(
    problem: Problem, graph: Graph, accuracy: float = 1e-8, **options: Any
) -> DispersionFit:
    """Fit a problem with a `NegativeBinomial` loss together with its dispersion.

    Fits at a dispersion, from the one of the loss on, and finds the dispersion that is most likely
    of these means, in turns, until it changes by less than `accuracy` of itself. The two tell next
    to nothing of each other (Lawless 1987), so few turns do. For the second a node says how its
    labels' log-likelihood changes with the logarithm of the dispersion: one number, summed over the
    network by `sum_over` some ten times a turn.

    options  as `solve` takes them; tol is 1e-9 where none is given
    """
    if not isinstance(problem.loss, NegativeBinomial):
        kind = type(problem.loss).__name__
        raise ProblemError(f"{kind} has no dispersion to fit: give NegativeBinomial()")
    options = {"tol": 1e-9, "reference": False, **options}
    fits, sums, rounds = 0, 0, 0

    def slope(t: float, X: np.ndarray) -> float:
        nonlocal sums, rounds
        own = [[log_slope(problem, i, X[i], np.exp(t))] for i in range(problem.nodes)]
        total = sum_over(graph, np.array(own))
        sums, rounds = sums + 1, rounds + total.rounds
        return float(total.value[0])

    t, start = float(np.log(problem.loss.dispersion)), options.pop("X0", None)
    while fits < FITS:
        here = with_dispersion(problem, float(np.exp(t)))
        result = solve(here, graph, X0=start, **options)
        start, fits, before = result.X, fits + 1, t
        rounds += int(result.trace["rounds"][-1])
        t = brentq(slope, *around(slope, t, result.X), args=(result.X,), xtol=accuracy / 10)
        if abs(t - before) <= accuracy:
            break
    done = bool(result.converged and abs(t - before) <= accuracy)
    return DispersionFit(float(np.exp(t)), result, here, fits, sums, rounds, done)


def around(slope: Any, t: float, X: np.ndarray) -> tuple[float, float]:
    """Two logarithms, the slope positive at the first and not at the second."""
    low, high, step = t, t, 1.0
    while slope(low, X) <= 0:
        low, high, step = low - step, low, 2 * step
        if low < np.log(LEAST):
            raise DataError(
                "these counts vary no more than Poisson's do, so no dispersion fits: use Poisson"
            )
    while high == low or slope(high, X) > 0:
        low, high, step = high, high + step, 2 * step
        if high > np.log(MOST):
            raise DataError(f"the dispersion grows beyond {MOST:g}: the model does not fit")
    return low, high


def with_dispersion(problem: Problem, dispersion: float) -> Problem:
    made = copy(problem)
    made.loss = replace(problem.loss, dispersion=dispersion)  # type: ignore[type-var]
    made.__dict__.pop("smoothness", None)
    return made


def log_slope(problem: Problem, i: int, x: np.ndarray, a: float) -> float:
    """How node i's part of the log-likelihood changes with log a, at its model: samples weigh as
    in what is minimised."""
    own = problem.own(i)
    W, b = weights_of(problem, x)
    z = np.asarray(problem.shards.X[own] @ W[0]) + b[0]
    z = z if problem.offset is None else z + problem.offset[own]
    y, mean = problem.labels[own], np.exp(z)
    weight = np.ones(len(y)) if problem.scale is None else problem.scale[own]
    grown = np.log1p(a * mean)
    each = (grown - digamma(y + 1 / a) + digamma(1 / a)) / a
    each = each + y - (y + 1 / a) * a * mean / (1 + a * mean)
    return float(weight @ each / len(y))

"""Cox's model with one baseline hazard for all nodes, as Poisson's likelihood of rows that each
node makes of its own samples: nobody is compared with anybody, so that no risk set leaves a node.

A sample has a row for each interval of time in which it was at risk, with the interval's indicator
beside its covariates. Two ways to count how long that was:

    "time"      the time that it was observed there: a piecewise exponential model (Holford 1980,
                Laird, Olivier 1981), whose baseline hazard is constant in an interval
    "risk set"  one, if it was there up to the interval's end, or had the event in it: survival
                stacking, with Breslow's partial likelihood of times rounded up to the ends of
                intervals for its profile (Whitehead 1980); with ends at all times of events that is
                Cox's own, and nothing is approximated
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from edgewise.data.arrays import is_sparse
from edgewise.data.shards import Shards
from edgewise.errors import DataError, ProblemError
from edgewise.problem.families import Poisson
from edgewise.problem.problem import Problem
from edgewise.problem.survival_labels import as_labels, times_and_events

EXPOSURES = ("time", "risk set")


class RiskRows(NamedTuple):
    X: np.ndarray  # (R, J + p) indicators of intervals, covariates
    rate: np.ndarray  # (R,) events over exposure
    exposure: np.ndarray  # (R,)


def risk_rows(
    X: Any, labels: Any, grid: Any, exposure: str = "time", weight: Any = None
) -> RiskRows:
    """A node's samples as rows of Poisson's likelihood, with `rate` for labels and `exposure` for
    sample weights.

    grid    ends of the intervals, which grow; with "time" what is beyond the last is one more
    weight  of each sample, which its exposure is multiplied with

    >>> rows = risk_rows([[7.0], [8.0]], [3.0, -5.0], grid=[2, 4])
    >>> rows.X[:, -1], rows.exposure
    (array([7., 7., 8., 8., 8.]), array([2., 1., 2., 2., 1.]))
    """
    if exposure not in EXPOSURES:
        raise ProblemError(f"exposure={exposure!r}: give 'time' or 'risk set'")
    X = np.asarray(X.toarray() if is_sparse(X) else X, np.float64)
    y = as_labels(labels)
    if X.ndim != 2 or len(X) != len(y):
        raise DataError(
            f"X has shape {X.shape}, and there are {len(y)} labels: give a row for each"
        )
    ends = np.asarray(grid, np.float64)
    if ends.ndim != 1 or not ends.size or ends[0] <= 0 or not (np.diff(ends) > 0).all():
        raise DataError("the grid must be a list of positive times that grow, one at least")
    time, event = times_and_events(y)
    at = np.searchsorted(ends, time, side="left")
    if exposure == "time":
        starts = np.append(0.0, ends)
        spent = np.clip(time[:, None] - starts, 0, np.append(np.diff(starts), np.inf))
    else:
        ended = (at[:, None] == np.arange(len(ends))) & event[:, None]
        spent = ((time[:, None] >= ends) | ended).astype(np.float64)
    died = (at[:, None] == np.arange(spent.shape[1])) & event[:, None]
    who, when = np.nonzero(spent > 0)
    indicators = np.zeros((len(who), spent.shape[1]))
    indicators[np.arange(len(who)), when] = 1
    held = spent[who, when]
    rate = died[who, when] / held
    held = held if weight is None else held * np.asarray(weight, np.float64)[who]
    return RiskRows(np.column_stack([indicators, X[who]]), rate, held)


def pooled_cox(shards: Any, grid: Any, exposure: str = "time", penalty: Any = None) -> Problem:
    """Cox's model of all nodes' samples with one baseline hazard, by a grid of times: the problem
    whose unknowns are the logarithms of the hazard in each interval, and then the coefficients.

    shards    `Shards`, or a list with one (X_i, labels_i) per node, with labels as
              `survival_labels` makes them
    grid      times that grow, agreed on by all nodes. The finer, the nearer are coefficients to
              Cox's; with `exposure="risk set"` they are Cox's own, with Breslow's ties, where the
              grid has all times of events
    exposure  "time" or "risk set": `edgewise.problem.pooled_cox` says how they differ
    penalty   as `Problem` takes it, of all unknowns

    >>> problem = pooled_cox([(np.eye(2), [1.0, 4.0]), (np.eye(2), [2.0, -3.0])], [2.5])
    >>> problem.columns
    ('(0, 2.5]', '(2.5, inf]', 'x0', 'x1')
    """
    return Problem(pooled_rows(shards, grid, exposure), Poisson(), penalty, weights="sample")


def pooled_rows(shards: Any, grid: Any, exposure: str, sample_weight: Any = None) -> Shards:
    """The rows of all nodes, with their exposures for weights. sample_weight: of the samples, node
    after node."""
    names = None
    if isinstance(shards, Shards):
        names, cuts = shards.columns, shards.first[1:]
        nodes: Any = zip(np.split(np.arange(shards.samples), cuts), strict=True)
        parts = [(shards.X[rows], shards.y[rows]) for (rows,) in nodes]
    elif isinstance(shards, Sequence) and len(shards):
        parts = list(shards)
    else:
        raise DataError("give Shards, or a list with one (X, labels) per node")
    weights: list[Any] = [None] * len(parts)
    if sample_weight is not None:
        weights = np.split(sample_weight, np.cumsum([len(y) for _, y in parts])[:-1])
    each = zip(parts, weights, strict=True)
    made = [risk_rows(X, y, grid, exposure, weight) for (X, y), weight in each]
    width = made[0].X.shape[1]
    if any(rows.X.shape[1] != width for rows in made):
        raise DataError("nodes have different numbers of columns: give all the same")
    ends = [*np.asarray(grid, np.float64), np.inf][: len(grid) + (exposure == "time")]
    spans = [f"({a:g}, {b:g}]" for a, b in zip([0.0, *ends], ends, strict=False)]
    X, rate, held = (np.concatenate(part) for part in zip(*made, strict=True))
    events = (rate * held) @ X[:, : len(ends)]
    if (empty := np.flatnonzero(events == 0)).size:
        raise DataError(
            f"no node has an event in {spans[empty[0]]}, where the hazard would be zero: give a "
            "grid without one of these times"
        )
    columns = (*spans, *(names or (f"x{k}" for k in range(width - len(spans)))))
    counts = np.array([len(rows.rate) for rows in made])
    return Shards(X, rate, counts, columns=columns, weight=held)

"""The log-rank test, and its weighted kin, from sums over the nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import chi2

from edgewise.errors import UnknownName
from edgewise.problem.survival_labels import times_and_events
from edgewise.running.network_sum import sum_over
from edgewise.statistics.counts import LEAST, sum_counts
from edgewise.statistics.risk_counts import coded_groups, own_labels, risk_counts

WEIGHTS = ("log-rank", "wilcoxon", "tarone-ware")


@dataclass(frozen=True)
class LogRank:
    """Whether groups have one hazard."""

    statistic: float  # chi-squared, where they do
    p_value: float
    degrees: int
    levels: list[Any] = field(repr=False)
    observed: np.ndarray = field(repr=False)  # (G,) events, weighted
    expected: np.ndarray = field(repr=False)  # (G,) if all groups had one hazard
    exact: bool  # whether it is the test of the exact times
    rounds: int = field(repr=False)


def log_rank(
    graph: Any,
    labels: Any,
    groups: Any,
    levels: Any,
    grid: Any = None,
    weights: str = "log-rank",
    least_count: int | Sequence[int] = LEAST,
    coarsen: bool = False,
    **options: Any,
) -> LogRank:
    """Observed against expected events of each group, at every time, added up.

    With a grid the nodes' samples are compared as one: from pooled counts on times that all nodes
    have agreed on. It is the test of all samples in one place where the grid has the time of every
    event (`exact`), and otherwise that of times rounded up to the grid.

    Without a grid the test is stratified by node: each compares its own samples, at their exact
    times, and tells no more than what it adds to observed, expected and their covariance.

    weights  of a time with n at risk: "log-rank" 1, "wilcoxon" (Gehan, Breslow) n, "tarone-ware"
             the root of n
    others   as `kaplan_meier` has them

    >>> days, arms = [[1, 2, 3, -6], [2, 4, 5, 7]], [[0, 0, 1, 1], [0, 1, 0, 1]]
    >>> found = log_rank("path", days, arms, [0, 1], range(1, 8), least_count=1)
    >>> round(found.statistic, 4), found.exact
    (2.8161, True)
    """
    if weights not in WEIGHTS:
        raise UnknownName("weights", weights, WEIGHTS)
    if grid is not None:
        found, known = risk_counts(
            graph, labels, grid, groups, levels, least_count, coarsen, options
        )
        observed, expected, V = moments(found.at_risk, found.events, weights)
        return tested(observed, expected, V, known, found.exact, found.rounds)
    ys = own_labels(labels)
    coded, known = coded_groups(groups, levels, [len(y) for y in ys])
    G = len(known)
    tables, terms = [], []
    for y, group in zip(ys, coded, strict=True):
        n, d = own_risk(y, group, G)
        seen = np.bincount(group[times_and_events(y)[1]], minlength=G)
        tables.append(np.stack([seen, np.bincount(group, minlength=G) - seen]))
        observed, expected, V = moments(n, d, weights)
        terms.append(np.concatenate([observed, expected, V.ravel()]))

    def cell(k: int, g: int) -> str:
        return f"{'censored' if k else 'events'} of group {known[g]!r}"

    counted = sum_counts(
        graph, tables, least_count, cell=cell, coarser="give fewer groups", **options
    )
    total = sum_over(graph, terms, **options)
    observed, expected, V = np.split(total.value, [G, 2 * G])
    return tested(observed, expected, V.reshape(G, G), known, True, counted.rounds + total.rounds)


def own_risk(y: np.ndarray, group: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """(G, J) at risk and events at the node's own times of events."""
    time, event = times_and_events(y)
    grid = np.unique(time[event])
    n, d = np.zeros((groups, len(grid))), np.zeros((groups, len(grid)))
    for g in range(groups):
        own = np.sort(time[group == g])
        n[g] = len(own) - np.searchsorted(own, grid, side="left")
        d[g] = np.bincount(np.searchsorted(grid, time[event & (group == g)]), minlength=len(grid))
    return n, d


def moments(
    n: np.ndarray, d: np.ndarray, weights: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(G,) observed, (G,) expected, (G, G) covariance of their difference (hypergeometric)."""
    N, D = n.sum(0), d.sum(0)
    w = {"log-rank": np.ones_like(N), "wilcoxon": N, "tarone-ware": np.sqrt(N)}[weights]
    share = np.divide(n, N, out=np.zeros_like(n), where=N > 0)
    chance = np.where(N > 1, D * (N - D) / np.maximum(N - 1, 1), 0) * w**2
    V = np.diag(share @ chance) - (share * chance) @ share.T
    return d @ w, share @ (w * D), V


def tested(
    observed: np.ndarray,
    expected: np.ndarray,
    V: np.ndarray,
    levels: list[Any],
    exact: bool,
    rounds: int,
) -> LogRank:
    """Groups nobody of whom was ever at risk beside others count for nothing."""
    widths, axes = np.linalg.eigh(V)
    there = widths > 1e-10 * max(widths[-1], 1e-300)
    apart = axes[:, there].T @ (observed - expected)
    statistic, degrees = float(np.sum(apart**2 / widths[there])), int(there.sum())
    p = float(chi2.sf(statistic, degrees)) if degrees else 1.0
    return LogRank(statistic, p, degrees, levels, observed, expected, exact, rounds)

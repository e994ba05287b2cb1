"""Events, censoring and who is at risk, counted on a grid of times that all nodes share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.problem.survival_labels import as_labels, times_and_events
from edgewise.running.network_sum import sum_over
from edgewise.statistics.counts import beyond, coarsened, sum_counts


@dataclass(frozen=True)
class RiskCounts:
    """Pooled counts of G groups at J times."""

    grid: np.ndarray  # (J,)
    at_risk: np.ndarray  # (G, J) of whom nobody has seen an event or lost sight before that time
    events: np.ndarray  # (G, J) after the time before, up to this one
    censored: np.ndarray  # (G, J) from the time before on, and before this one
    exact: bool  # no event at any node is between the times of the grid
    rounds: int
    bytes_sent: float


def checked_grid(grid: Any) -> np.ndarray:
    try:
        made = np.asarray(grid, np.float64)
    except (TypeError, ValueError) as wrong:
        raise DataError(f"grid={grid!r}: give times") from wrong
    if made.ndim != 1 or not made.size or not np.isfinite(made).all():
        raise DataError("the grid must be a list of finite times, one at least")
    if made[0] <= 0 or (np.diff(made) <= 0).any():
        raise DataError("the times of the grid must be positive, and grow")
    return made


def coded_groups(groups: Any, levels: Any, sizes: list[int]) -> tuple[list[np.ndarray], list[Any]]:
    """Each node's groups as numbers, by levels that all nodes have agreed on."""
    if groups is None:
        return [np.zeros(size, np.int64) for size in sizes], [None]
    if levels is None:
        raise DataError("give levels, all groups that there are: one node may not have them all")
    known = list(levels)
    if len(set(known)) != len(known) or not known:
        raise DataError(f"levels={levels!r}: name each group once")
    if not isinstance(groups, Sequence) or len(groups) != len(sizes):
        raise DataError(f"give groups as a list with one array per node, {len(sizes)} of them")
    place, coded = {level: k for k, level in enumerate(known)}, []
    for node, (given, size) in enumerate(zip(groups, sizes, strict=True)):
        own = np.asarray(given)
        if own.shape != (size,):
            raise DataError(f"node {node} has {size} samples and groups of shape {own.shape}")
        strange = [each for each in own.tolist() if each not in place]
        if strange:
            raise DataError(f"node {node} has the group {strange[0]!r}, which is none of {known}")
        coded.append(np.array([place[each] for each in own.tolist()], np.int64))
    return coded, known


def own_labels(labels: Any) -> list[np.ndarray]:
    if not isinstance(labels, Sequence) or not len(labels):
        raise DataError("give a list with one array of survival labels per node")
    return [as_labels(each) for each in labels]


def own_counts(y: np.ndarray, group: np.ndarray, groups: int, grid: np.ndarray) -> np.ndarray:
    """(G, 2J + 1): events up to each time, censored before each time, and who stays beyond."""
    time, event = times_and_events(y)
    J = len(grid)
    at = np.searchsorted(grid, time, side="left")  # of the first time not before it
    before = np.searchsorted(grid, time, side="right")  # of the first time after it
    cell = np.where(event, at, J + before)
    cell = np.where(np.where(event, at, before) == J, 2 * J, cell)
    return np.bincount(group * (2 * J + 1) + cell, minlength=groups * (2 * J + 1)).reshape(
        groups, 2 * J + 1
    )


def between(y: np.ndarray, grid: np.ndarray) -> bool:
    """Whether an event is at none of the grid's times, and not after them all."""
    time, event = times_and_events(y)
    seen = time[event & (time < grid[-1])]
    return not bool(np.isin(seen, grid).all())


def coarser_times(
    graph: Any,
    tables: list[np.ndarray],
    grid: np.ndarray,
    least_count: int | Sequence[int],
    options: dict[str, Any],
) -> np.ndarray:
    """Times at which no node would refuse its (G, 2J + 1) counts."""
    J, cells, tails = len(grid), list[np.ndarray](), list[np.ndarray]()
    for table in tables:
        cells.append(np.concatenate([table[:, :J], table[:, J:-1]]))
        tails.append(beyond(np.column_stack([table[:, :J] + table[:, J:-1], table[:, -1]])))
    return coarsened(graph, cells, tails, grid, least_count, options)


def risk_counts(
    graph: Any,
    labels: Any,
    grid: Any,
    groups: Any,
    levels: Any,
    least_count: int | Sequence[int],
    coarsen: bool,
    options: dict[str, Any],
) -> tuple[RiskCounts, list[Any]]:
    ys, times = own_labels(labels), checked_grid(grid)
    coded, known = coded_groups(groups, levels, [len(y) for y in ys])

    def count(grid: np.ndarray) -> list[np.ndarray]:
        return [own_counts(y, g, len(known), grid) for y, g in zip(ys, coded, strict=True)]

    if coarsen:
        times = coarser_times(graph, count(times), times, least_count, options)
    J = len(times)

    def cell(g: int, k: int) -> str:
        of = "" if groups is None else f" of group {known[g]!r}"
        if k == 2 * J:
            return f"samples{of} beyond {times[-1]:g}"
        start = times[k % J - 1] if k % J else 0
        kind = "events" if k < J else "censored"
        return f"{kind}{of} from {start:g} to {times[k % J]:g}"

    total = sum_counts(
        graph,
        count(times),
        least_count,
        cell=cell,
        coarser="give fewer times (coarsen=True leaves such out)",
        **options,
    )
    off = sum_over(graph, [[float(between(y, times))] for y in ys], **options)
    events, censored, stayed = np.split(total.value, [J, 2 * J], axis=1)
    last = np.cumsum((events + censored)[:, ::-1], 1)[:, ::-1] + stayed
    rounds, sent = total.rounds + off.rounds, total.bytes_sent + off.bytes_sent
    exact = bool(round(float(off.value[0])) == 0)
    return RiskCounts(times, last - censored, events, censored, exact, rounds, sent), known

"""Sums of counts of people, which a node tells only where they are not too few."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edgewise.data.disclosure import LEAST as LEAST
from edgewise.data.disclosure import least_counts as least_counts
from edgewise.errors import DataError, DisclosureError
from edgewise.running.network_sum import Adder, NetworkSum, sum_over


def require_cells(
    counts: np.ndarray, least: int, node: int, cell: Callable[..., str], coarser: str
) -> None:
    """Refuse to tell what a node counted where a cell has somebody, and fewer than `least`.

    cell     what a cell counts, in words, of its indices
    coarser  what would make cells larger, in words
    """
    few = np.argwhere(too_few(counts, least))
    if len(few):
        where = tuple(int(i) for i in few[0])
        raise DisclosureError(
            f"node {node} has {int(counts[where])} {cell(*where)}, and tells no count from 1 to "
            f"{least - 1}: {coarser}, or let the node tell smaller counts (least_count)"
        )


def require_own(counts: np.ndarray, least: int, node: int) -> None:
    """The same of a table whose cells have no names."""
    require_cells(counts, least, node, in_cell, "give fewer cells")


def in_cell(*where: int) -> str:
    return f"in cell {', '.join(map(str, where))}" if where else "in all"


def stricter(graph: Any, least_count: Any) -> Any:
    """At a peer, what its own configuration says, if that is more."""
    if not isinstance(graph, Adder):
        return least_count
    return np.maximum(least_counts(least_count, 1), graph.least_count)


def too_few(counts: np.ndarray, least: int) -> np.ndarray:
    """Which cells a node does not tell."""
    return (counts > 0) & (counts < least)


def as_counts(table: Any, node: int) -> np.ndarray:
    try:
        made = np.asarray(table, np.float64)
    except (TypeError, ValueError) as wrong:
        raise DataError(f"node {node} has {table!r}: give counts") from wrong
    if not (np.isfinite(made) & (made >= 0) & (made == np.floor(made))).all():
        raise DataError(f"node {node} has numbers that are no counts: give 0, 1, 2, ...")
    return made


def sum_counts(
    graph: Any,
    tables: Any,
    least_count: int | Sequence[int] = LEAST,
    *,
    cell: Callable[..., str] | None = None,
    coarser: str = "give fewer cells",
    **options: Any,
) -> NetworkSum:
    """Add up tables of counts of people, one per node, all of one shape: exact whole numbers.

    A node refuses, before anything is sent, where one of its own cells has somebody in it and
    fewer than `least_count`. Cells of nobody are told. What several tables say together is not
    looked at: who asks for two that differ by one person learns of that person.

    least_count  one number, 5 by default, or one per node; 1 has a node tell everything
    options      `accuracy`, `rounds`, `faults`, `engine` of `sum_over`

    >>> sum_counts("ring", [[12, 0], [7, 30], [25, 5]]).value
    array([44., 35.])
    """
    if not isinstance(tables, Sequence | np.ndarray):
        raise DataError("give a list with one table of counts per node")
    made = [as_counts(table, node) for node, table in enumerate(tables)]
    least_count = stricter(graph, least_count)
    for node, (counts, least) in enumerate(
        zip(made, least_counts(least_count, len(made)), strict=True)
    ):
        require_cells(counts, int(least), node, cell or in_cell, coarser)
    total = sum_over(graph, made, **options)
    if not total.reached:
        return total
    return replace(total, value=np.round(total.value), at_nodes=np.round(total.at_nodes))


def coarsened(
    graph: Any,
    cells: list[np.ndarray],
    tails: list[np.ndarray],
    grid: np.ndarray,
    least_count: int | Sequence[int],
    options: dict[str, Any],
) -> np.ndarray:
    """The points of a grid that are left when every cell is made as large as no node refuses.

    Cells grow from the first on: nodes say up to which points they would refuse to tell the next
    one, and nothing of how many there are. The first point at which none does ends the cell.

    cells  per node (m, J) counts of m kinds up to each point
    tails  per node (t, J) counts beyond each point, where it is the last
    """
    J, start, kept = len(grid), 0, list[int]()
    bounds = [int(each) for each in least_counts(stricter(graph, least_count), len(cells))]
    sums = [np.cumsum(np.pad(table, ((0, 0), (1, 0))), axis=1) for table in cells]

    def agreed(few: list[np.ndarray]) -> np.ndarray:
        """(J,) where no node refuses, of whether each of its (kinds, J) counts is too small."""
        flags = np.array([np.any(each, axis=0) for each in few], np.float64)
        return np.asarray(np.round(sum_over(graph, flags, **options).value) == 0)

    while start < J:
        few = [
            too_few(np.maximum(total[:, 1:] - total[:, start, None], 0), least)
            for total, least in zip(sums, bounds, strict=True)
        ]
        fine = np.flatnonzero(agreed(few) & (np.arange(J) >= start))
        if not len(fine):
            break
        kept.append(int(fine[0]))
        start = kept[-1] + 1
    last = agreed([too_few(tail, least) for tail, least in zip(tails, bounds, strict=True)])
    while kept and not last[kept[-1]]:
        kept.pop()
    if not kept:
        raise DisclosureError(
            "no grid is coarse enough: a node has too few samples in all, so leave it out, or let "
            "it tell smaller counts (least_count)"
        )
    return grid[kept]


def beyond(table: np.ndarray) -> np.ndarray:
    """(m, J) of (m, J + 1) counts, the last cell without end: what is beyond each point."""
    return np.cumsum(table[:, ::-1], axis=1)[:, ::-1][:, 1:]

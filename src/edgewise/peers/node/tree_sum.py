"""A sum over all peers, up a tree and down again: each peer hears of its neighbours alone.

The tree is that of the fewest hops to the lowest number. Every peer says which root it knows of,
how far it is, and through whom, its parent. When all its neighbours have said so of the same root,
and those whose parent it is have told their sums, it tells its parent the sum of theirs and its own
numbers. The root has the total then, which goes to everybody. What a peer says depends on what its
neighbours last said and on nothing else, so that reports may be lost, or come twice, and peers may
be started again; and sums are exact, so that they do not depend on the tree.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from edgewise.peers.transport.reports import Report

Heard = Mapping[int, Report | None]  # the last report of each neighbour, if there was one


class Place(NamedTuple):
    root: int
    hops: int
    parent: int | None


def place_of(me: int, nodes: int, heard: Heard) -> Place:
    """The lowest root, by the fewest hops, by the lowest neighbour; not through one that goes
    through this peer. A root that is gone goes too, as its hops grow from peer to peer."""
    best = (me, 0, -1)
    for j, report in heard.items():
        if report is not None and report.parent != me and report.hops + 1 < nodes:
            best = min(best, (report.root, report.hops + 1, j))
    return Place(best[0], best[1], None if best[2] < 0 else best[2])


def missing(me: int, place: Place, heard: Heard, waived: Collection[int] = ()) -> list[int]:
    """Neighbours that are yet to say what the sum here needs. waived: who is not waited for."""
    late = []
    for j, report in heard.items():
        if j in waived or j == place.parent:
            continue
        settled = report is not None and report.root == place.root
        if not settled or (report is not None and report.parent == me and not report.ids):
            late.append(j)
    return late


def report_of(
    stage: str,
    me: int,
    nodes: int,
    own: tuple[int, ...],
    heard: Heard,
    waived: Collection[int] = (),
    all_needed: bool = True,
) -> Report:
    """What a peer knows of the sum now. all_needed: a total takes as many peers as there are."""
    for report in heard.values():
        if report is not None and report.total:
            return report
    place = place_of(me, nodes, heard)
    bare = Report(stage, *place)
    if missing(me, place, heard, waived):
        return bare
    ids, sums = {me}, list(own)
    for report in heard.values():
        if report is None or report.parent != me or report.root != place.root:
            continue
        if not report.ids:
            continue  # it is away
        if ids & set(report.ids) or len(report.sums) != len(own):
            return bare  # the tree is not settled yet
        ids |= set(report.ids)
        sums = [a + b for a, b in zip(sums, report.sums, strict=True)]
    total = place.parent is None and (len(ids) >= nodes or not all_needed)
    if place.parent is None and not total:
        return bare
    return bare._replace(ids=tuple(sorted(ids)), sums=tuple(sums), total=total)


def told_to(other: int, report: Report) -> Report:
    """The numbers are for the parent alone, and the total for all."""
    if report.total or other == report.parent:
        return report
    return report._replace(ids=(), sums=())

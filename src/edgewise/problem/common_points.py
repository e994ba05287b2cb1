"""Whether any point satisfies the constraints of all nodes, who have to agree on one."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from edgewise.problem.penalty_terms import Terms, terms_of

MOST_UNKNOWNS = 5000  # beyond which the question would take longer than the run
MOST_KINDS = 60  # different constraints that linear programmes try to do without
MOST_CUTS = 60  # planes that stand for an l2 ball
TOUCHING = 1e-7  # what a distance counts from, beside the numbers in it


class Conflict(NamedTuple):
    """Constraints that no point satisfies together; without any one of them some point does."""

    nodes: tuple[int, ...]  # the first that has each of them
    penalties: tuple[Any, ...]
    coordinate: int | None = None  # where bounds alone are in the way

    def __str__(self) -> str:
        at = "" if self.coordinate is None else f" (coordinate {self.coordinate})"
        if len(self.nodes) == 1:
            return f"no point satisfies the penalty of node {self.nodes[0]} by itself{at}"
        named = ", ".join(map(str, self.nodes[:-1])) + f" and {self.nodes[-1]}"
        if len(self.nodes) == 2:
            return f"no point satisfies both penalties, those of nodes {named}{at}"
        return f"no point satisfies the penalties of nodes {named} together{at}"


def conflict(penalty: Any, size: int) -> Conflict | None:
    """Nodes whose constraints have no point of so many coordinates in common; None where some point
    is in all of them, or nobody can tell: one's own penalties are not looked into. `penalty`: one,
    or one per node."""
    if size > MOST_UNKNOWNS:
        return None
    each = list(penalty) if isinstance(penalty, list | tuple) else [penalty]
    first: dict[int, int] = {}
    for i, h in enumerate(each):
        first.setdefault(id(h), i)
    sets = [(i, terms_of(each[i])) for i in first.values()]
    sets = [(i, terms) for i, terms in sets if constrains(terms)]
    against, coordinate = apart(sets, size), None
    if against:
        nodes, coordinate = against
    elif len(sets) > MOST_KINDS or not impossible([terms for _, terms in sets], size):
        return None
    else:
        kept = list(sets)
        for one in sets:  # leave out what is not needed for it
            rest = [other for other in kept if other is not one]
            if impossible([terms for _, terms in rest], size):
                kept = rest
        nodes = tuple(i for i, _ in kept)
    return Conflict(nodes, tuple(each[i] for i in nodes), coordinate)


def constrains(terms: Terms) -> bool:
    radii = terms.lower, terms.l1_radius, terms.l2_radius
    return bool(terms.planes) or any(r is not None for r in radii)


def bounds_of(terms: Terms, size: int) -> np.ndarray:
    """(2, n)"""
    ends = (-np.inf, np.inf) if terms.lower is None else (terms.lower, terms.upper)
    return np.stack([np.broadcast_to(np.asarray(e, float), size) for e in ends])


def apart(sets: list[tuple[int, Terms]], size: int) -> tuple[tuple[int, ...], int] | None:
    """Two nodes whose bounds do not meet, and at which coordinate they are furthest apart."""
    if not sets:
        return None
    every = np.stack([bounds_of(terms, size) for _, terms in sets])
    low, high = every[:, 0].max(0), every[:, 1].min(0)
    gap = low - high
    j = int(np.argmax(np.where(np.isnan(gap), -np.inf, gap)))
    if not gap[j] > TOUCHING * (1 + min(abs(low[j]), abs(high[j]))):
        return None
    pair = {sets[int(every[:, 0, j].argmax())][0], sets[int(every[:, 1, j].argmin())][0]}
    return tuple(sorted(pair)), j


def impossible(sets: list[Terms], size: int) -> bool:
    """Whether linear programmes show that nothing satisfies all of these.

    An l2 ball is cut by planes, each where the last point left it: the point of least length that
    they allow is no longer than that of the set, so that beyond the radius is a proof.
    """
    if not sets:
        return False
    from scipy.optimize import linprog  # 0.1 s that only those pay who ask

    ends = [bounds_of(terms, size) for terms in sets]
    low, high = np.max([e[0] for e in ends], 0), np.min([e[1] for e in ends], 0)
    planes = [plane for terms in sets for plane in terms.planes]
    radii = [float(terms.l1_radius) for terms in sets if terms.l1_radius is not None]
    rounds = [float(terms.l2_radius) for terms in sets if terms.l2_radius is not None]
    # x, then |x| from above, then a bound on the length
    n = size
    rows: list[np.ndarray] = []
    equal: list[np.ndarray] = []
    most: list[float] = []
    total: list[float] = []
    for plane in planes:
        a = np.broadcast_to(np.asarray(plane.a, float), n)
        scale = np.abs(a).max()
        row = np.r_[a / scale, np.zeros(n + 1)]
        (equal if plane.equal else rows).append(row)
        (total if plane.equal else most).append(float(plane.b) / scale)
    if radii:
        rows.append(np.r_[np.zeros(n), np.ones(n), 0.0])
        most.append(min(radii))
    eye, none = sp.eye_array(n), sp.csr_array((n, 1))
    size_of = sp.vstack([sp.hstack([s * eye, -eye, none]) for s in (1, -1)])
    limits = np.r_[np.c_[low, high], np.tile([0, np.inf], (n + 1, 1))]
    cost = np.r_[np.zeros(2 * n), 1.0]
    radius = min(rounds) if rounds else np.inf
    program: Any = linprog  # its stubs know no sparse matrices
    for _ in range(MOST_CUTS if rounds else 1):
        found = program(
            cost,
            A_ub=sp.vstack([size_of, sp.csr_array(np.array(rows).reshape(-1, 2 * n + 1))]),
            b_ub=np.r_[np.zeros(2 * n), most],
            A_eq=np.array(equal) if equal else None,
            b_eq=np.array(total) if equal else None,
            bounds=limits,
        )
        if found.status != 0:
            return bool(found.status == 2)
        x = found.x[:n]
        length = float(np.linalg.norm(x))
        if found.fun > radius * (1 + TOUCHING):
            return True
        if length <= radius or length == 0:
            return False
        rows.append(np.r_[x / length, np.zeros(n), -1.0])
        most.append(0.0)
    return False

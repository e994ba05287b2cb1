"""What users said of the edges, `between=`, as rows edge by edge."""

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

import numpy as np
import scipy.sparse as sp

from edgewise.errors import GraphError, ProblemError
from edgewise.graph.graph import Graph
from edgewise.problem.couplings import Rows, Term, dense
from edgewise.problem.prices import Price


def edge_rows(between: Any, graph: Graph, sizes: np.ndarray) -> list[Rows]:
    """The rows of every edge of the graph, A that of its lower end."""
    edges = [(int(i), int(j)) for i, j in graph.edges]
    given, made = edge_terms(between, edges), []
    for e, ((i, j), (turned, terms)) in enumerate(zip(edges, given, strict=True)):
        ends = (j, i) if turned else (i, j)
        for t in terms:
            t.require_edges(len(edges))
        rows = joined([t.rows(e, ends, (int(sizes[ends[0]]), int(sizes[ends[1]]))) for t in terms])
        made.append(rows._replace(A=rows.B, B=rows.A) if turned else rows)
        require_possible(made[-1], (i, j))
    return made


def edge_terms(between: Any, edges: list[tuple[int, int]]) -> list[tuple[bool, list[Term]]]:
    """What each edge carries, and whether its first end is the one with the higher number."""
    if isinstance(between, Mapping):
        return by_edge(between, edges)
    return [(False, listed(between))] * len(edges)


def by_edge(
    between: Mapping[Any, Any], edges: list[tuple[int, int]]
) -> list[tuple[bool, list[Term]]]:
    number = {edge: e for e, edge in enumerate(edges)}
    found: dict[int, tuple[bool, list[Term]]] = {}
    for key, value in between.items():
        try:
            i, j = (index(end) for end in key)
        except (TypeError, ValueError) as wrong:
            raise ProblemError(
                f"between has the key {key!r}: give edges, (i, j), by the numbers of their nodes"
            ) from wrong
        if not isinstance(key, tuple):
            raise ProblemError(
                f"between has the key {key!r}, which has no first end: give edges, (i, j)"
            )
        if i == j:
            raise GraphError(
                f"between ({i}, {j}) couples a node with itself: give the node a penalty or a cost"
            )
        if (min(i, j), max(i, j)) not in number:
            raise GraphError(
                f"between ({i}, {j}): the graph has no such edge: give it one, or leave this out"
            )
        e = number[min(i, j), max(i, j)]
        if e in found:
            raise ProblemError(f"between names the edge ({i}, {j}) twice: put both into one list")
        found[e] = (i > j, listed(value, f"between ({i}, {j})"))
    for e, (i, j) in enumerate(edges):
        if e not in found:
            raise ProblemError(
                f"the graph's edge ({i}, {j}) has no coupling: say what holds between {i} and {j}, "
                "or leave the edge out of the graph"
            )
    return [found[e] for e in range(len(edges))]


def listed(between: Any, name: str = "between") -> list[Term]:
    single = isinstance(between, str | bytes | Mapping | np.ndarray | Term)
    terms = [between] if single or not isinstance(between, Iterable) else list(between)
    for term in terms:
        if not isinstance(term, Term):
            raise ProblemError(
                f"{name} is {term!r}: give Coupling(...), Shared(...), NetworkLasso(...), "
                "NetworkRidge(...) or NetworkHuber(...), a list of them, or a dictionary by edge"
            )
    if not terms:
        raise ProblemError(f"{name} is an empty list: say what holds, or leave the edge out")
    if sum(isinstance(t, Price) and t.grouped for t in terms) > 1:
        raise ProblemError(
            f"{name} has two prices of a length on one edge: give one NetworkLasso or "
            "NetworkHuber, or norm=1"
        )
    return terms


def joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    A, B = (sp.vstack([sp.csr_array(p[k]) for p in parts], format="csr") for k in (0, 1))
    return Rows(A, B, *(np.concatenate([p[k] for p in parts]) for k in range(2, len(Rows._fields))))


def require_possible(rows: Rows, edge: tuple[int, int]) -> None:
    """Refuse rows that no two models satisfy, whatever they are."""
    wanted = (rows.slack == 0) & (rows.high == np.inf)
    if not wanted.any():
        return
    A = np.hstack([dense(rows.A), dense(rows.B)])[wanted]
    c, equal = rows.c[wanted], rows.low[wanted] == -np.inf
    scale = 1e-9 * (1 + np.abs(c).max(initial=0))
    flat = ~A.any(1)
    bad = flat & np.where(equal, np.abs(c) > scale, c < -scale)
    if not bad.any() and equal.sum() > 1:
        nearest = np.linalg.lstsq(A[equal], c[equal], rcond=None)[0]
        missed = np.abs(A[equal] @ nearest - c[equal])
        bad[np.flatnonzero(equal)[missed > 1e3 * scale]] = True
    if bad.any():
        which = ", ".join(map(str, np.flatnonzero(wanted)[bad][:5]))
        raise ProblemError(
            f"edge {edge}: no two models satisfy its rows (row {which}, counted from 0): they "
            "contradict each other, or have no coefficients; change c, or leave rows out"
        )

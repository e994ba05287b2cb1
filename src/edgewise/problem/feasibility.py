"""Whether any point satisfies the couplings: a linear programme that says which edges disagree."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from edgewise.problem.costs import Sized
from edgewise.problem.coupled import CoupledProblem
from edgewise.problem.couplings import dense
from edgewise.problem.penalty_terms import terms_of

MOST_UNKNOWNS = 20_000  # beyond which the question would take longer than the run
MISSED = 1e-7  # by how much a row is missed, beside the numbers in it, that counts


def conflict(problem: CoupledProblem) -> list[tuple[int, int]]:
    """Edges whose couplings no point satisfies together with the nodes' bounds; none where some
    point does, or nobody can tell.

    The least sum of misses, over models within boxes and budgets, other penalties left out. Where
    it is not zero, the rows with a multiplier there are a certificate: by themselves, with the
    bounds, they have no solution either (Farkas).
    """
    sizes = np.asarray(problem.sizes)
    first = np.r_[0, np.cumsum(sizes)]
    if first[-1] > MOST_UNKNOWNS:
        return []
    A, c, equal, names = coupling_rows(problem, first)
    if not len(c):
        return []
    bounds, own, totals = node_bounds(problem, first)
    scale = np.maximum(np.maximum(abs(A).max(1).toarray().ravel(), np.abs(c)), 1e-300)
    A, c = sp.diags_array(1 / scale) @ A, c / scale
    m, many = len(c), A.shape[1]
    # A x - over + under = c, under of "<=" for nothing
    eye = sp.eye_array(m)
    rows = sp.hstack([A, -eye, eye])
    price = np.r_[np.zeros(many), np.ones(m), np.where(equal, 1.0, 0.0)]
    fixed = sp.hstack([own, sp.csr_array((own.shape[0], 2 * m))])
    from scipy.optimize import linprog  # 25 MB, which peers without couplings do without

    program: Any = linprog  # its stubs know no sparse matrices
    found = program(
        price,
        A_eq=sp.vstack([rows, fixed]),
        b_eq=np.r_[c, totals],
        bounds=np.vstack([bounds, np.tile([0, np.inf], (2 * m, 1))]),
    )
    if found.status != 0 or found.fun <= MISSED:
        return []
    pulls = np.abs(found.eqlin.marginals[:m]) > MISSED
    return sorted({names[k] for k in np.flatnonzero(pulls)})


def coupling_rows(
    problem: CoupledProblem, first: np.ndarray
) -> tuple[Any, np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """All rows "=" and "<=", over the models one after the other; which are "="; their edges."""
    blocks, c, equal, names = [], [], [], []
    for (i, j), rows in zip(problem.graph.edges, problem.edge_rows, strict=True):
        hold = np.flatnonzero(np.isinf(rows.high) & (rows.slack == 0))
        if not len(hold):
            continue
        A, B = (sp.coo_array(dense(M)[hold]) for M in (rows.A, rows.B))
        where = np.r_[A.row, B.row], np.r_[first[i] + A.col, first[j] + B.col]
        blocks.append(sp.coo_array((np.r_[A.data, B.data], where), (len(hold), int(first[-1]))))
        c.append(rows.c[hold])
        equal.append(rows.low[hold] < 0)
        names += [(int(i), int(j))] * len(hold)
    if not blocks:
        return sp.csr_array((0, int(first[-1]))), np.zeros(0), np.zeros(0, bool), []
    return sp.vstack(blocks).tocsr(), np.concatenate(c), np.concatenate(equal), names


def node_bounds(problem: CoupledProblem, first: np.ndarray) -> tuple[np.ndarray, Any, np.ndarray]:
    """(N, 2) lower and upper; budgets' rows and totals."""
    bounds = np.tile([-np.inf, np.inf], (int(first[-1]), 1))
    rows, totals = [], []
    given = problem.penalty
    each = given if isinstance(given, list | tuple) else [given] * problem.nodes
    for i, penalty in enumerate(each):
        h = penalty.penalty if isinstance(penalty, Sized) else penalty
        at = slice(first[i], first[i + 1])
        terms = terms_of(h)
        if terms.lower is not None:
            bounds[at, 0], bounds[at, 1] = terms.lower, terms.upper
        for plane in terms.planes:
            if plane.equal:
                row = np.zeros(int(first[-1]))
                row[at] = plane.a
                rows.append(row)
                totals.append(float(plane.b))
    own = sp.csr_array(np.array(rows)) if rows else sp.csr_array((0, int(first[-1])))
    return bounds, own, np.array(totals)

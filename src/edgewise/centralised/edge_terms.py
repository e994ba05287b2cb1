"""What all edges carry, as one function phi(M x - c) of all models: for a solver that sees all.

In NumPy, and apart from the arrays that nodes work with, so that one is a check of the other.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from edgewise.problem.coupled import CoupledProblem


class EdgeTerms:
    """All edges' rows one below the other, over the models one after the other."""

    def __init__(self, problem: CoupledProblem) -> None:
        first = np.r_[0, np.cumsum(problem.sizes)]
        self.names = [(int(i), int(j)) for i, j in problem.graph.edges]
        rows = problem.edge_rows
        self.ends = np.r_[0, np.cumsum([len(r.c) for r in rows])].astype(int)  # of edges' rows
        shape = (int(self.ends[-1]), int(first[-1]))
        where, data = [np.zeros((2, 0), int)], [np.zeros(0)]
        for (i, j), r, top in zip(self.names, rows, self.ends, strict=False):
            for node, given in ((i, r.A), (j, r.B)):
                A = sp.coo_array(given)
                where.append(np.stack([top + A.row, first[node] + A.col]))
                data.append(A.data)
        self.M = sp.csr_array((np.concatenate(data), tuple(np.concatenate(where, 1))), shape)
        fields = ("c", "low", "high", "slack")
        self.c, self.low, self.high, self.slack = (
            np.concatenate([np.zeros(0), *(getattr(r, field) for r in rows)]) for field in fields
        )
        edge = np.repeat(np.arange(len(rows)), np.diff(self.ends))
        grouped = np.concatenate([np.zeros(0, bool), *(r.grouped for r in rows)])
        self.group = np.where(grouped, edge, -1)  # rows of one length have one number
        self.holds = (self.slack == 0) & np.isinf(self.high)  # of a coupling; others are priced

    def weights(self) -> np.ndarray:
        """(R,) 1 / |row|^2: one for rows of one length, whose sum of squares it would change."""
        square = (self.M**2).sum(1)
        for g in np.unique(self.group[self.group >= 0]):
            square[self.group == g] = square[self.group == g].max()
        return 1 / np.where(square > 0, square, 1)

    def differences(self, x: np.ndarray) -> np.ndarray:
        made: np.ndarray = self.M @ x - self.c
        return made

    def nearest(self, m: np.ndarray, s: np.ndarray) -> np.ndarray:
        """argmin_l phi*(l) + |l - m|^2 / 2s: the duals' prox."""
        drawn = m / (1 + s * self.slack)
        free = np.clip(drawn, self.low, self.high)
        length = self._lengths(drawn)
        within = np.where(length > self.high, self.high / np.where(length > 0, length, 1), 1)
        return np.where(self.group >= 0, within * drawn, free)

    def apart(self, duals: np.ndarray, d: np.ndarray) -> np.ndarray:
        """duals - nearest(duals + d, 1), zero where they fit together. Of couplings without the
        sum, in which large duals would swallow d."""
        plain = (self.group < 0) & (self.slack == 0)
        other = duals - self.nearest(duals + d, np.ones(len(d)))
        return np.where(plain, np.clip(-d, duals - self.high, duals - self.low), other)

    def bend(self, m: np.ndarray, s: np.ndarray) -> Any:
        """M' J M, J the Jacobian of nearest(l + s d, s) in d at m = l + s d. On a sphere J has no
        part along m."""
        drawn = m / (1 + s * self.slack)
        length = self._lengths(drawn)
        on_ball = (self.group >= 0) & (length > self.high)
        inner = (drawn > self.low) & (drawn < self.high)
        share = np.where(self.group >= 0, 1.0, np.where(inner, 1.0, 0.0))
        share[on_ball] = self.high[on_ball] / length[on_ball]
        stiff = share * s / (1 + s * self.slack)
        made = self.M.T @ (sp.diags_array(stiff) @ self.M)
        at = np.flatnonzero(on_ball)
        if len(at):
            along = drawn[at] / length[at] * np.sqrt(stiff[at])
            columns = np.unique(self.group[at], return_inverse=True)[1]
            shape = (len(drawn), int(columns.max()) + 1)
            U = self.M.T @ sp.csr_array((along, (at, columns)), shape)
            made = made - U @ U.T
        return made

    def price(self, d: np.ndarray) -> float:
        """phi(d) = max_l <l, d> - phi*(l) of what is priced; couplings cost nothing."""
        priced = ~self.holds & (self.group < 0)
        curved = np.where(self.slack > 0, self.slack, 1)
        wanted = np.where(self.slack > 0, d / curved, np.where(d > 0, self.high, self.low))
        dual = np.clip(wanted, self.low, self.high)[priced]
        total = float(dual @ d[priced] - 0.5 * self.slack[priced] @ dual**2)
        for g in np.unique(self.group[self.group >= 0]):
            k = np.flatnonzero(self.group == g)
            length, most, slack = np.linalg.norm(d[k]), self.high[k[0]], self.slack[k[0]]
            best = min(length / slack, most) if slack > 0 else most
            total += float(best * length - 0.5 * slack * best**2)
        return total

    def missed(self, d: np.ndarray) -> np.ndarray:
        """(R,) by how much couplings are not met."""
        return np.where(self.holds, np.where(self.low < 0, d, np.maximum(d, 0)), 0)

    def by_edge(self, duals: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
        cuts = zip(self.names, self.ends, self.ends[1:], strict=False)
        return {name: duals[start:end] for name, start, end in cuts}

    def _lengths(self, m: np.ndarray) -> np.ndarray:
        """(R,) the length of all rows that a row is grouped with."""
        grouped = self.group >= 0
        square = np.bincount(self.group[grouped], m[grouped] ** 2, max(len(self.names), 1))
        return np.asarray(np.where(grouped, np.sqrt(square)[self.group], 0))

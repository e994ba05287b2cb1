"""The couplings of a block's edges as arrays: what each node has to do with each of its edges."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array, lax

from edgewise.backend.pytree import pytree
from edgewise.errors import ProblemError
from edgewise.problem.couplings import Rows, dense

MOST_DENSE = 20_000_000  # numbers of all edges' matrices together


@pytree("kind")
class EdgeEnds:
    """Every array leads with directed edges, and is of the end that owns the edge. Edges with fewer
    rows than others end in rows of zeros, which nothing holds: their duals are zero.

    `kind` says how A is kept: "dense", (e, m, n); or "identity", (e, m), a number per row k, of
    coordinate k.
    """

    A: Any
    half: Any  # (e, m) c / 2
    sign: Any  # (e, 1) 1 at the lower end of an edge, -1 at the other
    low: Any  # (e, m) the least that a dual may be
    high: Any  # (e, m) the most; of rows that are grouped, all together
    slack: Any  # (e, m) a dual costs slack/2 times its square
    grouped: Any  # (e, m)
    real: Any  # (e, m) which rows there are: edges with fewer than others end in none
    kind: str

    @property
    def width(self) -> int:
        """Rows of an edge."""
        return int(self.half.shape[1])

    def apply(self, X: Array, owner: Array) -> Array:
        """(e, m) A_ij x_i - c_ij / 2."""
        own = X[owner]
        if self.kind == "dense":
            made = jnp.einsum("emn,en->em", self.A, own, precision=lax.Precision.HIGHEST)
        else:
            made = self.A * own[:, : self.width]
        return made - self.half

    def adjoint(self, Y: Array, links: Any, X: Array) -> Array:
        """(v, n) sum_j A_ij' y_ij; X is as long as what is wanted."""
        if self.kind == "dense":
            parts = jnp.einsum("emn,em->en", self.A, Y, precision=lax.Precision.HIGHEST)
            return links.gather(parts, len(X))
        short = links.gather(self.A * Y, len(X))
        return jnp.pad(short, ((0, 0), (0, X.shape[1] - self.width)))

    def bend(self, rho: Array, links: Any, X: Array) -> Array:
        """sum_j A_ij' rho_ij A_ij: (v, n) where it is a diagonal, (v, n, n) where it is not."""
        if self.kind == "identity":
            return self.adjoint(rho * self.A, links, X)
        n = X.shape[1]
        each = jnp.einsum("emi,em,emj->eij", self.A, rho, self.A, precision=lax.Precision.HIGHEST)
        return links.gather(each.reshape(len(each), n * n), len(X)).reshape(-1, n, n)

    def lengths(self, d: Array) -> Array:
        """(e, m) of each row, or of all that it is grouped with."""
        size = jnp.sqrt(jnp.where(self.grouped, d**2, 0).sum(1, keepdims=True))
        return jnp.where(self.grouped, size, jnp.abs(d))

    def nearest_dual(self, mean: Array, rho: Array) -> Array:
        """(e, m) argmin_l phi*(l) + |l - mean|^2 / rho: the prox of phi* with step rho / 2."""
        drawn = mean / (1 + 0.5 * rho * self.slack)
        size = self.lengths(drawn)
        within = jnp.where(size > self.high, self.high / jnp.where(size > 0, size, 1), 1)
        return jnp.where(self.grouped, within * drawn, jnp.clip(drawn, self.low, self.high))

    def price(self, d: Array) -> Array:
        """(e,) phi of differences d (e, m): of couplings nothing, which they violate or do not."""
        bounded = jnp.isfinite(self.high) & (self.high > 0)
        curved = self.slack > 0
        priced = bounded | curved
        share = jnp.where(self.grouped.any(1, keepdims=True), self.grouped.sum(1, keepdims=True), 1)
        length = self.lengths(d)
        most = jnp.where(bounded, self.high, jnp.inf)
        dual = jnp.minimum(jnp.where(curved, length / jnp.where(curved, self.slack, 1), most), most)
        dual = jnp.where(priced, dual, 0)
        each = dual * length - 0.5 * self.slack * dual**2  # phi(d) = max_l <l, d> - phi*(l)
        return jnp.where(self.grouped, each / share, each).sum(1)


class End(NamedTuple):
    """One end of an edge, with all that it needs to know of it."""

    A: Any  # (m, n_i) of this end, dense or sparse
    rows: Rows  # whose matrices are not looked at: the other end's may be unknown
    sign: float  # 1 at the lower end of an edge, -1 at the other


def edge_ends(ends: list[End], size: int) -> EdgeEnds:
    """Of directed edges in this order; models of that many unknowns. NumPy arrays."""
    m = max((len(end.rows.c) for end in ends), default=1)

    def of_rows(field: str, fill: float = 0.0) -> np.ndarray:
        out = np.full((len(ends), m), fill)
        for k, end in enumerate(ends):
            out[k, : len(end.rows.c)] = getattr(end.rows, field)
        return out

    kind, A = stored([end.A for end in ends], m, size)
    return EdgeEnds(
        A,
        of_rows("c") / 2,
        np.array([end.sign for end in ends]).reshape(-1, 1),
        of_rows("low"),
        of_rows("high"),
        of_rows("slack"),
        of_rows("grouped") > 0,
        np.arange(m) < np.array([len(end.rows.c) for end in ends], int).reshape(-1, 1),
        kind,
    )


def stored(matrices: list[Any], m: int, n: int) -> tuple[str, np.ndarray]:
    """How to keep the matrices, (e, ...) by directed edge."""
    flat = [sp.coo_array(A) for A in matrices]
    if m <= n and all((A.row == A.col).all() for A in flat):
        diagonal = np.zeros((len(flat), m))
        for k, A in enumerate(flat):
            diagonal[k, A.row] = A.data
        return "identity", diagonal
    if len(flat) * m * n <= MOST_DENSE:
        full = np.zeros((len(flat), m, n))
        for k, A in enumerate(matrices):
            full[k, : A.shape[0], : A.shape[1]] = dense(A)
        return "dense", full
    raise ProblemError(
        f"the couplings' matrices would take {len(flat) * m * n:,} numbers ({MOST_DENSE:,} at "
        "most): give edges fewer rows, or couple coordinates alone, with Shared"
    )

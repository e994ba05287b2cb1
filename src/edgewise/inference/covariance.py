"""Covariances of an estimate, from sums over all nodes.

With A the Hessian of the total loss, I what it is on average over labels, R that of a ridge, B the
samples' outer products, C those of the nodes, and phi the scale:

    model      phi (I + R)^-1 I (I + R)^-1
    HC0        (A + R)^-1 B (A + R)^-1         HC1    N / (N - d) of that
    cluster    V/(V - 1) (N - 1)/(N - d) (A + R)^-1 C (A + R)^-1

B and C are about their means, which a ridge, or a fit that stopped early, leaves off zero.
"""

from typing import NamedTuple

import numpy as np

from edgewise.errors import ProblemError, UnknownName
from edgewise.inference.sums import Sums

AUTO = "auto"
MODEL, ROBUST, ROBUST_FEW, CLUSTER = "model", "HC0", "HC1", "cluster"
KINDS = {
    MODEL: "model-based",
    ROBUST: "sandwich (HC0)",
    ROBUST_FEW: "sandwich (HC1)",
    CLUSTER: "clusters are nodes",
}
SYNONYMS = {"robust": ROBUST, "sandwich": ROBUST, "nonrobust": MODEL}
ALIKE = 1e-9
FLAT = 1e-11  # of the curvature of columns of one length: below it they repeat each other


class Totals(NamedTuple):
    """Sums in units of one case, with what a ridge adds."""

    hessian: np.ndarray  # A
    expected: np.ndarray  # I
    meat: np.ndarray  # B
    between: np.ndarray  # C
    gradient: np.ndarray  # of the total loss, without the ridge
    ridge: np.ndarray  # (d,) the diagonal of R
    alike: bool  # whether every case counts alike: the fit is the likelihood's
    cases: float
    nodes: int

    @classmethod
    def of(cls, sums: Sums, ridge: float, free: int) -> "Totals":
        d, number = len(sums.gradient), sums.number
        unit = number("weight") / number("counted")
        held = np.arange(d) < d - free
        even = number("counted") ** 2 / number("weight")
        g, V, N = sums.gradient * unit, number("nodes"), number("cases")
        return cls(
            sums.hessian * unit,
            sums.expected * unit,
            sums.meat * unit**2 - np.outer(g, g) / N,
            sums.between * unit**2 - np.outer(g, g) / V,
            g,
            held * (number("weight") * ridge + unit * number("quadratic")),
            bool(abs(number("proportion") - even) <= ALIKE * even),
            N,
            round(V),
        )

    @property
    def size(self) -> int:
        return len(self.gradient)

    @property
    def penalised(self) -> bool:
        return bool(self.ridge.any())

    def slope(self, x: np.ndarray) -> np.ndarray:
        """(d,) of the whole objective, which is zero at its optimum."""
        return self.gradient + self.ridge * x

    def without_ridge(self) -> "Totals":
        return self._replace(ridge=np.zeros_like(self.ridge))


def known_kind(kind: str) -> str:
    """By its own name; raises UnknownName."""
    kind = SYNONYMS.get(kind, kind)
    if kind not in (AUTO, *KINDS):
        raise UnknownName("covariance", kind, [AUTO, *KINDS, *SYNONYMS])
    return kind


def chosen(kind: str, totals: Totals, likelihood: bool, apart: bool) -> str:
    """A kind by its name, if it is to be had.

    likelihood: whether the loss is one's; apart: whether samples' gradients are."""
    kind = known_kind(kind)
    if kind == AUTO:
        kind = MODEL if likelihood and totals.alike else ROBUST if apart else CLUSTER
    if kind == MODEL and not likelihood:
        raise ProblemError(
            'the loss is no likelihood, so there is no model-based covariance: take "HC0" or '
            '"cluster"'
        )
    if kind == MODEL and not totals.alike:
        raise ProblemError(
            "model-based standard errors are of a fit where every sample counts alike, and here "
            'nodes do: fit with weights="sample", or take covariance="HC0" or "cluster"'
        )
    if kind in (ROBUST, ROBUST_FEW) and not apart:
        raise ProblemError(
            f"{kind} takes gradients of single samples, which a likelihood of whole nodes does "
            'not have: take "model", or "cluster" for nodes that differ'
        )
    if kind == CLUSTER and totals.nodes < 2:
        raise ProblemError("one node is one cluster, whose spread nobody knows: take another")
    if kind in (ROBUST_FEW, CLUSTER) and totals.cases <= totals.size:
        raise few(totals)
    return kind


def few(totals: Totals) -> ProblemError:
    return ProblemError(
        f"{totals.cases:g} samples are no more than the {totals.size} unknowns: nothing is left to "
        "tell a spread by; fit fewer columns"
    )


def covariance(totals: Totals, kind: str, phi: float) -> np.ndarray:
    """(d, d) in the units of the fit."""
    H = totals.expected if kind == MODEL else totals.hessian
    middle = {MODEL: H * phi, CLUSTER: totals.between}.get(kind, totals.meat)
    bread = inverse(H + np.diag(totals.ridge))
    N, V, d = totals.cases, totals.nodes, totals.size
    few = 1.0
    if kind == ROBUST_FEW:
        few = N / (N - d)
    elif kind == CLUSTER:
        few = V / (V - 1) * (N - 1) / (N - d)
    made = few * bread @ middle @ bread
    return (made + made.T) / 2


def effective_size(totals: Totals) -> float:
    """How many unknowns there are, less what a ridge takes of them: tr (I + R)^-1 I."""
    if not totals.penalised:
        return float(totals.size)
    return float(np.trace(inverse(totals.expected + np.diag(totals.ridge)) @ totals.expected))


def inverse(M: np.ndarray) -> np.ndarray:
    """Of a positive definite matrix, its columns brought to one length first."""
    made, flat = scaled_inverse(M)
    if flat is not None:
        raise Flat(flat)
    return made


def scaled_inverse(M: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The inverse, or a direction along which there is none."""
    size = np.sqrt(np.diag(M))
    if not (size > 0).all():
        return M, np.where(size > 0, 0.0, 1.0)
    values, vectors = np.linalg.eigh(M / np.outer(size, size))
    if values[0] <= FLAT * values[-1]:
        return M, np.asarray(vectors[:, 0] / size)
    half = vectors / np.sqrt(values) / size[:, None]
    return half @ half.T, None


class Flat(ProblemError):
    """Along some direction the data say nothing."""

    def __init__(self, along: np.ndarray) -> None:
        self.along = along
        super().__init__("the data say nothing along some direction")

    def named(self, names: list[str]) -> ProblemError:
        share = np.abs(self.along) / np.abs(self.along).max()
        which = [n for n, a in zip(names, share, strict=True) if a > 1e-3]
        told = ", ".join(which[:6]) + (" and others" if len(which) > 6 else "")
        return ProblemError(
            f"there are no standard errors, as the data do not tell {told} apart: leave a column "
            "out that others add up to, or that is constant, and fit again"
        )

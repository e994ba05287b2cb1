"""Prices for a difference between neighbours, phi(x_i - x_j), instead of a ban on it."""

from numbers import Integral
from typing import Any

import numpy as np

from edgewise.errors import ProblemError
from edgewise.problem.costs import numbers
from edgewise.problem.couplings import Rows, Shared, Term, coordinates_of, listing


class Price(Term):
    """phi(x_i - x_j), a price for a difference instead of a ban on it."""

    grouped = True

    def __init__(self, weight: Any, on: Any = None) -> None:
        owner = type(self).__name__
        self.weight = positive(owner, "weight", weight)
        self.on = slice(None) if on is None else coordinates_of(f"{owner}: on", on)

    def __repr__(self) -> str:
        given = [f"{self.weight:g}" if self.weight.ndim == 0 else f"{self.weight.size} weights"]
        given += [f"delta={self.delta:g}"] if hasattr(self, "delta") else []
        everywhere = isinstance(self.on, slice) and self.on == slice(None)
        given += [] if everywhere else [f"on={listing(self.on)}"]
        return f"{type(self).__name__}({', '.join(given)})"

    def dual(self, weight: float) -> tuple[float, float]:
        """How large a dual may be, and the slack of its square."""
        raise NotImplementedError

    def require_edges(self, edges: int) -> None:
        count = np.size(self.weight)
        if count not in (1, edges):
            raise ProblemError(
                f"{type(self).__name__} has {count} weights, and the graph {edges} edges: give one "
                "weight, or one per edge, in the order of graph.edges"
            )

    def rows(self, edge: int, name: tuple[int, int], sizes: tuple[int, int]) -> Rows:
        A, B, c, _, _, _, _ = Shared(self.on).rows(edge, name, sizes)
        weights = np.ravel(self.weight)
        most, slack = self.dual(float(weights[edge if len(weights) > 1 else 0]))
        ones = np.ones(len(c))
        return Rows(A, B, c, -most * ones, most * ones, slack * ones, self.grouped * ones > 0)


class NetworkLasso(Price):
    """weight |x_i - x_j|: neighbours whose data allow it have one model, exactly. norm=2, the
    length of the difference, makes clusters of nodes; norm=1 takes coordinate by coordinate.

    Hallac, Leskovec, Boyd: "Network Lasso: Clustering and Optimization in Large Graphs", 2015.
    """

    def __init__(self, weight: Any, on: Any = None, norm: int = 2) -> None:
        super().__init__(weight, on)
        if isinstance(norm, bool) or not isinstance(norm, Integral) or norm not in (1, 2):
            raise ProblemError(f"NetworkLasso: norm is {norm!r}: give 1 or 2")
        self.grouped = norm == 2

    def dual(self, weight: float) -> tuple[float, float]:
        return weight, 0.0


class NetworkRidge(Price):
    """weight |x_i - x_j|^2: models that vary smoothly over the graph, none equal."""

    grouped = False

    def dual(self, weight: float) -> tuple[float, float]:
        return np.inf, 1 / (2 * weight)


class NetworkHuber(Price):
    """weight times |d|^2 up to a length delta, 2 delta |d| - delta^2 beyond: smooth for what is
    near, and no more than linear for what is not."""

    def __init__(self, weight: Any, delta: float, on: Any = None) -> None:
        super().__init__(weight, on)
        width = positive("NetworkHuber", "delta", delta)
        if width.ndim:
            raise ProblemError(f"NetworkHuber: delta is {delta!r}: give one positive number")
        self.delta = float(width)

    def dual(self, weight: float) -> tuple[float, float]:
        return 2 * weight * self.delta, 1 / (2 * weight)


def positive(owner: str, name: str, value: Any) -> np.ndarray:
    made = numbers(f"{owner}: {name}", value)
    if made.ndim > 1 or not made.size or (made <= 0).any():
        free = name == "weight" and made.size and (made >= 0).all()
        instead = ", and leave edges without a price out of the graph" if free else ""
        raise ProblemError(f"{owner}: {name} is {value!r}: give a positive number{instead}")
    return made

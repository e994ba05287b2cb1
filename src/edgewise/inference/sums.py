"""What standard errors are made of, of one node or added up over all, and as one vector."""

from typing import NamedTuple

import numpy as np

NUMBERS = (
    "nodes",
    "samples",  # rows of positive weight
    "weight",  # of all samples together
    "cases",  # the same where weights are cases, else `samples`
    "events",  # of a survival model
    "counted",  # sum of e
    "proportion",  # sum of e^2 / w: counted^2 / weight where units of weight count alike
    "quadratic",  # of the node's penalty
    "response",  # sum of w y, on the scale of the mean
    "pearson",
    "deviance",
    "objective",
)


class Sums(NamedTuple):
    """Of one node, or of all."""

    hessian: np.ndarray  # (d, d)
    expected: np.ndarray  # (d, d)
    meat: np.ndarray  # (d, d)
    between: np.ndarray  # (d, d)
    gradient: np.ndarray  # (d,)
    numbers: np.ndarray

    def number(self, name: str) -> float:
        return float(self.numbers[NUMBERS.index(name)])

    def packed(self) -> np.ndarray:
        """Of symmetric matrices one half."""
        upper = np.triu_indices(len(self.gradient))
        return np.concatenate(
            [
                *(M[upper] for M in (self.hessian, self.expected, self.meat, self.between)),
                self.gradient,
                self.numbers,
            ]
        )

    @classmethod
    def unpacked(cls, flat: np.ndarray, d: int) -> "Sums":
        half = d * (d + 1) // 2
        *halves, gradient, numbers = np.split(flat, np.cumsum([half] * 4 + [d]))
        H, E, M, C = (whole(each, d) for each in halves)
        return cls(H, E, M, C, gradient, numbers)


def length(d: int) -> int:
    """Of a packed sum."""
    return 2 * d * (d + 1) + d + len(NUMBERS)


def whole(half: np.ndarray, d: int) -> np.ndarray:
    M = np.zeros((d, d))
    M[np.triu_indices(d)] = half
    return M + np.triu(M, 1).T

"""A peer's sums, one after the other, which stand for a graph where sums are taken."""

from collections.abc import Callable

import numpy as np


class Sums:
    """What `edgewise.sum_over`, `kaplan_meier`, `log_rank` and `metrics` take for a graph at a
    peer: every peer makes the same calls in the same order, each with its own data, a list of one.
    """

    def __init__(
        self, add: Callable[[np.ndarray, str], np.ndarray], least_count: int, name: str
    ) -> None:
        self.add, self.least_count, self.name, self.taken = add, least_count, name, 0

    def add_up(self, values: np.ndarray) -> np.ndarray:
        self.taken += 1
        return self.add(values, f"{self.name} {self.taken}")

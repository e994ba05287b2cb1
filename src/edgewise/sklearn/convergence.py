"""Whether a fit has arrived, and what its user can do where it has not."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgewise.running.result import Result
from edgewise.sklearn.solver_problem import SharedProblem, sample_gradient

LOOKS = 40  # rows of a trace without a smaller residual
TIGHT = 1e-13  # of how far nodes were apart: they then agree to rounding
ROUNDING = 1000 * np.finfo(np.float64).eps  # of models, times the curvature


class Stalled:
    """A callback that ends a run which float64 takes no further: for as many rows nodes have agreed
    to rounding, and the residual has not fallen to half. With samples far out, and a narrow bend,
    rounding leaves more of it than `tol` asks for."""

    def __init__(self) -> None:
        self.apart, self.best, self.waited, self.stopped = 0.0, np.inf, 0, False

    def __call__(self, row: Mapping[str, float]) -> bool:
        self.apart = max(self.apart, row["consensus"])
        tight = 0 < row["consensus"] <= TIGHT * self.apart
        fallen = row["residual"] < self.best / 2
        self.best = row["residual"] if fallen else self.best
        self.waited = self.waited + 1 if tight and not fallen else 0
        self.stopped = self.waited >= LOOKS
        return self.stopped

    def at_rounding(self, problem: SharedProblem, result: Result) -> bool:
        """Whether the residual is what rounding models leaves."""
        least = ROUNDING * np.abs(result.X).max() * problem.smoothness.sample.sum()
        return self.stopped and float(result.trace["residual"][-1]) <= least


def told(model: Any, problem: SharedProblem, result: Result) -> str:
    """A sentence about a fit of an estimator that has not arrived."""
    kind, rounds = type(model).__name__, int(result.trace["rounds"][-1])
    if result.message.startswith("diverged"):
        named = model.method if isinstance(model.method, str) else type(model.method).__name__
        ran = result.method_note.partition(",")[0] or named
        return (
            f"{kind}: method={ran!r} diverged by round {rounds}, and coef_ is of no use: give "
            "another method, as 'newton-pd', 'pdmm' or 'lt-saga-pd'"
        )
    wanted = model.tol * problem.nodes * sample_gradient(problem)
    times = float(result.trace["residual"][-1]) / wanted
    ran = f"ran all {rounds} rounds" if rounds >= model.max_iter else f"ended after {rounds} rounds"
    return (
        f"{kind}: {ran}, and the optimality residual is {times:.1e} times what tol={model.tol:g} "
        f"asks for: {model.remedies}"
    )

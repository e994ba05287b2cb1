"""Whether a fit has arrived, and what its user can do where it has not."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgewise.running.ending import MOST_NUMBERS
from edgewise.running.result import Result
from edgewise.running.separation import growth
from edgewise.sklearn.solver_problem import ScaledRidge, SharedProblem, sample_gradient

LOOKS = 40  # rows of a trace without a smaller residual
TIGHT = 1e-13  # of how far nodes were apart: they then agree to rounding
FAR_OFF = 1e3  # times what tol asks for, from which on it is no matter of tol
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
    ran = f"ran all {rounds} rounds" if rounds >= model.max_iter else f"ended after {rounds} rounds"
    if found := endless(model, problem, result):
        return f"{kind}: {ran}; {found}"
    named = model.method if isinstance(model.method, str) else type(model.method).__name__
    if result.message.startswith("diverged"):
        name = result.method_note.partition(",")[0].removeprefix("auto: ") or named
        others = [repr(m) for m in ("newton-pd", "pdmm", "lt-saga-pd") if m != name]
        return (
            f"{kind}: method={name!r} diverged by round {rounds}, and coef_ is of no use: give "
            f"another method, as {', '.join(others[:-1])} or {others[-1]}"
        )
    wanted = model.tol * problem.nodes * sample_gradient(problem)
    times = float(result.trace["residual"][-1]) / wanted
    auto = "" if named == "auto" else "give method='auto', or "
    raised = [name for name in model.raised if name != "tol" or times < FAR_OFF]
    what = ", ".join(raised[:-1]) + " or " * (len(raised) > 1) + raised[-1]
    return (
        f"{kind}: {ran}, and the optimality residual is {times:.1e} times what tol={model.tol:g} "
        f"asks for: {auto}raise {what}{model.besides}"
    )


def endless(model: Any, problem: SharedProblem, result: Result) -> str:
    """Why there is no best model, and what to do, where that can be seen."""
    X, penalty = problem.shards.X, problem.penalty
    none = isinstance(penalty, ScaledRidge) and not np.any(penalty.ridge)  # C=inf
    if not model._classifies or X.size > MOST_NUMBERS or (problem.penalised and not none):
        return ""
    names = getattr(model, "feature_names_in_", None)
    found = growth(
        problem, X, result.x, lambda j: f"column {j}" if names is None else f"column {names[j]!r}"
    )
    if not found.cause:
        return ""
    return f"{found.cause}: " + "leave it out, or " * found.few + model.smaller

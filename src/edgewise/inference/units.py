"""Coefficients by name, in the units of the data, of a model in those of the fit."""

import numpy as np

from edgewise.problem.problem import Problem
from edgewise.problem.whole_nodes import is_whole

INTERCEPT = "Intercept"


class Units:
    """coef = T x, the intercept first where there is one."""

    def __init__(self, problem: Problem) -> None:
        self.free, d = problem.free, problem.size
        p = d - self.free
        names = names_of(problem, p)
        T = np.eye(d)
        scaling = problem.scaling
        linear = problem.loss.linear or is_whole(problem.loss)
        if scaling is not None and not scaling.unit_rows and linear:
            keep = kept(problem)
            scale, centre = scaling.scale[keep], scaling.centre[keep]
            T[:p, :p] = np.diag(1 / scale)
            if self.free:
                T[p, :p] = -centre / scale
        if self.free:
            T = np.roll(T, 1, axis=0)
        self.T = T
        self.names = ((INTERCEPT,) if self.free else ()) + names
        self.fitted_names = [*names, INTERCEPT] if self.free else list(names)

    def coef(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.T @ x)

    def covariance(self, C: np.ndarray) -> np.ndarray:
        return np.asarray(self.T @ C @ self.T.T)


def kept(problem: Problem) -> np.ndarray:
    """(p,) the columns that have coefficients: the time of entry has none."""
    columns = np.arange(problem.held.features)
    entry = getattr(problem.loss, "entry", None)
    return columns if entry is None else np.delete(columns, entry)


def names_of(problem: Problem, p: int) -> tuple[str, ...]:
    known = problem.columns
    if known is None or all(name.isdigit() for name in known):
        known = tuple(f"x{j}" for j in range(problem.held.features))
    if not (problem.loss.linear or is_whole(problem.loss)) and p != len(known):
        return tuple(f"x{j}" for j in range(p))
    return tuple(known[j] for j in kept(problem))

"""Coordinates in which columns are centred and of like curvature: a solver's own units."""

from typing import Any

import numpy as np

from edgewise.backend.threads import over
from edgewise.centralised.smooth_part import Smooth
from edgewise.problem.smoothness import POWER_ITERATIONS, SAFETY

NEARLY_CONSTANT = 1e-8  # variance over mean square below which a column has none to speak of


class ScaledSmooth:
    """F of `Smooth` as a function of u, where x_j = u_j / scale_j for every weight and each
    intercept is b = u_b / scale_b - <center, w>: one that meets centred columns. The intercept has
    no penalty, so what penalties and constraints mean stays what it was.

    scale_j^2 bounds the curvature of F along column j. With `each` columns have scales of their
    own, which a penalty must allow; else they share one, and `units` make up for it where sizes of
    gradients are measured.
    """

    def __init__(self, smooth: Smooth, each: bool, near: np.ndarray | None = None) -> None:
        """near: where curvature is taken of a loss that has no bound on it; by itself at zero, or
        where labels are their means."""
        self.smooth = smooth
        problem, loss = smooth.problem, smooth.problem.loss
        self.outputs, self.free, self.size = loss.outputs, problem.free, problem.size
        self.weights = problem.size - problem.free  # those of the columns, of all outputs
        p = self.weights // self.outputs
        self.center = np.zeros(p)
        self.scale = np.ones(problem.size)  # (n,)
        self.units = np.ones(problem.size)  # (n,)
        self.steepest = self.lipschitz_of_plain = np.nan
        self.rounding = 0.0  # about what it leaves of a gradient
        if not loss.linear:
            self.lipschitz_of_plain = self.steepest = float(problem.smoothness.mean.mean())
            return
        most, self.weight = loss.curvature(), smooth.weight  # of each sample's curvature
        if not np.isfinite(most):
            bends = bends_at_start(smooth) if near is None else smooth.bends(near)
            most, self.weight = 1.0, smooth.weight * bends
        total, mean, square = column_moments(smooth, self.weight)
        spread = square
        if problem.intercept:
            self.center = mean
            spread = np.maximum(square - mean**2, NEARLY_CONSTANT * square)
        ridge, bend = float(loss.ridge), most * total
        columns = np.sqrt(bend * spread + ridge)
        columns = np.where(columns > 0, columns, 1.0)
        own = columns if each else np.full(p, np.sqrt((columns**2).mean()))
        self.units[: self.weights] = np.tile(own / columns, self.outputs)
        self.scale = np.append(np.tile(own, self.outputs), np.full(self.free, np.sqrt(bend) or 1.0))
        self.lipschitz_of_plain = bend * (square.sum() + bool(self.free)) + ridge + 1e-300
        terms = np.sqrt(smooth.mean_square_slope() * (square / columns**2).sum())
        self.rounding = float(np.finfo(float).eps * terms)
        self.steepest = most * self._steepest() + ridge / own.min() ** 2 + 1e-300

    def plain(self, u: np.ndarray) -> np.ndarray:
        """The x of u."""
        return self.uncentred(u / self.scale)

    def units_of(self, x: np.ndarray) -> np.ndarray:
        """The u of x."""
        x = x.copy()
        if self.free:
            W = x[: self.weights].reshape(self.outputs, -1)
            x[self.weights :] += W @ self.center
        return x * self.scale

    def uncentred(self, x: np.ndarray) -> np.ndarray:
        """x (..., n), its intercepts for centred columns as those for columns as they are."""
        if self.free:
            W = x[..., : self.weights].reshape(*x.shape[:-1], self.outputs, -1)
            x[..., self.weights :] -= W @ self.center
        return x

    def pulled(self, g: np.ndarray) -> np.ndarray:
        """The gradient in u, of one in x."""
        if self.free:
            g = g.copy()
            g[: self.weights] -= np.outer(g[-self.free :], self.center).ravel()
        return g / self.scale

    def gradient(self, u: np.ndarray) -> np.ndarray:
        return self.pulled(self.smooth.gradient(self.plain(u)))

    def value(self, u: np.ndarray) -> float:
        return self.smooth.value(self.plain(u))

    def hessian(self, u: np.ndarray) -> np.ndarray | None:
        H = self.smooth.hessian(self.plain(u), self.center if self.free else None)
        return None if H is None else H / self.scale / self.scale[:, None]

    def _steepest(self) -> float:
        """The gradient of F without its ridge, for a loss of curvature 1: by power iteration over
        all samples."""
        smooth, p = self.smooth, len(self.center)
        scale = np.append(self.scale[:p], self.scale[-1])
        v = np.random.default_rng(0).standard_normal(p + 1)
        v[-1] *= bool(self.free)
        top = 0.0
        for _ in range(POWER_ITERATIONS):
            v = v / (np.linalg.norm(v) or 1.0) / scale
            shift = v[-1] - v[:-1] @ self.center

            def part(c: slice, v: np.ndarray = v, shift: float = shift) -> np.ndarray:
                X = smooth._rows(c)
                z = (X @ v[:-1] + shift) * self.weight[c]
                return np.append(X.T @ z, z.sum())

            v = np.sum(over(smooth.chunks, part), axis=0)
            v[:-1] -= v[-1] * self.center
            v[-1] *= bool(self.free)
            v = v / scale
            top = float(np.linalg.norm(v))
        return SAFETY * top


def bends_at_start(smooth: Smooth) -> np.ndarray:
    """(N,) the curvature of each sample's loss where none bounds it: at the model zero, or where
    the mean is the label, whichever is more. Newton's steps do the rest."""
    problem, loss = smooth.problem, smooth.problem.loss
    assert loss.linear
    here = smooth.bends(np.zeros(problem.size))
    return np.asarray(np.maximum(here, loss.curvatures(problem.labels)))


def column_moments(smooth: Smooth, weight: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The sum of all weights; the mean and the mean square of each column."""

    def part(c: slice) -> Any:
        X, w = smooth._rows(c), weight[c]
        return np.stack([X.T @ w, (X**2).T @ w])

    total = float(weight.sum())
    mean, square = np.sum(over(smooth.chunks, part), axis=0) / total
    return total, mean, square

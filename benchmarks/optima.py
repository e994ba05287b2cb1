"""What one machine with all data answers: scikit-learn's coefficients, or where it has no solver
that is tight enough, those of a Newton method or of `ew.reference`, their optimality checked."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge

import edgewise as ew

NEWTON_STEPS = 100
TIGHT = 1e-9  # what a gradient may be, of the mean loss, where we answer ourselves


def answer(
    X: Any, y: np.ndarray, model: str, alpha: float, l1_ratio: float, large: float
) -> np.ndarray:
    """(n,) coefficients class by class, then the intercepts. `large`: what the first column was
    multiplied with; scikit-learn's own solvers do not get over 1e6."""
    if large > 1:
        return own_newton(X, y, model, alpha, large)
    if model == "logistic-l1":
        return own_reference(X, y)
    fitted = fit(X, y, model, alpha, l1_ratio)
    W, b = np.atleast_2d(fitted.coef_), np.atleast_1d(fitted.intercept_)
    return np.concatenate([W.ravel(), b])


def fit(X: Any, y: np.ndarray, model: str, alpha: float, l1_ratio: float) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tolerances so small are below what some can tell
        match model:
            case "ridge":
                return Ridge(alpha=alpha, solver="cholesky").fit(X, y)
            case "lasso":
                return Lasso(alpha=alpha, tol=1e-14, max_iter=100_000).fit(X, y)
            case "enet":
                tight = {"tol": 1e-14, "max_iter": 100_000}
                return ElasticNet(alpha=alpha, l1_ratio=l1_ratio, **tight).fit(X, y)
        solver = "newton-cg" if sp.issparse(X) else "newton-cholesky"
        return LogisticRegression(C=1.0, solver=solver, tol=1e-11, max_iter=1000).fit(X, y)


def own_reference(X: Any, y: np.ndarray) -> np.ndarray:
    """l1 logistic regression with C = 1."""
    problem = ew.Problem([(X, y)], ew.Logistic(), ew.L1(1 / len(y)), intercept=True)
    star = ew.reference(problem)
    assert star.residual < TIGHT, f"no tight answer: residual {star.residual:.1e}"
    return star.x


def own_newton(X: np.ndarray, y: np.ndarray, model: str, alpha: float, large: float) -> np.ndarray:
    """Damped Newton steps on the problem with its first column as it was: that column's
    coefficient is `large` times as large, and so its ridge is 1 / large^2 of the others'."""
    N, p = X.shape
    units = np.where(np.arange(p + 1) == 0, large, 1.0)
    A = np.hstack([X, np.ones((N, 1))]) / units
    ridge = (alpha if model == "ridge" else 1.0) / N / units**2
    ridge[-1] = 0.0
    sign = np.where(y == y.max(), 1.0, -1.0)

    def value(u: np.ndarray) -> float:
        z = A @ u
        loss = 0.5 * (z - y) ** 2 if model == "ridge" else np.logaddexp(0, -sign * z)
        return float(loss.mean() + 0.5 * (ridge * u * u).sum())

    u = np.zeros(p + 1)
    for _ in range(NEWTON_STEPS):
        z = A @ u
        slope = z - y if model == "ridge" else -sign * expit(-sign * z)
        curve = np.ones(N) if model == "ridge" else expit(z) * expit(-z)
        g = A.T @ slope / N + ridge * u
        step = np.linalg.solve((A.T * curve) @ A / N + np.diag(ridge), g)
        if np.abs(step).max() < 1e-13 * max(1.0, np.abs(u).max()):
            break
        t = 1.0
        while value(u - t * step) > value(u) - 1e-4 * t * (g @ step) + 1e-15 and t > 1e-8:
            t /= 2
        u = u - t * step
    assert np.abs(g).max() < TIGHT, f"no tight answer: gradient {np.abs(g).max():.1e}"
    return u / units

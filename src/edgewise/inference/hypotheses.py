"""Tests of hypotheses about coefficients."""

from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import ProblemError, UnknownName


class HypothesisTest(NamedTuple):
    """`statistic` is chi-squared with `df`, or F with `df` and `df_residual` where that is
    finite."""

    statistic: float
    p_value: float
    df: int
    df_residual: float = np.inf

    def __str__(self) -> str:
        more = "" if np.isinf(self.df_residual) else f", {self.df_residual:g}"
        kind = "chi2" if np.isinf(self.df_residual) else "F"
        return f"{kind}({self.df:g}{more}) = {self.statistic:.4g}, p = {self.p_value:.4g}"


def made(statistic: float, df: int, df_residual: float = np.inf) -> HypothesisTest:
    """statistic: chi-squared; it is divided by df where it becomes an F."""
    from scipy import stats  # half a second that peers without a summary do without

    if np.isinf(df_residual):
        return HypothesisTest(statistic, float(stats.chi2.sf(statistic, df)), df)
    F = statistic / df
    return HypothesisTest(F, float(stats.f.sf(F, df, df_residual)), df, df_residual)


def restrictions(what: Any, names: tuple[str, ...]) -> np.ndarray:
    """(q, d) of names of coefficients that are to be zero, or of a matrix."""
    if isinstance(what, str):
        what = [what]
    if isinstance(what, list | tuple) and what and all(isinstance(one, str) for one in what):
        R = np.zeros((len(what), len(names)))
        for row, name in zip(R, what, strict=True):
            if name not in names:
                raise UnknownName("coefficient", name, names)
            row[names.index(name)] = 1
        return R
    try:
        R = np.atleast_2d(np.asarray(what, np.float64))
    except (TypeError, ValueError) as wrong:
        raise ProblemError(
            f"{what!r}: give names of coefficients, or a matrix with a column for each"
        ) from wrong
    if R.ndim != 2 or R.shape[1] != len(names) or not R.size or not np.isfinite(R).all():
        raise ProblemError(
            f"a hypothesis of shape {R.shape}: give rows of {len(names)} numbers, one for each of "
            f"{', '.join(names[:6])}{', ...' if len(names) > 6 else ''}"
        )
    return R


def wald(
    R: np.ndarray, values: Any, coef: np.ndarray, covariance: np.ndarray, df_residual: float
) -> HypothesisTest:
    """R coef = values."""
    far = R @ coef - np.broadcast_to(np.asarray(values, np.float64), len(R))
    spread = R @ covariance @ R.T
    size = np.sqrt(np.maximum(np.diag(spread), 0))
    if not (size > 0).all() or np.linalg.cond(spread / np.outer(size, size)) > 1e12:
        raise ProblemError(
            "these hypotheses cannot be tested together: some follow from others, or there are no "
            "more clusters than hypotheses; test fewer"
        )
    return made(float(far @ np.linalg.solve(spread, far)), len(R), df_residual)

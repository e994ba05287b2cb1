"""What is known of a fit's coefficients: estimates, standard errors, tests."""

import json
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import ProblemError, UnknownName
from edgewise.fileio import write_text, written
from edgewise.inference import covariance as kinds
from edgewise.inference import hypotheses
from edgewise.inference.hypotheses import HypothesisTest
from edgewise.inference.text_table import as_text, estimate_rows

TEXT, NUMBERS = "summary.txt", "summary.json"
FORMAT = {"format": "edgewise-summary", "version": 1}
PLAIN = (
    "loss",
    "nodes",
    "samples",
    "events",
    "scale",
    "log_likelihood",
    "null_log_likelihood",
    "deviance",
    "null_deviance",
    "pearson",
    "off_optimum",
)


class Spread(NamedTuple):
    """One way to say how far estimates may be off."""

    covariance: np.ndarray
    df: float
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Inference:
    """Estimates with standard errors, and what can be said by them: `result.summary()`.

    Coefficients are in the units of the data, also where the fit was of standardised columns.
    Printed, it is a table.
    """

    names: tuple[str, ...]
    coef: np.ndarray = field(repr=False)
    covariance: np.ndarray = field(repr=False)  # (d, d) of `coef`
    kind: str  # of covariance: "model", "HC0", "HC1", "cluster", "bootstrap"
    df: float = field(repr=False)  # of Student's t; infinite for the normal distribution
    loss: str
    nodes: int
    samples: float  # cases: the sum of weights where weights are cases
    size: float = field(repr=False)  # unknowns, less what a ridge takes of them
    scale: float = field(default=1.0, repr=False)  # phi
    log_likelihood: float | None = None  # None: the fit maximises none
    null_log_likelihood: float | None = field(default=None, repr=False)
    deviance: float | None = field(default=None, repr=False)
    null_deviance: float | None = field(default=None, repr=False)
    pearson: float | None = field(default=None, repr=False)
    events: float | None = field(default=None, repr=False)
    estimated: bool = field(default=False, repr=False)  # whether the scale is
    penalised: bool = field(default=False, repr=False)
    intercept: bool = field(default=False, repr=False)
    off_optimum: float = field(default=0.0, repr=False)  # in standard errors
    notes: tuple[str, ...] = field(default=(), repr=False)
    others: dict[str, "Spread"] = field(default_factory=dict, repr=False)

    @property
    def std_err(self) -> np.ndarray:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    @property
    def statistic(self) -> np.ndarray:
        """coef / std_err: t where `df` is finite, else z."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.coef / self.std_err

    @property
    def p_values(self) -> np.ndarray:
        """Two-sided, of a coefficient that is zero."""
        return 2 * np.asarray(self._spread.sf(np.abs(self.statistic)))

    @property
    def _spread(self) -> Any:
        from scipy import stats  # half a second that peers without a summary do without

        return stats.norm if np.isinf(self.df) else stats.t(self.df)

    def interval(self, level: float = 0.95) -> np.ndarray:
        """(d, 2)"""
        if not 0 < level < 1:
            raise ProblemError(f"an interval of level {level!r}: give a number between 0 and 1")
        far = self._spread.ppf((1 + level) / 2) * self.std_err
        return np.stack([self.coef - far, self.coef + far], 1)

    @property
    def df_residual(self) -> float:
        return self.samples - self.size

    @property
    def aic(self) -> float | None:
        """-2 log-likelihood + 2 d; as statsmodels has it, a scale is not counted."""
        return None if self.log_likelihood is None else 2 * (self.size - self.log_likelihood)

    @property
    def bic(self) -> float | None:
        """With log N for the 2; of a survival model N are the events."""
        if self.log_likelihood is None:
            return None
        N = self.samples if self.events is None else self.events
        return float(np.log(N) * self.size - 2 * self.log_likelihood)

    def robust(self, kind: str = kinds.CLUSTER) -> "Inference":
        """The same with another covariance: "model", "HC0", "HC1", "cluster". It takes no
        messages."""
        kind = kinds.SYNONYMS.get(kind, kind)
        if kind not in self.others:
            raise UnknownName("covariance here", kind, self.others)
        return replace(self, kind=kind, **self.others[kind]._asdict())

    # --- tests -----------------------------------------------------------------------------------

    def wald_test(self, what: Any, values: Any = 0.0) -> HypothesisTest:
        """That coefficients of these names are zero, or that R coef = values."""
        R = hypotheses.restrictions(what, self.names)
        return hypotheses.wald(R, values, self.coef, self.covariance, self.df)

    def likelihood_ratio_test(self, smaller: "Inference | None" = None) -> HypothesisTest:
        """Against a fit of fewer columns to the same samples; without one, against that of the
        intercept alone."""
        if self.penalised or (smaller is not None and smaller.penalised):
            raise ProblemError(
                "a fit with a ridge does not maximise its likelihood, so ratios of likelihoods say "
                "nothing: fit both without, or take wald_test"
            )
        if smaller is None:
            return self._ratio(self.null_log_likelihood, self.null_deviance, int(self.intercept))
        if smaller.loss != self.loss or not np.isclose(smaller.samples, self.samples, rtol=1e-9):
            raise ProblemError(
                f"a {smaller.loss} of {smaller.samples:g} samples beside a {self.loss} of "
                f"{self.samples:g}: give fits of one loss to the same samples"
            )
        return self._ratio(smaller.log_likelihood, smaller.deviance, len(smaller.names))

    def _ratio(
        self, log_likelihood: float | None, deviance: float | None, size: int
    ) -> HypothesisTest:
        own, more = self.log_likelihood, len(self.names) - size
        if own is None or log_likelihood is None:
            raise ProblemError(
                "there are no likelihoods to compare: the loss is none, or nodes count alike and "
                'not samples (fit with weights="sample"), or there is an offset and no smaller fit'
            )
        if more <= 0:
            raise ProblemError("the smaller fit has as many coefficients: call it the other way")
        if self.estimated and self.loss != "Squared":  # the scale has no maximum likelihood here
            assert deviance is not None
            assert self.deviance is not None
            ratio, df = (deviance - self.deviance) / self.scale, self.df_residual
        else:
            ratio, df = 2 * (own - log_likelihood), np.inf
        if ratio < -1e-6 * max(1.0, abs(own)):
            raise ProblemError(
                "the smaller fit has the larger likelihood: its columns are none of this one's, or "
                "this one has not come to its optimum (give a smaller tol)"
            )
        return hypotheses.made(max(ratio, 0.0), more, df)

    # --- shown and kept --------------------------------------------------------------------------

    def frame(self, level: float = 0.95, exponentiated: bool = False) -> Any:
        """A pandas table. exponentiated: exp(coef) and its interval in place of coef: odds ratios,
        rate ratios, hazard ratios."""
        import pandas as pd

        columns, rows = estimate_rows(self, level, exponentiated)
        return pd.DataFrame(rows, index=list(self.names), columns=columns)

    def text(self, level: float = 0.95, exponentiated: bool = False) -> str:
        return as_text(self, level, exponentiated)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text())}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts."""
        columns, rows = estimate_rows(self, 0.95, False)
        keys = ["coef", "std_err", "statistic", "p_value", "low", "high"]
        assert len(columns) == len(keys)
        facts = {
            "covariance_kind": self.kind,
            "df": None if np.isinf(self.df) else self.df,
            "df_residual": self.df_residual,
            "aic": self.aic,
            "bic": self.bic,
            "notes": list(self.notes),
        }
        return {
            **FORMAT,
            "coefficients": {
                name: dict(zip(keys, map(finite, row), strict=True))
                for name, row in zip(self.names, rows, strict=True)
            },
            **{name: getattr(self, name) for name in PLAIN},
            **facts,
            "covariance": self.covariance.tolist(),
        }

    def save(self, folder: str | Path) -> Path:
        """summary.txt and summary.json, in a folder."""
        with written(folder):
            return self.write(folder)

    def write(self, folder: str | Path) -> Path:
        """What `save` does, for those who look after an OSError themselves."""
        folder = Path(folder)
        write_text(folder / TEXT, self.text() + "\n")
        write_text(folder / NUMBERS, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")
        return folder


def finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None

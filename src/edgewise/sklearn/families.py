"""Regressors for counts, amounts and quantiles."""

from typing import Any

import numpy as np
from sklearn.metrics import d2_pinball_score, d2_tweedie_score

from edgewise.errors import ProblemError
from edgewise.methods.contract import Method
from edgewise.problem.families import Gamma, Poisson, Quantile, Tweedie
from edgewise.problem.losses import Squared
from edgewise.sklearn.base import MAX_ITER, METHOD, TOL
from edgewise.sklearn.checks import require
from edgewise.sklearn.feature_scaling import FeatureScaling
from edgewise.sklearn.regressors import Regressor

LINKS = ("auto", "identity", "log")
NARROW = 0.05  # of the labels' standard deviation: a quantile's width where none is given


class PowerRegressor(Regressor):
    """Half the mean deviance + alpha/2 |w|². With an intercept the solver has labels of mean one,
    which is another way to write the same problem: it begins near the answer then, in whatever
    units labels are."""

    _power: float

    def predict(self, X: Any) -> np.ndarray:
        """Means."""
        z = self._margins(X)
        return np.exp(z) if self._logarithmic else z

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the part of the deviance that is explained."""
        mean = self.predict(X)
        return float(d2_tweedie_score(y, mean, sample_weight=sample_weight, power=self._power))

    @property
    def _logarithmic(self) -> bool:
        return True

    def _shift(self, loss: Any, labels: np.ndarray, weight: np.ndarray) -> float:
        if not self._logarithmic:
            return super()._shift(loss, labels, weight)
        mean = float(np.average(labels, weights=weight))
        return float(np.log(mean)) if mean > 0 else 0.0

    def _shifted(self, labels: np.ndarray, shift: float) -> np.ndarray:
        if not self._logarithmic:
            return super()._shifted(labels, shift)
        return np.asarray(labels / np.exp(shift))

    def _regularised(self, loss: Any, scaling: FeatureScaling, total: float) -> tuple[Any, Any]:
        self._unit = float(np.exp((2 - self._power) * scaling.shift)) if self._logarithmic else 1.0
        return super()._regularised(loss, scaling, total)

    def _strengths(self, total: float) -> tuple[float, float]:
        return 0.0, self.alpha / self._unit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._logarithmic
        return tags


class DecentralizedPoissonRegressor(PowerRegressor):
    """Counts, or rates with exposures as sample weights, as sklearn.linear_model.PoissonRegressor:
    1/(2N) Σ deviance + alpha/2 |w|², the mean exp(<w, x> + b). The parameters of the network are
    those of `Decentralized`."""

    _power = 1.0

    def _loss(self, classes: np.ndarray | None) -> Any:
        return Poisson()


class DecentralizedGammaRegressor(PowerRegressor):
    """Positive amounts, as sklearn.linear_model.GammaRegressor: 1/(2N) Σ deviance + alpha/2 |w|²,
    the mean exp(<w, x> + b). The parameters of the network are those of `Decentralized`."""

    _power = 2.0

    def _loss(self, classes: np.ndarray | None) -> Any:
        return Gamma()


class DecentralizedTweedieRegressor(PowerRegressor):
    """Amounts whose variance is as mean^power, as sklearn.linear_model.TweedieRegressor.

    power  0 (least squares, link "identity"), or from 1 (Poisson) to 2 (gamma), link "log"; those
           beyond, and other links, have no convex loss and are refused
    link   "auto", "identity" or "log"

    The parameters of the network are those of `Decentralized`.
    """

    def __init__(
        self,
        *,
        power: float = 0.0,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        link: str = "auto",
        n_nodes: int = 10,
        graph: Any = "random",
        method: Method | str = METHOD,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        random_state: Any = 0,
    ) -> None:
        self._keep(locals())

    power: float
    link: str

    @property
    def _power(self) -> float:  # type: ignore[override]
        return self.power

    @property
    def _logarithmic(self) -> bool:
        return self.link == "log" or (self.link == "auto" and self.power > 0)

    def _loss(self, classes: np.ndarray | None) -> Any:
        return Tweedie(float(self.power)) if self._logarithmic else Squared()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.link not in LINKS:
            raise ProblemError(f"link={self.link!r}: give one of {', '.join(LINKS)}")
        require("power", self.power, 0, 2)
        if (self.power >= 1) != self._logarithmic or 0 < self.power < 1:
            raise ProblemError(
                f"power={self.power:g} with link={self.link!r} has no convex loss: give power 0 "
                "with link identity, or 1 to 2 with log"
            )


class DecentralizedQuantileRegressor(Regressor):
    """1/N Σ pinball(y - <w, x> - b) + alpha |w|₁, as sklearn.linear_model.QuantileRegressor, but
    for a corner that is rounded: the mean pinball loss comes to within width / 8 of theirs.

    quantile  from 0 to 1
    width     of the rounded corner, in the units of the labels; None: a twentieth of their standard
              deviation. What it was is in `width_`

    The score is D², the part of the pinball loss that is explained; theirs is R². The parameters of
    the network are those of `Decentralized`.
    """

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        width: float | None = None,
        n_nodes: int = 10,
        graph: Any = "random",
        method: Method | str = METHOD,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        random_state: Any = 0,
    ) -> None:
        self._keep(locals())

    quantile: float
    width: float | None
    width_: float

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the part of the pinball loss that is explained."""
        options = {"sample_weight": sample_weight, "alpha": self.quantile}
        return float(d2_pinball_score(y, self.predict(X), **options))

    def _labels(self, y: np.ndarray, weight: np.ndarray, fresh: bool, classes: Any) -> Any:
        labels, weight = super()._labels(y, weight, fresh, classes)
        if fresh:
            mean = np.average(labels, weights=weight)
            spread = float(np.sqrt(np.average((labels - mean) ** 2, weights=weight)))
            self.width_ = NARROW * (spread or 1.0) if self.width is None else float(self.width)
        return labels, weight

    def _loss(self, classes: np.ndarray | None) -> Any:
        return Quantile(float(self.quantile), self.width_)

    def _strengths(self, total: float) -> tuple[float, float]:
        return self.alpha, 0.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require("quantile", self.quantile, 0, 1)
        if self.quantile in (0, 1):
            raise ProblemError(f"quantile={self.quantile}: give a number between 0 and 1")
        if self.width is not None:
            require("width", self.width, 0, beyond=True)

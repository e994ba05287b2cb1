"""Least squares with penalties."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from edgewise.differential_privacy.budget import DP
from edgewise.methods.contract import Method
from edgewise.problem.losses import Squared
from edgewise.sklearn.base import MAX_ITER, METHOD, TOL, Decentralized
from edgewise.sklearn.checks import require


class Regressor(RegressorMixin, Decentralized):  # type: ignore[misc]
    alpha: float

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        n_nodes: int = 10,
        graph: Any = "random",
        method: Method | str = METHOD,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        random_state: Any = 0,
        privacy: DP | None = None,
    ) -> None:
        self._keep(locals())

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """As `fit`, from the models and duals where the last call ended."""
        return self._fit(X, y, sample_weight, fresh=False, groups=groups)

    def predict(self, X: Any) -> np.ndarray:
        return self._margins(X)

    def _loss(self, classes: np.ndarray | None) -> Any:
        return Squared()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require("alpha", self.alpha, 0)


class DecentralizedLasso(Regressor):
    """1/(2N) Σ (y - <w, x> - b)² + alpha |w|₁, as sklearn.linear_model.Lasso. The parameters of
    the network are those of `Decentralized`."""

    def _strengths(self, total: float) -> tuple[float, float]:
        return self.alpha, 0.0


class DecentralizedRidge(Regressor):
    """Σ (y - <w, x> - b)² + alpha |w|², as sklearn.linear_model.Ridge. The parameters of the
    network are those of `Decentralized`."""

    def _strengths(self, total: float) -> tuple[float, float]:
        return 0.0, self.alpha / total


class DecentralizedElasticNet(Regressor):
    """1/(2N) Σ (y - <w, x> - b)² + alpha l1_ratio |w|₁ + alpha (1 - l1_ratio)/2 |w|², as
    sklearn.linear_model.ElasticNet. The parameters of the network are those of `Decentralized`."""

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        n_nodes: int = 10,
        graph: Any = "random",
        method: Method | str = METHOD,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        random_state: Any = 0,
        privacy: DP | None = None,
    ) -> None:
        self._keep(locals())

    l1_ratio: float

    def _strengths(self, total: float) -> tuple[float, float]:
        return self.alpha * self.l1_ratio, self.alpha * (1 - self.l1_ratio)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require("l1_ratio", self.l1_ratio, 0, 1)

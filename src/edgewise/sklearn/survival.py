"""Cox's proportional hazards as an estimator."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from edgewise.data.shards import Shards
from edgewise.data.splitting import split
from edgewise.errors import DataError, UnknownName
from edgewise.methods.contract import Method
from edgewise.problem.cox import TIES, CoxPH
from edgewise.problem.families import Poisson
from edgewise.problem.pooled_cox import EXPOSURES, pooled_rows
from edgewise.problem.survival_labels import as_labels
from edgewise.sklearn.base import MAX_ITER, METHOD, TOL, Decentralized
from edgewise.sklearn.checks import by_group, refuse_unusable, require, weights_of
from edgewise.sklearn.feature_scaling import FeatureScaling
from edgewise.sklearn.solver_problem import ScaledRidge, SharedProblem
from edgewise.statistics.metrics.concordance import pairs_of


class DecentralizedCoxPH(Decentralized):
    """Cox's model: -log of the partial likelihood + alpha/2 |w|².

    y has a row for each sample, of its time and of whether the event was seen; or is a structured
    array of the two, as scikit-survival has it; or `edgewise.survival_labels`.

    alpha     of the ridge; without one there is no finite answer where a feature separates
    ties      "efron" or "breslow", without a grid
    grid      None: every node is a stratum, with a baseline hazard of its own, and nobody is
              compared with anybody of another; give groups then. Times: one baseline hazard for all
              nodes, by intervals between these times (`edgewise.pooled_cox`)
    exposure  "time" or "risk set", with a grid

    The other parameters are those of `Decentralized`.
    """

    fit_intercept = False
    besides = " or a larger alpha"
    smaller = "give a larger alpha"

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        ties: str = "efron",
        grid: Any = None,
        exposure: str = "time",
        n_nodes: int = 10,
        graph: Any = "random",
        method: Method | str = METHOD,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        random_state: Any = 0,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """groups: whose each sample is, (N,) names of hospitals, say: there is then a node for
        each. Without them samples are dealt out at random, which makes strata of no meaning."""
        self._check_parameters()
        if isinstance(X, Shards):
            self._units = X.scaling
            X, y, counts, order = *self._opened(X, y, groups, True), X.counts, X.order
        else:
            self._units, counts, order = None, None, None
            X, y = self._validated(X, y)
        labels = as_labels(y)
        weight = weights_of(sample_weight, len(labels), order)
        if not (labels[weight > 0] > 0).any():
            raise DataError("no sample had the event: there is nothing to learn from")
        self._scaling = scaling = FeatureScaling.of(X, weight, True, self.scales_features)
        X = np.asarray(scaling.apply(X, np.float64))
        seed = self._seed()
        if hasattr(self, "groups_"):
            del self.groups_
        if groups is not None:
            self.groups_, rows, counts = by_group(groups, len(labels))
            X, labels, weight = X[rows], labels[rows], weight[rows]
        elif counts is None:
            made = split(X, labels, self._count(len(labels)), seed=seed)
            X, labels, counts, weight = made.X, made.y, made.counts, weight[made.order]
        problem = self._problem(Shards(X, labels, counts), weight)
        self._take(problem, self._solved(problem, seed, True))
        return self

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        if y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        kinds = {"dtype": [np.float64, np.float32]}
        if getattr(np.asarray(y).dtype, "names", None) is not None:
            X, y = validate_data(self, X, **kinds), np.asarray(y)
            if len(y) != len(X):
                raise DataError(f"X has {len(X)} rows and y {len(y)}: give a row of y for each")
        else:
            X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, **kinds)
            y = column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y
            refuse_unusable(X, as_labels(y), getattr(self, "feature_names_in_", None))
        return X, y

    def _count(self, samples: int) -> int:
        nodes = getattr(self.graph, "nodes", None)
        return min(self.n_nodes, samples) if nodes is None else int(nodes)

    def _problem(self, shards: Shards, weight: np.ndarray) -> SharedProblem:
        scale = self._scaling.scale
        if self.grid is None:
            loss: Any = CoxPH(self.ties)
            loss, penalty = self._regularised(loss, self._scaling, float(weight.sum()))
            return SharedProblem(shards, loss, penalty, weights="sample", sample_weight=weight)
        rows = pooled_rows(shards, self.grid, self.exposure, weight)
        assert rows.weight is not None
        ridge = np.zeros(rows.features)
        ridge[-len(scale) :] = self.alpha / (rows.weight.sum() * scale**2)
        penalty = ScaledRidge(ridge) if self.alpha else None
        return SharedProblem(rows, Poisson(), penalty, weights="sample")

    def _split(self, problem: Any, models: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients in the features' own units; with a grid the logarithms of the hazards, of
        who has zero for all features, are for intercepts."""
        p = self.n_features_in_
        W, levels = self._scaling.plain(models[:, -p:], np.zeros(len(models)))
        if self._units is not None:
            W, levels = self._units.unscaled(W, levels)
        if self.grid is None:
            return W, np.zeros(len(models))
        return W, models[:, :-p] + levels[:, None]

    def _take(self, problem: Any, result: Any) -> None:
        super()._take(problem, result)
        levels, self.intercept_ = self.intercept_, 0.0
        if self.grid is not None:
            self.baseline_hazard_ = np.exp(levels)
        elif hasattr(self, "baseline_hazard_"):
            del self.baseline_hazard_

    # --- parameters ------------------------------------------------------------------------------

    def _strengths(self, total: float) -> tuple[float, float]:
        return 0.0, self.alpha / total

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require("alpha", self.alpha, 0)
        for name, known in (("ties", TIES), ("exposure", EXPOSURES)):
            if getattr(self, name) not in known:
                raise UnknownName(name, getattr(self, name), known)

    # --- answers ---------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """The logarithm of how many times as large a hazard is as that of who has zero for all
        features: the higher, the earlier."""
        return self._margins(X)

    def predict_survival_function(self, X: Any, times: Any) -> np.ndarray:
        """(N, T) the chance to have had no event by these times; of fits with a grid."""
        check_is_fitted(self)
        if not hasattr(self, "baseline_hazard_"):
            raise DataError("every node has a baseline hazard of its own: fit with a grid")
        at, ends = np.asarray(times, np.float64), np.asarray(self.grid, np.float64)
        if self.exposure == "time":
            starts = np.append(0.0, ends)
            spent = np.clip(at[:, None] - starts, 0, np.append(np.diff(starts), np.inf))
        else:
            spent = (at[:, None] >= ends).astype(np.float64)
        return np.exp(-np.exp(self.predict(X))[:, None] * (spent @ self.baseline_hazard_))

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Harrell's concordance index: the share of pairs in which who had the event first has the
        higher risk. With groups only pairs within a group count."""
        risk = self.predict(X)
        y = np.asarray(y)
        labels = as_labels(y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y)
        if sample_weight is not None:
            raise DataError("the concordance index takes no sample weights: leave them out")
        whose = np.zeros(len(labels)) if groups is None else np.asarray(groups)
        right = compared = 0.0
        for each in np.unique(whose):
            own = pairs_of(labels[whose == each], risk[whose == each])
            right, compared = right + own[0].sum(), compared + own[1].sum()
        if not compared:
            raise DataError("no two samples can be compared: give some whose event was seen")
        return float(right / compared)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.target_tags.required = tags.target_tags.positive_only = True
        tags.target_tags.two_d_labels = False
        return tags

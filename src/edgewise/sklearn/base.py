"""What all estimators share: from data to a problem on a graph, and from a result to attributes."""

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from edgewise.data import Shards, split
from edgewise.data.arrays import is_sparse
from edgewise.differential_privacy.budget import DP
from edgewise.differential_privacy.spent import PrivacySpent
from edgewise.errors import (
    DataError,
    GraphError,
    MethodError,
    UnknownName,
    whole_number,
)
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.problem.families import Quantile
from edgewise.problem.losses import Huber, Multinomial, Squared
from edgewise.problem.penalties import L1
from edgewise.running.result import Result
from edgewise.running.solve import solve
from edgewise.sklearn.checks import (
    by_group,
    refuse_unaccounted,
    refuse_unusable,
    require,
    units_of,
    weights_of,
)
from edgewise.sklearn.convergence import Stalled, told
from edgewise.sklearn.feature_scaling import FeatureScaling
from edgewise.sklearn.solver_problem import (
    SMALL,
    ScaledElasticNet,
    ScaledRidge,
    SharedProblem,
    sample_gradient,
)

METHOD, MAX_ITER, TOL = "auto", 20_000, 1e-10
GRAPHS = {
    "ring": Graph.ring,
    "path": Graph.path,
    "star": Graph.star,
    "complete": Graph.complete,
}


class Decentralized(BaseEstimator):  # type: ignore[misc]
    """A linear model over a network. Subclasses have the parameters

    n_nodes        how many nodes the samples are dealt out to, at most one a sample; where `fit` is
                   given groups there are as many as those
    graph          "ring", "path", "star", "complete", "random" (twice as many edges as nodes), or
                   an `edgewise.Graph`, whose nodes then count
    method         "auto": what fits the data, which `method_note_` names with the reason; a name
                   from `edgewise.list_methods()`, or an object
    max_iter       communication rounds, at most
    tol            stop when the optimality residual is this small beside a sample's gradient at
                   the model zero
    random_state   of the split, the random graph and the method
    privacy        `edgewise.DP(epsilon=, delta=, clip=)`: `privacy_` then says what the fit tells
                   of any one sample. Features are taken as they are, `max_iter` is at most its
                   rounds, and `tol` is not looked at
    """

    fit_intercept: bool
    n_nodes: int
    graph: Any
    method: Method | str
    max_iter: int
    tol: float
    random_state: Any
    privacy: DP | None = None
    classes_: np.ndarray
    groups_: np.ndarray
    privacy_: PrivacySpent
    feature_names_in_: np.ndarray

    def _keep(self, given: dict[str, Any]) -> None:
        """Parameters become attributes of their names, as scikit-learn wants it."""
        for name, value in given.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def _loss(self, classes: np.ndarray | None) -> Any:
        raise NotImplementedError

    def _strengths(self, total: float) -> tuple[float, float]:
        """The weights of |w|₁ and |w|²/2 beside the mean loss; `total` is the sum of all sample
        weights."""
        raise NotImplementedError

    def _regularised(self, loss: Any, scaling: FeatureScaling, total: float) -> tuple[Any, Any]:
        """The loss and the penalty. Where all features weigh the same they are what compiled
        rounds take."""
        l1, l2 = self._strengths(total)
        if (scaling.scale == 1).all():
            return replace(loss, ridge=l2), L1(l1) if l1 else None
        scale = np.tile(scaling.scale, loss.outputs)
        if not l1:
            return loss, ScaledRidge(l2 / scale**2)
        return loss, ScaledElasticNet(l1 / scale, l2 / scale**2)

    def _labels(self, y: np.ndarray, weight: np.ndarray, fresh: bool, classes: Any) -> Any:
        """Numbers for the loss, and weights by class."""
        return np.asarray(y, np.float64), weight

    def _shift(self, loss: Any, labels: np.ndarray, weight: np.ndarray) -> float:
        """What an intercept is at about, which the solver need not look for."""
        known = isinstance(loss, Squared | Huber | Quantile)
        return float(np.average(labels, weights=weight)) if known else 0.0

    def _shifted(self, labels: np.ndarray, shift: float) -> np.ndarray:
        """Labels whose intercept is that much less."""
        return np.asarray(labels - shift)

    scales_features = True
    raised: tuple[str, ...] = ("max_iter", "tol")  # what helps where rounds run out
    besides = ""
    smaller = "give a smaller C"  # what keeps a model small

    # --- fitting ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """X, y and one weight per sample; or an `edgewise.Shards` alone, data that nodes hold.

        groups: whose each sample is, (N,) names of hospitals, say. There is then a node for every
        group, in the order of `groups_`, and it holds that group's samples.
        """
        return self._fit(X, y, sample_weight, fresh=True, groups=groups)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        fresh: bool,
        classes: Any = None,
        groups: Any = None,
    ) -> Self:
        fresh = fresh or not hasattr(self, "_scaling")
        self._check_parameters()
        held = X if isinstance(X, Shards) else None
        self._units = units_of(held, fresh, getattr(self, "_units", None))
        if held is not None:
            X, y = self._opened(held, y, groups, fresh)
        else:
            X, y = validate_data(
                self,
                X,
                y,
                reset=fresh,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                y_numeric=not self._classifies,
            )
            refuse_unusable(X, y, getattr(self, "feature_names_in_", None))
        order = None if held is None else held.order
        if self.privacy is not None:
            refuse_unaccounted(self, sample_weight, fresh)
        weight = weights_of(sample_weight, len(y), order)
        labels, weight = self._labels(y, weight, fresh, classes)
        if X.shape[0] * X.shape[1] <= SMALL and is_sparse(X):
            X = X.toarray()
        loss = self._loss(self.classes_ if self._classifies else None)
        if self.privacy is not None:
            self._scaling = FeatureScaling.none(X.shape[1])
        elif fresh:
            scaling = FeatureScaling.of(
                X, weight, self.fit_intercept and loss.linear, self.scales_features
            )
            if self.fit_intercept and loss.linear:
                scaling = replace(scaling, shift=self._shift(loss, labels, weight))
            self._scaling = scaling
        labels = self._shifted(labels, self._scaling.shift)
        X = self._scaling.apply(X, np.float64 if X.size <= SMALL else X.dtype)

        seed = self._seed()
        if hasattr(self, "groups_"):
            del self.groups_
        if groups is not None:
            self.groups_, order, counts = by_group(groups, len(y))
            shards = Shards(X[order], labels[order], counts, order)
            weight = weight[order]
        elif held is None:
            given = isinstance(self.graph, Graph)
            nodes = self.graph.nodes if given else min(self.n_nodes, len(y))
            shards = split(X, labels, nodes, seed=seed)
            weight = weight[shards.order]
        else:
            shards = Shards(X, labels, held.counts)
        loss, penalty = self._regularised(loss, self._scaling, float(weight.sum()))
        problem = SharedProblem(
            replace(shards, order=None),
            loss,
            penalty,
            weights="sample",
            sample_weight=weight if self.privacy is None else None,
            intercept=self.fit_intercept,
        )
        self._take(problem, self._solved(problem, seed, fresh))
        return self

    def _opened(self, held: Shards, y: Any, groups: Any, fresh: bool) -> tuple[Any, np.ndarray]:
        if y is not None:
            raise DataError("shards bring their own labels: call fit(shards), without y")
        if groups is not None:
            raise DataError("shards say which node holds what: call fit(shards), without groups")
        if fresh:
            self.n_features_in_ = held.features
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            if held.columns is not None:
                self.feature_names_in_ = np.array(held.columns, object)
        elif held.features != self.n_features_in_:
            raise DataError(
                f"the shards have {held.features} features, {type(self).__name__} was fitted with "
                f"{self.n_features_in_}: give the same"
            )
        return held.X, held.y

    def _solved(self, problem: SharedProblem, seed: int, fresh: bool) -> Result:
        graph = self._graph(problem.nodes, seed)
        if self.privacy is not None:
            run: Any = {"rounds": self.max_iter, "reference": False, "dtype": "float64"}
            return solve(problem, graph, self.method, privacy=self.privacy, progress=False, **run)
        own = isinstance(problem.penalty, ScaledElasticNet | ScaledRidge)
        start = np.zeros(problem.size) if own else None
        duals = None
        if not fresh:
            same = self._models.shape == (problem.nodes, problem.size)
            start = self._models if same else self._models.mean(0)
            duals = self._duals if same else None
        method, note = self._chosen(problem)
        stalled = Stalled()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a divergence is told below
            result = solve(
                problem,
                graph,
                method,
                rounds=self.max_iter,
                tol=self.tol * problem.nodes * sample_gradient(problem),
                seed=seed,
                reference=False,
                dtype="float64",  # answers as tight as scikit-learn's need it
                progress=False,
                X0=start,
                duals=duals,
                callback=stalled,
            )
        result = replace(result, method_note=note or result.method_note)
        if not (result.converged or stalled.at_rounding(problem, result)):
            warnings.warn(told(self, problem, result), ConvergenceWarning, stacklevel=4)
        return result

    def _chosen(self, problem: SharedProblem) -> tuple[Any, str]:
        """The method, and why that one where it is not what `solve` would come to."""
        return self.method, ""

    def _take(self, problem: SharedProblem, result: Result) -> None:
        self._models, self._duals = result.X, result.duals
        self.trace_, self.method_note_ = result.trace, result.method_note
        if result.privacy is not None:
            self.privacy_ = result.privacy
        self.n_iter_ = max(1, int(result.trace["rounds"][-1]))
        W, bias = self._split(problem, result.X)
        self.node_coef_, self.node_intercept_ = W, bias
        W, bias = self._split(problem, result.x[None])
        self.coef_, self.intercept_ = W[0], bias[0]
        if self._classifies:  # a row per class, or one for two classes
            self.coef_, self.intercept_ = np.atleast_2d(W[0]), np.atleast_1d(bias[0])

    def _split(self, problem: SharedProblem, models: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(V, p) or (V, C, p) weights and (V,) or (V, C) intercepts, in the features' own units."""
        C, free = problem.loss.outputs, problem.free
        W = models[:, : models.shape[1] - free].reshape(len(models), C, -1)
        bias = models[:, -free:] if free else np.zeros((len(models), C))
        if W.shape[-1] != self.n_features_in_:
            return W[:, 0], bias[:, 0]  # a custom loss with a model of its own
        W, bias = self._scaling.plain(W, bias)
        if self._units is not None:
            W, bias = self._units.unscaled(W, bias)
        bias = bias if free else np.zeros_like(bias)
        if isinstance(problem.loss, Multinomial):  # the same to all classes changes nothing
            bias = bias - bias.mean(-1, keepdims=True)
        return (W[:, 0], bias[:, 0]) if C == 1 else (W, bias)

    # --- parameters ------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if not isinstance(self.graph, Graph):
            if not isinstance(self.graph, str) or self.graph not in (*GRAPHS, "random"):
                raise UnknownName("graph", self.graph, [*GRAPHS, "random"])
            whole_number("n_nodes", self.n_nodes, 1, GraphError)
        whole_number("max_iter", self.max_iter, 1, MethodError)
        require("tol", self.tol, 0, beyond=True)

    def _graph(self, nodes: int, seed: int) -> Graph:
        if isinstance(self.graph, Graph):
            return self.graph
        if self.graph == "random":
            return Graph.random(nodes, min(2 * nodes, nodes * (nodes - 1) // 2), seed)
        return GRAPHS[self.graph](nodes)

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    # --- answers ---------------------------------------------------------------------------------

    @property
    def _classifies(self) -> bool:
        return bool(self.__sklearn_tags__().estimator_type == "classifier")

    def _margins(self, X: Any) -> np.ndarray:
        """(N,), or (N, C) where every class has weights of its own."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        z = np.asarray(X @ self.coef_.T + self.intercept_)
        return z[:, 0] if z.ndim == 2 and z.shape[1] == 1 else z

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

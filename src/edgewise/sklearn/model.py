"""Any loss, any penalty."""

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from edgewise.differential_privacy.budget import DP
from edgewise.errors import InputError, ProblemError
from edgewise.methods.contract import Method
from edgewise.problem.from_text import loss_of
from edgewise.problem.losses import Logistic, Multinomial, Sigmoid, SmoothedHinge, Squared
from edgewise.sklearn.base import MAX_ITER, METHOD, TOL
from edgewise.sklearn.classifiers import ClassVoting
from edgewise.sklearn.feature_scaling import FeatureScaling
from edgewise.sklearn.solver_problem import SharedProblem, coded, undetermined

PROBABILISTIC = (Logistic, Multinomial)
CLASSIFYING = (*PROBABILISTIC, SmoothedHinge, Sigmoid)


def kind_of(loss: Any) -> Any:
    """The class of a loss or of its text; a text that is none is refused by `fit`, not before."""
    try:
        return type(loss_of(loss))
    except InputError:
        return None


def votes(model: "DecentralizedModel") -> bool:
    return kind_of(model.loss) in CLASSIFYING


def tells_chances(model: "DecentralizedModel") -> bool:
    return kind_of(model.loss) in PROBABILISTIC


class DecentralizedModel(ClassVoting):
    """Mean loss + penalty, of any loss and penalty of Edgewise; the intercept is in no penalty.

    loss      `Squared()` (the default), `Huber()`, `CustomLoss(fn)`: a regressor; `Logistic()`,
              `Multinomial()`, `SmoothedHinge()`, `Sigmoid()`: a classifier, of any number of
              classes; or as the command line takes it: "logistic", "huber:0.5"
    penalty   `L1(...)`, `Box(...)`, ..., anything with value(x) and prox(x, t); or a text:
              "l1:0.1", "l1:0.1 + box:-1,1"; default none

    The other parameters are those of `Decentralized`. Features are centred where there is an
    intercept, but not scaled: a penalty may mean their units.
    """

    scales_features = False
    besides = ", or bring features to a like scale, which this leaves to you"
    smaller = "give a loss with a ridge, as Logistic(ridge=1e-3), or a penalty"

    def __init__(
        self,
        loss: Any = None,
        penalty: Any = None,
        *,
        fit_intercept: bool = True,
        class_weight: Any = None,
        n_nodes: int = 10,
        graph: Any = "random",
        method: Method | str = METHOD,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        random_state: Any = 0,
        privacy: DP | None = None,
    ) -> None:
        self._keep(locals())

    loss: Any
    penalty: Any

    def predict(self, X: Any) -> np.ndarray:
        """Labels, or <w, x> + b; a custom loss's model is taken to be such a w."""
        check_is_fitted(self)
        if self._classifies:
            return self._votes(X)
        if self.coef_.shape != (self.n_features_in_,):
            raise ProblemError("only the custom loss knows what its model predicts: use coef_")
        return self._margins(X)

    @available_if(votes)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        return self._decisions(X)

    @available_if(tells_chances)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        return self._probabilities(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, R² of a regressor."""
        metric = accuracy_score if self._classifies else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        loss = loss_of(self.loss)
        if loss is not None and not hasattr(loss, "linear"):
            raise ProblemError(f"loss={self.loss!r} is not a loss: give one such as ew.Logistic()")
        if not getattr(loss, "linear", True) and self.fit_intercept:
            raise ProblemError(
                "a CustomLoss has no intercept: set fit_intercept=False, and make an intercept "
                "part of your function's x if there is to be one"
            )

    def _labels(
        self, y: np.ndarray, weight: np.ndarray, fresh: bool, classes: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        if self._classifies:
            return super()._labels(y, weight, fresh, classes)
        return np.asarray(y, np.float64), weight

    @property
    def _pair(self) -> bool:
        return super()._pair and kind_of(self.loss) is not Multinomial

    def _loss(self, classes: np.ndarray | None) -> Any:
        loss = Squared() if self.loss is None else loss_of(self.loss)
        return coded(loss, len(classes)) if classes is not None else loss

    def _chosen(self, problem: SharedProblem) -> tuple[Any, str]:
        """Of several models that are as good, pdmm comes to the shortest: it steps along rows."""
        if self.method != METHOD or problem.penalised or not problem.loss.linear:
            return self.method, ""
        if not problem.convex:
            return self.method, ""
        if np.any(problem.loss.ridge) or not undetermined(problem):
            return self.method, ""
        return "pdmm", "auto: pdmm, because the data leave several models: the shortest"

    def _regularised(self, loss: Any, scaling: FeatureScaling, total: float) -> tuple[Any, Any]:
        return loss, self.penalty

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if kind_of(self.loss) in CLASSIFYING:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

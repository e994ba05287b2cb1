"""Logistic regression and a support vector machine."""

from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from edgewise.differential_privacy.budget import DP
from edgewise.errors import DataError
from edgewise.methods.contract import Method
from edgewise.problem.losses import Logistic, SmoothedHinge
from edgewise.sklearn.base import MAX_ITER, METHOD, TOL, Decentralized
from edgewise.sklearn.checks import require
from edgewise.sklearn.solver_problem import coded


class ClassVoting(Decentralized):
    """What has classes."""

    class_weight: Any = None

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """As `fit`, from the models and duals where the last call ended. `classes`: all of them,
        where the first call's samples do not have them all."""
        return self._fit(X, y, sample_weight, fresh=False, classes=classes, groups=groups)

    def _labels(
        self, y: np.ndarray, weight: np.ndarray, fresh: bool, classes: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        check_classification_targets(y)
        present = np.unique(y[weight > 0])
        if fresh or not hasattr(self, "classes_"):
            known = present if classes is None else np.unique(classes)
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(known, np.unique(classes)):
                raise DataError(f"the classes were {known} in the first call: give the same")
        if len(known) < 2:
            raise DataError(
                f"all samples are of one class, {known[0]!r}: {type(self).__name__} needs two "
                "classes over all nodes together (a single node may have one)"
            )
        unknown = np.setdiff1d(present, known)
        if len(unknown):
            raise DataError(f"label {unknown[0]!r} is none of the classes {known}")
        weight = weight * self._by_class(y, weight, present)
        self.classes_ = known
        codes = np.searchsorted(known, y).clip(max=len(known) - 1)  # beyond: samples without weight
        return (2.0 * codes - 1 if self._pair else codes.astype(np.float64)), weight

    @property
    def _pair(self) -> bool:
        """Whether one margin tells two classes apart."""
        return len(self.classes_) == 2

    def _by_class(self, y: np.ndarray, weight: np.ndarray, present: np.ndarray) -> np.ndarray:
        """(N,)"""
        if self.class_weight is None:
            return np.ones(len(y))
        if not isinstance(self.class_weight, dict) and self.class_weight != "balanced":
            raise DataError(
                f"class_weight={self.class_weight!r}: give 'balanced', a dict with a weight per "
                "class, or None"
            )
        live = weight > 0
        chosen = self.class_weight
        if isinstance(chosen, dict):  # weights of classes that this batch lacks do no harm
            chosen = {label: w for label, w in chosen.items() if label in present}
        each = compute_class_weight(
            chosen or None, classes=present, y=y[live], sample_weight=weight[live]
        )
        return np.where(live, each[np.searchsorted(present, y).clip(max=len(present) - 1)], 0.0)

    def _decisions(self, X: Any) -> np.ndarray:
        """(N,) for two classes, else (N, C)."""
        z = self._margins(X)
        return z[:, 1] - z[:, 0] if z.ndim == 2 and z.shape[1] == 2 else z

    def _votes(self, X: Any) -> np.ndarray:
        z = self._decisions(X)
        return self.classes_[(z > 0).astype(int) if z.ndim == 1 else z.argmax(1)]

    def _probabilities(self, X: Any) -> np.ndarray:
        z = self._decisions(X)
        return np.stack([expit(-z), expit(z)], 1) if z.ndim == 1 else softmax(z, axis=1)


class Classifier(ClassifierMixin, ClassVoting):  # type: ignore[misc]
    C: float

    def decision_function(self, X: Any) -> np.ndarray:
        """(N,) positive for the second of two classes; (N, C) for more."""
        return self._decisions(X)

    def predict(self, X: Any) -> np.ndarray:
        return self._votes(X)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require("C", self.C, 0, beyond=True)


class DecentralizedLogisticRegression(Classifier):
    """C Σ loss + l1_ratio |w|₁ + (1 - l1_ratio)/2 |w|², as sklearn.linear_model.LogisticRegression:
    logistic for two classes, multinomial for more; C=inf is no penalty. The parameters of the
    network are those of `Decentralized`."""

    l1_ratio: float

    def __init__(
        self,
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
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

    def predict_proba(self, X: Any) -> np.ndarray:
        """(N, C)"""
        return self._probabilities(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        return np.log(self._probabilities(X))

    def _loss(self, classes: np.ndarray | None) -> Any:
        assert classes is not None
        return coded(Logistic(), len(classes))

    def _strengths(self, total: float) -> tuple[float, float]:
        return self.l1_ratio / (self.C * total), (1 - self.l1_ratio) / (self.C * total)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require("l1_ratio", self.l1_ratio, 0, 1)


class DecentralizedSVC(Classifier):
    """C Σ hinge + |w|²/2, the hinge's corner rounded over `width`; more than two classes each
    against the rest. As `width` falls this comes to sklearn.svm.SVC(kernel="linear") for two
    classes, and needs ever more rounds: about 300 at 0.1, 500 at 0.01, and below 0.001 thousands or
    none that suffice, which a warning says. The parameters of the network are those of
    `Decentralized`."""

    width: float
    raised = ("max_iter", "tol", "width")

    def __init__(
        self,
        *,
        C: float = 1.0,
        width: float = 0.5,
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

    def _loss(self, classes: np.ndarray | None) -> Any:
        assert classes is not None
        return coded(SmoothedHinge(width=self.width), len(classes))

    def _strengths(self, total: float) -> tuple[float, float]:
        return 0.0, 1 / (self.C * total)

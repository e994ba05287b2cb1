"""A fitted model as other programs have it: a scikit-learn estimator, an ONNX file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.data.scaling import Standardization
from edgewise.errors import InputError
from edgewise.fileio import replacing, written

WITH_LINK = ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")


def sklearn_estimator(
    name: str,
    coef: np.ndarray,
    intercept: np.ndarray,
    classes: np.ndarray | None,
    columns: Sequence[str] | None,
    rounds: int,
    parameters: dict[str, Any],
) -> Any:
    """A fitted estimator of scikit-learn, which predicts; to fit it again is to start anew."""
    from sklearn import linear_model
    from sklearn.svm import LinearSVC

    if not name:
        raise InputError("scikit-learn has no estimator with this loss: use the model itself")
    kind: Any = LinearSVC if name == "LinearSVC" else getattr(linear_model, name)
    made = kind(**parameters)
    if name in WITH_LINK:  # which a fit makes
        made.fit(np.zeros((2, coef.shape[1])), np.ones(2))
        made.n_iter_ = rounds
    if classes is None:
        made.coef_, made.intercept_ = coef[0], intercept[0]  # a NumPy number, as theirs
    else:
        made.coef_, made.intercept_, made.classes_ = coef, intercept, np.asarray(classes)
        made.n_iter_ = np.array([rounds]) if name == "LogisticRegression" else rounds
    remember_columns(made, coef.shape[1], columns)
    return made


def with_scaling(estimator: Any, scaling: Standardization, columns: Sequence[str] | None) -> Any:
    """The same in a pipeline behind its scaling, with the rows brought to length 1 where they
    were."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    scaler = StandardScaler(with_mean=scaling.centred)
    scaler.mean_ = scaling.centre if scaling.centred else None
    scaler.scale_, scaler.var_ = scaling.scale, scaling.scale**2
    remember_columns(scaler, len(scaling.scale), columns)
    estimator = without_columns(estimator)
    steps = [scaler, Normalizer()] if scaling.unit_rows else [scaler]
    return make_pipeline(*steps, estimator)


def remember_columns(estimator: Any, count: int, columns: Sequence[str] | None) -> None:
    estimator.n_features_in_ = count
    if columns is not None:
        estimator.feature_names_in_ = np.array(columns, object)


def without_columns(estimator: Any) -> Any:
    """What comes later in a pipeline is handed arrays."""
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return estimator


def write_onnx(estimator: Any, features: int, path: str | Path) -> Path:
    """One input of doubles, (N, features). A classifier has two outputs: labels, and (N, C)
    probabilities, or where it tells none its margins."""
    try:
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import DoubleTensorType
    except ImportError as missing:
        raise InputError(
            f"ONNX needs skl2onnx ({missing}): pip install 'edgewise[onnx]'"
        ) from missing
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    options = None
    if hasattr(last, "classes_"):
        told = "zipmap" if hasattr(last, "predict_proba") else "raw_scores"
        options = {id(last): {told: told == "raw_scores"}}
    made = to_onnx(
        estimator, initial_types=[("X", DoubleTensorType([None, features]))], options=options
    )
    with written(path), replacing(Path(path)) as file:
        file.write(made.SerializeToString())
    return Path(path)

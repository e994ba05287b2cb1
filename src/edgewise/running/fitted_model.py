"""A model, kept and used: predictions, scikit-learn, ONNX, and one plain JSON file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.data import frames
from edgewise.data.preparation import Preparation
from edgewise.data.scaling import Standardization
from edgewise.errors import DataError, InputError, ProblemError
from edgewise.fileio import write_text, written
from edgewise.problem.from_text import loss_of
from edgewise.running.goodness import explained, predictions
from edgewise.running.model_export import sklearn_estimator, with_scaling, write_onnx
from edgewise.running.model_form import KINDS, Kind, ModelForm
from edgewise.running.model_input import as_features, is_raw, without_terms

MODEL = "model.json"
FORMAT = {"format": "edgewise-model", "version": 2}


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A linear model that takes data as they came: `result.model`, or `load_model(path)`.

    `coef` is in the units of the data, whatever scaling they were fitted in; only where rows were
    brought to length 1 is it that of the rows so made. A table with column names is brought into
    the order of the fit, and refused where a column is missing or unknown. Data without names are
    checked by the number of columns alone. Of a table that was prepared, texts encoded and cells
    filled in, it takes a table as that was, and does the same to it.
    """

    loss: str  # as the command line has it: "logistic", "huber:1.5"
    coef: np.ndarray = field(repr=False)  # (C, p), one row for two classes and for numbers
    intercept: np.ndarray = field(repr=False)  # (C,)
    classes: np.ndarray | None = None
    columns: tuple[str, ...] | None = field(default=None, repr=False)
    preparation: Preparation | None = field(default=None, repr=False)  # of tables, before
    penalty: str = ""
    scaling: Standardization | None = field(default=None, repr=False)  # of the fit
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, form: ModelForm, x: np.ndarray, provenance: Mapping[str, Any]) -> "FittedModel":
        if not form.kind:
            raise ProblemError(
                "only the loss itself knows what its model predicts: keep result.x, or write your "
                "own predictions"
            )
        if not np.isfinite(x).all():
            raise ProblemError(f"there is no model to keep: the run {provenance.get('message')}")
        W, b = form.weights(np.asarray(x, np.float64))
        made = cls(
            loss=form.loss,
            coef=W,
            intercept=b,
            classes=form.classes,
            columns=form.columns,
            preparation=form.preparation,
            penalty=form.penalty,
            provenance={**provenance, **form.facts},
        )
        return made if form.scaling is None else made.before(form.scaling)

    def before(self, scaling: Standardization) -> "FittedModel":
        """The same model for data as they were before this scaling."""
        W, b = self.coef, self.intercept
        if not scaling.unit_rows:
            W, b = scaling.unscaled(W, b)
        return replace(self, coef=W, intercept=b, scaling=scaling)

    @property
    def kind(self) -> Kind:
        return KINDS[self.loss.partition(":")[0]]

    @property
    def family(self) -> Any:
        """The loss itself: `mean`, `variance` and `deviance` are those of its labels."""
        return loss_of(self.loss)

    @property
    def label(self) -> str | None:
        """What the column of labels was called in the fit, where that is known."""
        return None if self.preparation is None else self.preparation.label

    @property
    def converged(self) -> bool:
        """Whether the run that it is of had come to its goal."""
        return bool(self.provenance.get("converged", False))

    @property
    def features(self) -> int:
        return int(self.coef.shape[1])

    @property
    def coefficients(self) -> dict[str, Any]:
        """By column, x0, x1, ... where columns have no names: a number, or one per class."""
        names = self.columns or [f"x{j}" for j in range(self.features)]
        values = self.coef.T.tolist() if len(self.coef) > 1 else self.coef[0].tolist()
        return dict(zip(names, values, strict=True))

    # --- answers ---------------------------------------------------------------------------------

    def decision_function(self, X: Any, offset: Any = None, exposure: Any = None) -> np.ndarray:
        """(N,) margins <w, x> + b, and an offset; (N, C) with more than two classes.

        offset, exposure  as `Problem` takes them, one per row or one for all. Of a table they are
                          by themselves the columns that the model was fitted with
        """
        X, added = without_terms(X, self.preparation, offset, exposure)
        z = self.margins(self.matrix(X))
        return z if added is None else z + added

    def matrix(self, X: Any, names: Sequence[str] | None = None) -> Any:
        """(N, p) numbers in the model's order, of a table as it was before its preparation, or of
        prepared features; `names` are an array's columns."""
        X, made = frames.as_pandas(X), self.preparation
        if made is not None and is_raw(X, made, self.columns):
            whole = replace(made, missing=None) if made.missing == "drop" else made
            X = whole.apply(X)  # which refuses what is missing, where rows were left out
        return as_features(X, self.columns, self.features, names)

    def margins(self, matrix: Any) -> np.ndarray:
        """(N,) or (N, C), of features as `matrix` makes them."""
        if self.scaling is not None and self.scaling.unit_rows:
            matrix = self.scaling.apply(matrix)
        z = np.asarray(matrix @ self.coef.T) + self.intercept
        return z[:, 0] if z.shape[1] == 1 else z

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> np.ndarray:
        """(N,) labels as they were given, or numbers: of `Poisson` and the like their means."""
        return self.decided(self.decision_function(X, offset, exposure))

    def predict_proba(self, X: Any, offset: Any = None) -> np.ndarray:
        """(N, C) of each class, in the order of `classes`."""
        self.require_chances()
        return self.chances(self.decision_function(X, offset))

    def score(self, X: Any, y: Any, offset: Any = None, exposure: Any = None) -> float:
        """The part of labels that are right; R² where they are numbers; of `Poisson` and the like
        D², the part of the deviance that is explained; of `Quantile` that of the pinball loss."""
        X, added = without_terms(X, self.preparation, offset, exposure)
        z = self.margins(self.matrix(X))
        return self.scored(z if added is None else z + added, y, added)

    def decided(self, z: np.ndarray) -> np.ndarray:
        """Predictions from margins."""
        if self.classes is None:
            return predictions(self.family, z)
        return self.classes[(z > 0).astype(int) if z.ndim == 1 else z.argmax(1)]

    def require_chances(self) -> None:
        if not self.kind.chances:
            raise ProblemError(
                f"a model with loss {self.loss} tells no probabilities: fit it with Logistic, or "
                "with Multinomial"
            )

    def chances(self, z: np.ndarray) -> np.ndarray:
        """Probabilities from margins."""
        from scipy.special import expit, softmax

        return np.stack([expit(-z), expit(z)], 1) if z.ndim == 1 else softmax(z, axis=1)

    def scored(self, z: np.ndarray, y: Any, offset: Any = None) -> float:
        """Of margins, which have the offset in them."""
        y = np.asarray(y)
        if y.shape != z.shape[:1]:
            raise DataError(f"{y.shape} labels for {len(z)} rows: give one per row")
        if self.classes is not None:
            return float(np.mean(self.decided(z) == y))
        return explained(self.family, z, y, offset)

    # --- other programs --------------------------------------------------------------------------

    def to_sklearn(self) -> Any:
        """A fitted LogisticRegression, LinearSVC, LinearRegression, PoissonRegressor, ... of
        scikit-learn, which knows the columns' names; behind a scaling where rows were brought to
        length 1. It knows no offset: means are those without."""
        made = self._estimator(self.coef, self.intercept)
        if self.scaling is not None and self.scaling.unit_rows:
            return with_scaling(made, self.scaling, self.columns)
        return made

    def to_onnx(self, path: str | Path) -> Path:
        """Write it as ONNX: one input X of doubles, (N, features), in the order of `columns`.

        Needs `pip install 'edgewise[onnx]'`. The scaling is a step of its own there, as ONNX adds
        margins up in single precision.
        """
        if self.scaling is None:
            return write_onnx(self.to_sklearn(), self.features, path)
        parts = (self.coef, self.intercept)
        if not self.scaling.unit_rows:
            parts = self.scaling.scaled(*parts)
        made = with_scaling(self._estimator(*parts), self.scaling, None)
        return write_onnx(made, self.features, path)

    def _estimator(self, coef: np.ndarray, intercept: np.ndarray) -> Any:
        rounds = int(self.provenance.get("rounds") or 1)
        name, family = self.kind.estimator, self.family
        given: dict[str, Any] = {}
        if name == "TweedieRegressor":
            given = {"power": family.power, "link": "log"}
        elif name == "QuantileRegressor":
            given = {"quantile": family.level, "alpha": 0.0}
        return sklearn_estimator(name, coef, intercept, self.classes, self.columns, rounds, given)

    # --- the file --------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write plain JSON: to `path` if it ends in .json, else to path/model.json."""
        with written(path):
            return self.write(path)

    def write(self, path: str | Path) -> Path:
        """What `save` does, for those who look after an OSError themselves."""
        path = Path(path)
        file = path if path.suffix == ".json" else path / MODEL
        write_text(file, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")
        return file

    def to_dict(self) -> dict[str, Any]:
        b = self.intercept
        scaling = None if self.scaling is None else self.scaling.to_dict()
        return {
            **FORMAT,
            "loss": self.loss,
            "penalty": self.penalty,
            "classes": None if self.classes is None else np.asarray(self.classes).tolist(),
            "intercept": float(b[0]) if len(b) == 1 else b.tolist(),
            "coefficients": self.coefficients,
            "columns_have_names": self.columns is not None,
            "preparation": None if self.preparation is None else self.preparation.to_dict(),
            "scaling": scaling,
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "FittedModel":
        names = tuple(given["coefficients"])
        coef = np.array([given["coefficients"][name] for name in names], np.float64)
        classes, scaling, preparation = (
            given[name] for name in ("classes", "scaling", "preparation")
        )
        made = cls(
            loss=str(given["loss"]),
            coef=np.ascontiguousarray(coef.reshape(len(names), -1).T),
            intercept=np.atleast_1d(np.array(given["intercept"], np.float64)),
            classes=None if classes is None else np.array(classes),
            columns=names if given["columns_have_names"] else None,
            preparation=None if preparation is None else Preparation.from_dict(preparation),
            penalty=str(given["penalty"]),
            scaling=None if scaling is None else Standardization.from_dict(scaling),
            provenance=dict(given["provenance"]),
        )
        if not (np.isfinite(made.coef).all() and np.isfinite(made.intercept).all()):
            raise ValueError("coefficients that are not finite")
        if made.scaling is not None and len(made.scaling.scale) != len(names):
            raise ValueError(f"a scaling of {len(made.scaling.scale)} columns for {len(names)}")
        rows = 1 if made.classes is None or len(made.classes) == 2 else len(made.classes)
        if made.coef.shape != (rows, len(names)) or made.intercept.shape != (rows,):
            raise ValueError(f"coefficients of shape {made.coef.shape} for {rows} outputs")
        if made.loss.partition(":")[0] not in KINDS:
            raise ValueError(f"loss {made.loss!r}")
        return made


def load_model(path: str | Path) -> FittedModel:
    """A model from where it was kept: a folder that `result.save`, `edgewise solve` or a peer
    wrote, or a model.json.

    >>> shards = [(np.eye(2), [1.0, 2.0]), (np.eye(2), [1.0, 2.0])]
    >>> problem = edgewise.Problem(shards, edgewise.Squared())
    >>> result = edgewise.solve(problem, edgewise.Graph.path(2))
    >>> file = result.save("model")
    >>> edgewise.load_model("model").predict([[1.0, 1.0]]).round(6)
    array([3.])
    """
    path = Path(path)
    file = path / MODEL if path.is_dir() else path
    try:
        saved = json.loads(file.read_text())
    except FileNotFoundError:
        raise InputError(
            f"there is no model {file}: give the folder of a run that has ended (one that "
            "diverged, or has a loss of its own, leaves none), or what result.save wrote"
        ) from None
    except (OSError, ValueError) as problem:
        raise InputError(f"{file} cannot be read ({problem}): save the model again") from None
    if not isinstance(saved, dict) or {k: saved.get(k) for k in FORMAT} != FORMAT:
        raise InputError(f"{file} is no model as this version writes it: save the model again")
    try:
        return FittedModel.from_dict(saved)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise InputError(f"{file} is damaged ({problem!r}): save the model again") from None

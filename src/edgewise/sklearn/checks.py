"""What estimators are given beside X and y, looked at before a fit."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from edgewise.data.arrays import LARGEST, is_absent, is_sparse, unusable_rows
from edgewise.data.scaling import Standardization
from edgewise.data.shards import Shards, more
from edgewise.errors import DataError, ProblemError

IN_UNITS = f"give numbers below {LARGEST:g}, in a larger unit"


def refuse_unusable(X: Any, y: np.ndarray, names: Sequence[str] | None) -> None:
    """What scikit-learn lets through: numbers that cannot be squared, and texts without a text."""
    if y.dtype == object and (without := [k for k, label in enumerate(y) if is_absent(label)]):
        raise DataError(
            f"y has no label in row {without[0]}{more(np.array(without))}: drop that sample or "
            "fill in its label"
        )
    if y.dtype.kind == "f" and not (small := np.abs(y) < LARGEST).all():
        k = int(np.argmin(small))
        raise DataError(f"y has {y[k]:.3g} in row {k}: {IN_UNITS}")
    rows = unusable_rows(X.data if is_sparse(X) else X)
    if not len(rows):
        return
    if is_sparse(X):
        rows = np.unique(np.searchsorted(X.indptr, rows, side="right") - 1)
    row = X[[rows[0]]].toarray()[0] if is_sparse(X) else X[rows[0]]
    j = int(np.argmin(np.abs(row) < LARGEST))
    column = f"column {j}" if names is None else f"column {names[j]!r}"
    raise DataError(f"X has {row[j]:.3g} in {column}, row {rows[0]}{more(rows)}: {IN_UNITS}")


def refuse_unaccounted(estimator: Any, sample_weight: Any, fresh: bool) -> None:
    """What a private fit cannot take, as noise does not cover it."""
    what = ""
    if sample_weight is not None or getattr(estimator, "class_weight", None) is not None:
        what = "weights let one sample count more than another: leave them out"
    elif not fresh:
        what = "partial_fit would spend the budget anew in every call: call fit"
    elif estimator._units is not None:
        what = "the shards were scaled by means and spreads of these data: scale by constants"
    if what:
        raise ProblemError(f"this cannot be accounted for under differential privacy: {what}")


def weights_of(sample_weight: Any, samples: int, order: np.ndarray | None) -> np.ndarray:
    """(N,) in the order of the rows."""
    if sample_weight is None:
        return np.ones(samples)
    try:
        weight = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError) as wrong:
        raise DataError("sample_weight must be numbers, one per sample") from wrong
    if weight.shape != (samples,):
        raise DataError(f"sample_weight has shape {weight.shape}: give {samples}, one per sample")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise DataError("sample_weight must be finite and not negative")
    if not weight.any():
        raise DataError("sample_weight is zero for every sample: give some a positive weight")
    return weight if order is None else weight[order]


def require(
    name: str, value: Any, least: float, most: float = np.inf, beyond: bool = False
) -> None:
    """A number from least to most; above least where it says `beyond`."""
    fits = isinstance(value, Real) and least <= float(value) <= most
    if not fits or (beyond and value == least):
        low = f"above {least:g}" if beyond else f"from {least:g}"
        high = " up" if most == np.inf else f" to {most:g}"
        raise ProblemError(f"{name}={value!r}: give a number {low}{'' if beyond else high}")


def by_group(groups: Any, samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The groups' names in order, (N,) rows with those of a group together, and how many each
    has."""
    try:
        given = np.asarray(groups)
        names, at = np.unique(given, return_inverse=True)
    except TypeError as wrong:
        raise DataError("groups must be names of one kind, text or numbers, not both") from wrong
    if given.shape != (samples,):
        raise DataError(f"groups has shape {given.shape}: give {samples} names, one per sample")
    if (names != names).any():
        raise DataError("groups has a NaN: say of every sample whose it is")
    return names, np.argsort(at, kind="stable"), np.bincount(at)


def units_of(
    held: Shards | None, fresh: bool, known: Standardization | None
) -> Standardization | None:
    """How the shards were standardised: penalties are on those coefficients, and what an estimator
    tells and takes is in the units that the data came in. `known` is that of the first fit."""
    scaling = None if held is None else held.scaling
    if scaling is not None and scaling.unit_rows:
        raise DataError(
            "the shards' rows were brought to length 1, which weights cannot undo: give shards as "
            "they were, or standardised ones"
        )
    if not fresh and not same_units(scaling, known):
        raise DataError("these data are not scaled as those of the first fit were: give the same")
    return scaling


def same_units(one: Standardization | None, other: Standardization | None) -> bool:
    if one is None or other is None:
        return one is other
    same = np.array_equal(one.centre, other.centre)
    return same and np.array_equal(one.scale, other.scale)

"""Features and labels as the solver sees them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from edgewise.data.arrays import is_sparse
from edgewise.methods.auto import MOST_UNKNOWNS

EVEN = 100  # times the usual size of a sparse column's largest entry: up to here none stands out


@dataclass(frozen=True)
class FeatureScaling:
    """The solver fits (x - centre) / scale and y - shift.

    That is another way to write the same problem: an intercept without a penalty takes up a
    centre and a shift, and penalties are weighed by the scales. It only needs fewer rounds. Nodes
    can agree on both from sums over their samples, by averaging, before they begin.

    Many sparse columns of a like unit, those of text say, stay as they are: a rare word would make
    its row a long one, and with sampled gradients the longest row decides on the step.
    """

    centre: np.ndarray  # (p,)
    scale: np.ndarray  # (p,)
    shift: float = 0.0

    @classmethod
    def none(cls, features: int) -> "FeatureScaling":
        """Of data that are taken as they are."""
        return cls(np.zeros(features), np.ones(features))

    @classmethod
    def of(cls, X: Any, weight: np.ndarray, centred: bool, scaled: bool) -> "FeatureScaling":
        share = weight / weight.sum()
        p = X.shape[1]
        sparse = is_sparse(X)
        mean = np.asarray(share @ X, np.float64).ravel()
        centre = mean if centred and not sparse else np.zeros(p)  # sparse rows are to stay so
        if not scaled or (sparse and p > MOST_UNKNOWNS and is_even(X)):
            return cls(centre, np.ones(p))
        if sparse:
            square = np.asarray(share @ X.multiply(X), np.float64).ravel()
        else:
            square = sum(
                share[r] @ (np.asarray(X[r], np.float64) - centre) ** 2 for r in row_chunks(X)
            )
        size = np.sqrt(square)
        constant = size <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
        return cls(centre, np.where(constant, 1.0, size))

    def apply(self, X: Any, dtype: Any) -> Any:
        if is_sparse(X):
            return sp.csr_array(X @ sp.diags_array(1 / self.scale), dtype=dtype)
        out = np.empty(X.shape, dtype)
        for r in row_chunks(X):
            out[r] = (X[r] - self.centre) / self.scale
        return out

    def plain(self, W: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (..., p) and intercepts (...) for features and labels as they were."""
        W = W / self.scale
        return W, bias - W @ self.centre + self.shift


def is_even(X: Any) -> bool:
    """Whether no column's largest entry stands out."""
    largest = np.asarray(abs(X).max(axis=0).todense()).ravel()
    found = largest[largest > 0]
    return bool(len(found) == 0 or found.max() <= EVEN * np.median(found))


def row_chunks(X: np.ndarray) -> list[slice]:
    rows = max(1, (1 << 20) // max(1, X.shape[1]))
    return [slice(a, a + rows) for a in range(0, len(X), rows)]

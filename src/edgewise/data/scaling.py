"""Columns in units of their own spread, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from edgewise.data.arrays import Array, Matrix, aligned_empty, as_matrix, row_blocks
from edgewise.errors import DataError


@dataclass(frozen=True, eq=False)
class Standardization:
    """z = (x - centre) / scale, column by column. `edgewise.standardize` makes it.

    The first three are what it takes to apply it; the others say what it was made from.
    """

    centre: Array  # (p,) zeros where columns were not centred, as sparse ones are not
    scale: Array  # (p,) one where a column is constant
    unit_rows: bool = False  # whether every row is brought to length 1 after that
    mean: Array | None = None  # (p,) weighted
    variance: Array | None = None  # (p,) about the mean, of all samples: divided by their weight
    count: int = 0  # samples
    rounds: int = 0  # of messages that the sums took
    bytes_sent: float = 0.0
    reached: bool = True  # whether every sum is as exact as was asked for

    @property
    def centred(self) -> bool:
        return bool(np.any(self.centre))

    def apply(self, X: Any) -> Matrix:
        """X in units of the columns' spread, in X's own precision."""
        given: Any = self._fitting(X)
        if not isinstance(given, np.ndarray):
            if self.centred:
                raise DataError(
                    "X is sparse, and centred columns would not be: give it dense, or standardize "
                    "sparse shards, which are scaled only"
                )
            scaled = given @ sp.diags_array(1 / self.scale)
            if self.unit_rows:
                size = np.sqrt(scaled.multiply(scaled).sum(1))
                scaled = sp.diags_array(1 / np.where(size > 0, size, 1)) @ scaled
            return as_matrix(sp.csr_array(scaled, dtype=given.dtype))
        out = aligned_empty(given.shape, given.dtype)
        for rows in row_blocks(given):
            block = (given[rows] - self.centre) / self.scale
            if self.unit_rows:
                size = np.linalg.norm(block, axis=1, keepdims=True)
                block /= np.where(size > 0, size, 1)
            out[rows] = block
        return out

    def inverse(self, Z: Any) -> Matrix:
        """Back to the units that X had."""
        if self.unit_rows:
            raise DataError("rows were brought to length 1: what they were is not known any more")
        given: Any = self._fitting(Z)
        if not isinstance(given, np.ndarray):
            if self.centred:
                raise DataError("Z is sparse, and its columns were centred: give it dense")
            return as_matrix(sp.csr_array(given @ sp.diags_array(self.scale), dtype=given.dtype))
        out = aligned_empty(given.shape, given.dtype)
        for rows in row_blocks(given):
            out[rows] = given[rows] * self.scale + self.centre
        return out

    def unscaled(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Weights (..., p) and intercepts (...) of the same model for X as it was."""
        W = W / self.scale
        return W, b - W @ self.centre

    def scaled(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Weights and intercepts of the same model for standardised X."""
        return W * self.scale, b + W @ self.centre

    def to_dict(self) -> dict[str, Any]:
        return {
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
            "unit_rows": self.unit_rows,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Standardization:
        centre, scale = (np.array(given[name], np.float64) for name in ("centre", "scale"))
        return cls(centre, scale, unit_rows=bool(given["unit_rows"]))

    def _fitting(self, X: Any) -> Matrix:
        given = as_matrix(X)
        if given.shape[1] != len(self.scale):
            raise DataError(
                f"X has {given.shape[1]} columns, the standardisation is of {len(self.scale)}: "
                "give the same"
            )
        return given

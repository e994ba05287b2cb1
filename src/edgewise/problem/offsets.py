"""What is added to each sample's margin, known ahead: an offset, or an exposure's logarithm."""

from typing import Any

import numpy as np

from edgewise.data.folders import FolderShards
from edgewise.data.shards import Shards
from edgewise.errors import DataError, ProblemError


def of_each_sample(name: str, given: Any, samples: int) -> np.ndarray:
    """Finite numbers, one per sample."""
    try:
        numbers = np.asarray(given, np.float64)
    except (TypeError, ValueError) as wrong:
        raise DataError(f"{name} must be numbers, one per sample") from wrong
    if numbers.shape != (samples,):
        raise DataError(f"{name} has shape {numbers.shape}: give {samples}, one per sample")
    if not np.isfinite(numbers).all():
        raise DataError(f"{name} must be finite{' and not negative' * (name == 'sample_weight')}")
    return numbers


def log_exposure(exposure: np.ndarray, name: str = "exposure") -> np.ndarray:
    if (exposure <= 0).any():
        raise DataError(
            f"{name} must be positive, and there is {exposure.min():g}: leave samples out that "
            "were not exposed"
        )
    return np.log(exposure)


class Offsets:
    """Those of the whole problem, also where only some of its nodes are asked about."""

    def __init__(
        self, offset: Any, exposure: Any, shards: Shards | FolderShards, loss: Any
    ) -> None:
        kind, samples = type(loss).__name__, shards.samples
        held = shards.offset if isinstance(shards, Shards) else None
        self.each, self.in_order = held, held is not None
        if offset is None and exposure is None and held is None:
            return
        if not loss.linear or loss.outputs != 1:
            raise ProblemError(f"{kind} takes no offset and no exposure: leave them out")
        if exposure is not None and getattr(loss, "link", None) != "log":
            raise ProblemError(
                f"{kind} has no means that grow with an exposure: give Poisson, Gamma, Tweedie or "
                "NegativeBinomial, or an offset"
            )
        if offset is None and exposure is None:
            return
        if held is not None:
            raise DataError("the shards have an offset of their own: leave the other out")
        self.each = np.zeros(samples)
        if offset is not None:
            self.each = self.each + of_each_sample("offset", offset, samples)
        if exposure is not None:
            self.each += log_exposure(of_each_sample("exposure", exposure, samples))

    def of(self, shards: Shards | FolderShards, rows: Any = slice(None)) -> np.ndarray | None:
        """Those of the shards' samples, or None. The shards lie at these rows of all samples."""
        if self.each is None:
            return None
        return self.each[rows if self.in_order or shards.order is None else shards.order]

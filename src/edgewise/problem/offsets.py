"""What is added to each sample's margin, known ahead: an offset, or an exposure's logarithm."""

from dataclasses import replace
from typing import Any

import numpy as np

from edgewise.data.folders import FolderShards
from edgewise.data.row_terms import RowTerms
from edgewise.data.shards import Shards
from edgewise.errors import DataError, ProblemError
from edgewise.problem.families import Binomial


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


def as_rates(shards: Shards, loss: Any, trials: Any, sample_weight: Any) -> tuple[Shards, Any]:
    """Labels that count successes, as parts of the trials, and weights with the trials in them."""
    if not isinstance(loss, Binomial):
        raise ProblemError(f"{type(loss).__name__} knows no trials: give Binomial, or leave them")
    each = of_each_sample("trials", trials, shards.samples)
    if (each <= 0).any():
        raise DataError(f"trials must be positive, and there is {each.min():g}: leave that out")
    held = each if shards.order is None else each[shards.order]
    made = replace(shards, y=RowTerms(trials=held).rates(shards.y))
    if shards.weight is not None:
        return replace(made, weight=shards.weight * held), sample_weight
    if sample_weight is None:
        return made, each
    return made, each * of_each_sample("sample_weight", sample_weight, shards.samples)


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

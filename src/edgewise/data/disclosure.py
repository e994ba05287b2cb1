"""Of how few people a node tells nothing."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.errors import DataError, DisclosureError, whole_number

LEAST = 5  # a node tells no count from one to four, unless it says so


def least_counts(least_count: Any, nodes: int) -> np.ndarray:
    """(V,) of one number for all nodes, or one for each."""
    several = isinstance(least_count, Sequence | np.ndarray)
    given = list(least_count) if several else [least_count] * nodes
    if len(given) != nodes:
        raise DataError(f"{len(given)} least counts for {nodes} nodes: give one, or one per node")
    return np.array([whole_number("least_count", each, 1, DataError) for each in given])


def require_samples(counts: np.ndarray, least_count: Any, what: str) -> None:
    """Raises DisclosureError where a node has fewer samples than it tells anything of."""
    for node, (count, least) in enumerate(
        zip(counts, least_counts(least_count, len(counts)), strict=True)
    ):
        if count < least:
            raise DisclosureError(
                f"node {node} has {int(count)} samples, and tells no {what} of fewer than {least}: "
                "leave the node out, or let it tell of fewer (least_count)"
            )

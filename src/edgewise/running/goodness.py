"""How good predictions are, in one number that is 1 where they are perfect and 0 where they are no
better than one number for all: accuracy of classes, R² of numbers, D² of likelihoods."""

from collections.abc import Callable
from typing import Any

import numpy as np

from edgewise.problem.families import Quantile

Total = Callable[[dict[str, Any]], dict[str, Any]]


def score_kind(loss: Any, classes: Any) -> str:
    if classes is not None:
        return "accuracy"
    return "D²" if has_means(loss) or isinstance(loss, Quantile) else "R²"


def has_means(loss: Any) -> bool:
    """Whether its margins are no predictions yet: means are, by a link."""
    return getattr(loss, "link", "identity") != "identity"


def predictions(loss: Any, z: np.ndarray) -> np.ndarray:
    """Of labels that are numbers."""
    return np.asarray(loss.mean(z)) if has_means(loss) else z


def here(sums: dict[str, Any]) -> dict[str, Any]:
    return sums


def explained(
    loss: Any, z: np.ndarray, y: np.ndarray, offset: Any = None, total: Total = here
) -> float:
    """1 - deviance / deviance of the best single number. With offsets that number is a rate: all
    labels over all exposure. `total` adds up what several processes have."""
    y = np.asarray(y, np.float64)
    with np.errstate(all="ignore"):
        if isinstance(loss, Quantile):  # a quantile of all is no sum
            null = np.quantile(y, loss.level) if total is here else np.nan
            own, zero = pinball(loss, y - z), pinball(loss, y - null)
        elif not has_means(loss):
            first = total({"y": y.sum(), "count": float(len(y))})
            own, zero = (y - z) ** 2, (y - first["y"] / first["count"]) ** 2
        else:
            size = np.ones(len(y))
            if offset is not None and loss.link == "log":
                size = np.exp(offset)
            first = total({"y": y.sum(), "size": size.sum()})
            rate = first["y"] / first["size"]
            null = np.log(rate * size) if loss.link == "log" else np.log(rate / (1 - rate))
            own, zero = loss.deviance(z, y), loss.deviance(np.broadcast_to(null, y.shape), y)
        last = total({"own": own.sum(), "zero": np.sum(zero)})
        return float(1 - last["own"] / last["zero"])


def pinball(loss: Quantile, r: np.ndarray) -> np.ndarray:
    return np.maximum(loss.level * r, (loss.level - 1) * r)

"""What a fit under differential privacy needs, and what it cannot go with: all that would tell of
data besides the noisy gradients that are accounted for."""

from typing import Any

from edgewise.errors import InputError

NEEDED = ("dp_delta", "dp_clip")
UNACCOUNTED = {
    "tol": "peers would stop, and tell each other so, by residuals of their data; give dp_rounds",
    "standardize": "means and spreads are exact sums over data; give the schema constants",
    "holdout": "scores are exact sums over data",
    "summary": "standard errors are made of exact sums over data",
    "case_weight": "one row would count more than another",
    "trials": "one row would count more than another",
}


def require_private(fit: Any, couples: bool, at: str) -> None:
    """Raises InputError unless the fit is not private, or can be."""
    if fit.dp_epsilon is None:
        for name in (*NEEDED, "dp_row_norm"):
            if getattr(fit, name) is not None:
                raise InputError(f"{at}: fit.{name} goes with fit.dp_epsilon: give that too")
        return
    for name in NEEDED:
        if getattr(fit, name) is None:
            raise InputError(f"{at}: fit.dp_epsilon goes with fit.{name}: give that too")
    for name, why in UNACCOUNTED.items():
        if getattr(fit, name):
            raise InputError(
                f"{at}: fit.{name} does not go with fit.dp_epsilon: {why}; leave it out"
            )
    if fit.mode == "strict":
        raise InputError(
            f"{at}: fit.dp_epsilon goes with mode tolerant: a strict peer that is started again "
            "repeats what it sent, and noise is never repeated"
        )
    if couples:
        raise InputError(f"{at}: fit.dp_epsilon does not go with [between]: leave one out")

"""What Gaussian noise costs, by Google's dp-accounting.

A run of T rounds releases T gradients of each node, each a sum to which a sample adds a vector of
length 1 at most (in clips), with noise of deviation z; later ones may depend on earlier ones. That
tells as much as one such sum with noise z / sqrt(T), and no more (Dong, Roth, Su 2022: Gaussian
differential privacy with mu = sqrt(T) / z). From there to epsilon and delta goes the exact formula
of Balle, Wang 2018. In zCDP the same is mu^2 / 2 (Bun, Steinke 2016), in RDP
of order alpha it is alpha mu^2 / 2.
"""

from typing import Any

import numpy as np

from edgewise.errors import MethodError


def accounting() -> Any:
    try:
        import dp_accounting
    except ImportError:
        raise MethodError(
            "differential privacy needs the library dp-accounting, which is not installed: "
            "pip install 'edgewise[privacy]'"
        ) from None
    return dp_accounting


def largest_mu(epsilon: float, delta: float) -> float:
    """What a Gaussian mechanism may have at most, sensitivity over deviation."""
    return 1.0 / float(accounting().get_sigma_gaussian(epsilon, delta))


def epsilon_of(mu: float, delta: float) -> float:
    """What it comes to; zero where nothing is told."""
    if mu <= 0:
        return 0.0
    return float(accounting().get_epsilon_gaussian(1.0 / mu, delta))


def noise_for(epsilon: float, delta: float, rounds: int) -> float:
    """z, in clips, for so many rounds; rounded up, so that rounding spends nothing."""
    return float(np.sqrt(rounds) / largest_mu(epsilon, delta) * (1 + 1e-12))

"""Losses of generalised linear models for counts, rates, amounts and quantiles.

Each is the negative log-likelihood of a label whose mean is exp(z) (`Binomial`: 1 / (1 + exp(-z))),
but for a factor and what does not depend on z; z = <d, x> + intercept + offset. An offset is the
logarithm of an exposure, which is known: `Problem(..., offset=)`. Rates of several trials are
labels with the trials as sample weights.

The curvature of Poisson, Gamma and Tweedie grows with exp(z) and has no bound: `smooth` is False,
and steps by a rule, which need one, are refused (`methods/auto.py`). Newton's method, damped,
needs none.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import DataError, ProblemError
from edgewise.problem.contract import Labels, LinearLoss
from edgewise.problem.likelihoods import Bernoulli, NegativeBinomialLikelihood, PowerVariance
from edgewise.problem.losses import Linear, Logistic, numbers, require_not_negative

SERIES = 1e-3  # of a difference, below which its exponential is a series


def exponential_divergence(d: Array) -> Array:
    """exp(d) - 1 - d, without losing digits near zero."""
    series = d**2 * (1 / 2 + d * (1 / 6 + d * (1 / 24 + d / 120)))
    return jnp.where(jnp.abs(d) < SERIES, series, jnp.expm1(d) - d)


def labels_from(y: np.ndarray, kind: str, least: float, open_end: bool = False) -> Labels:
    """Numbers, at least so large."""
    made, _ = numbers(y, kind)
    wrong = made <= least if open_end else made < least
    if wrong.any():
        need = f"above {least:g}" if open_end else f"{least:g} or more"
        raise DataError(
            f"{kind} takes labels of {need}, and there is {made[wrong][0]:g}: leave it out"
        )
    return made, None


class Exponential(PowerVariance, Linear):
    """What losses with the variance phi mean^power share, by powers from 1 to 2:

    exp((2 - power) z) / (2 - power) + y exp((1 - power) z) / (power - 1)
    """

    smooth: ClassVar[bool] = False

    def value(self, z: Array, y: Array) -> Array:
        p = self.power
        growing = z if p == 2 else jnp.exp((2 - p) * z) / (2 - p)
        return growing + (-y * z if p == 1 else y * self.falling(z, y) / (p - 1))

    def slope(self, z: Array, y: Array) -> Array:
        return jnp.exp((2 - self.power) * z) - y * self.falling(z, y)

    def falling(self, z: Array, y: Array) -> Array:
        """exp((1 - power) z), but for labels of zero, which ask for no more than zero times it:
        their margins may go so far down that it is infinite."""
        return jnp.exp((1 - self.power) * jnp.where(y > 0, z, 0))

    def divergence(self, z: Array, y: Array, at: Array) -> Array:
        p, d = self.power, z - at
        total = jnp.zeros_like(d)
        if p < 2:
            total += jnp.exp((2 - p) * at) * exponential_divergence((2 - p) * d) / (2 - p)
        if p > 1:
            fall = exponential_divergence((1 - p) * jnp.where(y > 0, d, 0))
            total += y * self.falling(at, y) * fall / (p - 1)
        return total

    def curvature(self) -> float:
        return float("inf")

    def curvatures(self, y: np.ndarray) -> np.ndarray:
        """Where the mean is the label."""
        return np.asarray(np.asarray(y, np.float64) ** (2 - self.power))


@pytree()
class Poisson(Exponential):
    """exp(z) - y z: counts, or any numbers of zero or more, whose variance is as their mean."""

    ridge: Any = 0.0
    power = 1.0

    def encode(self, y: np.ndarray) -> Labels:
        return labels_from(y, "Poisson", 0)


@pytree()
class Gamma(Exponential):
    """z + y exp(-z): positive amounts, whose standard deviation is as their mean."""

    ridge: Any = 0.0
    power = 2.0
    estimated: ClassVar[bool] = True

    def encode(self, y: np.ndarray) -> Labels:
        return labels_from(y, "Gamma", 0, open_end=True)


@pytree("power")
class Tweedie(Exponential):
    """Amounts that may be zero, as of insurance claims: variance phi mean^power, 1 <= power <= 2.
    Powers beyond have no convex loss with the logarithm for a link; power 0 is `Squared`."""

    power: float = 1.5
    ridge: Any = 0.0
    estimated: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_not_negative(self, ridge=self.ridge, power=self.power)
        if not 1 <= self.power <= 2:
            raise ProblemError(
                f"Tweedie(power={self.power:g}): give 1 (Poisson) to 2 (Gamma); for 0 take "
                "Squared, and beyond 2 the loss is not convex"
            )

    def encode(self, y: np.ndarray) -> Labels:
        return labels_from(y, f"Tweedie({self.power:g})", 0, open_end=self.power == 2)


@pytree()
class NegativeBinomial(NegativeBinomialLikelihood, Linear):
    """(y + 1/a) log(1 + a exp(z)) - y z: counts whose variance is mean + a mean^2, with the
    dispersion a fixed. `fit_dispersion` finds the one that fits best."""

    dispersion: Any = 1.0
    ridge: Any = 0.0

    def __post_init__(self) -> None:
        require_not_negative(self, ridge=self.ridge, dispersion=self.dispersion)
        if isinstance(self.dispersion, float) and self.dispersion == 0:
            raise ProblemError("NegativeBinomial(dispersion=0) is Poisson: take that")

    def value(self, z: Array, y: Array) -> Array:
        a = self.dispersion
        return (y + 1 / a) * jax.nn.softplus(z + jnp.log(a)) - y * z

    def slope(self, z: Array, y: Array) -> Array:
        a = self.dispersion
        return (y + 1 / a) * jax.nn.sigmoid(z + jnp.log(a)) - y

    def divergence(self, z: Array, y: Array, at: Array) -> Array:
        a = self.dispersion
        return (y + 1 / a) * Logistic().divergence(z + jnp.log(a), y, at + jnp.log(a))

    def curvature(self) -> float:
        return float("inf")  # over all labels

    def curvatures(self, y: np.ndarray) -> np.ndarray:
        return np.asarray((np.asarray(y, np.float64) + 1 / float(self.dispersion)) / 4)

    def encode(self, y: np.ndarray) -> Labels:
        return labels_from(y, "NegativeBinomial", 0)


@pytree()
class Binomial(Bernoulli, Linear):
    """log(1 + exp(z)) - y z: rates y from 0 to 1, successes over trials, with the trials as sample
    weights."""

    ridge: Any = 0.0
    saturates: ClassVar[bool] = True
    trials: ClassVar[bool] = True  # sample weights are

    def value(self, z: Array, y: Array) -> Array:
        return jax.nn.softplus(z) - y * z

    def slope(self, z: Array, y: Array) -> Array:
        return jax.nn.sigmoid(z) - y

    def divergence(self, z: Array, y: Array, at: Array) -> Array:
        return Logistic().divergence(z, y, at)

    def curvature(self) -> float:
        return 0.25

    def encode(self, y: np.ndarray) -> Labels:
        rates, _ = labels_from(y, "Binomial", 0)
        if (rates > 1).any():
            raise DataError(
                f"Binomial takes rates from 0 to 1, and there is {rates.max():g}: divide successes "
                "by trials, and give the trials as sample_weight"
            )
        return rates, None


@pytree()
class Quantile(Linear):
    """The pinball loss of a quantile, its corner rounded: with r = y - z and h half the `width`

        (level - 1/2) r + (r^2 / 2h + h / 2) / 2    where |r| <= h,    max(level r, (level - 1) r)

    elsewhere: the mean of the pinball loss over a window of that width about r (Fernandes, Guerre,
    Horta 2021), at most width / 8 above it. The width is in the units of the labels.
    """

    level: Any = 0.5
    width: Any = 0.1
    hessian_continuous: ClassVar[bool] = False
    ridge: Any = 0.0

    def __post_init__(self) -> None:
        require_not_negative(self, ridge=self.ridge, width=self.width, level=self.level)
        if isinstance(self.width, float) and self.width == 0:
            raise ProblemError("Quantile(width=0) is not smooth: give a positive width")
        if isinstance(self.level, float) and not 0 < self.level < 1:
            raise ProblemError(f"Quantile(level={self.level:g}): give a number between 0 and 1")

    def value(self, z: Array, y: Array) -> Array:
        r, h = y - z, self.width / 2
        near = jnp.minimum(jnp.abs(r), h)
        return (self.level - 0.5) * r + 0.5 * (jnp.abs(r) - near + near**2 / (2 * h) + h / 2)

    def slope(self, z: Array, y: Array) -> Array:
        return jnp.clip((z - y) / self.width, -0.5, 0.5) + 0.5 - self.level

    def secant(self, z: Array, y: Array) -> Array:
        """As Huber's."""
        return 1 / jnp.maximum(2 * jnp.abs(z - y), self.width)

    def curvature(self) -> float:
        return 1.0 / float(self.width)

    def encode(self, y: np.ndarray) -> Labels:
        return numbers(y, "Quantile")


FAMILIES: tuple[type[LinearLoss], ...] = (  # held to the contract by mypy
    Poisson,
    Gamma,
    Tweedie,
    NegativeBinomial,
    Binomial,
    Quantile,
)

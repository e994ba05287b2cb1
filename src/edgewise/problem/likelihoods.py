"""What a loss says as a statistical model: the mean of a label, its variance, how likely it is.

In NumPy, for after a fit: deviances, standard errors, tests. Margins z have the offset in them.
`scale` is the dispersion phi, with Var(y) = phi * variance(mean); models whose scale is not
`estimated` have phi = 1. `weight` are case weights; of `Binomial` they are the trials.
"""

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, gammaln, log_expit, wright_bessel, xlogy

Numbers = Any


class Likelihood:
    """An exponential family's, but for what differs. `deviance` is twice what a sample's
    log-likelihood lacks of the best there is for its label, times the scale."""

    link: ClassVar[str] = "log"
    estimated: ClassVar[bool] = False  # whether phi is unknown

    def mean(self, z: Numbers) -> np.ndarray:
        return np.exp(np.asarray(z, np.float64))

    def variance(self, mean: Numbers) -> np.ndarray:
        raise NotImplementedError

    def deviance(self, z: Numbers, y: Numbers) -> np.ndarray:
        raise NotImplementedError

    def log_likelihood(
        self, z: Numbers, y: Numbers, scale: float = 1.0, weight: Numbers = 1.0
    ) -> np.ndarray:
        raise NotImplementedError

    def pearson(self, z: Numbers, y: Numbers) -> np.ndarray:
        """(y - mean)^2 / variance: its weighted sum over N - n is an estimate of phi."""
        mean = self.mean(z)
        return (self.response(y) - mean) ** 2 / self.variance(mean)

    def response(self, y: Numbers) -> np.ndarray:
        """Labels, as the loss has them encoded, on the scale of the mean."""
        return np.asarray(y, np.float64)


class Gaussian(Likelihood):
    link = "identity"
    estimated = True

    def mean(self, z: Numbers) -> np.ndarray:
        return np.asarray(z, np.float64)

    def variance(self, mean: Numbers) -> np.ndarray:
        return np.ones_like(np.asarray(mean, np.float64))

    def deviance(self, z: Numbers, y: Numbers) -> np.ndarray:
        return (self.response(y) - self.mean(z)) ** 2

    def log_likelihood(
        self, z: Numbers, y: Numbers, scale: float = 1.0, weight: Numbers = 1.0
    ) -> np.ndarray:
        each = -0.5 * (self.deviance(z, y) / scale + np.log(2 * np.pi * scale))
        return np.asarray(weight * each)


class Bernoulli(Likelihood):
    """Rates of a number of trials; `response` tells how labels are rates."""

    link = "logit"

    def mean(self, z: Numbers) -> np.ndarray:
        return np.asarray(expit(np.asarray(z, np.float64)))

    def variance(self, mean: Numbers) -> np.ndarray:
        mean = np.asarray(mean, np.float64)
        return mean * (1 - mean)

    def deviance(self, z: Numbers, y: Numbers) -> np.ndarray:
        rate = self.response(y)
        best = xlogy(rate, rate) + xlogy(1 - rate, 1 - rate)
        return np.asarray(2 * (best - self._per_trial(z, rate)))

    def log_likelihood(
        self, z: Numbers, y: Numbers, scale: float = 1.0, weight: Numbers = 1.0
    ) -> np.ndarray:
        """With the binomial coefficient: weight is the number of trials."""
        rate = self.response(y)
        n = np.asarray(weight, np.float64)
        ways = gammaln(n + 1) - gammaln(n * rate + 1) - gammaln(n * (1 - rate) + 1)
        return np.asarray(ways + n * self._per_trial(z, rate))

    def _per_trial(self, z: Numbers, rate: np.ndarray) -> np.ndarray:
        z = np.asarray(z, np.float64)
        return np.asarray(rate * log_expit(z) + (1 - rate) * log_expit(-z))


class Signed(Bernoulli):
    """Labels -1 and 1."""

    def response(self, y: Numbers) -> np.ndarray:
        return (np.asarray(y, np.float64) + 1) / 2


class PowerVariance(Likelihood):
    """Tweedie's: Var(y) = phi mean^power, with 1 Poisson's, 2 the gamma distribution, and between
    them sums of a Poisson number of gamma variables, which are zero at times."""

    power: Any

    def variance(self, mean: Numbers) -> np.ndarray:
        return np.asarray(np.asarray(mean, np.float64) ** self.power)

    def deviance(self, z: Numbers, y: Numbers) -> np.ndarray:
        y, mean, p = self.response(y), self.mean(z), self.power
        if p == 1:
            return np.asarray(2 * (xlogy(y, y) - y * np.asarray(z) - y + mean))
        if p == 2:
            return np.asarray(2 * (np.asarray(z) - np.log(y) + y / mean - 1))
        best = y ** (2 - p) / ((1 - p) * (2 - p))
        return np.asarray(2 * (best - y * mean ** (1 - p) / (1 - p) + mean ** (2 - p) / (2 - p)))

    def log_likelihood(
        self, z: Numbers, y: Numbers, scale: float = 1.0, weight: Numbers = 1.0
    ) -> np.ndarray:
        y, mean, p = self.response(y), self.mean(z), self.power
        if p == 1:
            return np.asarray(weight * (xlogy(y, mean) - mean - gammaln(y + 1)))
        if p == 2:
            shape = 1 / scale
            each = xlogy(shape, shape * y / mean) - shape * y / mean - np.log(y) - gammaln(shape)
            return np.asarray(weight * each)
        inside = y * mean ** (1 - p) / (1 - p) - mean ** (2 - p) / (2 - p)
        a = (2 - p) / (p - 1)
        positive = np.where(y > 0, y, 1)
        x = ((p - 1) * scale / positive) ** -a / ((2 - p) * scale)
        series = np.log(wright_bessel(a, 0, x)) - np.log(positive)  # Dunn, Smyth 2005
        return np.asarray(weight * (inside / scale + np.where(y > 0, series, 0)))


class NegativeBinomialLikelihood(Likelihood):
    """Var(y) = mean + dispersion mean^2 (NB2)."""

    dispersion: Any

    def variance(self, mean: Numbers) -> np.ndarray:
        mean = np.asarray(mean, np.float64)
        return np.asarray(mean + float(self.dispersion) * mean**2)

    def deviance(self, z: Numbers, y: Numbers) -> np.ndarray:
        y, mean, a = self.response(y), self.mean(z), float(self.dispersion)
        spread = (y + 1 / a) * (np.log1p(a * y) - np.log1p(a * mean))
        return np.asarray(2 * (xlogy(y, y) - y * np.asarray(z) - spread))

    def log_likelihood(
        self, z: Numbers, y: Numbers, scale: float = 1.0, weight: Numbers = 1.0
    ) -> np.ndarray:
        y, mean, a = self.response(y), self.mean(z), float(self.dispersion)
        size = 1 / a
        ways = gammaln(y + size) - gammaln(size) - gammaln(y + 1)
        each = ways + y * (np.log(a) + np.asarray(z)) - (y + size) * np.log1p(a * mean)
        return np.asarray(weight * each)

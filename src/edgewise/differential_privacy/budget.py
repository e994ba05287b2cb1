"""A budget of differential privacy, as users give it."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

from edgewise.errors import MethodError, whole_number

ROUNDS = 400  # where noise is large fewer would do; where it is small more come closer
LARGEST = 50.0  # an epsilon beyond which a guarantee says nothing that anybody could use


@dataclass(frozen=True)
class DP:
    """Fit with (epsilon, delta)-differential privacy of every single sample: `solve(privacy=...)`.

    epsilon     what the whole run may tell of a sample, to whoever sees all that its node sends.
                Two data sets are neighbours where one has a sample and the other, in its place,
                nothing; how many samples a node has is public. For one sample replaced by another
                `result.privacy.epsilon_replace` says what the same run spends
    delta       the probability with which it may tell more: well below 1/samples
    clip        how long one sample's gradient may be, intercept included; longer ones are
                shortened. A constant that is not looked up in the data
    row_norm    how long one row may be; longer ones are scaled down to it, and steps are made of
                it. Default: the clip over the loss's largest slope, so that no gradient is clipped
                beyond that. A loss whose slopes have no bound, such as Squared, needs it
    rounds      noisy gradients that a node releases, each of which costs its part
    noise_seed  an integer makes the noise of `solve` one that can be repeated, for studies: who
                knows it can take it away. Default: 63 bits of the operating system's

    >>> DP(epsilon=3, delta=1e-5, clip=1.0)
    DP(epsilon=3.0, delta=1e-05, clip=1.0, row_norm=None, rounds=400, noise_seed=None)
    """

    epsilon: float
    delta: float
    clip: float
    row_norm: float | None = None
    rounds: int = ROUNDS
    noise_seed: int | None = None

    def __post_init__(self) -> None:
        number(self, "epsilon", LARGEST)
        number(self, "delta", 0.1)
        number(self, "clip")
        if self.row_norm is not None:
            number(self, "row_norm")
        object.__setattr__(self, "rounds", whole_number("DP's rounds", self.rounds, 1, MethodError))
        if self.noise_seed is not None:
            whole_number("DP's noise_seed", self.noise_seed, 0, MethodError)


def number(owner: DP, name: str, most: float = float("inf")) -> None:
    value: Any = getattr(owner, name)
    fits = isinstance(value, Real) and not isinstance(value, bool)
    if not (fits and 0 < float(value) <= most and float(value) < float("inf")):
        limit = "" if most == float("inf") else f", at most {most:g}"
        raise MethodError(f"DP({name}={value!r}): give a positive number{limit}")
    object.__setattr__(owner, name, float(value))

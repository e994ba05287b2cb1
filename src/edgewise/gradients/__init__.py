"""Gradient estimators: parts that a method is composed with, one a file.

Each has `random_draws`, how many 32-bit random numbers a step takes; `init(block, X)`; a call
`(block, X, memory, random_bits) -> (gradients, memory)`; and `auto_step` and `theory_step`, from
how curved the losses are. The memory counts the oracle `calls` of each node. An accelerated one
also has `point(memory, X)`, where the gradient is taken and the answer read, and `tuned`, itself
with its parameters in numbers.
"""

from edgewise.gradients.asvrg import ASVRG
from edgewise.gradients.finite_difference import ExactCoordinates, FiniteDifference
from edgewise.gradients.full import Full
from edgewise.gradients.lsvrg import LSVRG
from edgewise.gradients.plain_svrg import PlainSVRG
from edgewise.gradients.saga import SAGA
from edgewise.gradients.sega import SEGA
from edgewise.gradients.sgd import SGD
from edgewise.gradients.svrg import SVRG

__all__ = [
    "ASVRG",
    "LSVRG",
    "SAGA",
    "SEGA",
    "SGD",
    "SVRG",
    "ExactCoordinates",
    "FiniteDifference",
    "Full",
    "PlainSVRG",
]

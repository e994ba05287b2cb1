"""Gradient estimators: parts that a method is composed with, one a file; `contract` says what they
are."""

from edgewise.gradients.asvrg import ASVRG
from edgewise.gradients.contract import Estimator
from edgewise.gradients.finite_difference import ExactCoordinates, FiniteDifference
from edgewise.gradients.full import Full
from edgewise.gradients.lsvrg import LSVRG
from edgewise.gradients.page import PAGE
from edgewise.gradients.plain_svrg import PlainSVRG
from edgewise.gradients.sag import SAG
from edgewise.gradients.saga import SAGA
from edgewise.gradients.sarah import SARAH
from edgewise.gradients.sega import SEGA
from edgewise.gradients.sgd import SGD
from edgewise.gradients.svrg import SVRG

__all__ = [
    "ASVRG",
    "ESTIMATORS",
    "LSVRG",
    "PAGE",
    "SAG",
    "SAGA",
    "SARAH",
    "SEGA",
    "SGD",
    "SVRG",
    "Estimator",
    "ExactCoordinates",
    "FiniteDifference",
    "Full",
    "PlainSVRG",
]

ESTIMATORS: tuple[type[Estimator], ...] = (  # held to the contract by mypy
    ASVRG,
    Full,
    LSVRG,
    PAGE,
    PlainSVRG,
    SAG,
    SAGA,
    SARAH,
    SEGA,
    SGD,
    SVRG,
)

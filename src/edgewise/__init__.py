"""Edgewise: fit models across machines that keep their own data, with no coordinator."""

from edgewise import data, errors
from edgewise.data import Shards, Stream, split
from edgewise.gradients import (
    ASVRG,
    LSVRG,
    SAGA,
    SEGA,
    SGD,
    SVRG,
    ExactCoordinates,
    FiniteDifference,
    Full,
)
from edgewise.graph import Graph
from edgewise.losses import CustomLoss, Huber, Logistic, Multinomial, SmoothedHinge, Squared
from edgewise.methods import methods
from edgewise.methods.primal_dual import PrimalDual
from edgewise.penalties import (
    L1,
    Box,
    ElasticNet,
    GroupL2,
    HalfSpace,
    L1Ball,
    L2Ball,
    NonNegative,
    NoPenalty,
    Simplex,
    SquaredL2,
)
from edgewise.problem import Problem
from edgewise.reference import Reference, reference
from edgewise.solve import Result, solve
from edgewise.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "ASVRG",
    "L1",
    "LSVRG",
    "SAGA",
    "SEGA",
    "SGD",
    "SVRG",
    "Box",
    "CustomLoss",
    "ElasticNet",
    "ExactCoordinates",
    "FiniteDifference",
    "Full",
    "Graph",
    "GroupL2",
    "HalfSpace",
    "Huber",
    "L1Ball",
    "L2Ball",
    "Logistic",
    "Multinomial",
    "NoPenalty",
    "NonNegative",
    "PrimalDual",
    "Problem",
    "Reference",
    "Result",
    "Shards",
    "Simplex",
    "SmoothedHinge",
    "Squared",
    "SquaredL2",
    "Stream",
    "Trace",
    "data",
    "errors",
    "methods",
    "reference",
    "solve",
    "split",
]

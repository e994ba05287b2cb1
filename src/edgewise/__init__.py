"""Edgewise: fit models across machines that keep their own data, with no coordinator."""

from typing import Any

from edgewise import data, errors
from edgewise.centralised.reference import Reference, reference
from edgewise.data import Shards, Stream, split
from edgewise.engines.faults import Faults
from edgewise.engines.mpi import MPI
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
    PlainSVRG,
)
from edgewise.graph.graph import Graph
from edgewise.methods import methods
from edgewise.methods.admm import DADMM
from edgewise.methods.d2 import D2
from edgewise.methods.dcs import DCS
from edgewise.methods.dgd import DGD
from edgewise.methods.edge import EDGE
from edgewise.methods.extra import EXTRA
from edgewise.methods.network_dane import NetworkDane
from edgewise.methods.nids import NIDS
from edgewise.methods.pdmm import PDMM
from edgewise.methods.pmgt import PMGT
from edgewise.methods.primal_dual import PrimalDual
from edgewise.methods.tracking import GradientTracking
from edgewise.problem.losses import CustomLoss, Huber, Logistic, Multinomial, SmoothedHinge, Squared
from edgewise.problem.penalties import (
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
from edgewise.problem.problem import Problem
from edgewise.running.result import Result
from edgewise.running.solve import solve
from edgewise.running.tensorboard import TensorBoard
from edgewise.running.trace import Trace
from edgewise.study.compare import Comparison, compare
from edgewise.study.tune import Tuning, tune

__version__ = "0.1.0"

__all__ = [
    "ASVRG",
    "D2",
    "DADMM",
    "DCS",
    "DGD",
    "EDGE",
    "EXTRA",
    "L1",
    "LSVRG",
    "MPI",
    "NIDS",
    "PDMM",
    "PMGT",
    "SAGA",
    "SEGA",
    "SGD",
    "SVRG",
    "Box",
    "Comparison",
    "CustomLoss",
    "ElasticNet",
    "ExactCoordinates",
    "Faults",
    "FiniteDifference",
    "Full",
    "GradientTracking",
    "Graph",
    "GroupL2",
    "HalfSpace",
    "Huber",
    "L1Ball",
    "L2Ball",
    "Logistic",
    "Multinomial",
    "NetworkDane",
    "NoPenalty",
    "NonNegative",
    "PlainSVRG",
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
    "TensorBoard",
    "Trace",
    "Tuning",
    "compare",
    "data",
    "errors",
    "methods",
    "reference",
    "solve",
    "split",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "Peer":  # needs the extra `peers`
        from edgewise.peers.node.peer import Peer

        return Peer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

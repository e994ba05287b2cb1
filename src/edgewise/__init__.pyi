# What `import edgewise` offers, and where it comes from: read by type checkers, and by lazy_loader,
# which imports a name's module when it is first asked for.
from . import data, errors
from .attacks.audit import audit
from .attacks.findings import Audit, Finding
from .centralised.coupled_reference import CoupledReference
from .centralised.reference import Reference, reference
from .data import Shards, Standardization, Stream, split
from .differential_privacy.budget import DP
from .differential_privacy.spent import PrivacySpent
from .engines.faults import Faults
from .engines.liars import Liars
from .engines.mpi import MPI
from .gradients import (
    ASVRG,
    LSVRG,
    PAGE,
    SAG,
    SAGA,
    SARAH,
    SEGA,
    SGD,
    SVRG,
    ExactCoordinates,
    FiniteDifference,
    Full,
    PlainSVRG,
)
from .graph.directed import DirectedGraph
from .graph.graph import Graph
from .graph.varying import TimeVarying
from .inference.bootstrap import Bootstrap
from .inference.estimates import Inference
from .inference.hypotheses import HypothesisTest
from .methods.acc_vr_extra import AccVRExtra
from .methods.admm import DADMM
from .methods.apapc import APAPC
from .methods.catalogue import list_methods
from .methods.d2 import D2
from .methods.dcs import DCS
from .methods.dgd import DGD
from .methods.edge import EDGE
from .methods.extra import EXTRA
from .methods.network_dane import NetworkDane
from .methods.newton_pd import NewtonPD
from .methods.nids import NIDS
from .methods.pdmm import PDMM
from .methods.pmgt import PMGT
from .methods.primal_dual import PrimalDual
from .methods.push import PushTracking
from .methods.tracking import GradientTracking
from .peers.node.peer import Peer
from .problem.budget import Budget
from .problem.costs import Linear, Quadratic
from .problem.couplings import Coupling, Shared
from .problem.cox import CoxPH
from .problem.families import Binomial, Gamma, NegativeBinomial, Poisson, Quantile, Tweedie
from .problem.formula import Design, formula
from .problem.losses import (
    CustomLoss,
    Huber,
    Logistic,
    Multinomial,
    Sigmoid,
    SmoothedHinge,
    Squared,
)
from .problem.penalties import (
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
from .problem.penalty_sum import PenaltySum
from .problem.pooled_cox import pooled_cox, risk_rows
from .problem.prices import NetworkHuber, NetworkLasso, NetworkRidge
from .problem.problem import Problem
from .problem.survival_labels import survival_labels
from .running.coupled_run import CoupledResult
from .running.dispersion import DispersionFit, fit_dispersion
from .running.fitted_model import FittedModel, load_model
from .running.network_sum import NetworkSum, sum_over
from .running.result import Result
from .running.solve import solve
from .running.standardize import standardize
from .running.tensorboard import TensorBoard
from .running.trace import Trace
from .statistics import metrics
from .statistics.counts import sum_counts
from .statistics.kaplan_meier import SurvivalCurve, kaplan_meier
from .statistics.log_rank import LogRank, log_rank
from .study.compare import Comparison, compare
from .study.tune import Tuning, tune

__version__: str

__all__ = [
    "APAPC",
    "ASVRG",
    "D2",
    "DADMM",
    "DCS",
    "DGD",
    "DP",
    "EDGE",
    "EXTRA",
    "L1",
    "LSVRG",
    "MPI",
    "NIDS",
    "PAGE",
    "PDMM",
    "PMGT",
    "SAG",
    "SAGA",
    "SARAH",
    "SEGA",
    "SGD",
    "SVRG",
    "AccVRExtra",
    "Audit",
    "Binomial",
    "Bootstrap",
    "Box",
    "Budget",
    "Comparison",
    "CoupledReference",
    "CoupledResult",
    "Coupling",
    "CoxPH",
    "CustomLoss",
    "Design",
    "DirectedGraph",
    "DispersionFit",
    "ElasticNet",
    "ExactCoordinates",
    "Faults",
    "Finding",
    "FiniteDifference",
    "FittedModel",
    "Full",
    "Gamma",
    "GradientTracking",
    "Graph",
    "GroupL2",
    "HalfSpace",
    "Huber",
    "HypothesisTest",
    "Inference",
    "L1Ball",
    "L2Ball",
    "Liars",
    "Linear",
    "LogRank",
    "Logistic",
    "Multinomial",
    "NegativeBinomial",
    "NetworkDane",
    "NetworkHuber",
    "NetworkLasso",
    "NetworkRidge",
    "NetworkSum",
    "NewtonPD",
    "NoPenalty",
    "NonNegative",
    "Peer",
    "PenaltySum",
    "PlainSVRG",
    "Poisson",
    "PrimalDual",
    "PrivacySpent",
    "Problem",
    "PushTracking",
    "Quadratic",
    "Quantile",
    "Reference",
    "Result",
    "Shards",
    "Shared",
    "Sigmoid",
    "Simplex",
    "SmoothedHinge",
    "Squared",
    "SquaredL2",
    "Standardization",
    "Stream",
    "SurvivalCurve",
    "TensorBoard",
    "TimeVarying",
    "Trace",
    "Tuning",
    "Tweedie",
    "audit",
    "compare",
    "data",
    "errors",
    "fit_dispersion",
    "formula",
    "kaplan_meier",
    "list_methods",
    "load_model",
    "log_rank",
    "metrics",
    "pooled_cox",
    "reference",
    "risk_rows",
    "solve",
    "split",
    "standardize",
    "sum_counts",
    "sum_over",
    "survival_labels",
    "tune",
]

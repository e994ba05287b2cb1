"""The methods that the paper compares, and the parameters that it gives.

Where it gives none the automatic ones are taken: S-DIGing, EDGE, D2, EXTRA and DGD. The first
epoch of SVR-PD and the test for early stopping are ours (an eighth of the longest; 5 %), and so are
Network-DANE's prox weight (none) and its five local steps, for which we take the paper's step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from edgewise.experiments.experiment import Scale
from edgewise.gradients import ASVRG, LSVRG, SAGA, SGD, SVRG, Full, PlainSVRG
from edgewise.methods.d2 import D2
from edgewise.methods.dgd import DGD
from edgewise.methods.edge import EDGE
from edgewise.methods.extra import EXTRA
from edgewise.methods.network_dane import NetworkDane
from edgewise.methods.primal_dual import PrimalDual
from edgewise.methods.tracking import GradientTracking

STOP = 0.05  # of SVR-PD with early stopping
LOCAL_STEPS = 5  # of Network-DANE
UNWEIGHTED = 1e-6  # Network-DANE's mu, as good as none


@dataclass(frozen=True)
class Entry:
    """A method of the comparison."""

    make: Callable[[Scale], Any]  # with automatic steps
    printed: Mapping[str, float] = field(default_factory=dict)  # what the paper gives
    calls: Callable[[int, Scale], float] = lambda K, scale: 1.0  # a round, about
    whole: bool = False  # takes whole gradients

    def with_printed(self, scale: Scale) -> Any:
        return replace(self.make(scale), **self.printed)


def epochs(scale: Scale, stop: float = 0.0) -> SVRG:
    return SVRG(first=scale.longest // 8, longest=scale.longest, stop=stop)


LINEUP = {
    "SVR-PD": Entry(
        lambda s: PrimalDual(epochs(s)), {"eta": 0.7, "rho": 0.9}, lambda K, s: 2 + K / s.longest
    ),
    "SVR-PD, early stopping": Entry(
        lambda s: PrimalDual(epochs(s, STOP)),
        {"eta": 0.7, "rho": 0.9},
        lambda K, s: 2 + 2 * K / s.longest,
    ),
    "SAGA-PD": Entry(lambda s: PrimalDual(SAGA()), {"eta": 0.5, "rho": 0.5}),
    "LSVR-PD": Entry(lambda s: PrimalDual(LSVRG()), {"eta": 0.6, "rho": 0.5}, lambda K, s: 3),
    "ASVR-PD": Entry(
        lambda s: PrimalDual(ASVRG(momentum=0.99, ask=0.2, floor=0.0)), {"eta": 0.7, "rho": 0.9}
    ),
    "S-DIGing": Entry(lambda s: GradientTracking(SAGA())),
    "EDGE": Entry(lambda s: EDGE(SAGA())),
    "Network-DANE": Entry(
        lambda s: NetworkDane(inner=LOCAL_STEPS),
        {"eta": 10.0, "mu": UNWEIGHTED},
        lambda K, s: LOCAL_STEPS * K,
        whole=True,
    ),
    "GT-SVR": Entry(lambda s: GradientTracking(PlainSVRG()), {"eta": 0.1}, lambda K, s: 3),
    "D2": Entry(lambda s: D2(SGD())),
    "EXTRA": Entry(lambda s: EXTRA(Full()), {}, lambda K, s: K, whole=True),
    "DGD": Entry(lambda s: DGD(SGD())),
}
PROPOSED = ("SVR-PD", "SVR-PD, early stopping", "SAGA-PD", "LSVR-PD", "ASVR-PD")
OTHERS = tuple(name for name in LINEUP if name not in PROPOSED)


def oracle_budget(scale: Scale, K: int) -> float:
    """What SVR-PD spends in the printed number of rounds: two calls each, and its snapshots."""
    spent, done, length = 2.0 * scale.rounds + K, 0, scale.longest // 8
    while done + length <= scale.rounds:
        done, spent = done + length, spent + K
        length = min(2 * length, scale.longest)
    return spent

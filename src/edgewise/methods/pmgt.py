"""Proximal gradient tracking with several rounds of mixing a step."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError, whole_number
from edgewise.gradients.contract import Estimator
from edgewise.graph.mixing import contraction
from edgewise.methods.averaging import Averaging
from edgewise.methods.contract import Messages, Weights
from edgewise.methods.knowledge import Knowledge
from edgewise.problem.block import Block


class PMGTState(NamedTuple):
    X: Array  # (v, n) models
    S: Array  # (v, n) the tracker
    G: Array  # (v, n) the last estimate
    M: Array  # (v, n) the vector that is being mixed
    Old: Array  # (v, n) the same a round before
    memory: Any


@pytree("depth")
class PMGT(Averaging):
    """Ye, Xiong, Zhang: "PMGT-VR: A decentralized proximal-gradient algorithmic framework with
    variance reduction", arXiv:2012.15010. With SAGA it is PMGT-SAGA, with LSVRG PMGT-LSVRG:

        x(t+1) = FastMix(prox_{eta h}(x(t) - eta s(t)))
        s(t+1) = FastMix(s(t) + g(t+1) - g(t)),    s(0) = g(0) = grad f(x(0))

    FastMix is `depth` (their K) rounds of m <- (1 + omega) W m - omega m_old from m_old = m, with
    omega = (1 - sqrt(1 - sigma^2)) / (1 + sqrt(1 - sigma^2)), sigma the second largest singular
    value of W. So a step is 2 depth rounds of one vector. s(0) is not mixed, as in public code of
    it; its pass over the samples is the one that fills SAGA's table. One h for all, as theirs.

    Not where rounds are dear: pg-extra and saga-pd step in every round, this in one of 2 depth."""

    gradient: Estimator
    eta: Any = "auto"
    mixing: Any = "metropolis"
    depth: int | None = None
    omega: Any = None  # found from the mixing

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("PMGT's depth", 1 if self.depth is None else self.depth, 1, MethodError)

    takes_penalty = True
    streams = False  # it begins with a pass over all samples

    @property
    def phases(self) -> tuple[str, ...]:
        more = ("mix",) * ((self.depth or 1) - 1)
        return (*more, "track", *more, "descend")

    @property
    def rounds_a_step(self) -> int | None:
        return None if self.depth is None else len(self.phases)

    def prepare(self, k: Knowledge) -> tuple["PMGT", Weights]:
        network = k.whole("PMGT needs an eigenvalue of the whole network", "use saga-pd")
        if not network.same_penalty:
            raise MethodError("PMGT needs the same penalty at every node: use saga-pd")
        ready, weights = super().prepare(k)
        depth, omega = self.plan(contraction(network.graph, weights["mixing"]))
        return replace(ready, depth=depth, omega=np.full_like(ready.eta, omega)), weights

    def plan(self, sigma: float) -> tuple[int, float]:
        """Depth and omega; by rule so deep that FastMix at least halves all disagreement."""
        root = np.sqrt(max(1 - sigma**2, 0.0))
        omega = (1 - root) / (1 + root)
        values = np.linspace(-sigma, sigma, 401)
        old, new, depth = np.ones(401), (1 + omega) * values - omega, 1
        while np.abs(new).max() > 0.5 and self.depth is None:
            old, new, depth = new, (1 + omega) * values * new - omega * old, depth + 1
        return self.depth or depth, omega

    def init(self, p: Block, X: Array, duals: Any) -> tuple[Any, Messages]:
        memory: Any = self.gradient.init(p, X)
        memory = memory._replace(calls=memory.calls.clip(p.counts))  # one pass for both
        G = p.full(X) + p.ridge(X)
        M = p.penalty.prox(X - self.eta * G, self.eta)
        return PMGTState(X, G, G, M, M, memory), (M,)

    def mixed(self, s: PMGTState, pull: Array) -> Array:
        return s.M + (1 + self.omega) * pull + self.omega * (s.M - s.Old)

    def mix(
        self, p: Block, s: PMGTState, inbox: Messages, random_bits: Array
    ) -> tuple[Any, Messages]:
        M = self.mixed(s, inbox[0])
        return s._replace(M=M, Old=s.M), (M,)

    def track(
        self, p: Block, s: PMGTState, inbox: Messages, random_bits: Array
    ) -> tuple[Any, Messages]:
        X = self.mixed(s, inbox[0])
        G, memory = self.gradient(p, X, s.memory, random_bits)
        M = s.S + (G - s.G)
        return PMGTState(X, s.S, G, M, M, memory), (M,)

    def descend(
        self, p: Block, s: PMGTState, inbox: Messages, random_bits: Array
    ) -> tuple[Any, Messages]:
        S = self.mixed(s, inbox[0])
        M = p.penalty.prox(s.X - self.eta * S, self.eta)
        return s._replace(S=S, M=M, Old=M), (M,)

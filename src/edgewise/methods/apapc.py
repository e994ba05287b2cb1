"""APAPC and OPAPC: gradient steps with Nesterov's momentum, in rounds as few as can be."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError, whole_number
from edgewise.gradients import Full
from edgewise.gradients.contract import Estimator
from edgewise.graph.mixing import laplacian, largest_eigenvalue, smallest_eigenvalues
from edgewise.methods.averaging import Averaging
from edgewise.methods.contract import Messages, Weights
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.steps import common_convexity
from edgewise.problem.block import Block, Links


class State(NamedTuple):
    X: Array  # (v, n) models: x
    F: Array  # (v, n) x_f
    D: Array  # (v, n) -z, a gradient at the optimum
    B: Array  # (v, n) grad f(x_g) - mu x_g
    E: Array  # (v, n) how far mixing has moved x' so far
    Old: Array  # (v, n) the same a round before
    omega: Array  # (v, 1) of the next round of mixing, 1 in the first
    memory: Any


@pytree("depth")
class APAPC(Averaging):
    """Kovalev, Salim, Richtarik: "Optimal and practical algorithms for smooth and strongly convex
    decentralized optimization" (NeurIPS 2020, arXiv:2006.11773). With the gossip matrix N,

        x_g = tau x + (1 - tau) x_f
        x'  = (x - eta (grad f(x_g) - mu x_g + z)) / (1 + eta mu)
        z  <- z + theta N x'
        x+  = (x - eta (grad f(x_g) - mu x_g + z)) / (1 + eta mu)
        x_f <- x_g + 2 tau / (2 - tau) (x+ - x)

    APAPC has N = L = I - W; OPAPC has N = P(L) of `depth` rounds, Chebyshev's polynomial that
    brings the nonzero eigenvalues of L near to 1, at a ratio chi of the largest to the least
    nonzero one. tau = min(1, sqrt(chi(N) mu / L_f) / 2), theta = 1 / (eta lambda_max(N)), and
    eta = 1 / (4 tau L_f) by "theory", 1 / (2 tau L_f) by "auto"; `depth` by rule floor(sqrt(chi)).
    W: mixing (a multiple of L gives the same), mu: mu, gradient: any, proved for Full. mu by rule:
    the ridge, but at least L_f / 1000, for theirs is not known without strong convexity; the
    optimum does not depend on it. Their listing was at hand in public code of OPAPC alone, whose
    gossip takes differences where Chebyshev's recursion has 2 c_2 (I - c_3 L) x_i - x_{i-1}: that
    is what runs here. It begins with a pass, for x' holds a gradient.

    Not for networks that lose messages, nor with a penalty; without bad condition numbers, of the
    losses or the graph, `extra` and `nids` do as well with less to set.
    """

    gradient: Estimator = Full()
    eta: Any = "auto"
    mu: Any = "auto"
    mixing: Any = "metropolis"
    depth: int | None = 1
    spectrum: Any = None  # (v, 4): tau, theta, c_3 and 1/c_2, found from the network

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("APAPC's depth", 1 if self.depth is None else self.depth, 1, MethodError)

    tunes = ("mu", "eta")
    streams = False  # it begins with a pass over all samples

    @property
    def phases(self) -> tuple[str, ...]:
        return (*("mix",) * ((self.depth or 1) - 1), "step")

    @property
    def rounds_a_step(self) -> int | None:
        return None if self.depth is None else len(self.phases)

    def prepare(self, k: Knowledge) -> tuple["APAPC", Weights]:
        network = k.whole("APAPC needs eigenvalues of the whole network", "use saga-pd")
        ready, weights = super().prepare(k)
        curvature = float(network.curvatures.mean.max())
        mu = common_convexity("APAPC", self.mu, curvature / 1000, k)
        L = laplacian(network.graph, weights["mixing"])
        top = largest_eigenvalue(L) if network.graph.nodes > 1 else 1.0
        least = float(smallest_eigenvalues(L)[1]) if network.graph.nodes > 1 else 1.0
        chi = max(top / least, 1.0)
        depth = self.depth or max(1, int(np.sqrt(chi)))
        c1 = ((np.sqrt(chi) - 1) / (np.sqrt(chi) + 1)) ** depth
        tau = min(1.0, (1 + c1) / (1 - c1) * np.sqrt(mu / curvature) / 2)
        eta = ready.eta / (2 * tau) if isinstance(self.eta, str) else ready.eta
        theta = (1 + c1**2) / (eta * (1 + c1) ** 2)
        numbers = tau, theta, 2 * chi / ((1 + chi) * top), (chi - 1) / (chi + 1)
        spectrum = np.concatenate([np.broadcast_to(a, eta.shape) for a in numbers], 1)
        full = replace(ready, eta=eta, mu=np.full_like(eta, mu), depth=depth, spectrum=spectrum)
        return full, weights

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        memory: Any = self.gradient.init(p, X)
        memory = memory._replace(calls=memory.calls.clip(p.counts))  # one pass for both
        zero = jnp.zeros_like(X)
        D, B = zero if duals is None else duals, p.full(X) + p.ridge(X) - self.mu * X
        s = State(X, X, D, B, zero, zero, jnp.ones((X.shape[0], 1), X.dtype), memory)
        return s, (self.half(s),)

    def half(self, s: State) -> Array:
        return (s.X - self.eta * (s.B - s.D)) / (1 + self.eta * self.mu)

    def mixed(self, s: State, pull: Array) -> Array:
        return s.Old + s.omega * (s.E + self.spectrum[:, 2:3] * pull - s.Old)

    def mix(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        E, chi = self.mixed(s, inbox[0]), self.spectrum[:, 3:]
        omega = 1 / (1 - jnp.where(s.omega > 1, s.omega, 2) * chi**2 / 4)
        return s._replace(E=E, Old=s.E, omega=omega), (self.half(s) + E,)

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        tau, zero = self.spectrum[:, :1], jnp.zeros_like(s.X)
        D = s.D + self.spectrum[:, 1:2] * self.mixed(s, inbox[0])
        X = self.half(s._replace(D=D))
        F = tau * s.X + (1 - tau) * s.F + 2 * tau / (2 - tau) * (X - s.X)
        Y = tau * X + (1 - tau) * F
        G, memory = self.gradient(p, Y, s.memory, random_bits)
        new = State(X, F, D, G - self.mu * Y, zero, zero, jnp.ones_like(s.omega), memory)
        return new, (self.half(new),)

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        """(v, n) -z: at rest x_g = x, so that z = -grad f(x)."""
        return s.D

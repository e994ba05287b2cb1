"""Network-DANE: a local problem at every node and round, on tracked gradients."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jax import Array, lax

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError, whole_number
from edgewise.gradients.contract import Estimator
from edgewise.gradients.full import Full
from edgewise.gradients.memory import weighted
from edgewise.methods.averaging import Averaging
from edgewise.methods.contract import Messages, Weights
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.steps import mixing_of, node_steps, per_node
from edgewise.problem.block import Block


class DaneState(NamedTuple):
    X: Array  # (v, n) models
    S: Array  # (v, n) the tracker
    G: Array  # (v, n) grad f(y), y where the node last looked
    memory: Any


@pytree("inner", "batch")
class NetworkDane(Averaging):
    """Li, Cen, Chen, Chi: "Communication-efficient distributed optimization in networks with
    gradient tracking and variance reduction", arXiv:1909.05844. With W the mixing matrix,

        y = W x
        s = W s + grad f(y) - grad f(y of the round before)
        x = argmin_z  f(z) - <grad f(y) - s, z> + mu/2 |z - y|^2

    from y(0) = x(0), s(0) = grad f(x(0)). The argmin is left open there; here it is `inner`
    gradient steps z <- z - eta (grad f(z) - grad f(y) + s + mu (z - y)) from z = y, of which the
    first needs no new gradient. With `batch` samples instead of whole gradients those are the
    inner loop of Network-SVRG, whose answer is the last z. eta is the local step: by rule
    1 / (1/eta_i + mu), eta_i the estimator's; mu "auto" is three times the largest L_i, for which
    shards may differ as they like; for shards alike, on a graph that mixes fast, less is faster.

    Costs about inner passes over the data a round: not where gradients are dearer than messages."""

    gradient: Estimator = Full()
    eta: Any = "auto"
    mixing: Any = "metropolis"
    mu: Any = "auto"
    inner: int = 5
    batch: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.gradient, Full):
            raise MethodError("NetworkDane tracks whole gradients: give Full(), and batch= samples")
        whole_number("NetworkDane's inner", self.inner, 1, MethodError)
        whole_number("NetworkDane's batch", 1 if self.batch is None else self.batch, 1, MethodError)

    hears = ("mixing", "mixing")
    tunes = ("mu", "eta")
    solves_subproblem = True

    @property
    def random_draws(self) -> int:
        return (self.inner - 1) * (self.batch or 0)

    @property
    def samples(self) -> int | None:
        return self.batch

    def prepare(self, k: Knowledge) -> tuple["NetworkDane", Weights]:
        mu = self.mu
        if isinstance(mu, str) and mu == "auto":
            need = "NetworkDane's mu 'auto' is of the largest curvature over all peers"
            mu = 3 * k.whole(need, "give a number").curvatures.mean.max()
        mu = per_node("mu", mu, k)
        eta = node_steps(self.eta, self.gradient, k)
        if isinstance(self.eta, str):
            if self.batch:
                eta = np.minimum(eta, 1 / (3 * k.curvatures.expected(self.batch)))
            eta = 1 / (1 / eta + mu)
        weights = {"mixing": mixing_of("NetworkDane", self.mixing, k)}
        return replace(self, eta=eta[k.own, None], mixing=None, mu=mu[k.own, None]), weights

    def init(self, p: Block, X: Array, duals: Any) -> tuple[Any, Messages]:
        memory: Any = self.gradient.init(p, X)
        G = p.full(X) + p.ridge(X)
        return DaneState(X, G, G, memory._replace(calls=memory.calls + p.counts)), (X, G)

    def step(
        self, p: Block, s: DaneState, inbox: Messages, random_bits: Array
    ) -> tuple[Any, Messages]:
        Y = s.X + inbox[0]
        G, memory = self.gradient(p, Y, s.memory, random_bits)
        S = s.S + inbox[1] + (G - s.G)

        def descend(k: Array, carry: Any) -> Any:
            Z, memory = carry
            change, memory = self.change(p, Y, G, Z, memory, random_bits, k)
            return Z - self.eta * (change + S + self.mu * (Z - Y)), memory

        X, memory = lax.fori_loop(0, self.inner - 1, descend, (Y - self.eta * S, memory))
        return DaneState(X, S, G, memory), (X, S)

    def change(
        self, p: Block, Y: Array, G: Array, Z: Array, memory: Any, random_bits: Array, k: Array
    ) -> tuple[Array, Any]:
        """grad f(z) - grad f(y), whole or of the k-th batch, and the calls."""
        if self.batch is None:
            at, memory = self.gradient(p, Z, memory, random_bits)
            return at - G, memory
        pick = p.pick(lax.dynamic_slice_in_dim(random_bits, k * self.batch, self.batch, 1))
        moved = p.spread(pick, weighted(pick, p.slopes(pick, Z) - p.slopes(pick, Y)))
        return moved + p.ridge(Z - Y), memory._replace(calls=memory.calls + 2 * pick.batch)

"""Accelerated VR-EXTRA: loopless Katyusha's three points in EXTRA's saddle."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError, whole_number
from edgewise.gradients import LSVRG
from edgewise.gradients.memory import change, coin, remember, retake, weighted
from edgewise.methods.contract import Messages, MethodDefaults, Weights
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.steps import common_convexity, common_step, mixing_of
from edgewise.problem.block import Block, Links


class State(NamedTuple):
    X: Array  # (v, n) models: x
    Z: Array  # (v, n) z
    S: Array  # (v, n) the snapshot: w
    C: Array  # (v, n) - U lambda, before this round's; goes to eta times the dual
    memory: Any  # of the gradients at the snapshot


@pytree("batch")
class AccVRExtra(MethodDefaults):
    """After Li, Lin, Fang: "Variance reduced EXTRA and DIGing and their optimal acceleration for
    strongly convex decentralized optimization" (JMLR 2022, arXiv:2009.04373), of which only the
    abstract was at hand. So this is derived: their VR-EXTRA (see `EXTRA`) with the three points of
    loopless Katyusha (Kovalev, Horvath, Richtarik 2020), U^2 = (I - W)/2,

        y = t z + w/2 + (1/2 - t) x
        lambda <- lambda + t U z
        z+ = (c y + z - (eta g(y) + U lambda + t U^2 z) / t) / (1 + c),    c = mu eta / t
        x+ = y + t (z+ - z)
        w <- x, before this step, with probability batch / K_i

    with g(y) = grad f(y, k) - grad f(w, k) + grad f(w). For t = 1, mu = 0 and no w it is VR-EXTRA.
    t: min(1/2, sqrt(K mu eta / batch)), K the mean number of samples a node; mu by rule the ridge,
    but at least L/1000 for the largest L. Its constants are Katyusha's and ours, not theirs; theirs
    mixes several times by Chebyshev where the graph is slow, this once.

    Not for networks that lose messages, nor with a penalty, nor where the losses are well
    conditioned: half of every y is the snapshot, and `vr-extra` is then twice as fast.
    """

    eta: Any = "auto"
    mu: Any = "auto"
    mixing: Any = "lazy-metropolis"
    batch: int = 1
    momentum: Any = None  # t, found from mu and eta

    gradient = None
    hears = ("mixing",)
    tunes = ("mu", "eta")

    def __post_init__(self) -> None:
        whole_number("AccVRExtra's batch", self.batch, 1, MethodError)

    @property
    def samples(self) -> int | None:
        return self.batch

    @property
    def random_draws(self) -> int:
        return self.batch + 1

    def prepare(self, k: Knowledge) -> tuple["AccVRExtra", Weights]:
        network = k.whole("AccVRExtra's momentum goes by the samples of all", "use saga-pd")
        if isinstance(self.eta, str) and self.eta == "theory":
            raise MethodError("no analysis at hand gives AccVRExtra a step: use eta='auto'")
        step = common_step("AccVRExtra", self.eta, LSVRG(self.batch), k)
        curvature = float(network.curvatures.expected(self.batch).max())
        mu = common_convexity("AccVRExtra", self.mu, curvature / 1000, k)
        t = min(0.5, float(np.sqrt(network.curvatures.counts.mean() * mu * step / self.batch)))
        eta, mu_, t_ = (np.full((len(k.own), 1), a) for a in (step, mu, t))
        weights = {"mixing": mixing_of("AccVRExtra", self.mixing, k)}
        return replace(self, eta=eta, mu=mu_, momentum=t_, mixing=None), weights

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        C = jnp.zeros_like(X) if duals is None else self.eta * duals
        return State(X, X, X, C, remember(p, X, keep_table=p.loss.linear)), (X,)

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        t, moved = self.momentum, 0.5 * self.momentum * inbox[0]
        Y = t * s.Z + 0.5 * s.S + (0.5 - t) * s.X
        pick = p.pick(random_bits[:, 1:])
        m = s.memory._replace(calls=s.memory.calls + 2 * pick.batch)
        G = p.spread(pick, weighted(pick, change(p, m, Y, pick)[1])) + m.mean + p.ridge(Y)
        C = s.C + moved
        c = self.mu * self.eta / t
        Z = (c * Y + s.Z - (self.eta * G - C - moved) / t) / (1 + c)
        heads = coin(random_bits[:, 0], jnp.minimum(1, self.batch / p.counts))
        S = jnp.where(heads[:, None], s.X, s.S)
        return State(Y + t * (Z - s.Z), Z, S, C, retake(p, m, s.X, heads)), (Z,)

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        """(v, n) C / eta: at rest z = y, so that eta g = C."""
        return s.C / self.eta

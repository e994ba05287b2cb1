"""Gradient tracking with any gradient estimator: S-DIGing, GT-SAGA, GT-SVRG, VR-DIGing."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.gradients.contract import Estimator
from edgewise.graph.mixing import laplacian, largest_eigenvalue
from edgewise.methods.averaging import Averaging
from edgewise.methods.contract import Messages, Weights
from edgewise.methods.knowledge import Knowledge, Network
from edgewise.problem.block import Block


class TrackingState(NamedTuple):
    X: Array  # (v, n) models
    Y: Array  # (v, n) the tracker: y(t-1)
    G: Array  # (v, n) the last estimate: g(t-1)
    memory: Any


@pytree()
class GradientTracking(Averaging):
    """Combine, then step along a tracker of the mean gradient; with W the mixing matrix,

        y(t) = W y(t-1) + g(t) - g(t-1),    y(0) = g(0)
        x(t+1) = W x(t) - eta y(t)

    s-diging, read as DIGing with SAGA, and gt-saga are this with SAGA (Li et al.: "S-DIGing",
    arXiv:1910.08704; Xin, Khan, Kar: "Variance-reduced decentralized stochastic optimization with
    gradient tracking", Part I, arXiv:1909.11774); gt-svrg is it with PlainSVRG (Part II,
    arXiv:1910.04057), vr-diging with LSVRG (Li, Lin, Fang, arXiv:2009.04373: their
    x <- x - (eta g + U lambda + V^2 x), lambda <- lambda + U x, U = I - W, V^2 = I - W^2, which is
    this where nodes start alike). Of S-DIGing and GT-SVRG only the abstracts were at hand. W: from
    `mixing`. eta: one step for all, by rule the least of the nodes' own, or `stable` where that is
    less. The printed order, y(t+1) after x(t+1), gives the same iterates; y(-1) = g(-1) = 0 makes
    the first step like all others, and g(0) is the whole gradient, as printed, for those three
    begin with a pass at x(0). (The later nonconvex GT-SAGA, which mixes after it steps, in two
    rounds, is another.)

    Two vectors an edge and round, and a step that must shrink where the graph mixes slowly: not
    where messages are dear, nor with a penalty; saga-pd sends one and takes any.
    """

    gradient: Estimator
    eta: Any = "auto"
    mixing: Any = "metropolis"

    hears = ("mixing", "mixing")

    def prepare(self, k: Knowledge) -> tuple[Any, Weights]:
        ready, weights = super().prepare(k)
        if isinstance(self.eta, str):
            whole = k.whole("GradientTracking's step goes by the mixing of all", "give a number")
            limit = stable(weights["mixing"], whole)
            ready = replace(ready, eta=np.minimum(ready.eta, limit))
        return ready, weights

    def init(self, p: Block, X: Array, duals: Any) -> tuple[Any, Messages]:
        zero = jnp.zeros_like(X)
        return TrackingState(X, zero, zero, self.gradient.init(p, X)), (X, zero)

    def step(
        self, p: Block, s: TrackingState, inbox: Messages, random_bits: Array
    ) -> tuple[TrackingState, Messages]:
        G, memory = self.gradient(p, s.X, s.memory, random_bits)
        Y = s.Y + inbox[1] + (G - s.G)
        X = s.X + inbox[0] - self.eta * Y
        return TrackingState(X, Y, G, memory), (X, Y)


def stable(weights: np.ndarray, network: Network) -> float:
    """Two thirds of (1 + lambda)^2 / (2 L), lambda the least eigenvalue of W: from there on exact
    tracking of squares of one curvature L swings and grows."""
    low = 1 - largest_eigenvalue(laplacian(network.graph, weights))
    return float((1 + low) ** 2 / (3 * network.curvatures.mean.max()))

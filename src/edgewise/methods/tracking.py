"""Gradient tracking, composed with any gradient estimator: S-DIGing, GT-SAGA, GT-SVRG."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array
from scipy.sparse.linalg import eigsh

from edgewise.block import Block, Links
from edgewise.errors import MethodError
from edgewise.mixing import DENSE_NODES, laplacian, mixing_weights
from edgewise.pytree import pytree
from edgewise.steps import local_steps

if TYPE_CHECKING:
    from edgewise.graph import Graph
    from edgewise.problem import Problem


class TrackingState(NamedTuple):
    X: Array  # (v, n) models
    Y: Array  # (v, n) the tracker: y(t-1)
    G: Array  # (v, n) the last estimate: g(t-1)
    memory: Any


@pytree()
class GradientTracking:
    """Combine, then step along a tracker of the mean gradient; with W the mixing matrix,

        y(t) = W y(t-1) + g(t) - g(t-1),    y(0) = g(0)
        x(t+1) = W x(t) - eta y(t)

    s-diging, read as DIGing with SAGA, and gt-saga are this with SAGA (Li et al.: "S-DIGing",
    arXiv:1910.08704; Xin, Khan, Kar: "Variance-reduced decentralized stochastic optimization with
    gradient tracking", Part I, arXiv:1909.11774); gt-svrg is it with PlainSVRG (Part II,
    arXiv:1910.04057). W = I - sum_e w_e (e_i - e_j)(e_i - e_j)^T from `mixing`. eta is one step
    for all: by rule the least of the nodes' own, or `stable` where that is less. The printed order,
    y(t+1) after x(t+1), gives the same iterates; y(-1) = g(-1) = 0 makes the first step like all
    others, and g(0) is the whole gradient, as printed, for SAGA and PlainSVRG begin with a pass at
    x(0). (The later nonconvex GT-SAGA, which mixes after it steps, in two rounds, is another.)

    Two vectors an edge and round, and a step that must shrink where the graph mixes slowly: not
    where messages are dear, nor with a penalty; saga-pd sends one and takes any.
    """

    gradient: Any
    eta: Any = "auto"
    mixing: Any = "metropolis"

    def __post_init__(self) -> None:
        if not (callable(self.gradient) and hasattr(self.gradient, "init")):
            raise MethodError(f"GradientTracking({self.gradient!r}): give an estimator, as SAGA()")
        if hasattr(self.gradient, "point"):  # its iterate is not where its gradient is
            raise MethodError(f"GradientTracking cannot track {type(self.gradient).__name__}")

    hears = ("mixing", "mixing")
    phases = ("step",)
    heals = False
    takes_penalty = False
    words = property(lambda self: int(self.gradient.words))

    def prepare(self, problem: "Problem", graph: "Graph") -> tuple["GradientTracking", Any]:
        weights = mixing_weights(self.mixing, graph)
        eta = local_steps(self.eta, self.gradient, problem)
        if isinstance(self.eta, str):
            eta = np.full_like(eta, min(eta.min(), stable(weights, graph, problem)))
        return replace(self, eta=eta[:, None], mixing=None), {"mixing": weights}

    def init(self, p: Block, X: Array, duals: Any) -> tuple[Any, tuple[Array, ...]]:
        zero = jnp.zeros_like(X)
        return TrackingState(X, zero, zero, self.gradient.init(p, X)), (X, zero)

    def step(
        self, p: Block, s: TrackingState, inbox: tuple[Array, ...], words: Array
    ) -> tuple[TrackingState, tuple[Array, ...]]:
        G, memory = self.gradient(p, s.X, s.memory, words)
        Y = s.Y + inbox[1] + (G - s.G)
        X = s.X + inbox[0] - self.eta * Y
        return TrackingState(X, Y, G, memory), (X, Y)

    def answer(self, s: TrackingState) -> Array:
        return s.X

    def duals(self, links: Links, s: TrackingState, inbox: Any, outbox: Any) -> Array:
        return jnp.zeros_like(s.X)


def stable(weights: np.ndarray, graph: "Graph", problem: "Problem") -> float:
    """Two thirds of (1 + lambda)^2 / (2 L), lambda the least eigenvalue of W: from there on exact
    tracking of squares of one curvature L swings and grows."""
    W = sp.eye_array(graph.nodes, format="csr") - laplacian(graph, weights)
    if graph.nodes <= DENSE_NODES:
        low = np.linalg.eigvalsh(W.toarray())[0]
    else:
        low = eigsh(W, 1, which="SA", return_eigenvectors=False)[0]
    return float((1 + low) ** 2 / (3 * problem.smoothness.mean.max()))

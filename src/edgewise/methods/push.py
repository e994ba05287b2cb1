"""Gradient tracking over links that go one way: Push-SAGA and Push-DIGing."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError
from edgewise.gradients.contract import Estimator
from edgewise.methods.contract import Messages, MethodDefaults, Weights, require_estimator
from edgewise.methods.knowledge import Knowledge, Network
from edgewise.methods.steps import common_step
from edgewise.problem.block import Block

MOST_NODES = 300  # whose eigenvalues are found for the rule
SHORTEST = 1e-6  # times the estimator's own step


class State(NamedTuple):
    Z: Array  # (v, n) models: x / y
    X: Array  # (v, n) x
    Y: Array  # (v, 1) y, the push-sum weight
    W: Array  # (v, n) the tracker
    G: Array  # (v, n) the last estimate
    memory: Any


@pytree("first")
class PushTracking(MethodDefaults):
    """Qureshi, Xin, Kar, Khan: "Push-SAGA" (arXiv:2008.06082), with SAGA, as first = "mix":

        x(t+1) = B x(t) - eta w(t),    y(t+1) = B y(t),    z(t+1) = x(t+1) / y(t+1)
        w(t+1) = B w(t) + g(z(t+1)) - g(z(t)),    y(0) = 1,  w(0) = g(z(0)) = grad f(z(0))

    and, as first = "step", Push-DIGing (Nedic, Olshevsky, Shi 2017): x(t+1) = B (x(t) - eta w(t)).
    B is column-stochastic: a sender divides what it has by 1 + its out-degree, keeps one share and
    sends one along each arc, so that nothing gets lost and nobody need know who hears whom. Alone
    that would weigh nodes unequally in the answer; y undergoes the same, and z = x / y sets it
    right. With Full() and "mix" it is ADD-OPT (Xi, Xin, Khan 2018). Of the papers the abstracts
    were at hand; the listings are as commonly known.

    eta: one step for all, by rule the estimator's least, or so many times two thirds of it that
    even 3/2 of the step is stable on squares of the largest curvature (`stable`), by eigenvalues,
    for up to 300 nodes. z is what the models are.

    Not where links go both ways, for everything else here is faster there; not with a penalty, nor
    where messages get lost: what is lost is a share of the sums that make it exact.
    """

    gradient: Estimator
    eta: Any = "auto"
    first: str = "mix"
    share: Any = None  # (v, 1), 1 / (1 + out-degree)

    hears = ("each", "each")
    directed = True
    streams = False  # it begins with a pass over all samples

    def __post_init__(self) -> None:
        require_estimator(self, self.gradient)
        if self.first not in ("mix", "step"):
            raise MethodError(f'PushTracking(first={self.first!r}): give "mix" or "step"')

    def message_sizes(self, size: int, outputs: int) -> tuple[int, ...]:
        return size + 1, size

    def prepare(self, k: Knowledge) -> tuple["PushTracking", Weights]:
        network = k.whole("PushTracking's shares are by the arcs of all", "use saga-pd")
        eta = common_step("PushTracking", self.eta, self.gradient, k)
        if isinstance(self.eta, str):
            eta = stable(network, eta, self.first)
        share = 1 / (1.0 + network.graph.out_degrees[k.own, None])
        return replace(self, eta=np.full((len(k.own), 1), eta), share=share), {}

    def init(self, p: Block, X: Array, duals: Any) -> tuple[State, Messages]:
        memory: Any = self.gradient.init(p, X)
        memory = memory._replace(calls=memory.calls.clip(p.counts))  # one pass for both
        G = p.full(X) + p.ridge(X)
        s = State(X, X, jnp.ones((X.shape[0], 1), X.dtype), G, G, memory)
        return s, self.outbox(p, s)

    def outbox(self, p: Block, s: State) -> Messages:
        sent = jnp.concatenate([self.pushed(s), s.Y], 1)
        owner = p.links.owner
        return (self.share * sent)[owner], (self.share * s.W)[owner]

    def pushed(self, s: State) -> Array:
        return s.X - self.eta * s.W if self.first == "step" else s.X

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        heard, W = (p.links.gather(m, s.X.shape[0]) for m in inbox)
        X, Y = self.share * self.pushed(s) + heard[:, :-1], self.share * s.Y + heard[:, -1:]
        X = X if self.first == "step" else X - self.eta * s.W
        Z = X / Y
        G, memory = self.gradient(p, Z, s.memory, random_bits)
        new = State(Z, X, Y, self.share * s.W + W + (G - s.G), G, memory)
        return new, self.outbox(p, new)

    def answer(self, s: State) -> Array:
        return s.Z


def mixing_matrix(graph: Any) -> np.ndarray:
    """B, column-stochastic: what j gets of what i has."""
    d = graph.directed
    B = np.zeros((graph.nodes, graph.nodes))
    B[d.other, d.owner] = graph.open
    np.fill_diagonal(B, 1)
    return B / B.sum(0)


def stable(network: Network, longest: float, first: str) -> float:
    """`longest`, or so many times two thirds of it that no mode grows, with 3/2 of the step, where
    all losses have the largest curvature. The tracker's sum is conserved: one eigenvalue is 1."""
    V = network.graph.nodes
    if V > MOST_NODES:
        raise MethodError(
            f"the rule for push methods takes eigenvalues of {V} nodes, {MOST_NODES} at most: give "
            f"eta a number, such as {longest / 20:.2g}, and a longer one where that goes well"
        )
    if V == 1:
        return longest
    B, eye = mixing_matrix(network.graph), np.eye(V)
    values, vectors = np.linalg.eig(B)
    y = np.real(vectors[:, np.argmax(np.real(values))])
    slope = float(network.curvatures.mean.max()) * np.diag(y.sum() / (V * y))
    eta = longest
    while eta > SHORTEST * longest:
        push = 1.5 * eta * (B if first == "step" else eye)
        modes = np.block([[B, -push], [slope @ (B - eye), B - slope @ push]])
        if np.sort(np.abs(np.linalg.eigvals(modes)))[-2] < 1:
            break
        eta *= 2 / 3
    return eta

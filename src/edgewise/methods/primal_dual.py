"""The paper's primal-dual method, composed with any gradient estimator."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import UnknownName
from edgewise.gradients.contract import Estimator
from edgewise.methods.clipped_edges import (
    ClippedState,
    Taken,
    clipped,
    radii,
    taken_in,
)
from edgewise.methods.contract import Messages, MethodDefaults, Weights, require_estimator
from edgewise.methods.coupled import CoupledPrimalDual
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.local_training import (
    Training,
    enough_by_rule,
    require_local,
    steps_by_rule,
    train,
    trained_weights,
)
from edgewise.methods.steps import dual_weights, node_steps, trained_steps
from edgewise.problem.block import Block, Links


class NodeState(NamedTuple):
    X: Array  # (v, n)
    S: Array  # (v, n) twice the sum of all pulls so far
    R: Array  # (v, n) rho-degree (x(t) - x(t-1)) - u(t-1), minus the sum of a node's duals
    gain: Array  # (v, 1) 1 in the first round, then 2
    memory: Any


class EdgeState(NamedTuple):
    X: Array  # (v, n)
    memory: Any


@pytree("form", "local")
class PrimalDual(MethodDefaults):
    """Rajawat, Kumar: "A Primal-Dual Framework for Decentralized Stochastic Optimization".

    With lambda_ij the dual of directed edge (i, j), rho_ij = rho_ji and
    gamma_i = 1 / (1/eta_i + sum_j rho_ij), a round is

        x_i <- prox_{gamma_i h_i}( gamma_i ( x_i/eta_i - g_i + sum_j (rho_ij x_j - lambda_ji) ) )
        lambda_ij <- -lambda_ji + rho_ij (x_j - x_i)           (x_i new, x_j and lambda_ji old)

    form="node" keeps two vectors a node instead of one per edge and sends x only: with the pull
    P_i = sum_j rho_ij (x_j - x_i), S <- S + 2 P (S + P in the first round), u = S + R,
    x' = prox_{gamma h}(x + gamma (u - g)), R <- D (x' - x) - u. The same iterates, but a lost
    message is a permanent error. form="edge" sends m_ij = rho_ij x_i - lambda_ij along each edge,
    x_i <- prox_{gamma h}(gamma (x_i/eta - g_i + sum_j m_ji)), m_ij <- 2 rho_ij x_i - m_ji; what
    was last heard is the dual state, so it heals by itself.

    local=tau is local training: the edge form, with tau of those steps between two messages while
    the inbox is held fixed; tau = 1 is the edge form, tau without end PDMM. "auto" has each node
    find tau_i and stop when it has settled: docs/methods/local-training.md has its rules. No
    momentum, no stream.

    radius bounds what an edge pulls with: models then agree by total variation, the sum over edges
    of radius |x_i - x_j|, which one liar bends by no more than its edges' radii. Exact while the
    duals of the honest stay within it: `methods/clipped_edges.py`. In edge form, at
    some more rounds.

    Not for directed graphs; and where one machine can hold all data, don't decentralise.
    """

    gradient: Estimator
    eta: Any = "auto"
    rho: Any = "auto"
    form: str = "node"
    local: int | str | None = None
    radius: Any = None
    steps: Any = None  # (v,) tau_i, found from `local`
    enough: Any = None  # (v,) when a node has trained enough, found from `local`

    def __post_init__(self) -> None:
        if self.form not in ("node", "edge"):
            raise UnknownName("form", self.form, ["node", "edge"])
        require_estimator(self, self.gradient, accelerated=self.local is None)
        if self.local is not None:
            require_local(self.local)
        if self.local is not None or self.radius is not None:
            object.__setattr__(self, "form", "edge")

    @property
    def compiled_as(self) -> str | None:
        if self.radius is not None:
            return None
        return "primal-dual" if self.local is None else "local-training"

    @property
    def times(self) -> int:
        """Gradient steps a round; by rule that is known once prepared."""
        return self.local if isinstance(self.local, int) else 1

    @property
    def random_draws(self) -> int:
        return self.times * int(self.gradient.random_draws)

    @property
    def samples(self) -> int | None:
        return None if self.gradient.samples is None else self.times * self.gradient.samples

    @property
    def streams(self) -> bool:
        return self.local is None and self.gradient.streams  # a stream brings one batch a round

    heals = property(lambda self: self.form == "edge")
    data_by_gradient = property(lambda self: self.local is None)
    takes_penalty = True
    tunes = ("eta", "rho")

    @property
    def hears(self) -> tuple[str, ...]:
        return ("rho",) if self.form == "node" else ("each",)

    @property
    def sends_state(self) -> tuple[str, ...]:
        return ("X",) if self.form == "node" else ()

    def healing(self) -> "PrimalDual":
        return replace(self, form="edge")

    def coupled(self, rows: int, has_data: bool) -> CoupledPrimalDual | None:
        if self.local is not None or self.gradient.accelerated or self.radius is not None:
            return None
        return CoupledPrimalDual(self.gradient, rows, False, has_data, self.eta, self.rho)

    def prepare(self, k: Knowledge) -> tuple["PrimalDual", Weights]:
        tuned = self.gradient.tuned(k.curvatures)
        eta = (node_steps if self.local is None else trained_steps)(self.eta, tuned, k)
        own = jax.tree.map(lambda a: a[k.own] if np.ndim(a) else a, tuned)
        ready = replace(self, gradient=own, eta=eta[k.own, None], rho=None)
        bounds = {}
        if self.radius is not None:
            bounds = {"radius": radii(self.radius, k)}
            ready = replace(ready, radius=())  # the edges have it
        if self.local is None:
            return ready, {"rho": dual_weights(self.rho, eta, k)} | bounds
        tau = steps_by_rule(self.local, tuned, k)
        own_tau = tau[k.own]
        enough = enough_by_rule(self.local, tuned, tau, k)[k.own]
        ready = replace(ready, local=int(own_tau.max()), steps=own_tau, enough=enough)
        return ready, trained_weights(self.rho, eta, tau, k) | bounds

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[Any, Messages]:
        """duals: (v, n) sums over a node's edges, or None: zero. The edge form takes (e, n)."""
        memory = self.gradient.init(p, X)
        if self.form == "node":
            d = jnp.zeros_like(X) if duals is None else duals
            gain = jnp.ones((X.shape[0], 1), X.dtype)
            return NodeState(X, 2 * d, -d, gain, memory), (X,)
        sent = p.edge_weights() * X[p.links.owner]
        first = sent if duals is None else sent - duals
        if self.radius is not None:
            return ClippedState(X, memory, Taken(2 * sent - first)), (first,)
        return EdgeState(X, memory), (first,)

    def step(self, p: Block, s: Any, inbox: Messages, random_bits: Array) -> tuple[Any, Messages]:
        if self.radius is not None:
            return self.step_clipped(p, s, taken_in(p, s, inbox[0]), random_bits)
        if self.times > 1:
            return self.train(p, s, inbox[0], random_bits)
        degree = p.edge_totals()
        gamma = 1 / (1 / self.eta + degree)
        G, memory = self.gradient(p, s.X, s.memory, random_bits)
        if self.form == "node":
            S = s.S + s.gain * inbox[0]
            u = S + s.R
            X = p.penalty.prox(s.X + gamma * (u - G), gamma)
            R = degree * (X - s.X) - u
            return NodeState(X, S, R, jnp.minimum(2 * s.gain, 2), memory), (X,)
        heard = inbox[0]
        X = p.penalty.prox(gamma * (s.X / self.eta - G + p.links.gather(heard, len(s.X))), gamma)
        return EdgeState(X, memory), (2 * p.edge_weights() * X[p.links.owner] - heard,)

    def train(
        self, p: Block, s: EdgeState, heard: Array, random_bits: Array
    ) -> tuple[EdgeState, Messages]:
        """Several steps of the edge form, with what was heard held fixed."""
        times = Training(self.eta, self.steps, self.enough)
        U = p.links.gather(heard, len(s.X))
        bits = random_bits.reshape(len(s.X), self.times, -1)
        X, memory = train(self.gradient, p, s.X, s.memory, U, times, bits)
        return EdgeState(X, memory), (2 * p.edge_weights() * X[p.links.owner] - heard,)

    def step_clipped(
        self, p: Block, s: ClippedState, z: Array, random_bits: Array
    ) -> tuple[ClippedState, Messages]:
        """A step of the edge form with z in the place of what was heard."""
        step = replace(self, radius=None).step
        new, sent = step(p, EdgeState(s.X, s.memory), (z,), random_bits)
        return ClippedState(new.X, new.memory, Taken(z)), sent

    def answer(self, s: Any) -> Array:
        """(v, n) models: the iterates, or where an accelerated estimator takes its gradients."""
        return self.gradient.point(s.memory, s.X)

    def duals(self, links: Links, s: Any, inbox: Messages, outbox: Messages) -> Array:
        """(v, n) sum_j (m_ji - m_ij) / 2, which adds up to zero over all nodes and goes to the sum
        of a node's optimal duals. The duals themselves need not settle where a subgradient is not
        unique: lambda_ij + lambda_ji may change its sign for ever, and x not notice."""
        if self.form == "node":
            return 0.5 * (s.S + s.gain * inbox[0])
        if self.radius is not None:
            return links.gather(clipped(0.5 * (inbox[0] - outbox[0]), links.radius), len(s.X))
        return 0.5 * links.gather(inbox[0] - outbox[0], len(s.X))

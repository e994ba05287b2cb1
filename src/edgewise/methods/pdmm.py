"""PDMM, the primal-dual method of multipliers: a local problem every round, solved."""

from dataclasses import replace
from typing import Any, NamedTuple

from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError, whole_number
from edgewise.gradients.full import Full
from edgewise.gradients.memory import Calls
from edgewise.methods.contract import Messages, MethodDefaults, Weights
from edgewise.methods.coupled import CoupledPrimalDual
from edgewise.methods.knowledge import Knowledge
from edgewise.methods.steps import node_steps, positive
from edgewise.methods.subproblem import argmin_weights, local_argmin
from edgewise.problem.block import Block, Links


class State(NamedTuple):
    X: Array  # (v, n) models
    memory: Calls


@pytree("most")
class PDMM(MethodDefaults):
    """Zhang, Heusdens: "Distributed optimization using the primal-dual method of multipliers",
    2018, all nodes at once, for consensus: A_ij = -A_ji = +-I, P_ij = rho_ij I,

        x_i <- argmin_x f_i(x) + h_i(x) - <x, sum_j m_ji> + (D_i/2) |x|^2,    D_i = sum_j rho_ij
        m_ij <- 2 rho_ij x_i - m_ji                                           (x_i new)

    from m_ij = rho_ij x_i, which are zero duals. rho: rho, h: the problem's penalty. The paper was
    not at hand. This is its form in public code of it (x from z; y_ij = z_ij + 2 rho A_ij x_i;
    z_ij <- y_ji) with m_ij = A_ij y_ij, and PrimalDual(form="edge") with a minimum in the place of
    its linear model of f_i. The messages are all there is of duals, so that it heals.

    The minimum is found by accelerated gradient steps 1 / (1/eta + D), to within `tol` of the way
    that a node moves, or after `most` of them. eta "auto" is 1/L_i; rho "auto" is that of
    `argmin_weights`, factor 2: within 1.5 times the fewest rounds of a grid, on ring, random and
    complete graphs with ridge from 0.001 to 0.1.

    Not where gradients are dear: a round takes several passes over the data. Nor where losses are
    flat and models begin apart: they may swap for ever. D-ADMM settles there.
    """

    eta: Any = "auto"
    rho: Any = "auto"
    tol: Any = 0.1
    most: int = 200

    def __post_init__(self) -> None:
        whole_number("PDMM's most", self.most, 1, MethodError)

    hears = ("each",)
    heals = True
    takes_penalty = True
    tunes = ("rho",)
    solves_subproblem = True
    gradient = None  # whole ones, in `local_argmin`

    def coupled(self, rows: int, has_data: bool) -> CoupledPrimalDual:
        settings = {"theta": None, "tol": self.tol, "most": self.most}
        return CoupledPrimalDual(None, rows, True, has_data, self.eta, self.rho, **settings)

    def prepare(self, k: Knowledge) -> tuple["PDMM", Weights]:
        eta = node_steps(self.eta, Full(), k)[k.own]
        tol = float(positive("tol", self.tol, 1, "run")[0])
        rho = argmin_weights(self.rho, 2.0, k)
        return replace(self, eta=eta[:, None], rho=None, tol=tol), {"rho": rho}

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        """duals: (e, n), one per directed edge."""
        sent = p.links.rho[:, None] * X[p.links.owner]
        return State(X, Full().init(p, X)), (sent if duals is None else sent - duals,)

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        heard = inbox[0]
        U = p.links.gather(heard, len(s.X))
        X, calls = local_argmin(p, s.X, self.eta, p.links.total, U, self.tol, self.most)
        sent = 2 * p.links.rho[:, None] * X[p.links.owner] - heard
        return State(X, Calls(s.memory.calls + calls)), (sent,)

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        """(v, n) sum_j (m_ji - m_ij) / 2, as in PrimalDual."""
        return 0.5 * links.gather(inbox[0] - outbox[0], len(s.X))

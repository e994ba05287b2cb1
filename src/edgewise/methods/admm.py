"""Decentralised consensus ADMM: a local problem every round, solved."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
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
    A: Array  # (v, n) alpha before this round's pull: minus the sum of all pulls so far
    memory: Calls


@pytree("most")
class DADMM(MethodDefaults):
    """Shi, Ling, Yuan, Wu, Yin: "On the linear convergence of the ADMM in decentralized consensus
    optimization", 2014, their (9), with a weight per edge for their one c:

        x_i <- argmin_x f_i(x) + h_i(x) + <alpha_i, x> + sum_j rho_ij |x - (x_i + x_j)/2|^2
        alpha_i <- alpha_i + sum_j rho_ij (x_i - x_j)                       (x_i, x_j new)

    rho: rho, h: the problem's penalty. The paper was not at hand: the equations were read in two
    public codes that name it; h and unequal rho are ours. With the pull
    P_i = sum_j rho_ij (x_j - x_i), D_i = sum_j rho_ij and one vector an edge and round, that is

        alpha <- alpha - P,    x <- argmin f + h - <2 D x_old + P - alpha, x> + D |x|^2

    from alpha = 0 before the first pull; theirs is zero after it, which is the same where all nodes
    begin from one model. Not the D-ADMM of Mota et al. 2013, where nodes take turns by colour: here
    everyone speaks every round, as engines and counts here assume, and no colouring is needed.

    The minimum is found by accelerated gradient steps 1 / (1/eta + 2 D), to within `tol` of the
    way that a node moves, or after `most` of them. eta "auto" is 1/L_i; rho "auto" is
    that of `argmin_weights`, factor 1: within twice the fewest rounds of the grid tried for PDMM.

    Not where messages get lost (alpha never forgets: use pdmm), nor where gradients are dear.
    """

    eta: Any = "auto"
    rho: Any = "auto"
    tol: Any = 0.1
    most: int = 200

    def __post_init__(self) -> None:
        whole_number("DADMM's most", self.most, 1, MethodError)

    hears = ("rho",)
    takes_penalty = True
    tunes = ("rho",)
    solves_subproblem = True
    gradient = None  # whole ones, in `local_argmin`

    def coupled(self, rows: int, has_data: bool) -> CoupledPrimalDual:
        # ADMM is PDMM half averaged, with twice the weight
        doubled = self.rho if isinstance(self.rho, str) else 2 * np.asarray(self.rho, np.float64)
        settings = {"theta": 0.5, "tol": self.tol, "most": self.most}
        return CoupledPrimalDual(None, rows, True, has_data, self.eta, doubled, **settings)

    def prepare(self, k: Knowledge) -> tuple["DADMM", Weights]:
        eta = node_steps(self.eta, Full(), k)[k.own]
        tol = float(positive("tol", self.tol, 1, "run")[0])
        rho = argmin_weights(self.rho, 1.0, k)
        return replace(self, eta=eta[:, None], rho=None, tol=tol), {"rho": rho}

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        A = jnp.zeros_like(X) if duals is None else -duals
        return State(X, A, Full().init(p, X)), (X,)

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        A, D = s.A - inbox[0], 2 * p.links.total
        U = D * s.X + inbox[0] - A
        X, calls = local_argmin(p, s.X, self.eta, D, U, self.tol, self.most)
        return State(X, A, Calls(s.memory.calls + calls)), (X,)

    def duals(self, links: Links, s: State, inbox: Messages, outbox: Messages) -> Array:
        """(v, n) -alpha: at rest it is a gradient of f_i plus a subgradient of h_i, and adds up to
        zero. A run that starts from it goes on as if never stopped."""
        return -s.A

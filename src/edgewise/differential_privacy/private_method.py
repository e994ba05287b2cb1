"""The method that runs under a budget: one whose every message is made of noisy gradients."""

from dataclasses import replace
from typing import Any

import numpy as np

from edgewise.differential_privacy.accountant import noise_for
from edgewise.differential_privacy.bounded_problem import row_norm_of, shares
from edgewise.differential_privacy.budget import DP
from edgewise.errors import MethodError
from edgewise.methods.auto import is_number
from edgewise.methods.catalogue import AUTO, make
from edgewise.methods.contract import Method
from edgewise.problem.problem import Problem

CHOSEN = "pd"
CHOSEN_NOTE = (
    f"{AUTO}: {CHOSEN}, because under differential privacy its messages are made of one noisy "
    "gradient a round, and it bears nodes whose data differ"
)
REACH = 8.0  # a margin that models are to get to: steps go no farther than noise leaves of use
SETTLED = 5.0  # times 1 / ridge that all steps together are long, at most: the ridge is then done
HOW = f"use {CHOSEN}, or dgd-full, whose averaging hides more from those who are no neighbours"


def private_method(
    method: Method | str,
    problem: Problem,
    budget: DP,
    rounds: int,
    nodes: int,
    eta: Any = None,
    rho: Any = None,
) -> Method:
    """The method with noise in its gradients. Raises MethodError where that cannot be accounted
    for. nodes: of the whole network, of which the problem may be a part."""
    made = make(CHOSEN if method == AUTO else method, eta, rho)
    require_accountable(made, method if isinstance(method, str) else type(made).__name__)
    z = noise_for(budget.epsilon, budget.delta, rounds)
    each = shares(problem)
    assert made.gradient is not None
    gradient = made.gradient.private(
        size=problem.size,
        clip=budget.clip,
        noise=z,
        reach=reach_of(problem, budget, z, rounds, nodes),
        longest=SETTLED / (max(float(problem.loss.ridge), 1e-300) * rounds),
        share=None if problem.scale is None else float(each[0]),
    )
    if not (is_number(made.eta) or made.eta == "auto"):
        raise MethodError(
            f"eta={made.eta!r} under differential privacy: steps by it are for gradients without "
            "noise; give a number, or leave it out"
        )
    private: Any = made
    made = replace(private, gradient=gradient)
    return made


def require_accountable(method: Method, name: str) -> None:
    """Raises MethodError unless all that it sends is made of gradients that noise can be put on."""
    what = ""
    if not method.data_by_gradient or method.gradient is None:
        what = "its messages hold more of the data than one gradient a round"
    elif method.gradient.private(size=1, clip=1.0, noise=1.0, reach=1.0, longest=1.0) is None:
        what = (
            "its gradients draw samples, or keep what they have seen, and whole ones alone are "
            "accounted for"
        )
    if what:
        raise MethodError(f"{name} cannot run under differential privacy: {what}; {HOW}")


def reach_of(problem: Problem, budget: DP, noise: float, rounds: int, nodes: int) -> float:
    """A node's step, times a_i/K_i, at most. Of T steps eta the noise alone moves the mean model
    of V nodes, in each of n coordinates, by eta z C (a_i/K_i) sqrt(T / V) as if they never felt the
    loss; and they come as far as a model D away if eta T s, s the deviation of all T gradients'
    mean, is D / sqrt(n). More would add noise in flat directions, less would stop short."""
    row_norm = row_norm_of(problem, budget)
    unit = 1.0
    if problem.classes is None and problem.loss.linear:
        unit = budget.clip / row_norm / problem.loss.curvature()
    far = REACH * unit / row_norm
    spread = noise * budget.clip * np.sqrt(problem.size * rounds / nodes)
    return float(far / spread)

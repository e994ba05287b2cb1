"""A run of `solve` under differential privacy: what it refuses, what it runs, and what it spent."""

import secrets
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from edgewise.differential_privacy.bounded_problem import (
    bounded,
    require_clippable,
    row_norm_of,
    shares,
)
from edgewise.differential_privacy.budget import DP
from edgewise.differential_privacy.private_method import CHOSEN, CHOSEN_NOTE, private_method
from edgewise.differential_privacy.spent import PrivacySpent
from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.methods.catalogue import AUTO
from edgewise.methods.contract import Method
from edgewise.methods.knowledge import whole_network
from edgewise.problem.problem import Problem
from edgewise.running.result import Result

DATA_DEPENDENT = {
    "tol": "when a residual is small tells of the data it is measured on; give rounds",
    "oracle_budget": "rounds are what is accounted for; give those",
    "callback": "it is shown residuals of the data, and may end the run by them",
    "checkpoint": "rounds that are run again would release their gradients with other noise, "
    "which is not accounted for; run it in one go",
    "duals": "they are made of gradients, and go out in the first messages; leave them out",
    "engine": "MPI ranks look curvatures up in the data; leave it out",
    "between": "what couples models is not clipped; leave it out",
}


class PrivateRun(NamedTuple):
    problem: Problem
    method: Method
    name: str  # as the user gave it
    note: str
    rounds: int
    seed: int
    spent: PrivacySpent


def require_private(privacy: Any, problem: Any, **given: Any) -> None:
    """Raises an error where the run would end, or begin, by what the data say, or where a sample's
    part in what a node sends cannot be clipped."""
    if not isinstance(privacy, DP):
        raise MethodError(f"privacy={privacy!r}: give edgewise.DP(epsilon=, delta=, clip=)")
    for name, why in DATA_DEPENDENT.items():
        if given.get(name) is not None:
            raise MethodError(f"{name} does not go with differential privacy: {why}")
    if isinstance(problem, Problem):
        require_clippable(problem)


def private_run(
    privacy: DP,
    problem: Problem,
    graph: Graph,
    method: Method | str,
    rounds: int,
    eta: Any,
    rho: Any,
    exact_links: bool,
) -> PrivateRun:
    """exact_links: all messages arrive, as what is said of nodes far away takes them to."""
    rounds, row_norm = min(rounds, privacy.rounds), row_norm_of(problem, privacy)
    seen = bounded(problem, row_norm)
    made = private_method(method, seen, privacy, rounds, graph.nodes, eta, rho)
    gradient: Any = made.gradient
    deviations = shares(seen)
    weights = hiding_weights(made, seen, graph) if exact_links else None
    spent = PrivacySpent(
        privacy, rounds, float(gradient.noise), row_norm, graph, weights, deviations
    )
    seed = secrets.randbits(63) if privacy.noise_seed is None else privacy.noise_seed
    named = method if isinstance(method, str) else type(made).__name__
    note = CHOSEN_NOTE if named == AUTO else ""
    return PrivateRun(seen, made, CHOSEN if named == AUTO else named, note, rounds, seed, spent)


def hiding_weights(method: Method, problem: Problem, graph: Graph) -> np.ndarray | None:
    """(E,) mixing weights, where averaging with them moves no two models apart: none is negative,
    the losses are of margins and convex, and no step is longer than 2 W_ii / L_i. None: messages
    are then taken to show everybody all that they show neighbours."""
    loss: Any = problem.loss
    if method.hears != ("mixing",) or not (loss.linear and loss.convex and loss.outputs == 1):
        return None
    prepared, weights = method.prepare(whole_network(problem, graph))
    mixing = weights["mixing"]
    own = np.ones(graph.nodes)
    np.subtract.at(own, graph.edges.ravel(), np.repeat(mixing, 2))
    steps = np.asarray(prepared.eta)[:, 0]
    short = steps <= 2 * own / problem.smoothness.sample + 1e-12
    return mixing if (mixing >= 0).all() and short.all() else None


def with_privacy(result: Result, spent: PrivacySpent) -> Result:
    """What it came to makes no claim to have converged: that would be to look at the data."""
    how = f"ran all {spent.rounds} rounds under differential privacy: {spent}"
    if not np.isfinite(result.X).all():
        how = f"diverged: {result.message}"
    return replace(result, converged=False, message=how, explanation="", privacy=spent)

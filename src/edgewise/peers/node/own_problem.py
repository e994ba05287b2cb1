"""The problem of one peer, from its configuration and its own data alone."""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from edgewise import spec
from edgewise.data.shards import Shards
from edgewise.errors import InputError, ProblemError, UnknownName
from edgewise.peers.config.arrays import array_in
from edgewise.peers.config.peer_config import PeerConfig
from edgewise.peers.node.own_data import own_data
from edgewise.problem.budget import Budget
from edgewise.problem.costs import Linear, Quadratic
from edgewise.problem.penalties import GroupL2, HalfSpace
from edgewise.problem.problem import Problem
from edgewise.problem.smoothness import ReportedSmoothness

NO_LOSS = "none"  # nobody has data
WITH_VECTORS = {"budget": Budget, "group-l2": GroupL2, "half-space": HalfSpace}
PENALTIES = {name: syntax.make for name, syntax in spec.PENALTIES.items()} | WITH_VECTORS


def one_node(config: PeerConfig, shard: Any) -> Problem:
    """shard: a file, or (X, y), or None where it has a cost."""
    return problem_of(config, own_data(config, shard).shards)


def problem_of(config: PeerConfig, shards: Shards | None) -> Problem:
    """Of the peer's samples. Classes are the configuration's: a peer may see some only."""
    fit = config.fit
    loss = None if fit.loss == NO_LOSS else spec.loss(fit.loss, fit.ridge)
    if config.couples:
        problem = coupled_node(config, shards, loss)
    elif shards is None or loss is None:
        raise InputError(
            f"peer {config.id} has no data, or no loss, and no [between] with a [cost] in "
            f"{config.path}: give it data and a loss"
        )
    else:
        penalty = own_penalty(config)
        problem = Problem(shards, loss, penalty, intercept=fit.intercept, classes=config.classes)
    problem.ids = np.array([config.id])
    return problem


def refitted(config: PeerConfig, problem: Problem, scaling: Any, weight: float | None) -> Problem:
    """The same with its columns scaled, and its samples weighed: each counts V/N beside those of
    V peers with N samples in all."""
    shards: Any = problem.shards
    if scaling is not None:
        shards = replace(shards, X=scaling.apply(shards.X), scaling=scaling)
    fit = config.fit
    made = Problem(
        shards,
        spec.loss(fit.loss, fit.ridge),
        own_penalty(config),
        intercept=fit.intercept,
        classes=problem.classes,
    )
    made.ids = problem.ids
    own = int(made.counts[0])
    if weight is not None:
        each = case_weights(made)
        made.scale = np.full(own, own * weight) if each is None else each * own * weight
    return made


def case_weights(problem: Problem) -> np.ndarray | None:
    return problem.shards.weight if isinstance(problem.shards, Shards) else None


def total_weight(problem: Problem) -> float:
    """Of the peer's samples, each of which counts one by itself."""
    each = case_weights(problem)
    return float(problem.counts[0] if each is None else each.sum())


def as_one_of_equals(config: PeerConfig, problem: Problem) -> Problem:
    """The same as if all peers had as many samples: of a peer with few its data would be lost in
    the ridge, and its own messages would say nothing of theirs."""
    if problem.scale is None:
        return problem
    return refitted(config, problem, None, 1 / total_weight(problem))


def coupled_node(config: PeerConfig, shards: Shards | None, loss: Any) -> Problem:
    fit, cost, penalty = config.fit, own_cost(config), own_penalty(config)
    if fit.intercept:
        raise ProblemError("couplings go with no intercept: add a column of ones instead")
    if shards is not None and loss is None:
        raise InputError(f"{config.path}: fit.loss is none, and there are data: name a loss")
    if shards is None and cost is None:
        raise InputError(f"{config.path}: peer {config.id} has neither data nor a [cost]: give one")
    if shards is None:
        problem = Problem(cost=[cost], penalty=penalty)
        if loss is not None:  # of nothing here, but the same for all
            problem.loss = loss
            known = None if config.classes is None else np.asarray(config.classes)
            problem.classes = None if known is None else loss.encode(known)[1]
        if "smoothness" in config.cost:
            problem.__dict__["smoothness"] = told_smoothness(problem, config.cost["smoothness"])
        return problem
    costs = None if cost is None else [cost]
    problem = Problem(shards, loss, penalty, classes=config.classes, cost=costs)
    if problem.loss.outputs != 1:
        raise ProblemError(f"couplings go with losses of one output: {fit.loss} has several")
    return problem


def told_smoothness(problem: Problem, most: float) -> ReportedSmoothness:
    """Of a node without curvature, whose edges have to be weighed by something: alone it does not
    know that of others, which the simulator takes."""
    each = np.array([float(most)])
    ridge = float(problem.loss.ridge)
    return ReportedSmoothness(problem.counts, each, each, np.zeros(1), ridge, problem.size)


def own_cost(config: PeerConfig) -> Quadratic | None:
    """[cost]: x'Qx/2 + q'x, Q a matrix, its diagonal or a number; none, or numbers of a file."""
    if not config.cost:
        return None
    folder, at = config.path.parent, f"{config.path}: cost"
    Q, q = (array_in(config.cost.get(key, 0.0), folder, key, f"{at}.{key}") for key in ("Q", "q"))
    return Quadratic(Q, q) if "Q" in config.cost else Linear(q)


def own_penalty(config: PeerConfig) -> Any:
    """One of a text, or of [penalty], a kind and what it takes."""
    if not config.own_penalty:
        return spec.penalty(list(config.penalty), 1)
    given, folder = dict(config.own_penalty), config.path.parent
    kind, at = given.pop("kind"), f"{config.path}: penalty"
    if kind not in PENALTIES:
        raise UnknownName("penalty", kind, PENALTIES)
    takes = [f.name for f in fields(PENALTIES[kind])]  # type: ignore[arg-type]
    for key in given:
        if key not in takes:
            raise UnknownName("key in", f"{at}.{key}", [f"{at}.{k}" for k in takes])
    values = {key: array_in(value, folder, key, f"{at}.{key}") for key, value in given.items()}
    try:
        return PENALTIES[kind](**values)
    except TypeError:
        raise InputError(f"{at} of kind {kind} takes {', '.join(takes)}: give those") from None

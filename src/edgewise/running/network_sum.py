"""Sums over a network by averaging: every node ends with the sum of all nodes' numbers, and nobody
collects them."""

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.engines.choose import make_engine
from edgewise.engines.faults import Faults, links_in_time, under_faults
from edgewise.engines.mpi import MPI
from edgewise.errors import AccuracyWarning, DataError, GraphError, MethodError, whole_number
from edgewise.gradients.full import Full
from edgewise.graph.from_text import graph_of
from edgewise.graph.graph import Graph
from edgewise.graph.mixing import laplacian_range
from edgewise.graph.varying import TimeVarying
from edgewise.methods.primal_dual import PrimalDual
from edgewise.problem.losses import CustomLoss
from edgewise.problem.problem import Problem
from edgewise.running.trajectory import Trajectory

BEST = 1.2  # times 1 / sqrt(least and largest curvature of the graph): near the best on rings,
# paths, grids, stars and random graphs (benchmarks/network_sum.py)
LOOK_EVERY = 20
LEAST_ACCURACY = 1e-14  # rounding leaves no more
LEAST_WIDTH = 16
PATIENCE = 50  # looks that bring nothing, after which no more will


@runtime_checkable
class Adder(Protocol):
    """One of several processes that add up together, such as a peer."""

    least_count: int  # of people, that it tells

    def add_up(self, values: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class NetworkSum:
    """A sum, and how the nodes came to it."""

    value: np.ndarray  # the mean of what the nodes have
    at_nodes: np.ndarray = field(repr=False)  # (V, ...) what each has; over MPI those of this rank
    accuracy: float  # the largest error of any node, beside the sum of absolute values
    reached: bool  # whether that is as small as was asked for
    rounds: int
    bytes_sent: float


def sum_over(
    graph: Graph | TimeVarying | Adder | str,
    values: Any,
    accuracy: float = 1e-12,
    rounds: int = 100_000,
    *,
    faults: Faults | None = None,
    engine: MPI | None = None,
) -> NetworkSum:
    """Add up what the nodes have: one array each, all of one shape.

    Each node's array a_i is V times its own numbers, and the primal-dual round with f_i = |x -
    a_i|^2 / 2 and step 1 finds their mean: x_i = (a_i + sum_j m_ji) / (1 + sum_j rho_ij), then
    m_ij = 2 rho_ij x_i - m_ji. A node tells its neighbours its running estimate and nothing else.
    Lost messages, sleep and delays leave the sum as it is (`faults`).

    graph     a `Graph`, or a text as `solve` takes it: "ring"; at a peer its `Peer.sums`
    accuracy  the error that every node ends with at most, beside the sum of the absolute values,
              entry by entry. It is measured, as this process knows all values; peers, who do not,
              go by their residual
    rounds    at most

    >>> total = sum_over(edgewise.Graph.ring(6), [[1.0, 10.0 * i] for i in range(6)])
    >>> total.value.round(9), total.reached
    (array([  6., 150.]), True)
    """
    if isinstance(graph, Adder):
        return at_peer(graph, values, faults or engine)
    several = isinstance(values, Sequence | np.ndarray)
    named: Any = graph_of(graph, len(values)) if several else graph
    network, faults = links_in_time(named, faults)
    numbers = as_numbers(network, values)
    if not isinstance(accuracy, float) or not LEAST_ACCURACY <= accuracy < 1:
        raise MethodError(f"accuracy={accuracy!r}: give a number from {LEAST_ACCURACY:g} up to 1")
    whole_number("rounds", rounds, 1, MethodError)
    if faults is not None and (faults.leave or faults.join or faults.wipe):
        raise MethodError("a sum is over all nodes: leave join, leave and wipe out")
    network.require_connected()
    flat = numbers.reshape(len(numbers), -1)
    size = np.abs(flat).sum(0)
    shares = flat / np.where(size > 0, size, 1)  # entries may be of any magnitude
    if network.nodes == 1:
        return NetworkSum(numbers[0], numbers, 0.0, True, 0, 0.0)
    with nullcontext() if engine is None else engine.together():
        found = averaged(network, shares, accuracy, rounds, faults, engine)
    X, mean, error, taken, sent = found
    if error > accuracy:
        warnings.warn(
            f"the sum has an error of {error:.1e} after {taken} rounds, {accuracy:.0e} was asked "
            "for: give more rounds, or ask for less",
            AccuracyWarning,
            stacklevel=2,
        )
    shape = numbers.shape[1:]
    at_nodes = (X * size).reshape(-1, *shape)
    return NetworkSum((mean * size).reshape(shape), at_nodes, error, error <= accuracy, taken, sent)


def at_peer(adder: Adder, values: Any, besides: Any) -> NetworkSum:
    """With the others, of which each has its own values; exact."""
    if besides is not None:
        raise MethodError("at a peer there are no faults to draw and no ranks: leave both out")
    (own,) = as_arrays(values, 1)
    total = np.asarray(adder.add_up(own))
    return NetworkSum(total, total[None], 0.0, True, 0, 0.0)


def averaged(
    graph: Graph,
    shares: np.ndarray,
    accuracy: float,
    rounds: int,
    faults: Faults | None,
    engine: MPI | None,
) -> tuple[np.ndarray, np.ndarray, float, int, float]:
    """(v, n) what nodes have, their mean (n,), the largest error, rounds and bytes."""
    V, n = graph.nodes, shares.shape[1]
    width = max(LEAST_WIDTH, 1 << (n - 1).bit_length())  # one program serves sums of many lengths
    shares = np.pad(shares, ((0, 0), (0, width - n)))
    total = shares.sum(0)
    problem = Problem([(V * a[None], [0.0]) for a in shares], CustomLoss(distance, smoothness=1.0))
    method: Any = PrimalDual(Full(), eta=1.0, rho=best_weight(graph))
    if faults is not None:
        method = under_faults(method, faults, problem, graph)
    kind = np.dtype(np.float64)
    with (
        jax.enable_x64(True),
        make_engine(problem, graph, method, 0, kind, faults, None, engine) as made,
    ):
        communicator = made.communicator
        run = Trajectory(made.executor)
        run.start(made.executor.origin())
        least, idle = np.inf, 0
        while True:
            run.advance(min(LOOK_EVERY, rounds - run.round))
            X = np.asarray(run.view()[0])
            error = float(communicator.gather(np.abs(X - total).max(1)).max())
            idle = 0 if error < least else idle + 1
            least = min(least, error)
            if error <= accuracy or run.round >= rounds or idle >= PATIENCE:
                break
        mean = communicator.mean(X, np.ones(V, bool))
        return X[:, :n], mean[:n], error, run.round, run.counts().bytes * n / width


def distance(x: Array, d: Array, y: Array) -> Array:
    return 0.5 * jnp.sum((x - d) ** 2)


def best_weight(graph: Graph) -> float:
    """rho: the nodes' curvature, 1, beside those of the graph, which edges put between them."""
    least, largest = laplacian_range(graph)
    return float(BEST / np.sqrt(least * largest))


def as_numbers(graph: Any, values: Any) -> np.ndarray:
    """(V, ...)"""
    if not isinstance(graph, Graph):
        raise GraphError(f"{graph!r} is no Graph: sum_over(graph, values) in this order")
    return np.stack(as_arrays(values, graph.nodes))


def as_arrays(values: Any, nodes: int) -> list[np.ndarray]:
    """Of one shape, finite, as many as there are nodes."""
    if not isinstance(values, Sequence | np.ndarray) or len(values) != nodes:
        many = len(values) if isinstance(values, Sequence | np.ndarray) else "no"
        raise DataError(f"{many} values for {nodes} nodes: give a list with one array each")
    made: list[np.ndarray] = []
    for i, value in enumerate(values):
        try:
            each = np.asarray(value, np.float64)
        except (TypeError, ValueError) as wrong:
            raise DataError(f"node {i} has {value!r}: give numbers") from wrong
        if not np.isfinite(each).all():
            raise DataError(f"node {i} has numbers that are not finite: give others")
        if made and each.shape != made[0].shape:
            raise DataError(
                f"node {i} has numbers of shape {each.shape}, node 0 of {made[0].shape}: give all "
                "the same shape"
            )
        made.append(each)
    return made

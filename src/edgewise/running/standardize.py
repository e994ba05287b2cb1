"""Columns of mean 0 and variance 1, from sums over the network: nobody pools data."""

from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from edgewise.data.arrays import row_blocks
from edgewise.data.folders import FolderShards
from edgewise.data.scaling import Standardization
from edgewise.data.shards import Shards
from edgewise.data.stream import Stream
from edgewise.engines.faults import Faults
from edgewise.engines.mpi import MPI
from edgewise.errors import DataError, GraphError
from edgewise.graph.from_text import graph_of
from edgewise.graph.graph import Graph
from edgewise.problem.sample_weights import Weights
from edgewise.running.network_sum import NetworkSum, sum_over

CONSTANT = 4 * np.finfo(np.float64).eps  # of the mean: a spread below it is rounding


def standardize(
    shards: Any,
    graph: Graph | str,
    sample_weight: Any = None,
    accuracy: float = 1e-12,
    rounds: int = 100_000,
    *,
    faults: Faults | None = None,
    engine: MPI | None = None,
) -> tuple[Shards, Standardization]:
    """The shards with every column's mean 0 and variance 1, and how to go back.

    Nodes add up two rounds of sums with `sum_over`: weights and w x, which give the mean; then
    w (x - mean) and w (x - mean)^2, which correct the mean and give the variance. So an offset of
    1e9 beside a spread of 1e-3 costs no digits but those that the data lack themselves. The
    variance is that of all samples, divided by their number, as scikit-learn's StandardScaler has
    it. A constant column is centred and not scaled. Sparse shards are scaled and not centred, so
    that they stay sparse.

    What a `Problem` of these shards is fitted to are the standardised columns, and its penalty and
    ridge are on their coefficients. The shards remember the scaling, so `result.model` is in the
    units that the data came in.

    graph          a `Graph`, or a text as `solve` takes it: "ring"
    sample_weight  one weight per sample, in the order that `Problem` takes it in
    accuracy, rounds, faults, engine  as `sum_over` has them

    >>> shards = edgewise.split(np.arange(12.0).reshape(6, 2) ** 2, np.arange(6), nodes=3)
    >>> scaled, scaling = edgewise.standardize(shards, edgewise.Graph.ring(3))
    >>> scaling.centre.round(6), scaled.X.std(0).round(6)
    (array([36.666667, 47.666667]), array([1., 1.]))
    """
    if not isinstance(graph, Graph | str):
        raise GraphError(f"{graph!r} is no Graph: standardize(shards, graph) in this order")
    held = as_shards(shards)
    network: Graph = graph_of(graph, held.nodes)
    if held.nodes != network.nodes:
        raise GraphError(
            f"the graph has {network.nodes} nodes and the data have {held.nodes}: give a graph "
            f"with {held.nodes} nodes"
        )
    if held.scaling is not None:
        raise DataError("these shards are standardised already: give them as they were")
    w = weights_in_order(sample_weight, held)
    options: dict[str, Any] = {
        "accuracy": accuracy,
        "rounds": rounds,
        "faults": faults,
        "engine": engine,
    }
    p = held.features
    first = sum_over(network, [first_sums(X, each) for X, each in parts(held, w)], **options)
    total, sums, sizes = first.value[0], first.value[1 : p + 1], first.value[p + 1 :]
    about, unit = sums / total, np.where(sizes > 0, sizes / total, 1.0)
    second = sum_over(
        network, [second_sums(X, each, about, unit) for X, each in parts(held, w)], **options
    )
    shift, square = second.value[1 : p + 1] / total, second.value[p + 1 :] / total
    both: tuple[NetworkSum, ...] = (first, second)
    scaling = replace(
        scaling_of(about, unit, shift, square, isinstance(held.X, np.ndarray), held.samples),
        rounds=sum(each.rounds for each in both),
        bytes_sent=sum(each.bytes_sent for each in both),
        reached=all(each.reached for each in both),
    )
    return replace(held, X=scaling.apply(held.X), scaling=scaling), scaling


def scaling_of(
    about: np.ndarray,
    unit: np.ndarray,
    shift: np.ndarray,
    square: np.ndarray,
    dense: bool,
    count: int,
) -> Standardization:
    """Of the means of d and d^2, where d = (x - about) / unit, over `count` samples."""
    mean = about + shift * unit
    spread = np.sqrt(np.maximum(square - shift**2, 0)) * unit
    return Standardization(
        centre=mean if dense else np.zeros(len(mean)),
        scale=np.where(spread <= CONSTANT * np.abs(mean), 1.0, spread),
        mean=mean,
        variance=spread**2,
        count=count,
    )


def as_shards(shards: Any) -> Shards:
    if isinstance(shards, Stream):
        raise DataError("a stream has no end, so no mean of all samples: give shards")
    if isinstance(shards, Shards):
        return shards
    if isinstance(shards, str | PathLike):
        shards = FolderShards(shards)
    return shards.whole if isinstance(shards, FolderShards) else Shards.from_parts(shards)


def weights_in_order(sample_weight: Any, shards: Shards) -> np.ndarray:
    """(N,) in the order of the rows."""
    made = Weights("sample", sample_weight, shards.nodes, shards.samples, shards.weight)
    if made.each is None:
        return np.ones(shards.samples)
    return made.each if made.in_order or shards.order is None else made.each[shards.order]


def parts(shards: Shards, w: np.ndarray) -> list[tuple[Any, np.ndarray]]:
    ends = np.cumsum(shards.counts)
    return [(shards[i][0], w[end - shards.counts[i] : end]) for i, end in enumerate(ends)]


def first_sums(X: Any, w: np.ndarray) -> np.ndarray:
    """(1 + 2 p,) of one node: weights, w x, w |x|."""
    if not isinstance(X, np.ndarray):
        return np.concatenate([[w.sum()], np.ravel(w @ X), np.ravel(w @ abs(X))])
    sums, sizes = np.zeros((2, X.shape[1]))
    for rows in row_blocks(X):
        block = X[rows].astype(np.float64, copy=False)
        sums += w[rows] @ block
        sizes += w[rows] @ np.abs(block)
    return np.concatenate([[w.sum()], sums, sizes])


def second_sums(X: Any, w: np.ndarray, about: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """(1 + 2 p,) of one node: weights, w d, w d^2, of d = (x - about) / unit."""
    p = X.shape[1]
    if not isinstance(X, np.ndarray):
        d, zero = (X.data - about[X.indices]) / unit[X.indices], -about / unit
        each = np.repeat(w, np.diff(X.indptr))
        stored, once, twice = (
            np.bincount(X.indices, weights=each * f, minlength=p)
            for f in (np.ones_like(d), d, d**2)
        )
        rest = w.sum() - stored  # weight of the zeros that are not stored
        return np.concatenate([[w.sum()], once + rest * zero, twice + rest * zero**2])
    sums, squares = np.zeros((2, p))
    for rows in row_blocks(X):
        d = (X[rows] - about) / unit
        sums += w[rows] @ d
        squares += w[rows] @ d**2
    return np.concatenate([[w.sum()], sums, squares])

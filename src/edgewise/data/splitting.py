"""One data set dealt out to nodes."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgewise.data import frames
from edgewise.data.arrays import (
    Matrix,
    aligned_empty,
    as_labels,
    as_matrix,
    dense_view,
    float_dtype,
    is_sparse,
    missing_labels,
    row_blocks,
)
from edgewise.data.shards import Shards, more
from edgewise.errors import DataError, UnknownName, whole_number

MOST_CLASSES = 100


def split(
    X: Any,
    y: Any,
    nodes: int,
    how: str = "iid",
    seed: int = 0,
    alpha: float = 0.5,
    columns: Iterable[str] | None = None,
    lines: ArrayLike | None = None,
) -> Shards:
    """Deal every sample to exactly one node, and at least one sample to every node.

    how="iid"    at random, sizes differ by at most one
    how="label"  each class over the nodes in Dirichlet(alpha) proportions: small alpha leaves
                 most nodes with few classes, large alpha comes close to "iid"
    how="size"   at random, sizes uneven: one sample each, the rest in Dirichlet(alpha) proportions

    X is dense, a frame of pandas or polars, an Arrow table, or any scipy sparse matrix, which
    becomes CSR. `columns` names X's columns, and `lines` are the rows' lines in the file that they
    came from: messages, and models, speak of those. A frame brings its own, lines where its index
    is called "line". Within a node the samples are in random order. The same arguments give the
    same split.

    >>> split(np.zeros((10, 2)), np.arange(10), nodes=3).counts.tolist()
    [4, 3, 3]
    """
    X, labels = frames.as_pandas(X), as_labels(y)
    named = frames.names_of(X) if columns is None else tuple(columns)
    origin = frames.lines_of(X) if lines is None else np.asarray(lines, np.int64)
    if frames.is_frame(X):
        X = frames.as_array(X)
    samples = X.shape[0] if is_sparse(X) else len(dense_view(X))
    if samples != len(labels):
        raise DataError(f"X has {samples} rows and y has {len(labels)}: give one label per row")
    nodes = whole_number("nodes", nodes, 1, DataError)
    seed = whole_number("seed", seed, 0, DataError)
    if samples < nodes:
        raise DataError(
            f"{samples} samples cannot go to {nodes} nodes without an empty one: "
            f"ask for at most {samples} nodes, or bring more samples"
        )
    if not 0 < alpha < np.inf:
        raise DataError(f"alpha is {alpha}: give a positive number; smaller is more uneven")

    without = np.flatnonzero(missing_labels(labels))
    if len(without):
        row = without[0]
        at = f"row {row} of the data set" if origin is None else f"line {origin[row]}"
        raise DataError(
            f"y has no label in {at}{more(without)}: drop that sample or fill in its label"
        )
    rng = np.random.default_rng(seed)
    match how:
        case "iid":
            sizes = np.full(nodes, samples // nodes)
            sizes[: samples % nodes] += 1
            node_of = rng.permutation(np.repeat(np.arange(nodes), sizes))
        case "size":
            spare = _apportion(samples - nodes, rng.dirichlet(np.full(nodes, alpha)))
            node_of = rng.permutation(np.repeat(np.arange(nodes), 1 + spare))
        case "label":
            node_of = _skewed(labels, nodes, alpha, rng)
            _fill_empty(node_of, nodes)
        case _:
            raise UnknownName("split", how, ["iid", "label", "size"])

    shuffled = rng.permutation(samples)
    order = shuffled[np.argsort(node_of[shuffled], kind="stable")]
    counts = np.bincount(node_of, minlength=nodes)
    if origin is not None:
        origin = origin[order]
    return Shards(_gather(X, order), labels[order], counts, order, named, origin)


def _skewed(
    labels: NDArray[Any], nodes: int, alpha: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    classes, class_of = np.unique(labels, return_inverse=True)
    continuous = classes.dtype.kind == "f" and bool((classes != np.rint(classes)).any())
    if continuous or len(classes) > MOST_CLASSES:
        raise DataError(
            f"y has {len(classes)} distinct values{', not all whole' * continuous}: splitting by "
            f'label needs at most {MOST_CLASSES} classes; use how="iid" or how="size"'
        )
    node_of = np.empty(len(labels), dtype=np.int64)
    for one in range(len(classes)):
        rows = rng.permutation(np.flatnonzero(class_of == one))
        sizes = _apportion(len(rows), rng.dirichlet(np.full(nodes, alpha)))
        node_of[rows] = np.repeat(np.arange(nodes), sizes)
    return node_of


def _apportion(samples: int, proportions: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole sizes that add up to samples, each within one of its proportion."""
    ends = np.rint(samples * np.cumsum(proportions)).astype(np.int64)
    ends[-1] = samples  # the proportions add up to one only up to rounding
    return np.diff(ends, prepend=0)


def _fill_empty(node_of: NDArray[np.int64], nodes: int) -> None:
    """Give each empty node one sample of whichever node has most."""
    counts = np.bincount(node_of, minlength=nodes)
    rows_by_node = np.argsort(node_of, kind="stable")
    ends = np.cumsum(counts)
    largest_first = [(-int(count), node) for node, count in enumerate(counts) if count]
    heapq.heapify(largest_first)
    for node in np.flatnonzero(counts == 0):
        negative_count, donor = largest_first[0]
        ends[donor] -= 1
        node_of[rows_by_node[ends[donor]]] = node
        heapq.heapreplace(largest_first, (negative_count + 1, donor))


def _gather(X: Any, order: NDArray[np.int64]) -> Matrix:
    if is_sparse(X):
        return as_matrix(X.tocsr()[order])
    dense = dense_view(X)
    gathered = aligned_empty(dense.shape, float_dtype(dense.dtype))
    if dense.dtype == gathered.dtype and dense.flags.c_contiguous:
        # mode="raise" would write to a second array of this size first
        return np.take(dense, order, axis=0, out=gathered, mode="clip")
    for rows in row_blocks(gathered):
        gathered[rows] = dense[order[rows]]
    return gathered

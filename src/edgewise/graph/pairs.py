"""Pairs of nodes by number, and trees, for graphs drawn at random."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def row_starts(nodes: int) -> Ints:
    """Where the pairs (i, .) start in the lexicographic list of all pairs i < j."""
    i = np.arange(nodes)
    return i * nodes - i * (i + 1) // 2


def rank(pairs: Ints, nodes: int) -> Ints:
    i, j = pairs.T
    return np.asarray(row_starts(nodes)[i] + j - i - 1)


def unrank(ranks: Ints, nodes: int) -> Ints:
    """The pairs of these numbers, which increase."""
    starts = row_starts(nodes)
    begin = np.searchsorted(ranks, starts)  # fewer looks, and nearer ones, than one for each pair
    i = np.repeat(np.arange(nodes), np.diff(begin, append=len(ranks)))
    return np.stack([i, ranks - starts[i] + i + 1], axis=1)


def uniform_tree(nodes: int, rng: np.random.Generator) -> Ints:
    """Aldous (1990), algorithm 2: uniform over labelled trees, and vectorised, unlike Pruefer."""
    later = np.arange(1, nodes)
    earlier = np.minimum(later - 1, rng.integers(nodes, size=nodes - 1))
    names = rng.permutation(nodes)
    return np.sort(np.stack([names[later], names[earlier]], axis=1), axis=1)

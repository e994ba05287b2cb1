"""A small problem whose nodes hold different numbers of samples."""

import numpy as np

import edgewise as ew


def problem_of(n, nodes, dtype=np.float64, **options):
    rng = np.random.default_rng(n)
    counts = rng.integers(3, 12, nodes)
    X = rng.standard_normal((counts.sum(), n)).astype(dtype) / np.sqrt(n)
    y = np.sign(rng.standard_normal(len(X)))
    at = np.cumsum(counts)[:-1]
    shards = list(zip(np.split(X, at), np.split(y, at), strict=True))
    loss = options.pop("loss", ew.Logistic(ridge=1e-3))
    return ew.Problem(shards, loss, **options)

"""Dense two-class rows with the spectrum and the difficulty of the LIBSVM epsilon data.

The constants were fitted by hand to real rows: 200 with all 2000 features, 5000 with 100 of them.
Those show one leading direction whose share of a row runs from -0.6 to 0.99, features that load on
it unevenly, six weak sparse factors, Gaussian noise, and labels that do not depend on the share.
The margin's width does not show in them: a linear fit is to tend to 90 %, as published for epsilon.

                                             real                 synthetic, ± over seeds
    200 x 2000: Gram shares 1, 2, 7 (%)      38.4, 1.48, 0.74     36.3 ± 2.1, 1.54, 0.82
      shares 51, 101, 151 (%)                0.44, 0.28, 0.133    0.45, 0.30, 0.142
      effective rank                         6.7                  7.5 ± 0.9
      ridge 1.4e-3: loss, accuracy           0.385, 0.945         0.374 ± 0.006, 0.969 ± 0.011
    5000 x 100: top share, effective rank    0.362, 7.3           0.372 ± 0.016, 7.0 ± 0.6
      ridge 1.4e-3: loss, accuracy           0.683, 0.628         0.679 ± 0.003, 0.643 ± 0.014
      ridge 1e-6: loss, accuracy             0.621, 0.660         0.615 ± 0.014, 0.664 ± 0.013
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from edgewise.data.arrays import Array, aligned_empty
from edgewise.errors import DataError, whole_number

_SHARE_DECILES = (-0.6, -0.38, -0.21, -0.01, 0.22, 0.45, 0.62, 0.75, 0.85, 0.92, 0.985)
_LOADING_DECILES = (0.0, 0.042, 0.091, 0.152, 0.235, 0.349, 0.449, 0.58, 0.747, 0.95, 1.0)
_FACTOR_SCALES = (0.145, 0.14, 0.12, 0.11, 0.1, 0.09)
_FACTOR_LEAN_OF_WEIGHTS = 0.35
_MARGIN_DEVIATION = 5.4
_DECILES = np.linspace(0.0, 1.0, 11)
_BLOCK_ROWS = 128


class _Model(NamedTuple):
    """A row is share * leading + sqrt(1 - share²) * unit(noise_scale * e + factors @ z)."""

    leading: Array
    noise_scale: Array
    factors: Array
    weights: Array


def _draw_model(features: int, seed: int) -> _Model:
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    quantile = rng.permutation((np.arange(features) + 0.5) / features)
    loading = np.interp(quantile, _DECILES, _LOADING_DECILES) * rng.choice((-1.0, 1.0), features)
    leading = loading / np.linalg.norm(loading)
    normal = rng.standard_normal((features, len(_FACTOR_SCALES)))
    heavy_tailed = normal * np.abs(normal) / np.sqrt(3.0) * _FACTOR_SCALES
    noise_scale = np.sqrt((1 - loading**2) / (1 + (heavy_tailed**2).sum(axis=1)))
    factors = noise_scale[:, None] * heavy_tailed
    weights = rng.standard_normal(features) + _FACTOR_LEAN_OF_WEIGHTS * heavy_tailed.sum(axis=1)
    weights -= leading * (leading @ weights)
    deviation = np.hypot(np.linalg.norm(weights * noise_scale), np.linalg.norm(weights @ factors))
    return _Model(leading, noise_scale, factors, weights * (_MARGIN_DEVIATION / deviation))


def _draw_block(model: _Model, seed: int, block: int) -> tuple[Array, Array]:
    """The rows of one block and their labels."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(block,)))
    share = np.interp(rng.random(_BLOCK_ROWS), _DECILES, _SHARE_DECILES)
    label_draw = rng.random(_BLOCK_ROWS)
    z = rng.standard_normal((_BLOCK_ROWS, model.factors.shape[1]))
    buffer = rng.standard_normal((_BLOCK_ROWS, len(model.noise_scale)))
    buffer *= model.noise_scale
    buffer += z @ model.factors.T
    positive = label_draw < 0.5 + 0.5 * np.tanh(0.5 * (buffer @ model.weights))
    buffer *= (np.sqrt(1 - share**2) / np.linalg.norm(buffer, axis=1))[:, None]
    buffer += np.outer(share, model.leading)
    buffer /= np.linalg.norm(buffer, axis=1)[:, None]
    return buffer, np.where(positive, 1.0, -1.0)


def fill_epsilon_like(X: Array, y: Array, *, start: int = 0, seed: int = 0) -> None:
    """Write rows start, start + 1, ... of `epsilon_like` into X and their labels into y, in place.

    X and y may be views, so that each node's part of one large array is filled without a copy.
    """
    if X.ndim != 2 or X.shape[1] < 2 or y.shape != X.shape[:1]:
        raise DataError(
            f"cannot fill X of shape {X.shape} with labels of shape {y.shape}: "
            "give X as (rows, features) with at least 2 features, and y as (rows,)"
        )
    if any(a.dtype not in (np.float32, np.float64) for a in (X, y)):
        raise DataError(f"cannot fill {X.dtype} rows and {y.dtype} labels: use float32 or float64")
    whole_number("start", start, 0, DataError)
    whole_number("seed", seed, 0, DataError)
    model = _draw_model(X.shape[1], seed)
    stop = start + len(y)

    def fill(block: int) -> None:
        rows, labels = _draw_block(model, seed, block)
        origin = block * _BLOCK_ROWS
        first, last = max(start, origin), min(stop, origin + _BLOCK_ROWS)
        X[first - start : last - start] = rows[first - origin : last - origin]
        y[first - start : last - start] = labels[first - origin : last - origin]

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(fill, range(start // _BLOCK_ROWS, -(-stop // _BLOCK_ROWS))))


def epsilon_like(
    rows: int, features: int = 2000, seed: int = 0, dtype: DTypeLike = np.float64
) -> tuple[Array, Array]:
    """Rows of unit norm and labels -1 / 1, decided by seed and features alone.

    Row i does not depend on how many rows are asked for, and float32 rows are the float64 rows
    rounded. With other feature counts the factors keep their shares and the margin its width.
    """
    whole_number("rows", rows, 1, DataError)
    whole_number("features", features, 2, DataError)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise DataError(f"dtype {np.dtype(dtype)} is not offered: use float32 or float64")
    X, y = aligned_empty((rows, features), dtype), aligned_empty((rows,), dtype)
    fill_epsilon_like(X, y, seed=seed)
    return X, y

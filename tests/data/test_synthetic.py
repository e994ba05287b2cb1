"""The synthetic epsilon rows: reproducible, unit norm, and like the real ones where those exist."""

import lzma
import re
from typing import Any

import numpy as np
import pytest
from paths import SHARED as REAL
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

from edgewise.data.synthetic import epsilon_like, fill_epsilon_like
from edgewise.errors import DataError

RIDGE = 1.4e-3
needs_real_rows = pytest.mark.skipif(
    not (REAL / "epsilon_first100.svm.xz").exists(),
    reason="the real epsilon rows (shared/data beside the checkout) are not here",
)


def real_rows(name: str, features: int) -> tuple[Any, Any]:
    with lzma.open(REAL / name, "rb") as file:
        X, y = load_svmlight_file(file, n_features=features)
    return X.toarray(), y


def columns_of_the_5000_rows() -> Any:
    listing = (REAL / "README.md").read_text().split("exactly one column:")[1].split("##")[0]
    return np.array(re.findall(r"\d+", listing), dtype=int) - 1


def gram_shares(X: Any) -> Any:
    return np.linalg.eigvalsh(X @ X.T)[::-1] / len(X)


def correlation_percentiles(X: Any) -> Any:
    between_columns = np.corrcoef(X.T)[np.triu_indices(X.shape[1], 1)]
    return np.percentile(np.abs(between_columns), (50, 90, 99, 99.9))


def ridge_fit(X: Any, y: Any, ridge: float = RIDGE) -> tuple[float, float]:
    """Mean logistic loss and accuracy on the rows of the fit itself."""
    model = LogisticRegression(C=1 / (ridge * len(y)), fit_intercept=False, max_iter=2000)
    margin = y * (X @ model.fit(X, y).coef_[0])
    return float(np.logaddexp(0, -margin).mean()), float((margin > 0).mean())


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 1e-6)])
@pytest.mark.parametrize("features", [2, 17, 2000])
def test_rows_have_unit_norm_and_labels_are_signs(dtype: Any, tolerance: float, features: int):
    X, y = epsilon_like(300, features, dtype=dtype)
    assert X.shape == (300, features)
    assert X.dtype == y.dtype == dtype
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=tolerance)
    assert set(y) == {-1.0, 1.0}


@pytest.mark.parametrize("rows", [1, 100, 128, 129])
def test_fewer_rows_are_the_first_of_more_rows(rows: int):
    X, y = epsilon_like(rows, 60, seed=3)
    more_X, more_y = epsilon_like(1000, 60, seed=3)
    np.testing.assert_array_equal(X, more_X[:rows])
    np.testing.assert_array_equal(y, more_y[:rows])


def test_the_seed_decides_everything():
    X, y = epsilon_like(500, 40, seed=7)
    again_X, again_y = epsilon_like(500, 40, seed=7)
    np.testing.assert_array_equal(X, again_X)
    np.testing.assert_array_equal(y, again_y)
    other_X, other_y = epsilon_like(500, 40, seed=8)
    assert np.abs(X - other_X).min() > 0
    assert (y != other_y).mean() > 0.3


def test_no_two_rows_are_alike():
    X, _ = epsilon_like(400, 200)
    assert (X @ X.T - np.eye(400)).max() < 0.999


def test_float32_rows_are_the_rounded_float64_rows():
    X, y = epsilon_like(200, 30)
    single_X, single_y = epsilon_like(200, 30, dtype=np.float32)
    np.testing.assert_array_equal(single_X, X.astype(np.float32))
    np.testing.assert_array_equal(single_y, y.astype(np.float32))


def test_nodes_filled_in_place_hold_the_rows_of_the_whole():
    X, y = epsilon_like(1000, 50, seed=5)
    filled_X, filled_y = np.full((1000, 50), np.nan), np.full(1000, np.nan)
    for start, stop in [(700, 1000), (0, 1), (1, 300), (300, 300), (300, 700)]:
        fill_epsilon_like(filled_X[start:stop], filled_y[start:stop], start=start, seed=5)
    np.testing.assert_array_equal(filled_X, X)
    np.testing.assert_array_equal(filled_y, y)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_classes_are_balanced_along_the_whole_leading_direction(seed: int):
    X, y = epsilon_like(20_000, 50, seed=seed)
    leading = np.linalg.eigh(X.T @ X)[1][:, -1]
    for side in (1, -1):
        assert (y[side * (X @ leading) > 0] > 0).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("features", [2, 20, 100])
def test_a_linear_fit_with_enough_rows_reaches_ninety_percent(features: int):
    X, y = epsilon_like(20_000, features)
    assert ridge_fit(X, y, ridge=1e-6)[1] == pytest.approx(0.90, abs=0.015)


@pytest.mark.parametrize(
    "arguments",
    [
        {"rows": 0},
        {"rows": 2.5},
        {"rows": 5, "features": 1},
        {"rows": 5, "seed": -1},
        {"rows": 5, "seed": None},
        {"rows": 5, "dtype": np.int64},
    ],
)
def test_unusable_arguments_are_refused(arguments: dict[str, Any]):
    with pytest.raises(DataError, match=r"give a whole number|use float32"):
        epsilon_like(**arguments)


def test_unusable_outputs_are_refused():
    with pytest.raises(DataError, match="y as"):
        fill_epsilon_like(np.empty((5, 3)), np.empty(4))
    with pytest.raises(DataError, match="use float32 or float64"):
        fill_epsilon_like(np.empty((5, 3), dtype=int), np.empty(5))
    with pytest.raises(DataError, match="start is -1"):
        fill_epsilon_like(np.empty((5, 3)), np.empty(5), start=-1)


@needs_real_rows
def test_gram_spectrum_of_200_real_rows_could_be_one_of_200_synthetic_rows():
    train, _ = real_rows("epsilon_first100.svm.xz", 2000)
    test, _ = real_rows("epsilon.t_100rows.svm.xz", 2000)
    real = gram_shares(np.vstack([train, test]))
    draws = np.array([gram_shares(epsilon_like(200, seed=s)[0]) for s in range(20)])
    mean, deviation = draws.mean(axis=0), draws.std(axis=0)
    assert np.abs((real - mean) / deviation).max() < 3
    assert mean[0] == pytest.approx(real[0], abs=0.05)
    np.testing.assert_allclose(mean[1:100], real[1:100], rtol=0.15)


@needs_real_rows
def test_100_columns_of_5000_rows_are_as_correlated_and_as_hard_as_the_real_ones():
    real, labels = real_rows("epsilon_first5000_100cols.svm.xz", 100)
    columns = columns_of_the_5000_rows()
    draws = [(X[:, columns], y) for X, y in (epsilon_like(5000, seed=s) for s in range(4))]
    real_shares = np.linalg.svd(real, False)[1] ** 2 / (real**2).sum()
    shares = np.mean([np.linalg.svd(X, False)[1] ** 2 / (X**2).sum() for X, _ in draws], axis=0)
    assert shares[0] == pytest.approx(real_shares[0], abs=0.03)
    np.testing.assert_allclose(shares[1:60], real_shares[1:60], rtol=0.2)
    correlation = np.mean([correlation_percentiles(X) for X, _ in draws], axis=0)
    np.testing.assert_allclose(correlation, correlation_percentiles(real), atol=0.04)
    for ridge in (RIDGE, 1e-6):
        loss, accuracy = np.mean([ridge_fit(X, y, ridge) for X, y in draws], axis=0)
        real_loss, real_accuracy = ridge_fit(real, labels, ridge)
        assert loss == pytest.approx(real_loss, abs=0.015)
        assert accuracy == pytest.approx(real_accuracy, abs=0.03)

"""Your own loss: what nine patients in ten stay below, fitted over ten clinics.

The pinball loss gives a quantile where squares give a mean. Edgewise does not have it; here it is,
with its corner rounded, in one line of JAX. Three quantiles are fitted on the diabetes data without
moving them, and compared with SciPy's answer to the same problem, all data in one place, and with
scikit-learn's QuantileRegressor, whose corner is sharp. Held-out patients say whether the
quantiles are what they claim.

    python examples/custom_loss.py --plot custom_loss.png
"""

import argparse
from collections.abc import Callable, Sequence

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import edgewise as ew

QUANTILES, CORNER, RIDGE = (0.1, 0.5, 0.9), 0.1, 1e-3


def pinball(q: float) -> Callable[..., jax.Array]:
    """q r where the prediction is too low by r, (1 - q) |r| where it is too high."""
    return lambda x, d, y: q * (y - d @ x) + CORNER * jax.nn.softplus((d @ x - y) / CORNER)


def by_scipy(q: float, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        over = (X @ x - y) / CORNER
        value = np.mean(CORNER * (np.logaddexp(0, over) - q * over)) + RIDGE / 2 * x @ x
        return value, X.T @ (expit(over) - q) / len(y) + RIDGE * x

    return minimize(loss, np.zeros(X.shape[1]), jac=True, options={"gtol": 1e-9}).x


def main(arguments: Sequence[str] | None = None) -> dict[float, dict[str, float]]:
    parser = argparse.ArgumentParser(description="Quantiles over ten clinics, by your own loss.")
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    plot = parser.parse_args(arguments).plot

    X, y = ew.data.dataset("diabetes")
    X, X_out, y, y_out = train_test_split(X, y / 100, test_size=1 / 3, random_state=0)
    scaler = StandardScaler().fit(X)
    X, X_out = (np.c_[scaler.transform(D), np.ones(len(D))] for D in (X, X_out))
    shards = ew.split(X, y, nodes=10, seed=0)
    graph = ew.Graph.small_world(10, neighbours=4, rewire=0.2, seed=1)

    # Each clinic asks for whole gradients, so what counts is how curved the mean of its losses is.
    # The guess that Edgewise makes without it would miss a corner as sharp as this one.
    curved = max(np.linalg.norm(D, 2) ** 2 / len(D) for D, _ in shards) / (4 * CORNER)
    table = Table("quantile", "rounds", "from SciPy's", "from scikit-learn's", "held-out below")
    found, bounds = {}, {}
    for q in QUANTILES:
        loss = ew.CustomLoss(pinball(q), smoothness=curved, ridge=RIDGE)
        problem = ew.Problem(shards, loss=loss, weights="sample")
        result = ew.solve(problem, graph, "pdmm", 8000, record_every=100, tol=1e-6, reference=False)
        assert result.converged, result.message
        sharp = QuantileRegressor(quantile=q, alpha=0, fit_intercept=False).fit(X, y)
        bounds[q] = X_out @ result.x
        found[q] = {
            "rounds": result.trace["rounds"][-1],
            "scipy": float(abs(result.X - by_scipy(q, X, y)).max()),
            "sharp": float(np.mean(abs(X_out @ (result.x - sharp.coef_)))),
            "below": float(np.mean(y_out < bounds[q])),
        }
        cells = zip(found[q].values(), (".0f", ".0e", ".3f", ".0%"), strict=True)
        table.add_row(f"{q}", *(format(number, how) for number, how in cells))
    Console().print(table)
    if plot:
        draw(bounds, y_out, plot)
        print(f"plot: {plot}")
    return found


def draw(bounds: dict[float, np.ndarray], y: np.ndarray, path: str) -> None:
    import matplotlib.pyplot as plt

    low, middle, high = bounds.values()
    order = np.argsort(middle)
    inside = ((y > low) & (y < high))[order]
    at = np.arange(len(y))
    figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
    ax.vlines(at, low[order], high[order], color="C0", alpha=0.25, linewidth=3, label="0.1 to 0.9")
    ax.plot(at, middle[order], color="C0", label="0.5")
    ax.plot(at[inside], y[order][inside], ".", color="0.3", label="inside")
    ax.plot(at[~inside], y[order][~inside], ".", color="C3", label="outside")
    ax.set(xlabel="held-out patients, by predicted median", ylabel="disease progression / 100")
    ax.set_title(f"{inside.mean():.0%} of {len(y)} held-out patients lie between the two")
    ax.legend(loc="upper left", ncols=2, fontsize="small")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()

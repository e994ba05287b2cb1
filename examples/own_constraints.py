"""Ten clinics, each with its own rule for the model; the model they agree on obeys all of them.

They predict the course of diabetes from ten measurements. Clinic 0 forbids the use of age and sex.
Clinic 1 wants a score that only adds up, no coefficient below zero. Clinic 2 allows none above 20.
Clinic 3 trusts its laboratory less: its six blood tests together may weigh 30. The others ask for
few coefficients. A clinic is held to its own rule alone, and sends models, never the rule.

    python examples/own_constraints.py --plot own_constraints.png
"""

import argparse
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import edgewise as ew

NAMES = load_diabetes().feature_names  # age, sex, bmi, bp, s1 ... s6
BLOOD = np.array([name.startswith("s") and name != "sex" for name in NAMES])
FREE = np.where(np.isin(NAMES, ["age", "sex"]), 0, np.inf)
MOST, BUDGET = 20.0, 30.0
FEW = ew.L1(1.0)
RULES = [
    ew.Box(-FREE, FREE),
    ew.NonNegative(),
    ew.Box(-np.inf, MOST),
    ew.HalfSpace(BLOOD.astype(float), BUDGET),
    *[FEW] * 6,
]


def main(arguments: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    parser = argparse.ArgumentParser(description="Ten clinics, each with its own rule.")
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    plot = parser.parse_args(arguments).plot

    X, y = ew.data.dataset("diabetes")
    X, X_out, y, y_out = train_test_split(X, y, test_size=1 / 3, random_state=0)
    scaler = StandardScaler().fit(X)
    shards = ew.split(scaler.transform(X), y, nodes=10, seed=0)
    graph = ew.Graph.random(nodes=10, edges=20, seed=0)

    table = Table("fit", "rounds", "held-out R²", *NAMES)
    fits = {}
    for name, rules in {"without the rules": [None] * 4 + [FEW] * 6, "with them": RULES}.items():
        problem = ew.Problem(
            shards, loss=ew.Squared(), penalty=rules, weights="sample", intercept=True
        )
        result = ew.solve(problem, graph, tol=1e-7, reference=False)
        assert result.converged, result.message
        r2 = r2_score(y_out, scaler.transform(X_out) @ result.x[:-1] + result.x[-1])
        coefficients = [f"{round(c, 1) + 0:.1f}" for c in result.x[:-1]]
        table.add_row(name, f"{result.trace['rounds'][-1]:.0f}", f"{r2:.3f}", *coefficients)
        fits[name] = result.x[:-1]
    Console(width=120).print(table)
    x = fits["with them"]
    worst = max(abs(x[:2]).max(), -x.min(), x.max() - MOST, x[BLOOD].sum() - BUDGET)
    print(f"s1 to s6 sum to {x[BLOOD].sum():.6f}; no rule is missed by more than {worst:.0e}")
    if plot:
        draw(fits, plot)
        print(f"plot: {plot}")
    return fits


def draw(fits: dict[str, np.ndarray], path: str) -> None:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
    at = np.arange(len(NAMES))
    open_to_use = at[FREE > 0]
    ax.bar(open_to_use, MOST, 0.9, color="0.9", label="allowed by clinics 0, 1 and 2")
    for barred in at[FREE == 0]:
        ax.annotate("barred", (barred, 1), ha="center", color="0.4")
    for (name, x), shift, colour in zip(fits.items(), (-0.2, 0.2), ("C1", "C0"), strict=True):
        label = f"{name}: s1 to s6 sum to {x[BLOOD].sum():.0f}"
        ax.bar(at + shift, x, 0.35, color=colour, label=label)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xticks(at, NAMES)
    ax.set(ylabel="coefficient", title=f"clinic 3: s1 to s6 may sum to {BUDGET:.0f}")
    figure.legend(loc="outside lower center", ncols=3, fontsize="small")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()

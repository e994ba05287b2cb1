"""Twenty hospitals fit one sparse model, and none shows its patients to another.

Each holds a few of scikit-learn's breast-cancer patients: some see mostly benign cases, some mostly
malignant ones. On a random graph of 50 lines they send their neighbours models, never data, and
come to the model that all data in one place would give. A quarter of the patients is held out.

    python examples/quickstart.py --plot quickstart.png
"""

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import edgewise as ew


def main(arguments: Sequence[str] | None = None) -> tuple[ew.Result, dict[str, float]]:
    parser = argparse.ArgumentParser(description="Twenty hospitals fit one sparse model.")
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    plot = parser.parse_args(arguments).plot

    X, y = ew.data.dataset("breast_cancer")
    X, X_out, y, y_out = train_test_split(X, y, random_state=0, stratify=y)
    before = StandardScaler().fit(X)
    shards = ew.split(before.transform(X), y, nodes=20, how="label", seed=0)
    problem = ew.Problem(
        shards, loss=ew.Logistic(ridge=3e-3), penalty=ew.L1(3e-3), weights="sample", intercept=True
    )
    graph = ew.Graph.random(nodes=20, edges=50, seed=0)
    result = ew.solve(problem, graph, tol=1e-6)

    star = ew.reference(problem)  # all data in one place
    told = before.transform(X_out) @ result.x[:-1] + result.x[-1] > 0
    numbers = {
        "off": float(abs(result.X - star.x).max()),
        "used": int(np.count_nonzero(result.x[:-1])),
        "right": float(np.mean(told == y_out)),
        "majority": float(np.mean(y_out)),
    }
    print(f"{shards.counts.min()} to {shards.counts.max()} patients a hospital")
    print(result.method_note)
    print(result.message)
    print(f"{result.trace['bytes_sent'][-1] / 1e6:.0f} MB sent over all 50 lines together")
    print(f"farthest coefficient of any hospital from the centralised fit: {numbers['off']:.0e}")
    print(f"coefficients in use: {numbers['used']} of 30")
    print(
        f"held-out patients told right: {numbers['right']:.1%} "
        f"({numbers['majority']:.1%} by calling all benign)"
    )
    if plot:
        result.plot(plot)
        print(f"plot: {plot}")
    return result, numbers


if __name__ == "__main__":
    main()

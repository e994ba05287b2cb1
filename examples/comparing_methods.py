"""Five methods on one problem, each with its steps found by the same rule.

Whoever picks the steps picks the winner. So `ew.compare` tunes every method on the same grid with
the same budget, then runs it with seeds that tuning has not seen, and counts what each accuracy
cost. Which method is cheapest depends on what is dear: gradients or messages.

    python examples/comparing_methods.py --plot comparing_methods.png
"""

import argparse
from collections.abc import Sequence

from rich.console import Console
from sklearn.preprocessing import normalize, scale

import edgewise as ew

METHODS = ["saga-pd", "svr-pd-es", "pdmm", "gt-saga", "nids"]
ACCURACIES = (1e-2, 1e-4, 1e-6)


def main(arguments: Sequence[str] | None = None) -> ew.Comparison:
    parser = argparse.ArgumentParser(description="Five methods, tuned by one rule.")
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    plot = parser.parse_args(arguments).plot

    X, y = ew.data.dataset("breast_cancer")
    shards = ew.split(normalize(scale(X)), y, nodes=10, how="label", seed=0)
    problem = ew.Problem(shards, loss=ew.Logistic(ridge=1e-2), weights="sample")
    graph = ew.Graph.random(nodes=10, edges=20, seed=0)
    found = ew.compare(problem, graph, METHODS, 6000, accuracies=ACCURACIES, seeds=3, show=False)

    console = Console()
    for unit in ("oracle_calls", "bytes_sent"):
        console.print(found.table(unit))
        print(f"cheapest to 1e-6: {found.best(1e-6, unit)}\n")
    if plot:
        found.plot(["oracle_calls", "bytes_sent"], plot)
        print(f"plot: {plot}")
    return found


if __name__ == "__main__":
    main()

"""Rounds that a sum over the network takes, by the constant before its weight.

    python benchmarks/network_sum.py

rho is the constant over sqrt(least and largest curvature of the graph); `sum_over` takes 1.2. All
errors are below 1e-12 of the sum of absolute values at every node. The last column has a fifth of
all messages lost.
"""

from unittest.mock import patch

import numpy as np

import edgewise as ew
from edgewise.running import network_sum

CONSTANTS = (0.6, 0.8, 1.0, 1.2, 1.6, 2.4)
GRAPHS = {
    "ring, 10": ew.Graph.ring(10),
    "ring, 50": ew.Graph.ring(50),
    "path, 20": ew.Graph.path(20),
    "grid, 5 x 6": ew.Graph.grid(5, 6),
    "star, 20": ew.Graph.star(20),
    "complete, 10": ew.Graph.complete(10),
    "random, 20 nodes, 50 edges": ew.Graph.random(20, 50, seed=0),
    "random, 200 nodes, 600 edges": ew.Graph.random(200, 600, seed=0),
    "small world, 50": ew.Graph.small_world(50),
}


def main() -> None:
    print("| graph |" + "".join(f" {c} |" for c in CONSTANTS) + " 1.2, 20 % lost |")
    print("|---|" + (len(CONSTANTS) + 1) * "---|")
    for name, graph in GRAPHS.items():
        values = np.random.default_rng(0).standard_normal((graph.nodes, 5))
        cells = []
        for constant in CONSTANTS:
            with (
                patch.object(network_sum, "BEST", constant),
                patch.object(network_sum, "LOOK_EVERY", 2),
            ):
                cells.append(ew.sum_over(graph, values).rounds)
        with patch.object(network_sum, "LOOK_EVERY", 2):
            cells.append(ew.sum_over(graph, values, faults=ew.Faults(drop=0.2)).rounds)
        print(f"| {name} |" + "".join(f" {rounds} |" for rounds in cells))


if __name__ == "__main__":
    main()

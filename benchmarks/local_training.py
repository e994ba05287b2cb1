"""Local training against one step a round, and its compiled steps against the plain ones.

    python benchmarks/local_training.py            the paper's size: V=50, E=250, K=2000, n=2000
    python benchmarks/local_training.py --text     20,000 rows of text, n=5,000, 20 nodes, ridge 1/N

The first prints rounds, calls and seconds to 1e-6 of the first divergence. All of it is measured in
one run, and what counts are the ratios: machines differ.
"""

import argparse
import os

import numpy as np
from iteration import build
from sparse import rcv1_like

import edgewise as ew

LEVEL = 1e-6
RUNS = {"saga-pd": (20_000, 500), "svr-pd-es": (3_000, 50), "lt-svr-pd-es": (200, 5)}
ROWS, FEATURES, ENTRIES, NODES = 20_000, 5_000, 60, 20


def paper() -> None:
    problem, graph = build(50, 250, 2000, 2000)
    best = ew.reference(problem)
    print("| method | rounds | calls | seconds |\n|---|---|---|---|")
    for name, (rounds, every) in RUNS.items():
        options = {"rounds": rounds, "record_every": every, "reference": best}
        trace = ew.solve(problem, graph, name, **options).trace
        there = trace["bregman"] <= LEVEL * trace["bregman"][0]
        at = int(np.argmax(there)) if there.any() else -1
        calls, seconds = trace["oracle_calls"][at], trace["seconds"][at]
        late = "" if there.any() else " (not there)"
        print(f"| {name}{late} | {trace['rounds'][at]:.0f} | {calls:.0f} | {seconds:.2f} |")


def text(rounds: int = 10) -> None:
    X, y = rcv1_like(ROWS, FEATURES, ENTRIES)
    shards, graph = ew.split(X, y, nodes=NODES, seed=0), ew.Graph.random(NODES, 50, seed=0)
    problem = ew.Problem(shards, ew.Logistic(ridge=1 / ROWS), weights="sample")
    seconds = {}
    for name, switch in (("compiled", "1"), ("plain", "0")):
        os.environ["EDGEWISE_NATIVE"] = switch
        options = {"rounds": 2 * rounds, "record_every": rounds, "reference": False}
        spent = ew.solve(problem, graph, "lt-saga-pd", **options).trace["seconds"]
        seconds[name] = (spent[-1] - spent[1]) / rounds
        print(f"{name}: {1e3 * seconds[name]:.1f} ms a round of lt-saga-pd")
    print(f"ratio {seconds['plain'] / seconds['compiled']:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", action="store_true", help="sparse rows instead")
    if parser.parse_args().text:
        text()
    else:
        paper()

"""What links that go one way cost: rounds and calls to 1e-9 of the first divergence.

    python benchmarks/directed.py      the table of docs/methods/push.md: a minute

20 nodes, logistic loss with a ridge of 0.02 and no penalty, split by label, nothing tuned.
"""

import numpy as np

import edgewise as ew

NODES, LEVEL, EVERY = 20, 1e-9, 10
GRAPHS = {
    "a cycle, one way": ew.DirectedGraph.cycle(NODES),
    "random, 50 arcs": ew.DirectedGraph.random(NODES, 50, seed=0),
    "random, 100 arcs": ew.DirectedGraph.random(NODES, 100, seed=0),
    "random, 50 links both ways": ew.Graph.random(NODES, 50, seed=0),
}
METHODS = ("push-saga", "push-diging", "gt-saga", "saga-pd", "extra")


def taken(problem: ew.Problem, star: ew.Reference, graph: ew.Graph, method: str) -> str:
    if graph.one_way and not method.startswith("push"):
        return "refused"
    options = {"rounds": 20_000, "record_every": EVERY, "reference": star, "progress": False}
    trace = ew.solve(problem, graph, method, **options).trace
    there = np.flatnonzero(trace["bregman"] < LEVEL * trace["bregman"][0])
    if not len(there):
        return "-"
    return f"{trace['rounds'][there[0]]:,.0f} ({trace['oracle_calls'][there[0]]:,.0f})"


def main() -> None:
    X, y = ew.data.epsilon_like(rows=600, features=10)
    shards = ew.split(X, y, nodes=NODES, how="label", alpha=1.0)
    problem = ew.Problem(shards, ew.Logistic(ridge=0.02))
    star = ew.reference(problem)
    print("| rounds (calls a node) | " + " | ".join(f"`{m}`" for m in METHODS) + " |")
    print("|---" + "|--:" * len(METHODS) + "|")
    for name, graph in GRAPHS.items():
        cells = [taken(problem, star, graph, method) for method in METHODS]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

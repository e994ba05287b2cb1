"""Twenty hospitals, one model, no coordinator.

scikit-learn's breast-cancer data are dealt out to 20 peers, unevenly: some see mostly benign
cases, some mostly malignant ones, one has a single patient. On a random graph of 50 edges they fit
an l1-penalised logistic regression by SAGA-PD, sending each other models and never data.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.preprocessing import StandardScaler

import edgewise as ew

NODES, EDGES = 20, 50


def hospitals(seed: int) -> tuple[ew.Problem, ew.Shards]:
    X, y = ew.data.dataset("breast_cancer")
    X = StandardScaler().fit_transform(X)
    X /= np.linalg.norm(X, axis=1, keepdims=True)  # no single patient rules the step
    shards = ew.split(X, y, nodes=NODES, how="label", seed=seed)
    problem = ew.Problem(
        shards, loss=ew.Logistic(ridge=1e-3), penalty=ew.L1(2e-3), weights="sample", intercept=True
    )
    return problem, shards


def accuracy(problem: ew.Problem, x: np.ndarray) -> float:
    margin = problem.shards.X @ x[:-1] + x[-1]
    return float(np.mean(np.sign(margin) == problem.labels))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60_000, help="communication rounds, at most")
    parser.add_argument("--tol", type=float, default=1e-7, help="stop at this optimality residual")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the plot")
    options = parser.parse_args()
    console = Console()

    problem, shards = hospitals(options.seed)
    graph = ew.Graph.random(nodes=NODES, edges=EDGES, seed=options.seed)
    counts = ", ".join(map(str, shards.counts))
    console.print(f"[bold]{shards.samples} patients at {NODES} peers[/]: {counts}")
    console.print(f"{graph}, {problem.size} unknowns; fitting by SAGA-PD ...")
    result = ew.solve(
        problem,
        graph,
        "saga-pd",
        rounds=options.rounds,
        record_every=500,
        tol=options.tol,
        seed=options.seed,
    )
    star = ew.reference(problem)
    last = {name: result.trace[name][-1] for name in result.trace.columns}

    table = Table(title=f"SAGA-PD: {result.message}", title_justify="left", show_header=False)
    table.add_row("objective gap to the centralised answer", f"{last['objective_gap']:.2e}")
    table.add_row("distance from the centralised model", f"{np.linalg.norm(result.x - star.x):.2e}")
    table.add_row("disagreement between peers", f"{last['consensus']:.2e}")
    table.add_row("communication rounds", f"{last['rounds']:,.0f}")
    table.add_row("oracle calls per peer", f"{last['oracle_calls']:,.0f}")
    table.add_row("bytes sent, all edges", f"{last['bytes_sent']:,.0f}")
    table.add_row("seconds of compute", f"{last['seconds']:.2f}")
    table.add_row("features used", f"{np.count_nonzero(result.X[0, :-1])} of {problem.size - 1}")
    table.add_row("training accuracy, centralised", f"{accuracy(problem, star.x):.1%}")
    worst = min(accuracy(problem, x) for x in result.X)
    table.add_row("training accuracy, worst of the peers", f"{worst:.1%}")
    console.print(table)

    options.out.mkdir(parents=True, exist_ok=True)
    console.print(f"plot: {plot(problem, graph, result.trace, options.out / 'demo.png')}")


def plot(problem: ew.Problem, graph: ew.Graph, trace: ew.Trace, path: Path) -> Path:
    """The peers with what they hold, and how they come to agree."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import networkx as nx

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    benign = [np.mean(problem.labels[problem.own(i)] > 0) for i in range(problem.nodes)]
    network = graph.to_networkx()
    drawn = nx.draw_networkx_nodes(
        network,
        layout := nx.kamada_kawai_layout(network),
        ax=left,
        node_size=20 + 6 * problem.counts,
        node_color=benign,
        cmap="coolwarm_r",
        edgecolors="0.3",
    )
    nx.draw_networkx_edges(network, layout, ax=left, alpha=0.4)
    left.set_title("peers: size is patients, colour their mix")
    left.axis("off")
    figure.colorbar(drawn, ax=left, label="share of benign cases", shrink=0.8)
    for name in ("residual", "bregman", "consensus"):
        trace.plot(name, ax=right)
        right.lines[-1].set_label(ew.trace.LABELS[name])
    right.set_ylabel("")
    right.set_title("one model, by SAGA-PD")
    right.legend()
    figure.savefig(path, dpi=150)
    return path


if __name__ == "__main__":
    main()

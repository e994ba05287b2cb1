"""One lasso over hospitals of very unequal size.

scikit-learn's diabetes patients are dealt out to twenty hospitals: the largest has 72, three
have one. Each could fit a lasso to its own patients, they could average those, or fit one lasso
jointly. A third of the patients is held out and says which is best.

weights="sample" counts every patient the same, so the joint fit is the lasso of all data in one
place. weights="node" counts every hospital the same: a hospital with one patient then has as much
to say as the largest.

    python examples/unequal_hospitals.py --plot unequal_hospitals.png
"""

import argparse
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import Lasso
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import edgewise as ew

NODES, ALPHA = 20, 2.0


def main(arguments: Sequence[str] | None = None) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    parser = argparse.ArgumentParser(description="One lasso over hospitals of very unequal size.")
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    parser.add_argument("--seed", type=int, default=0, help="of who is held out, and who has whom")
    options = parser.parse_args(arguments)

    X, y = ew.data.dataset("diabetes")
    X, X_out, y, y_out = train_test_split(X, y, test_size=1 / 3, random_state=options.seed)
    scaler = StandardScaler().fit(X)
    X, X_out = scaler.transform(X), scaler.transform(X_out)
    shards = ew.split(X, y, nodes=NODES, how="size", alpha=0.3, seed=options.seed)
    graph = ew.Graph.random(nodes=NODES, edges=50, seed=0)

    def r2(x: np.ndarray) -> float:
        return float(r2_score(y_out, X_out @ x[:-1] + x[-1]))

    def joint(weights: str) -> np.ndarray:
        problem = ew.Problem(
            shards, loss=ew.Squared(), penalty=ew.L1(ALPHA), weights=weights, intercept=True
        )
        result = ew.solve(problem, graph, tol=1e-4, reference=False)
        assert result.converged, result.message
        return result.x

    own = []
    for X_i, y_i in shards:
        lasso = Lasso(alpha=ALPHA, max_iter=100_000).fit(X_i, y_i)
        own.append([*lasso.coef_, lasso.intercept_])
    alone = np.array([r2(np.array(x)) for x in own])
    scores = {
        "median hospital alone": float(np.median(alone)),
        "largest hospital alone": float(alone[np.argmax(shards.counts)]),
        "mean of their models": r2(np.mean(own, 0)),
        "mean, weighted by size": r2(np.average(own, 0, shards.counts)),
        'joint fit, weights="node"': r2(joint("node")),
        'joint fit, weights="sample"': r2(joint("sample")),
    }
    table = Table("model", "held-out R²", title=f"{NODES} hospitals")
    for name, score in scores.items():
        table.add_row(name, f"{score:.3f}")
    Console().print(table)
    few, most = shards.counts.min(), shards.counts.max()
    beaten = int(np.sum(alone > scores['joint fit, weights="sample"']))
    print(f"{few} to {most} patients a hospital; {beaten} of {NODES} do better alone")
    if options.plot:
        draw(shards.counts, alone, scores, options.plot)
        print(f"plot: {options.plot}")
    return shards.counts, alone, scores


def draw(sizes: np.ndarray, alone: np.ndarray, scores: dict[str, float], path: str) -> None:
    import matplotlib.pyplot as plt

    lowest = -0.6
    figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
    off = alone < lowest
    ax.plot(sizes[~off], alone[~off], "o", color="0.3", label="a hospital alone")
    ax.plot(sizes[off], np.full(off.sum(), lowest), "v", color="0.3", label="the same, below")
    for name, colour in zip(list(scores)[2:], ("C1", "C1", "C0", "C0"), strict=True):
        style = ":" if name in ("mean of their models", 'joint fit, weights="node"') else "-"
        ax.axhline(scores[name], color=colour, linestyle=style, label=name)
    ax.set(xscale="log", xlabel="patients of the hospital", ylabel="R² on held-out patients")
    ticks = [n for n in (1, 2, 5, 10, 20, 50, 100, 200) if n <= 1.2 * sizes.max()]
    ax.set_xticks(ticks, [str(n) for n in ticks])
    ax.minorticks_off()
    ax.set_ylim(lowest - 0.05, 0.55)
    figure.legend(loc="outside right center", fontsize="small")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()

"""What liars do to the honest: the table of docs/privacy.md.

    python benchmarks/liars.py            # some minutes; writes docs/data/liars.json and the page
    python benchmarks/liars.py --page     # the table again, of the kept numbers

Twenty nodes on a random graph of degree six in the mean, breast_cancer (scikit-learn's, columns
standardised, four fifths to train), logistic loss with ridge 0.1, dealt out by chance, or in part
by label. Some nodes lie from the first round on (`edgewise.Liars`), or have all labels turned
round and are honest otherwise ("labels"). Measured at the honest nodes: how far they are from the
optimum of the honest nodes' data, beside its length, root mean square; and how many of the test
samples they get right. Of three draws of who lies, the worst.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import liars_page
import numpy as np
from liars_theirs import krum, lied, median, star, trimmed_gossip

import edgewise as ew
from edgewise.engines.liars import ATTACKS

KEPT = Path(__file__).parents[1] / "docs" / "data" / "liars.json"
V, EDGES, RIDGE, DRAWS = 20, 60, 0.1, 3
GRAPH = ew.Graph.random(nodes=V, edges=EDGES, seed=0)
SHARES = ("1 of 20", "2 of 20", "4 of 20")
LIE = {"none": ("none",)} | dict.fromkeys(SHARES, (*ATTACKS, "labels"))
ROUNDS = {"newton-pd": 300, "saga-pd": 3000, "lt-saga-pd": 1000}
OTHERS = 1500  # rounds of gossip and of the stars
TRAINED = ew.PrimalDual(ew.SAGA(), local="auto")
OURS: dict[str, tuple[Any, int]] = {
    "auto": ("auto", ROUNDS["newton-pd"]),
    "saga-pd": ("saga-pd", ROUNDS["saga-pd"]),
    "lt-saga-pd": (TRAINED, ROUNDS["lt-saga-pd"]),
    "radius auto": (ew.PrimalDual(ew.SAGA(), local="auto", radius="auto"), ROUNDS["lt-saga-pd"]),
    "radius 0.1": (ew.PrimalDual(ew.SAGA(), local="auto", radius=0.1), ROUNDS["lt-saga-pd"]),
}
THEIRS = ("trimmed gossip", "star, median", "star, Krum")


def samples() -> tuple[np.ndarray, ...]:
    X, y = ew.data.dataset("breast_cancer")
    X, y = (X - X.mean(0)) / X.std(0), np.where(np.asarray(y) > 0, 1.0, -1.0)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: 4 * len(y) // 5], order[4 * len(y) // 5 :]
    return X[train], y[train], X[test], y[test]


def dealt(X: np.ndarray, y: np.ndarray, by_label: bool) -> list[Any]:
    """To the nodes: by chance, or sorted by label but for half of them."""
    rng = np.random.default_rng(1)
    keys = rng.random(len(y))
    if by_label:
        keys = np.where(rng.random(len(y)) < 0.5, keys, (y > 0) + 0.0)
    return [(X[rows], y[rows]) for rows in np.array_split(np.argsort(keys, kind="stable"), V)]


class Setting:
    """Data of all nodes, some of whom lie."""

    def __init__(self, shards: list[Any], share: str, attack: str, draw: int) -> None:
        many = 0 if share == "none" else int(share.split()[0])
        self.liars = ew.Liars(many / V, attack if attack in ATTACKS else "flip", seed=draw)
        who = set(self.liars.who(V).tolist())
        self.honest = [i for i in range(V) if i not in who]
        self.lies = who if attack in ATTACKS else set()
        self.shards = [
            (X, -y if attack == "labels" and i in who else y) for i, (X, y) in enumerate(shards)
        ]
        own = ew.Problem([shards[i] for i in self.honest], ew.Logistic(ridge=RIDGE))
        self.optimum = ew.reference(own).x
        self.problem = ew.Problem(self.shards, ew.Logistic(ridge=RIDGE))

    def by_us(self, method: Any, rounds: int) -> np.ndarray:
        faults = ew.Faults(liars=self.liars) if self.lies else ew.Faults()
        given = {"rounds": rounds, "record_every": rounds, "reference": False}
        result = ew.solve(self.problem, GRAPH, method, faults=faults, progress=False, **given)
        return np.asarray(result.X)

    def by_them(self, name: str) -> np.ndarray:
        step = 1 / float(self.problem.smoothness.mean.max())
        attack, strength = self.liars.attack, self.liars.strength
        way = np.random.default_rng([self.liars.seed, 1]).normal(size=(V, len(self.optimum)))
        way *= strength / np.linalg.norm(way, axis=1, keepdims=True)
        lies = {j: lambda x, j=j: lied(attack, x, strength, way[j]) for j in self.lies}
        if name == "trimmed gossip":
            around = [GRAPH.neighbours(i).tolist() for i in range(V)]
            cut = max(1, round(0.2 * 2 * EDGES / V))
            return trimmed_gossip(self.shards, around, RIDGE, step, OTHERS, cut, lies)
        rule = krum if name == "star, Krum" else median
        return np.tile(star(self.shards, RIDGE, step, OTHERS, rule, lies), (V, 1))

    def measured(self, X: np.ndarray, test: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
        """Error and accuracy of the honest; a model that is no number gets nothing right."""
        own = X[self.honest]
        if not np.isfinite(own).all():
            return np.inf, 0.0
        apart = np.sqrt(((own - self.optimum) ** 2).sum(1).mean())
        right = (np.sign(test @ own.T) == labels[:, None]).mean()
        return float(apart / np.linalg.norm(self.optimum)), float(right)


def largest_dual(problem: Any, shards: list[Any], optimum: np.ndarray) -> dict[str, float]:
    """Of honest edges, those of least norm that hold the optimum, and what `radius="auto"` is."""
    from liars_theirs import gradients

    from edgewise.engines.wires import edge_duals
    from edgewise.methods.clipped_edges import radii
    from edgewise.methods.knowledge import whole_network

    slopes = gradients(shards, np.tile(optimum, (V, 1)), RIDGE)
    duals = np.linalg.norm(edge_duals(GRAPH, slopes), axis=1)
    auto = radii("auto", whole_network(problem, GRAPH))
    ends = {"least radius": auto.min(), "largest radius": auto.max()}
    return {k: round(float(v), 4) for k, v in ({"largest dual": duals.max()} | ends).items()}


def rounds_taken(problem: Any, tol: float = 1e-6) -> dict[str, int]:
    """To the residual, with no liar: what a radius costs."""
    taken = {}
    for name in ("lt-saga-pd", "radius auto", "radius 0.1"):
        given = {"rounds": 5000, "tol": tol, "record_every": 10, "reference": False}
        result = ew.solve(problem, GRAPH, OURS[name][0], progress=False, **given)
        taken[name] = int(result.trace["rounds"][-1]) if result.converged else -1
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", action="store_true", help="nothing but the table again")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of who lies")
    o = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if o.page else {}
    X, y, test, labels = samples()
    for split in () if o.page else ("by chance", "by label"):
        shards = dealt(X, y, split == "by label")
        honest = Setting(shards, "none", "none", 0)
        duals = largest_dual(honest.problem, shards, honest.optimum)
        kept[split] = {"duals": duals, "rounds": rounds_taken(honest.problem), "rows": []}
        print(split, duals, kept[split]["rounds"], flush=True)
        for share, attacks in LIE.items():
            for attack in attacks:
                draws = [
                    Setting(shards, share, attack, draw)
                    for draw in range(1 if share == "none" else o.draws)
                ]
                row: dict[str, Any] = {"liars": share, "attack": attack}
                for name in (*OURS, *THEIRS):
                    if name == "auto" and attack in ("drift", "model"):
                        continue  # lies that are made of an edge's weight, and it has matrices
                    found = [
                        s.measured(
                            s.by_us(*OURS[name]) if name in OURS else s.by_them(name), test, labels
                        )
                        for s in draws
                    ]
                    error, right = max(e for e, _ in found), min(r for _, r in found)
                    error = error if error < 1e6 else None
                    row[name] = [error and float(f"{error:.2g}"), round(right, 3)]
                kept[split]["rows"].append(row)
                print(*row.values(), flush=True)
                KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    liars_page.write(Path(__file__).parents[1] / "docs" / "privacy.md", kept)


if __name__ == "__main__":
    main()

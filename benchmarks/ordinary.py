"""Problems as users bring them: columns standardised, rows as they are, scikit-learn's usual
regularisation; and the answers that scikit-learn gives. What benchmarks/defaults.py judges by.

A setting is a line of SETTINGS: data, model, nodes, graph, split. Samples weigh the same wherever
they are, so the answer depends on data and model alone. Besides these there are the twelve of
benchmarks/fair.py, from there.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import fair
import numpy as np
import scipy.sparse as sp
from optima import answer
from sklearn.preprocessing import scale
from sparse import rcv1_like

import edgewise as ew

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
SKEW = 0.5  # of the Dirichlet proportions in a split by label
EDGES = {2: 1, 8: 12, 20: 50}  # of the random graphs
LARGE = 1e6  # what one column is multiplied with
ALPHA = {"ridge": 1.0, "lasso": 0.1, "enet": 0.1}  # as in the examples of scikit-learn's docs
L1_RATIO = 0.7  # of the elastic net there


class Absent(Exception):
    """The data of a setting are not there."""


class Setting(NamedTuple):
    """What `make` builds."""

    data: str
    model: str  # logistic, logistic-l1, multinomial, ridge, lasso, enet; or that of fair.py
    nodes: int
    graph: str  # ring, grid, random; one node has none, two have one edge
    split: str  # even, label (skewed), single (one class a node), ones (half have one sample)

    @property
    def name(self) -> str:
        return f"{self.data}-{self.model}:{self.graph}{self.nodes}-{self.split}"


class Case(NamedTuple):
    """A setting, built."""

    problem: ew.Problem
    graph: ew.Graph
    optimum: np.ndarray  # (n,)
    units: np.ndarray  # (n,) what a coefficient is multiplied with before it is compared
    tol: float  # the residual to reach
    rows: Any = None  # (N, n) where the optimum is not unique, and only margins can be compared


# --- data ------------------------------------------------------------------------------------


def read(name: str, folder: Path) -> tuple[Any, np.ndarray]:
    for path in sorted(folder.glob(f"{name}*")):
        if ".t." not in path.name:
            return ew.data.read_libsvm(path)
    raise Absent(f"no {name} in {folder}")


def standard(X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return scale(X.toarray() if sp.issparse(X) else X), y


def duplicated(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first five columns twice."""
    return np.hstack([X, X[:, :5]]), y


def constant(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A column of ones, beside the intercept, and one of zeros."""
    return np.hstack([X, np.ones((len(X), 1)), np.zeros((len(X), 1))]), y


def enlarged(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X * np.where(np.arange(X.shape[1]) == 0, LARGE, 1.0), y


def cadata(folder: Path) -> tuple[Any, np.ndarray]:
    """Prices in 100,000 dollars, as scikit-learn has them."""
    X, y = read("cadata", folder)
    return X, y / 1e5


SOURCES: dict[str, Callable[[Path], tuple[Any, np.ndarray]]] = {
    "breast_cancer": lambda d: standard(*ew.data.dataset("breast_cancer")),
    "diabetes": lambda d: standard(*ew.data.dataset("diabetes")),
    "digits": lambda d: standard(*ew.data.dataset("digits")),
    "cadata": lambda d: standard(*cadata(d)),
    "few": lambda d: standard(*(a[:20] for a in ew.data.dataset("diabetes"))),
    "duplicates": lambda d: duplicated(*load("breast_cancer", d)),
    "duplicates-abalone": lambda d: duplicated(*load("abalone", d)),
    "constants": lambda d: constant(*load("breast_cancer", d)),
    "constants-cadata": lambda d: constant(*load("cadata", d)),
    "large": lambda d: enlarged(*load("breast_cancer", d)),
    "large-cadata": lambda d: enlarged(*load("cadata", d)),
    "rcv1": lambda d: read("rcv1_small", d),  # sparse rows of length 1, as text has them
    "reuters": lambda d: read("reuters", d),
    "text": lambda d: rcv1_like(20_000, 5_000, 75),
}


@cache
def load(name: str, folder: Path) -> tuple[Any, np.ndarray]:
    return SOURCES[name](folder) if name in SOURCES else standard(*read(name, folder))


# --- nodes -----------------------------------------------------------------------------------


def graph_of(kind: str, nodes: int) -> ew.Graph:
    if nodes <= 2:
        return ew.Graph.path(nodes)
    match kind:
        case "ring":
            return ew.Graph.ring(nodes)
        case "grid":
            return ew.Graph.grid({8: 2, 20: 4}[nodes], nodes // {8: 2, 20: 4}[nodes])
        case _:
            return ew.Graph.random(nodes, EDGES[nodes], seed=0)


def kinds(y: np.ndarray) -> np.ndarray:
    """Classes; of numbers, in which quarter they lie."""
    if len(np.unique(y)) <= 10:
        return np.unique(y, return_inverse=True)[1]
    return np.searchsorted(np.quantile(y, (0.25, 0.5, 0.75)), y)


def deal(X: Any, y: np.ndarray, nodes: int, split: str) -> ew.Shards:
    """Samples to nodes."""
    if split == "even" or nodes == 1:
        return ew.split(X, y, nodes=nodes, seed=0)
    kind = kinds(y)
    if split == "label":
        order, counts = (s := ew.split(X, kind, nodes, "label", 0, SKEW)).order, s.counts
    elif split == "ones":
        order = np.random.default_rng(0).permutation(len(y))
        most = nodes - nodes // 2
        counts = np.ones(nodes, int)
        counts[:most] = np.diff(np.linspace(0, len(y) - nodes // 2, most + 1).astype(int))
    else:
        order, counts = single(kind, nodes)
    return ew.Shards(X[order], y[order], counts, order)


def single(kind: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Each class to nodes of its own, as many as its share; where there are more classes than
    nodes, several to a node and none to two."""
    sizes = np.bincount(kind)
    order = np.argsort(kind, kind="stable")
    if len(sizes) > nodes:
        return order, np.array([part.sum() for part in np.array_split(sizes, nodes)])
    own = np.ones(len(sizes), int)
    for _ in range(nodes - len(sizes)):
        own[np.argmax(sizes / own)] += 1
    parts = [len(a) for n, k in zip(sizes, own, strict=True) for a in np.array_split(range(n), k)]
    return order, np.array(parts)


# --- settings --------------------------------------------------------------------------------


def loss_of(model: str, N: int) -> tuple[Any, Any]:
    """Loss and penalty beside the mean over N samples."""
    match model:
        case "logistic":
            return ew.Logistic(ridge=1 / N), None
        case "logistic-l1":
            return ew.Logistic(), ew.L1(1 / N)
        case "multinomial":
            return ew.Multinomial(ridge=1 / N), None
        case "ridge":
            return ew.Squared(ridge=ALPHA["ridge"] / N), None
        case "lasso":
            return ew.Squared(), ew.L1(ALPHA["lasso"])
        case "enet":
            a = ALPHA["enet"]
            return ew.Squared(), ew.ElasticNet(a * L1_RATIO, a * (1 - L1_RATIO))
    raise ValueError(model)


@cache
def optimum_of(data: str, model: str, folder: Path) -> np.ndarray:
    """(n,) of one model for all samples: coefficients, then intercepts."""
    X, y = load(data, folder)
    large = LARGE if data.startswith("large") else 1.0
    return answer(X, y, model, ALPHA.get(model, 1.0), L1_RATIO, large)


def make(setting: Setting, folder: Path, tol: float) -> Case:
    if setting.data == "fair":
        problem, _ = fair.PROBLEMS[setting.model][1](folder if folder.is_dir() else None)
        star = ew.reference(problem)
        # columns of a9a add up to one in groups: with an l1 penalty alone, optima are many
        rows = problem.shards.X if setting.model == "a9a-l1" else None
        graph = fair.GRAPHS[setting.graph]()
        return Case(problem, graph, star.x, np.ones(problem.size), tol, rows)
    X, y = load(setting.data, folder)
    loss, penalty = loss_of(setting.model, len(y))
    shards = deal(X, y, setting.nodes, setting.split)
    problem = ew.Problem(shards, loss, penalty, weights="sample", intercept=True)
    units = np.ones(problem.size)
    if setting.data.startswith("large"):
        # in the units of the columns before one was enlarged; the residual has that column's
        units[0], tol = LARGE, tol * LARGE
    optimum = optimum_of(setting.data, setting.model, folder)
    return Case(problem, graph_of(setting.graph, setting.nodes), optimum, units, tol)


def parsed(lines: str) -> list[Setting]:
    made = []
    for line in lines.strip().splitlines():
        data, model, *places = line.split()
        for place in places:
            graph, split = place.split("-")
            kind = graph.rstrip("0123456789")
            made.append(Setting(data, model, int(graph[len(kind) :]), kind, split))
    return made


FAIR = [
    Setting("fair", problem, fair.NODES, graph, "fair")
    for problem in fair.PROBLEMS
    for graph in fair.GRAPHS
]
ORDINARY = parsed("""
breast_cancer logistic alone1-even pair2-even pair2-single ring8-even grid8-label random20-label
breast_cancer logistic ring20-single random20-ones
breast_cancer logistic-l1 ring8-label
a9a logistic ring8-even random20-label grid20-even
ijcnn1 logistic pair2-label grid8-label ring20-even
covtype logistic random8-even grid20-label ring20-single
spambase logistic alone1-even ring8-label random20-single grid20-ones
mushrooms logistic ring8-even random20-label grid20-single
madelon logistic random8-even ring20-label
abalone ridge ring8-even random20-label
abalone lasso grid8-label
abalone enet ring20-even
cadata ridge ring20-label
cadata lasso random8-even grid20-single
cadata enet pair2-even
space_ga ridge grid8-label random20-ones
diabetes lasso ring8-even
diabetes enet alone1-even random20-label
few ridge ring20-ones
digits multinomial pair2-single ring8-even random8-label random20-even
rcv1 logistic ring8-even random20-label
reuters logistic random8-even grid20-label
text logistic ring8-even random20-label
duplicates logistic ring8-label
duplicates-abalone ridge random20-even
constants logistic grid8-even
constants-cadata ridge ring20-label
large logistic alone1-even ring8-even
large-cadata ridge random20-even
""")
SETTINGS = {s.name: s for s in (*FAIR, *ORDINARY)}
QUICK = [
    *(f"fair-{problem}:random20-fair" for problem in ("a9a-l2", "lasso")),
    "breast_cancer-logistic:alone1-even",
    "breast_cancer-logistic:grid8-label",
    "breast_cancer-logistic:ring20-single",
    "breast_cancer-logistic:random20-ones",
    "spambase-logistic:ring8-label",
    "abalone-ridge:random20-label",
    "cadata-lasso:random8-even",
    "digits-multinomial:ring8-even",
    "rcv1-logistic:ring8-even",
    "duplicates-logistic:ring8-label",
    "large-logistic:ring8-even",
]

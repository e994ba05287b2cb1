"""The problems that benchmarks/libraries.py gives every library, from LIBSVM's data."""

from pathlib import Path
from typing import Any

import numpy as np
from libraries_race import Shared
from ordinary import read
from sklearn.preprocessing import scale

import edgewise as ew


def dense(X: Any) -> np.ndarray:
    return X.toarray() if hasattr(X, "toarray") else X


def deal(X: np.ndarray, y: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """In their order, nodes of equal size; what is left over goes."""
    each = len(y) // nodes
    return X[: each * nodes].reshape(nodes, each, -1), y[: each * nodes].reshape(nodes, each)


def a9a(folder: Path) -> tuple[Any, ...]:
    X, y = read("a9a", folder)
    some = np.random.default_rng(0).permutation(len(y))[:4000]
    graph = ew.Graph.random(10, 20, seed=0)
    return "logistic", *deal(X[some].toarray(), y[some], 10), graph, 1e-2, 0.0


def ridge(folder: Path) -> tuple[Any, ...]:
    """Sorted by what is to be predicted, so that every node sees another part of it."""
    X, y = read("diabetes", folder)
    X, y = scale(dense(X)), scale(y)
    order = np.argsort(y)
    return "squared", *deal(X[order], y[order], 20), ew.Graph.ring(20), 1e-2, 0.0


def lasso(folder: Path) -> tuple[Any, ...]:
    X, y = read("spambase", folder)
    some = np.random.default_rng(0).permutation(len(y))
    X = scale(dense(X))[some]
    return "squared", *deal(X, y[some], 20), ew.Graph.random(20, 50, seed=0), 0.0, 1e-2


PROBLEMS = {"a9a": a9a, "ridge": ridge, "lasso": lasso}


def ours(problem: Shared) -> tuple[ew.Problem, ew.Graph]:
    shards = [(X, y) for X, y in zip(problem.X, problem.y, strict=True)]
    kind = ew.Logistic if problem.loss == "logistic" else ew.Squared
    penalty = ew.L1(problem.l1) if problem.l1 else None
    graph = ew.Graph(len(shards), [tuple(edge) for edge in problem.edges.tolist()])
    return ew.Problem(shards, kind(ridge=problem.ridge), penalty=penalty), graph


def make(name: str, folder: Path) -> Shared:
    loss, X, y, graph, l2, l1 = PROBLEMS[name](folder)
    empty = np.zeros(X.shape[2])
    problem = Shared(name, loss, X, y, np.array(graph.edges), l2, l1, empty)
    return problem._replace(optimum=ew.reference(ours(problem)[0]).x)

"""What is known against liars elsewhere: gossip with trimmed means, and a star whose centre takes
the coordinates' median of all gradients, or Krum's choice. NumPy, whole gradients.

Yin, Chen, Ramchandran, Bartlett: "Byzantine-Robust Distributed Learning", 2018 (median, trimmed
mean); Blanchard, El Mhamdi, Guerraoui, Stainer: "Machine Learning with Adversaries", 2017 (Krum);
Fang, Yang, Bajwa: "BRIDGE", 2022 (trimmed means of neighbours' models, then a step).
"""

from collections.abc import Callable
from typing import Any

import numpy as np


def gradients(shards: list[Any], X: np.ndarray, ridge: float) -> np.ndarray:
    """(V, n) of each node's mean logistic loss with its ridge, at its own model."""
    found = []
    for (rows, y), x in zip(shards, X, strict=True):
        margin = y * (rows @ x)
        found.append(-(rows.T @ (y / (1 + np.exp(np.clip(margin, -500, 500))))) / len(y))
    return np.stack(found) + ridge * X


def lied(attack: str, said: np.ndarray, strength: float, way: np.ndarray) -> np.ndarray:
    """What a liar says in the place of a model, or of a gradient."""
    return {
        "flip": lambda: -strength * said,
        "large": lambda: strength * said,
        "drift": lambda: said + way,
        "model": lambda: way,
    }[attack]()


def trimmed_mean(rows: np.ndarray, cut: int) -> np.ndarray:
    return np.sort(rows, axis=0)[cut : len(rows) - cut].mean(0)


def trimmed_gossip(
    shards: list[Any],
    neighbours: list[list[int]],
    ridge: float,
    step: float,
    rounds: int,
    cut: int,
    lies: dict[int, Callable[[np.ndarray], np.ndarray]],
) -> np.ndarray:
    """(V, n) models: of what neighbours and the node itself say, in each coordinate, the `cut`
    largest and smallest are left out; then a gradient step, shorter and shorter."""
    X = np.zeros((len(shards), shards[0][0].shape[1]))
    for t in range(rounds):
        said = {j: lies[j](X[j]) if j in lies else X[j] for j in range(len(X))}
        rows = [np.stack([X[i], *(said[j] for j in around)]) for i, around in enumerate(neighbours)]
        means = np.stack([trimmed_mean(own, min(cut, (len(own) - 1) // 2)) for own in rows])
        X = means - step / np.sqrt(1 + t / 20) * gradients(shards, X, ridge)
    return X


def median(rows: np.ndarray, liars: int) -> np.ndarray:
    return np.median(rows, axis=0)


def krum(rows: np.ndarray, liars: int) -> np.ndarray:
    """The row that is nearest to the V - liars - 2 others that are nearest to it."""
    apart = ((rows[:, None] - rows[None]) ** 2).sum(-1)
    near = np.sort(apart, axis=1)[:, 1 : max(len(rows) - liars - 1, 2)].sum(1)
    return rows[int(near.argmin())]


def star(
    shards: list[Any],
    ridge: float,
    step: float,
    rounds: int,
    rule: Callable[[np.ndarray, int], np.ndarray],
    lies: dict[int, Callable[[np.ndarray], np.ndarray]],
) -> np.ndarray:
    """(n,) the model of a centre that steps by what the rule makes of all gradients. It is told how
    many lie."""
    x = np.zeros(shards[0][0].shape[1])
    for _ in range(rounds):
        G = gradients(shards, np.tile(x, (len(shards), 1)), ridge)
        for j, lie in lies.items():
            G[j] = lie(G[j])
        x = x - step * rule(G, len(lies))
    return x

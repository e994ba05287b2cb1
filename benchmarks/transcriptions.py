"""The paper's methods as printed, in NumPy: node by node, a dual per directed edge, vectorised over
unknowns only. What the speed of compiled rounds is measured against."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import edgewise as ew

ETA, RHO = 1.0, 0.2


def slopes_of(labels: Any, z: Any) -> Any:
    return -labels / (1 + np.exp(labels * z))


class Node:
    """A node's own data and its estimator's memory, taken at zero."""

    def __init__(self, D: np.ndarray, c: np.ndarray, ridge: float, seed: int) -> None:
        self.D, self.c, self.ridge = D, c, ridge
        self.rng = np.random.default_rng(seed)
        self.slopes, self.mean = -0.5 * c, -0.5 * c @ D / len(c)

    def retake(self, x: np.ndarray) -> None:
        self.slopes = slopes_of(self.c, self.D @ x)
        self.mean = self.slopes @ self.D / len(self.c)

    def change(self, x: np.ndarray) -> tuple[int, float, np.ndarray]:
        """A sample, its slope at x, and how its gradient differs from the one remembered."""
        k = int(self.rng.integers(len(self.c)))
        d, c = self.D[k], self.c[k]
        slope = -c / (1 + np.exp(c * (d @ x)))
        return k, slope, (slope - self.slopes[k]) * d

    def point(self, x: np.ndarray) -> np.ndarray:
        return x


class SAGA(Node):
    def gradient(self, x: np.ndarray) -> np.ndarray:
        k, slope, change = self.change(x)
        g = change + self.mean + self.ridge * x
        self.slopes[k] = slope
        self.mean = self.mean + change / len(self.c)
        return g


class LSVRG(Node):
    def gradient(self, x: np.ndarray) -> np.ndarray:
        g = self.change(x)[2] + self.mean + self.ridge * x
        if self.rng.random() < 1 / len(self.c):
            self.retake(x)
        return g


class ASVRG(Node):
    """With steady momentum, as by default."""

    beta, ask = 0.1, 0.5

    def gradient(self, y: np.ndarray) -> np.ndarray:
        if not hasattr(self, "total"):
            self.center, self.total, self.done = np.zeros_like(y), np.zeros_like(y), 0
        x = (1 - self.beta) * self.center + self.beta * y
        if self.done == len(self.c):
            self.center = self.total / self.done
            self.retake(self.center)
            self.total, self.done = np.zeros_like(y), 0
            x = (1 - self.beta) * self.center + self.beta * y
        self.total, self.done = self.total + x, self.done + 1
        g = self.mean + self.ridge * x
        if self.rng.random() < self.ask:
            g = g + self.change(x)[2] / self.ask
        return g


class SEGA(Node):
    def gradient(self, x: np.ndarray) -> np.ndarray:
        if not hasattr(self, "H"):
            self.H = np.zeros_like(x)
        j = int(self.rng.integers(len(x)))
        seen = self.coordinate(x, j)
        g = self.H.copy()
        g[j] += len(x) * (seen - self.H[j])
        self.H[j] = seen
        return g

    def coordinate(self, x: np.ndarray, j: int) -> float:
        slopes = slopes_of(self.c, self.D @ x)
        return float(slopes @ self.D[:, j] / len(self.c) + self.ridge * x[j])


class SEGAOfValues(SEGA):
    def coordinate(self, x: np.ndarray, j: int, step: float = 1.5e-8) -> float:
        ahead = x.copy()
        ahead[j] += step
        return (self.value(ahead) - self.value(x)) / step

    def value(self, x: np.ndarray) -> float:
        losses = np.logaddexp(0, -self.c * (self.D @ x)).mean()
        return float(losses + 0.5 * self.ridge * (x @ x))


class Network:
    """All nodes, and the duals of all directed edges."""

    def __init__(self, problem: ew.Problem, graph: ew.Graph, kind: Callable[..., Any]) -> None:
        self.neighbours = [graph.neighbours(i) for i in range(problem.nodes)]
        self.nodes = [
            kind(
                problem.shards[i][0],
                problem.labels[problem.own(i)],
                float(problem.loss.ridge),
                seed=i,
            )
            for i in range(problem.nodes)
        ]
        self.x = np.zeros((problem.nodes, problem.size))
        pairs = [(i, j) for i, near in enumerate(self.neighbours) for j in near]
        self.dual = {pair: np.zeros(problem.size) for pair in pairs}

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            x, dual, new_x, new_dual = self.x, self.dual, np.empty_like(self.x), {}
            for i, near in enumerate(self.neighbours):
                gamma = 1 / (1 / ETA + RHO * len(near))
                heard = sum(RHO * x[j] - dual[j, i] for j in near)
                new_x[i] = gamma * (x[i] / ETA - self.nodes[i].gradient(x[i]) + heard)
                for j in near:
                    new_dual[i, j] = -dual[j, i] + RHO * (x[j] - new_x[i])
            self.x, self.dual = new_x, new_dual


def seconds_per_round(
    problem: ew.Problem, graph: ew.Graph, rounds: int, kind: Callable[..., Any] = SAGA
) -> float:
    network = Network(problem, graph, kind)
    start = time.perf_counter()
    network.run(rounds)
    return (time.perf_counter() - start) / rounds

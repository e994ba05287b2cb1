"""A run that ended short of its goal, and figures of it that tell why."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from edgewise.data.shards import Shards
from edgewise.graph.graph import Graph
from edgewise.methods.auto import MOST_UNKNOWNS
from edgewise.methods.class_blocks import block_shape
from edgewise.methods.contract import Method
from edgewise.problem.contract import LinearLoss
from edgewise.problem.problem import Problem
from edgewise.running.trace import Trace

MOST_NUMBERS = 20_000_000  # of data that are looked through
LOOKS = 10  # rows of a trace from which a residual that did not fall is worth a word
RECENT = 0.4  # part of a trace whose slope says how a run goes on
STILL = 0.97  # what a residual must fall to over that part, or it stays where it is
FAR = 30.0  # a margin beyond those that some losses want


@dataclass(frozen=True)
class Ending:
    """A run that ended short of its goal."""

    problem: Problem
    graph: Graph
    method: Method
    trace: Trace
    goal: float  # of the residual
    x: np.ndarray  # (n,) the model
    dtype: str
    step: float  # the shortest that the method took; NaN where it has none
    diverged: bool = False
    lossy: bool = False  # whether the network lost messages, or nodes slept

    @property
    def residual(self) -> float:
        return float(self.trace["residual"][-1])

    @cached_property
    def rows(self) -> Any:
        """The samples, where they are in memory and not too many."""
        shards = self.problem.shards
        if not isinstance(shards, Shards):
            return None
        X = shards.X
        few = (X.nnz if sp.issparse(X) or hasattr(X, "nnz") else X.size) <= MOST_NUMBERS
        return X if few else None

    @cached_property
    def slope(self) -> float:
        """Of the residual's logarithm, per round, at the end; NaN where there is too little."""
        return slope(self.trace["rounds"], self.trace["residual"])

    @property
    def still(self) -> bool:
        """Whether the residual stays where it is."""
        rounds = self.trace["rounds"]
        recent = RECENT * (rounds[-1] - rounds[0])
        return len(rounds) >= LOOKS and not self.slope * recent < np.log(STILL)

    @property
    def rounds_left(self) -> float:
        """By that slope."""
        return float(np.log(self.goal / self.residual) / self.slope) if self.slope < 0 else np.inf

    @property
    def newton_fits(self) -> bool:
        """Whether a matrix per node is affordable, and the method has none."""
        loss = self.problem.loss
        if not loss.linear or self.method.second_order or self.problem.stream is not None:
            return False
        return block_shape(self.problem.size, loss.outputs)[1] <= MOST_UNKNOWNS

    def column(self, j: int) -> str:
        names = getattr(self.problem, "columns", None)
        return f"column {j}" if names is None else f"column {names[j]!r}"


def slope(rounds: np.ndarray, residual: np.ndarray) -> float:
    good = np.isfinite(residual) & (residual > 0)
    rounds, residual = rounds[good], residual[good]
    recent = rounds >= rounds[-1] - RECENT * (rounds[-1] - rounds[0]) if len(rounds) else good
    if recent.sum() < 3:
        recent = np.ones(len(rounds), bool)
    if recent.sum() < 2:
        return np.nan
    return float(np.polyfit(rounds[recent], np.log(residual[recent]), 1)[0])


def falls_for_ever(p: Problem, loss: LinearLoss, rows: Any, x: np.ndarray) -> bool:
    C = loss.outputs
    W, b = x[: x.size - p.free].reshape(C, -1), x[x.size - p.free :]
    z = np.asarray(rows @ W.T) + (b if p.free else 0)
    if C > 1:
        right = z[np.arange(len(z)), p.labels.astype(int)]
        z[np.arange(len(z)), p.labels.astype(int)] = -np.inf
        sure = right - z.max(1) > 0
    else:
        sure = z[:, 0] * p.labels > 0
        # a loss that is zero beyond a margin has a minimum all the same
        far, labels = jnp.asarray(FAR * np.sign(z[:, 0])), jnp.asarray(p.labels)
        sure &= np.abs(np.asarray(loss.slope(far, labels))) > 0
    return bool(sure.all())


def column_sizes(X: Any, order: float, centred: bool = False) -> np.ndarray:
    """(p,) the largest number of each, or the root of their mean square."""
    if order == np.inf:
        every = abs(X).max(0)
        return np.asarray(every.toarray() if hasattr(every, "toarray") else every).ravel()
    if hasattr(X, "indptr"):
        return np.sqrt(np.asarray((sp.csr_array(X) ** 2).mean(0)).ravel())
    return np.asarray(X.std(0) if centred else np.sqrt((X.astype(np.float64) ** 2).mean(0)))


def row_lengths(X: Any) -> np.ndarray:
    square = sp.csr_array(X) ** 2 if hasattr(X, "indptr") else np.asarray(X, np.float64) ** 2
    return np.sqrt(np.asarray(square.sum(1)).ravel())


def spectral_gap(graph: Graph) -> float:
    """The second eigenvalue of the normalised Laplacian: 1 or more where all know all."""
    if graph.nodes < 2:
        return 1.0
    i, j = graph.edges.T
    A = np.zeros((graph.nodes, graph.nodes))
    A[i, j] = A[j, i] = 1 / np.sqrt(graph.degrees[i] * graph.degrees[j])
    return float(np.linalg.eigvalsh(np.eye(graph.nodes) - A)[1])


def rounded(number: float) -> int:
    """To two digits, upwards."""
    if number < 10:
        return int(np.ceil(max(number, 1)))
    unit = 10 ** (int(np.log10(number)) - 1)
    return int(np.ceil(number / unit) * unit)

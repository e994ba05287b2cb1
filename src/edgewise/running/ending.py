"""A run that ended short of its goal, and figures of it that tell why."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from edgewise.data.shards import Shards
from edgewise.engines.faults import Faults
from edgewise.graph.graph import Graph
from edgewise.methods.auto import MOST_UNKNOWNS
from edgewise.methods.class_blocks import block_shape
from edgewise.methods.contract import Method
from edgewise.methods.knowledge import Knowledge
from edgewise.problem.problem import Problem
from edgewise.running.trace import Trace

MOST_NUMBERS = 20_000_000  # of data that are looked through
MANY_TIMES = 4  # the rounds that were run, from which on they are not what is missing
FEWEST = 4  # rows of a trace that tell how a run goes
LOOKS = 10  # rows of a trace from which a residual that did not fall is worth a word
RECENT = 0.4  # part of a trace whose slope says how a run goes on
STILL = 0.97  # what a residual must fall to over that part, or it stays where it is
ALIKE = 1e-4  # the least eigenvalue of correlations, or the squared digits of Newton's method
EXACTLY = 1e-13  # columns that repeat others to the last digit do no harm
PAIR = 0.999  # a correlation of two columns that is all there is to say
MOST_PRODUCTS = 10**9  # of numbers, for correlations


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
    asked: Method  # with the steps as the user gave them
    knowledge: Knowledge  # that its rules go by
    diverged: bool = False
    faults: Faults | None = None
    budget: float | None = None  # of oracle calls, where that ended it

    @property
    def run(self) -> float:
        """Rounds."""
        return float(self.trace["rounds"][-1])

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
    def nearly(self) -> bool:
        """Whether rounds are all that is missing, and not too many of them."""
        return not self.still and self.rounds_left <= MANY_TIMES * self.run

    @property
    def looks_enough(self) -> bool:
        """Whether the trace tells how the run goes."""
        return len(self.trace) >= FEWEST and (self.diverged or bool(np.isfinite(self.slope)))

    @property
    def newton(self) -> str:
        """'method="auto"' where a matrix per node is affordable and the method has none."""
        loss = self.problem.loss
        if not loss.linear or self.method.second_order or self.problem.stream is not None:
            return ""
        if not self.problem.convex:
            return ""
        fits = block_shape(self.problem.size, loss.outputs)[1] <= MOST_UNKNOWNS
        return 'method="auto"' if fits else ""

    @cached_property
    def by_rule(self) -> tuple[Any, Any]:
        """eta and rho of the method as the rules have them; None where it has none."""
        has = {f.name for f in fields(self.asked)} & {"eta", "rho"}
        made, weights = replace(self.asked, **dict.fromkeys(has, "auto")).prepare(self.knowledge)
        return made.eta, weights.get("rho")

    @property
    def given_eta(self) -> float:
        """How many times the rule's the shortest step is; 1 where the rule's was taken."""
        given = getattr(self.asked, "eta", None)
        if given is None or isinstance(given, str):
            return 1.0
        return float(np.min(given) / np.min(self.by_rule[0]))

    @property
    def given_rho(self) -> float:
        given = getattr(self.asked, "rho", None)
        if given is None or isinstance(given, str) or self.by_rule[1] is None:
            return 1.0
        return float(np.exp(np.log(given).mean() - np.log(self.by_rule[1]).mean()))

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


def closest_columns(X: Any, ridge: float, intercept: bool, least: float) -> tuple[int, int, str]:
    """Two columns, and how they hang together, where that leaves a direction without curvature."""
    rows, width = X.shape
    if width < 2 or rows * width**2 > MOST_PRODUCTS:
        return 0, 0, ""
    Z = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
    Z = Z - Z.mean(0) if intercept else Z
    size = np.sqrt((Z**2).mean(0))
    known = np.flatnonzero(size > 0)
    Z = Z[:, known] / size[known]
    C = Z.T @ Z / rows
    values, vectors = np.linalg.eigh(C)
    small = np.flatnonzero((values > EXACTLY * len(known)) & (values < least))
    if not len(small) or ridge > values[small[0]] * size[known].min() ** 2:
        return 0, 0, ""
    times = f"almost the same (condition number {values[-1] / values[small[0]]:.0e})"
    apart = np.abs(C - np.eye(len(known)))
    pair = np.unravel_index(np.argmax(apart), apart.shape)
    if apart[pair] > PAIR:
        i, j = sorted(int(known[k]) for k in pair)
        return i, j, f" say {times}"
    i, j = sorted(int(known[k]) for k in np.argsort(-np.abs(vectors[:, small[0]]))[:2])
    return i, j, f", with others, say {times}"


def column_spread(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """(p,) the mean of each column, and its standard deviation."""
    mean = np.asarray(X.mean(0)).ravel()
    if not hasattr(X, "indptr"):
        return mean, X.std(0)
    square = np.asarray((sp.csr_array(X) ** 2).mean(0)).ravel()
    return mean, np.sqrt(np.maximum(square - mean**2, 0))


def column_sizes(X: Any, order: float) -> np.ndarray:
    """(p,) the largest number of each, or the root of their mean square; about their mean where
    columns are dense."""
    if order == np.inf:
        every = abs(X).max(0)
        return np.asarray(every.toarray() if hasattr(every, "toarray") else every).ravel()
    if hasattr(X, "indptr"):
        return np.sqrt(np.asarray((sp.csr_array(X) ** 2).mean(0)).ravel())
    return np.asarray(X.std(0, dtype=np.float64))


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

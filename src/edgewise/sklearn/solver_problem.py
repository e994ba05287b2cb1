"""What the estimators hand to the solver: losses on labels already in code, a penalty that knows
the features' scales, and problems whose programs fits of like size share."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.centralised.smooth_part import slopes
from edgewise.problem.block import Block, Links
from edgewise.problem.losses import Logistic, Multinomial, Sigmoid, SmoothedHinge
from edgewise.problem.problem import Problem
from edgewise.problem.rows import make_rows

SMALL = 1 << 14  # numbers in X up to which a fit costs less than compiling a program for it
MOST_PRODUCTS = 1e9  # that looking for directions without curvature may take
FLAT = 1e-12  # of the largest curvature
LEAST_ROWS, LEAST_OWN = 256, 16  # rows that small data are padded to, and those that a node visits


class Coded:
    """Labels are -1 and 1, or 0 .. C-1: a batch need not hold every class."""

    outputs: int

    def encode(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.asarray(y, np.float64), np.arange(max(self.outputs, 2))


@pytree()
class CodedLogistic(Coded, Logistic):
    compiled_as = "logistic"  # the formula; labels are the same numbers

    ridge: Any = 0.0


@pytree("outputs")
class CodedMultinomial(Coded, Multinomial):
    ridge: Any = 0.0
    outputs: int = 0


class OneAgainstRest:
    """With C > 2 classes the sum of C losses for two classes, each of one against the rest."""

    outputs: int

    def value(self, z: Array, y: Array) -> Array:
        each: Array = super().value(z, self._signs(z, y))  # type: ignore[misc]
        return each if self.outputs == 1 else each.sum(-1)

    def slope(self, z: Array, y: Array) -> Array:
        made: Array = super().slope(z, self._signs(z, y))  # type: ignore[misc]
        return made

    def _signs(self, z: Array, y: Array) -> Array:
        if self.outputs == 1:
            return y
        return jnp.where(y[..., None] == jnp.arange(self.outputs), 1.0, -1.0).astype(z.dtype)


@pytree("outputs")
class CodedHinge(Coded, OneAgainstRest, SmoothedHinge):
    width: Any = 0.5
    ridge: Any = 0.0
    outputs: int = 1

    def secant(self, z: Array, y: Array) -> Array:
        return super().secant(z, self._signs(z, y))


@pytree("outputs")
class CodedSigmoid(Coded, OneAgainstRest, Sigmoid):
    ridge: Any = 0.0
    outputs: int = 1


def coded(loss: Any, classes: int) -> Any:
    """The loss for labels in code; where it is for two classes and there are more, its extension
    to many. None where it is no classification."""
    outputs = classes if classes > 2 else 1
    if type(loss) is SmoothedHinge:
        return CodedHinge(loss.width, loss.ridge, outputs)
    if type(loss) is Sigmoid:
        return CodedSigmoid(loss.ridge, outputs)
    if type(loss) is Multinomial or (type(loss) is Logistic and outputs > 1):
        return CodedMultinomial(loss.ridge, classes)
    return CodedLogistic(loss.ridge) if type(loss) is Logistic else None


@pytree()
class ScaledElasticNet:
    """Σ_j l1_j |x_j| + l2_j/2 x_j²: the plain one, once every feature has a scale of its own."""

    separable: ClassVar[bool] = True
    compiled_as = "scaled-elastic-net"

    l1: Any  # (n,)
    l2: Any  # (n,)

    @property
    def ridge(self) -> Any:
        return self.l2

    def value(self, x: Array) -> Array:
        return (self.l1 * jnp.abs(x) + self.l2 / 2 * x * x).sum()

    def prox(self, x: Array, t: Array) -> Array:
        threshold = t * self.l1
        return (x - jnp.clip(x, -threshold, threshold)) / (1 + t * self.l2)


@pytree()
class ScaledRidge:
    """Σ_j l2_j/2 x_j²: what is left of it without l1, and which says that it is smooth."""

    separable: ClassVar[bool] = True
    quadratic: ClassVar[bool] = True
    compiled_as = "scaled-ridge"

    ridge: Any  # (n,)

    def value(self, x: Array) -> Array:
        return (self.ridge / 2 * x * x).sum()

    def prox(self, x: Array, t: Array) -> Array:
        return x / (1 + t * self.ridge)


class SharedProblem(Problem):
    """Small data are padded to a round number of rows that nobody owns. So fits of like size, the
    folds of a cross-validation say, have the same shapes, and run the same compiled programs."""

    def block(self, links: Links | None, dtype: Any, rows: Any = None) -> Block:
        X = self.shards.X
        if not isinstance(X, np.ndarray) or X.size > SMALL or not self.loss.linear:
            return super().block(links, dtype, rows)
        spare = rounded(len(X), LEAST_ROWS) - len(X)
        if rows is None:
            largest = rounded(int(self.counts.max()), LEAST_OWN)
            rows = make_rows(np.pad(X, ((0, spare), (0, 0))), largest, dtype, X.shape[1])
        scale = np.ones(len(X)) if self.scale is None else self.scale
        return (
            super()
            .block(links, dtype, rows)
            ._replace(
                labels=jnp.asarray(np.pad(self.labels, (0, spare)), dtype),
                scale=jnp.asarray(np.pad(scale, (0, spare)), dtype),
            )
        )


def undetermined(problem: SharedProblem) -> bool:
    """Whether samples with a weight leave directions free, as second moments tell, which nodes can
    add up; not looked into where that would take long."""
    X, p = problem.shards.X, problem.shards.features
    live = np.ones(len(problem.labels), bool) if problem.scale is None else problem.scale > 0
    samples = int(live.sum())
    if samples < p:
        return True
    if not isinstance(X, np.ndarray) or samples * p * p > MOST_PRODUCTS:
        return False
    rows = X[live].astype(np.float64, copy=False)
    curvature = np.linalg.eigvalsh(rows.T @ rows)
    return bool(curvature[0] <= FLAT * curvature[-1])


def rounded(number: int, least: int) -> int:
    """Up to a power of two."""
    return int(max(least, 1 << (number - 1).bit_length()))


def sample_gradient(problem: SharedProblem) -> float:
    """The root mean square of a sample's gradient at zero; 1 for a custom loss."""
    if not problem.loss.linear:
        return 1.0
    C, samples = problem.loss.outputs, problem.shards.samples
    y = np.pad(problem.labels, (0, rounded(samples, LEAST_ROWS) - samples))
    with jax.enable_x64(True):
        s = np.asarray(slopes(problem.loss, np.zeros((len(y), C) if C > 1 else len(y)), y))
    squares = (s[:samples].reshape(samples, -1) ** 2).sum(1)
    mean = float(np.average(squares, weights=problem.scale))
    return float(np.sqrt(mean * (problem.shards.features + 1))) or 1.0

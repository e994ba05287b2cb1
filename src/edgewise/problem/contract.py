"""What a loss and a penalty are, and what is known of a node's curvature.

mypy holds every loss and penalty of the library to these. Yours need not inherit anything: an
object with these members is one.
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
from jax import Array

Labels = tuple[np.ndarray, np.ndarray | None]


class LinearLoss(Protocol):
    """A sample's loss as a function of its margin z = <d, x> (plus an intercept) and its label: a
    gradient is slope times d, so that one number a sample is all that a memory has to keep.

    One that is not convex says so, of either kind of loss: `convex = False`. One whose slope has no
    bounded derivative says `smooth = False`."""

    @property
    def linear(self) -> Literal[True]: ...

    @property
    def outputs(self) -> int:
        """Margins of a sample: one, or one per class."""

    @property
    def hessian_continuous(self) -> bool:
        """Whether the slope's derivative is continuous: a Hessian then holds nearby too."""

    @property
    def ridge(self) -> Any:
        """(ridge / 2) |x|^2 is part of the loss; it leaves the intercept alone."""

    def encode(self, y: np.ndarray, /) -> Labels:
        """Labels as the numbers that `value` and `slope` take, and the classes, or None."""

    def value(self, z: Array, y: Array, /) -> Array:
        """Of margins (...) or (..., C) and labels (...), arrays of any shape: (...)."""

    def slope(self, z: Array, y: Array, /) -> Array:
        """d value / d z, of the shape of z."""

    def divergence(self, z: Array, y: Array, at: Array, /) -> Array:
        """Bregman divergence of the loss from margin `at` to z: (...)."""

    def curvature(self) -> float:
        """A bound on the slope's derivative, over all margins and labels; infinite where there is
        none. `curvatures` is then asked for one of each label."""

    def curvatures(self, y: np.ndarray, /) -> np.ndarray:
        """(N,) of these labels: a bound over all margins, or where there is none the size at
        margins that are right for them. Not asked for where `curvature` is finite."""


class SampleLoss(Protocol):
    """Any other loss of one sample."""

    @property
    def linear(self) -> Literal[False]: ...

    @property
    def outputs(self) -> int:
        """One: the model is one vector, whatever the function makes of it."""

    @property
    def ridge(self) -> Any:
        """(ridge / 2) |x|^2 is part of the loss."""

    @property
    def fn(self) -> Callable[[Array, Array, Array], Array]:
        """fn(x, d, y), a number, of a model (n,), a sample's features (p,) and its label."""

    @property
    def smoothness(self) -> float | None:
        """The Lipschitz constant of its gradient in x; None: to be estimated."""

    @property
    def size(self) -> int | None:
        """The length of x; None: that of d."""

    def encode(self, y: np.ndarray, /) -> Labels:
        """Labels as numbers, and the classes, or None."""


class NodeLoss(SampleLoss, Protocol):
    """A loss of all samples of a node together. `Problem` makes a row of them, once, and to
    everything else a node has one sample: that row. Its Hessians are those that `fn` has."""

    @property
    def whole(self) -> Literal[True]: ...

    @property
    def hessian_continuous(self) -> bool:
        """As that of a `LinearLoss`."""

    def for_columns(self, columns: int, /) -> "NodeLoss":
        """The same with its size, where X has so many columns."""

    def row(self, X: Any, y: np.ndarray, weight: np.ndarray, length: int, /) -> np.ndarray:
        """What `fn` takes of a node's samples, encoded labels and weights (of mean one), as long
        as that of a node with `length` samples."""

    def curvatures(self, rows: np.ndarray, /) -> np.ndarray:
        """(k,) bounds on the Hessians of these rows, ridge apart."""


Loss = LinearLoss | SampleLoss  # `loss.linear` tells which, and mypy follows


class Penalty(Protocol):
    """A convex term h of one node's model. What the nodes of a block have, stacked, is one too:
    then x is (v, n), t (v, 1), and there is a value per node.

    One whose prox takes a vector t too, a step for each coordinate, may say so: `diagonal = True`,
    or `separable = True` where h is a sum over coordinates. Then columns of unequal scale are no
    matter to the centralised answer."""

    def value(self, x: Array, /) -> Array:
        """h(x): a number; infinite outside of a constraint set."""

    def prox(self, x: Array, t: Any, /) -> Array:
        """argmin_u h(u) + |u - x|^2 / 2t, in x's own dtype. The metric of a step is 1/t today; a
        step with a matrix for its metric will need another map, not this one."""


class Curvatures(Protocol):
    """How curved the losses of some nodes are: what step rules start from. Ridge is in all."""

    @property
    def counts(self) -> np.ndarray:
        """(k,) samples K_i of each node."""

    @property
    def sample(self) -> np.ndarray:
        """(k,) L_i of one sample's loss, the largest over a node's samples: the paper's."""

    @property
    def mean(self) -> np.ndarray:
        """(k,) L_i of a node's mean loss, at most that. It may have to be worked out first."""

    @property
    def intercept(self) -> np.ndarray:
        """(k,) L_i of a node's mean loss along an intercept alone; zero where there is none."""

    @property
    def ridge(self) -> float:
        """Of the loss, the same at all nodes."""

    @property
    def saturates(self) -> bool:
        """Whether losses are as curved as this at small margins alone, as the logistic one is."""

    @property
    def size(self) -> int:
        """n, how many unknowns there are."""

    def expected(self, batch: int, /) -> np.ndarray:
        """(k,) what an estimator sees that draws `batch` samples: from `sample` to `mean`."""

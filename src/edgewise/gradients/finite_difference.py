from typing import ClassVar

import jax.numpy as jnp
from jax import Array, lax

from edgewise.backend.pytree import pytree
from edgewise.errors import MethodError
from edgewise.problem.block import Block


@pytree()
class ExactCoordinates:
    """Some coordinates of the gradient, exactly."""

    compiled_as = "exact-coordinates"

    exact: ClassVar[bool] = True

    def __call__(self, p: Block, X: Array, at: Array) -> Array:
        return jnp.take_along_axis(p.full(X) + p.ridge(X), at, 1)

    def evaluations(self, coordinates: int) -> int:
        return 0


@pytree("step")
class FiniteDifference:
    """The same from function values alone: (f(x + step e_j) - f(x)) / step, forward.

    Off by up to L step / 2 and by rounding / step, so the answer has a floor; the default step,
    the square root of the rounding error, balances the two.
    """

    compiled_as = "finite-difference"

    step: float | None = None

    def __post_init__(self) -> None:
        if self.step is not None and not (isinstance(self.step, int | float) and self.step > 0):
            raise MethodError(f"FiniteDifference(step={self.step!r}): give a positive number")

    exact: ClassVar[bool] = False

    def __call__(self, p: Block, X: Array, at: Array) -> Array:
        step = float(jnp.finfo(X.dtype).eps) ** 0.5 if self.step is None else self.step
        here, node = p.values(X), jnp.arange(X.shape[0])

        def ahead(j: Array) -> Array:
            moved = X.at[node, j].add(step)
            return (p.values(moved) - here) / (moved[node, j] - X[node, j])

        return lax.map(ahead, at.T).T

    def evaluations(self, coordinates: int) -> int:
        return coordinates + 1

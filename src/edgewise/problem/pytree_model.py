"""Models that are pytrees of arrays, such as the layers of a neural network, as vectors."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import numpy as np
from jax import Array

from edgewise.errors import ProblemError


@dataclass(frozen=True)
class PytreeModel:
    """A pytree's structure and the shapes of its leaves; the vector has these one after another."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def like(cls, params: Any) -> "PytreeModel":
        leaves, structure = jax.tree.flatten(params)
        if not leaves or not all(np.issubdtype(np.asarray(a).dtype, np.floating) for a in leaves):
            raise ProblemError(
                "of_pytree(fn, like): give a pytree of arrays of floating-point numbers, as "
                '{"w": np.zeros((3, 2)), "b": np.zeros(2)}'
            )
        return cls(structure, tuple(np.shape(a) for a in leaves))

    @property
    def size(self) -> int:
        return sum(map(prod, self.shapes))

    def flatten(self, params: Any) -> np.ndarray:
        leaves, structure = jax.tree.flatten(params)
        shapes = tuple(np.shape(a) for a in leaves)
        if structure != self.structure or shapes != self.shapes:
            raise ProblemError(
                f"this pytree is {structure} of shapes {list(shapes)}, the loss was made for "
                f"{self.structure} of {list(self.shapes)}"
            )
        return np.concatenate([np.asarray(a, np.float64).ravel() for a in leaves])

    def unflatten(self, x: Any) -> Any:
        if np.shape(x) != (self.size,):
            raise ProblemError(f"a vector of shape {np.shape(x)}: give one of ({self.size},)")
        leaves, at = [], 0
        for shape in self.shapes:
            leaves.append(x[at : at + prod(shape)].reshape(shape))
            at += prod(shape)
        return jax.tree.unflatten(self.structure, leaves)


@dataclass(frozen=True)
class OfPytree:
    """fn(params, d, y) as a function of a vector; equal where function and shapes are, so that jit
    compiles it once."""

    fn: Callable[[Any, Array, Array], Array]
    model: PytreeModel

    def __call__(self, x: Array, d: Array, y: Array) -> Array:
        return self.fn(self.model.unflatten(x), d, y)

"""Small frozen classes that travel through jit as arguments."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform

import jax

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def pytree(*static: str) -> Callable[[type[T]], type[T]]:
    """A frozen dataclass whose fields are jit arguments, but for those named here, which are
    part of the program.

    Not `jax.tree_util.register_dataclass`: in jax 0.10.2 two such classes with the same field
    names have equal treedefs, so that jit may run the other one's code.
    """

    def register(cls: type[T]) -> type[T]:
        made: Any = dataclass(frozen=True, eq=False)(cls)
        leaves = [f.name for f in fields(made) if f.name not in static]

        def flatten(self: Any) -> tuple[list[Any], tuple[Any, ...]]:
            return [getattr(self, k) for k in leaves], tuple(getattr(self, k) for k in static)

        def unflatten(aux: tuple[Any, ...], values: Any) -> Any:
            self = object.__new__(made)  # past __post_init__: the values may be tracers
            for name, value in (*zip(leaves, values, strict=True), *zip(static, aux, strict=True)):
                object.__setattr__(self, name, value)
            return self

        jax.tree_util.register_pytree_node(made, flatten, unflatten)
        return made

    return register

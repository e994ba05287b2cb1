"""Branches that copy nothing."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax


def only_if(flag: Array, change: Callable[[Any], Any], carry: Any) -> Any:
    """A branch, as a loop: what it carries is then changed in place, or not even copied."""

    def once(c: Any) -> Any:
        return jnp.zeros((), bool), change(c[1])

    return lax.while_loop(lambda c: c[0], once, (flag, carry))[1]

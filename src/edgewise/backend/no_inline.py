"""Values that XLA is to compute once."""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jax.experimental.xla_metadata import set_xla_metadata


def no_inline(f: Callable[..., Array]) -> Callable[..., Array]:
    """f, on a CPU, as a call that XLA may not inline: what goes in and comes out is computed once.

    Otherwise every reader of a gathered sum would gather it again. A GPU wants the opposite: there
    such a call costs 140 us a round.
    """
    jitted = jax.jit(f)

    def call(*args: Any) -> Array:
        if jax.default_backend() != "cpu":
            return f(*args)
        with set_xla_metadata(inlineable="false"):
            return jitted(*args)

    return call

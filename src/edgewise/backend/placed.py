"""Arrays for JAX, without a program compiled for each shape that they have."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def placed(a: Any, dtype: Any = None) -> Array:
    """`jnp.asarray`, which since JAX 0.10 compiles a program to take an array of NumPy's over."""
    if isinstance(a, jax.Array) or (dtype is None and not isinstance(a, np.ndarray | np.generic)):
        return jnp.asarray(a, dtype)
    made: Array = jax.device_put(np.asarray(a, dtype))
    return made


def copied(tree: Any) -> Any:
    """The tree with arrays that are nobody else's, which a program may be given for good."""
    return jax.tree.map(lambda a: jax.device_put(a, may_alias=False), tree)

"""What a compiled program holds by itself instead of being given."""

import jax
import jax.extend
import numpy as np


def constants(jaxpr, found):
    """All arrays that a program holds by itself, in its inner programs too."""
    found.extend(np.shape(c) for c in jaxpr.consts)
    for equation in jaxpr.jaxpr.eqns:
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else [value]:
                if isinstance(inner, jax.extend.core.ClosedJaxpr):
                    constants(inner, found)
        found.extend(np.shape(v.val) for v in equation.invars if hasattr(v, "val"))
    return found

"""Where a loss's curvature has no bound: near the optimum, by damped Newton steps, before a solver
with steps of one length begins."""

import numpy as np

from edgewise.centralised.smooth_part import Smooth

STEPS, HALVINGS = 200, 60
ARMIJO = 1e-4
NEAR = 1e-15  # of the objective, below which a promised fall is rounding


def newton_start(smooth: Smooth) -> np.ndarray:
    """(n,) the minimum of the smooth part, or as near as these steps come."""
    x = np.zeros(smooth.problem.size)
    value = smooth.value(x)
    for _ in range(STEPS):
        H, g = smooth.hessian(x), smooth.gradient(x)
        if H is None:
            break
        unit = np.sqrt(np.maximum(np.diag(H), 1e-300))
        way = -np.linalg.lstsq(H / unit / unit[:, None], g / unit, rcond=1e-14)[0] / unit
        slope = float(g @ way)
        if not slope < -NEAR * (1 + abs(value)):
            break
        for halving in range(HALVINGS):
            there = x + 0.5**halving * way
            with np.errstate(all="ignore"):
                found = smooth.value(there)
            if found <= value + ARMIJO * 0.5**halving * slope:
                break
        else:
            break
        x, value = there, found
    return x

"""Coordinates that a node's samples seldom touch: they catch up when they are touched.

Between two touches a step is x <- soft(a x + b, threshold), with one a and one b. Without a
threshold many of them are one linear map. With one they are while x keeps its sign: for how long is
found by halving. Within bounds they are that map, clipped: x goes one way, and where it meets a
bound it stays.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from typing import Any, NamedTuple

import numpy as np
from numba import njit


class Lazy(NamedTuple):
    """Of one node and round: after m steps x <- x power[m] + pull (U - mean) series[m]. Rows: of
    coordinates with ridge and penalty, and of the intercept."""

    power: Any  # (2, most + 1)
    series: Any  # (2, most + 1)
    pull: Any  # (2,) gamma, shrunk where there is a penalty
    threshold: Any  # (2,) shrunk too
    lower: Any  # (2,)
    upper: Any  # (2,)
    current: Any  # (n,) steps that a coordinate has made


def make_lazy(most: int, n: int) -> Lazy:
    """For up to `most` steps of n coordinates, not yet filled in."""
    tables = (np.empty((2, most + 1)) for _ in range(2))
    return Lazy(*tables, *(np.empty(2) for _ in range(4)), np.empty(n, np.int64))


@njit
def begin_lazy(lazy, node, i, ridge):
    """Before the first step of node i."""
    lazy.current[:] = 0
    lazy.pull[0], lazy.pull[1] = node.gamma[i] * node.shrink[i], node.free[i]
    lazy.threshold[0], lazy.threshold[1] = node.threshold[i] * node.shrink[i], 0
    lazy.lower[0], lazy.upper[0] = node.lower[i], node.upper[i]
    lazy.lower[1], lazy.upper[1] = -np.inf, np.inf
    for free in range(2):
        a = lazy.pull[free] * (node.rate[i] - (0.0 if free else ridge))
        lazy.power[free, 0], lazy.series[free, 0] = 1, 0
        for m in range(1, node.steps[i] + 1):
            lazy.power[free, m] = a * lazy.power[free, m - 1]
            lazy.series[free, m] = a * lazy.series[free, m - 1] + 1


@njit
def soft(y, threshold):
    return y - min(max(y, -threshold), threshold)


@njit
def softly(power, series, x, force, threshold, m):
    """x after m steps with a threshold."""
    while m > 0:
        if x == 0:
            x = soft(force, threshold)
            if x == 0:
                return x
            m -= 1
            continue
        sign = 1.0 if x > 0 else -1.0
        drift = force - sign * threshold
        end = power[m] * x + drift * series[m]
        if end * sign > 0:  # it goes one way, towards where it would rest
            return end
        kept, lost = 0, m  # steps after which the sign is the same, and is not
        while lost - kept > 1:
            middle = (kept + lost) // 2
            if (power[middle] * x + drift * series[middle]) * sign > 0:
                kept = middle
            else:
                lost = middle
        x = soft(power[1] * (power[kept] * x + drift * series[kept]) + force, threshold)
        m -= lost
    return x


@njit
def catch_up(lazy, x, mean, U, c, t, free):
    """Coordinate c after t steps; free: 1 if it is the intercept."""
    m, force = t - lazy.current[c], lazy.pull[free] * (U[c] - mean[c])
    power, series, threshold = lazy.power[free], lazy.series[free], lazy.threshold[free]
    if threshold > 0:
        x[c] = softly(power, series, x[c], force, threshold, m)
    elif m > 0:
        lower, upper = lazy.lower[free], lazy.upper[free]
        begin = x[c]
        if begin < lower or begin > upper:  # the first step brings it within bounds
            begin, m = min(max(power[1] * begin + force, lower), upper), m - 1
        x[c] = min(max(power[m] * begin + force * series[m], lower), upper)
    lazy.current[c] = t


@njit
def catch_up_all(lazy, x, mean, U, t, bias):
    for c in range(len(x)):
        catch_up(lazy, x, mean, U, c, t, int(c == bias))


@njit
def touch(lazy, x, mean, U, c, t, free, change, K):
    """Step t of a coordinate of the sample."""
    y = lazy.power[free, 1] * x[c] + lazy.pull[free] * (U[c] - mean[c] - change)
    x[c] = min(max(soft(y, lazy.threshold[free]), lazy.lower[free]), lazy.upper[free])
    mean[c] += change / K
    lazy.current[c] = t + 1

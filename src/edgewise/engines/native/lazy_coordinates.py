"""Coordinates that a node's samples seldom touch: they catch up when they are touched.

Between two touches a step is x <- soft(a x + b, threshold), with one a and one b. Without a
threshold many of them are one linear map. With one they are while x keeps its sign: for how long, a
logarithm tells. Within bounds they are that map, clipped: x goes one way, and where it meets a
bound it stays.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from edgewise.engines.native.vectors import unowned

CONTRACTED = {"contract", "nsz"}


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


class Kind(NamedTuple):
    """Of some coordinates, rows of `Lazy`."""

    power: Any
    series: Any
    pull: Any
    threshold: Any
    lower: Any
    upper: Any


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
def until_zero(a, x, drift, m):
    """About how many of m steps x <- a x + drift take x no further than zero."""
    steps = -x / drift if drift != 0 else np.inf
    if 0 < a < 1:
        rest = drift / (1 - a)
        left = rest / (rest - x) if rest != x else 1.0
        steps = np.log(left) / np.log(a) if left > 0 else np.inf
    return np.int64(min(max(steps, 0), m - 1))


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
        kept = until_zero(power[1], x, drift, m)
        while kept > 0 and (power[kept] * x + drift * series[kept]) * sign <= 0:
            kept -= 1
        while kept + 1 < m and (power[kept + 1] * x + drift * series[kept + 1]) * sign > 0:
            kept += 1
        x = soft(power[1] * (power[kept] * x + drift * series[kept]) + force, threshold)
        m -= kept + 1
    return x


@njit
def of_kind(lazy, free):
    """What coordinates of a kind have in common; free: 1 for the intercept's."""
    tables = unowned(lazy.power[free]), unowned(lazy.series[free])
    return Kind(*tables, lazy.pull[free], lazy.threshold[free], lazy.lower[free], lazy.upper[free])


@njit(forceinline=True)
def later(kind, x, force, m):
    """x after m steps, of which none was its own."""
    if kind.threshold > 0:
        if m == 1:
            return soft(kind.power[1] * x + force, kind.threshold)
        if x == 0 and abs(force) <= kind.threshold:
            return x
        return softly(kind.power, kind.series, x, force, kind.threshold, m)
    if m > 0 and (x < kind.lower or x > kind.upper):  # the first step brings it within bounds
        x, m = min(max(kind.power[1] * x + force, kind.lower), kind.upper), m - 1
    return min(max(kind.power[m] * x + force * kind.series[m], kind.lower), kind.upper)


@njit(fastmath=CONTRACTED)
def catch_up(kind, current, x, mean, U, columns, values, t):
    """Coordinates of a sample after t steps; its margin."""
    z = 0.0
    for q in range(len(columns)):
        c = columns[q]
        m = t - current[c]
        if m > 0:
            x[c] = later(kind, x[c], kind.pull * (U[c] - mean[c]), m)
            current[c] = t
        z += values[q] * x[c]
    return z


@njit(fastmath=CONTRACTED)
def touch(kind, current, x, mean, U, columns, values, t, change, K):
    """Step t of a sample's coordinates."""
    part, a = change / K, kind.power[1]
    for q in range(len(columns)):
        c = columns[q]
        y = a * x[c] + kind.pull * (U[c] - mean[c] - change * values[q])
        x[c] = min(max(soft(y, kind.threshold), kind.lower), kind.upper)
        mean[c] += part * values[q]
        current[c] = t + 1


@njit(fastmath=CONTRACTED)
def catch_up_all(kind, current, x, mean, U, many, t):
    """The first so many coordinates."""
    for c in range(many):
        m = t - current[c]
        if m > 0:
            x[c] = later(kind, x[c], kind.pull * (U[c] - mean[c]), m)
            current[c] = t

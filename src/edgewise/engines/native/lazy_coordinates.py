"""Coordinates that a node's samples seldom touch: they catch up when they are touched.

Between two touches a step is x <- soft(a x + b, threshold), with one a and one b. Without a
threshold many of them are one linear map. With one they are while x keeps its sign: for how long, a
logarithm tells. Within bounds they are that map, clipped: x goes one way, and where it meets a
bound it stays. All of it needs 0 < a < 1, as it is where eta is less than 1 / ridge.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload

from edgewise.engines.native.vectors import unowned

CONTRACTED = {"contract", "nsz"}
# columns of `EachLazy.numbers`: gamma, shrunk by the penalty; log a; 1 - a; and what clips
PULL, LOG, LESS, THRESHOLD, LOWER, UPPER, NUMBERS = range(7)


class Lazy(NamedTuple):
    """Of one node and round: after m steps x <- x powers[m, 0] + pull (U - mean) powers[m, 1].
    Leading: coordinates with ridge and penalty, and the intercept."""

    powers: Any  # (2, most + 1, 2)
    pull: Any  # (2,) gamma, shrunk where there is a penalty
    threshold: Any  # (2,) shrunk too
    lower: Any  # (2,)
    upper: Any  # (2,)
    current: Any  # (n,) steps that a coordinate has made
    point: Any  # (n, 2) x, and U - mean


class EachLazy(NamedTuple):
    """The same, where each coordinate has numbers of its own."""

    numbers: Any  # (v, n, NUMBERS) of all nodes
    current: Any
    point: Any


class Kind(NamedTuple):
    """Of some coordinates, an entry of `Lazy`."""

    powers: Any
    pull: Any
    threshold: Any
    lower: Any
    upper: Any


class EachKind(NamedTuple):
    numbers: Any  # (n, NUMBERS) of one node


def make_lazy(most: int, n: int, dtype: Any, numbers: Any = None) -> Lazy | EachLazy:
    """For up to `most` steps of n coordinates, not yet filled in."""
    current, point = np.empty(n, np.int32), np.empty((n, 2), dtype)
    if numbers is not None:
        return EachLazy(numbers, current, point)
    return Lazy(np.empty((2, most + 1, 2)), *(np.empty(2) for _ in range(4)), current, point)


def begin_lazy(lazy, node, i, ridge):
    """What coordinates have in common before the first step of node i: the usual, the intercept."""


def numbers_of(kind, c):
    """a, pull, threshold, lower, upper of a coordinate."""


def after(kind, c, m):
    """What multiplies x, and the force, in m steps."""


def each_coordinate(eta: Any, total: Any, ridge: Any, terms: Any) -> np.ndarray:
    """(v, n, NUMBERS) from steps and sums of rho, (v, 1) or (v, n) each as ridge may be; terms: of
    the penalties the weights of |x|_1 and |x|^2 / 2, and the bounds."""
    l1, l2, lower, upper = terms
    pull = 1 / (1 / eta + total + l2)
    less = (total + l2 + ridge) * pull  # 1 - a itself would lose digits
    numbers = pull, np.log1p(-less), less, pull * l1, lower, upper
    return np.stack(np.broadcast_arrays(*numbers), -1)


@njit
def kind_of(lazy, free):
    """free: 1 for the intercept's."""
    return Kind(
        unowned(lazy.powers[free]),
        lazy.pull[free],
        lazy.threshold[free],
        lazy.lower[free],
        lazy.upper[free],
    )


@overload(begin_lazy)
def begin_any(lazy, node, i, ridge):
    if lazy.instance_class is EachLazy:

        def begin(lazy, node, i, ridge):
            kind = EachKind(unowned(lazy.numbers[i]))
            return kind, kind

        return begin

    def begin(lazy, node, i, ridge):
        lazy.pull[0], lazy.pull[1] = node.gamma[i] * node.shrink[i], node.free[i]
        lazy.threshold[0], lazy.threshold[1] = node.threshold[i] * node.shrink[i], 0
        lazy.lower[0], lazy.upper[0] = node.lower[i], node.upper[i]
        lazy.lower[1], lazy.upper[1] = -np.inf, np.inf
        for free in range(2):
            a, made = lazy.pull[free] * (node.rate[i] - (0.0 if free else ridge)), lazy.powers[free]
            made[0, 0], made[0, 1] = 1, 0
            for m in range(1, node.steps[i] + 1):
                made[m, 0], made[m, 1] = a * made[m - 1, 0], a * made[m - 1, 1] + 1
        return kind_of(lazy, 0), kind_of(lazy, 1)

    return begin


def is_each(kind: types.BaseNamedTuple) -> bool:
    return kind.instance_class is EachKind


@overload(numbers_of)
def any_numbers(kind, c):
    if is_each(kind):

        def numbers(kind, c):
            own = kind.numbers
            within = own[c, LOWER], own[c, UPPER]
            return 1 - own[c, LESS], own[c, PULL], own[c, THRESHOLD], *within

        return numbers

    def common(kind, c):
        return kind.powers[1, 0], kind.pull, kind.threshold, kind.lower, kind.upper

    return common


@overload(after)
def after_any(kind, c, m):
    if is_each(kind):

        def each(kind, c, m):
            gone = np.expm1(m * kind.numbers[c, LOG])
            less = kind.numbers[c, LESS]
            return 1 + gone, -gone / less if less > 0 else float(m)

        return each

    return lambda kind, c, m: (kind.powers[m, 0], kind.powers[m, 1])


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
def moved_on(kind, c, x, drift, m):
    """x after m steps x <- a x + drift."""
    power, series = after(kind, c, m)
    return power * x + drift * series


@njit
def softly(kind, c, x, force, threshold, m):
    """x after m steps with a threshold, also through zero."""
    a = numbers_of(kind, c)[0]
    while m > 0:
        if x == 0:
            x = soft(force, threshold)
            if x == 0:
                return x
            m -= 1
            continue
        sign = 1.0 if x > 0 else -1.0
        drift = force - sign * threshold
        end = moved_on(kind, c, x, drift, m)
        if end * sign > 0:
            return end
        kept = until_zero(a, x, drift, m)
        while kept > 0 and moved_on(kind, c, x, drift, kept) * sign <= 0:
            kept -= 1
        while kept + 1 < m and moved_on(kind, c, x, drift, kept + 1) * sign > 0:
            kept += 1
        x = soft(a * moved_on(kind, c, x, drift, kept) + force, threshold)
        m -= kept + 1
    return x


@njit(forceinline=True)
def later(kind, c, x, G, m):
    """x after m steps, of which none was its own; G = U - mean."""
    a, pull, threshold, lower, upper = numbers_of(kind, c)
    force = pull * G
    if threshold > 0:
        power, series = after(kind, c, m)
        sign = 1.0 if (x if x != 0 else force) > 0 else -1.0
        end = power * x + (force - sign * threshold) * series
        if end * sign > 0:  # it goes one way, towards where it would rest
            return end
        if abs(force) <= threshold:  # that is zero
            return 0.0
        return softly(kind, c, x, force, threshold, m)
    if m > 0 and (x < lower or x > upper):  # the first step brings it within bounds
        x, m = min(max(a * x + force, lower), upper), m - 1
    power, series = after(kind, c, m)
    return min(max(power * x + force * series, lower), upper)


@njit(forceinline=True)
def rests(kind, c, x, G):
    """Whether no number of steps moves it from zero: with a threshold so are most."""
    _, pull, threshold, _, _ = numbers_of(kind, c)
    return threshold > 0 and x == 0 and abs(pull * G) <= threshold


@njit(forceinline=True)
def one_step(kind, c, x, G):
    a, pull, threshold, lower, upper = numbers_of(kind, c)
    y = a * x + pull * G
    return min(max(soft(y, threshold), lower), upper)


@njit(fastmath=CONTRACTED)
def catch_up(kind, current, point, columns, values, t):
    """Coordinates of a sample after t steps; its margin."""
    z = 0.0
    for q in range(len(columns)):
        c = columns[q]
        m = t - current[c]
        if m > 0:
            point[c, 0] = later(kind, c, point[c, 0], point[c, 1], m)
            current[c] = t
        z += values[q] * point[c, 0]
    return z


@njit(fastmath=CONTRACTED)
def touch(kind, current, point, columns, values, t, change, K):
    """Step t of a sample's coordinates."""
    part = change / K
    for q in range(len(columns)):
        c = columns[q]
        point[c, 0] = one_step(kind, c, point[c, 0], point[c, 1] - change * values[q])
        point[c, 1] -= part * values[q]
        current[c] = t + 1

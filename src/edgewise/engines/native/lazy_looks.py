"""Whether a node with lazy coordinates has settled: `methods.local_training.settled`, whose two
lengths take a pass over all coordinates.

Most looks need none. A step goes at least as far as in its sample's coordinates, and the way since
the last message is no longer than that without any sample, and what samples have added to it: steps
bring no two models further apart, so that is at most what their gradients come to.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
import numpy as np
from numba import njit

from edgewise.engines.native.lazy_coordinates import CONTRACTED, later, one_step, rests

ROUNDING = 1.01


@njit(fastmath=CONTRACTED)
def undisturbed(kind, point, first, last, steps):
    """How far so many steps take coordinates first..last-1, squared, if none is a sample's: no
    fewer take them further."""
    way = 0.0
    for c in range(first, last):
        x, G = point[c, 0], point[c, 1]
        if not rests(kind, c, x, G):
            way += (later(kind, c, x, G, steps) - x) ** 2
    return way


@njit(fastmath=CONTRACTED)
def own_move(kind, point, columns, values, change):
    """How far a sample's step takes its coordinates, squared: to be asked before it does."""
    moved = 0.0
    for q in range(len(columns)):
        c = columns[q]
        x, G = point[c, 0], point[c, 1]
        moved += (one_step(kind, c, x, G - change * values[q]) - x) ** 2
    return moved


@njit(fastmath=CONTRACTED | {"reassoc"})
def length(values, there):
    """Of a sample's row, with an intercept if there is one."""
    square = 0.0
    for q in range(len(values)):
        square += values[q] * values[q]
    return np.sqrt(square + there)


@njit
def may_settle(node, i, moved, farthest):
    """Whether a move of which this is a part, squared, may be small beside a way of at most so
    much."""
    pull = ROUNDING * node.enough[i] * node.gamma[i] * node.degree[i]
    return moved <= (pull * farthest) ** 2


@njit(fastmath=CONTRACTED)
def look(kind, current, point, before, first, last, t):
    """Coordinates after t steps. If the next is no sample's, how far it takes them, and how far
    they are then from `before`, both squared."""
    moved, way = 0.0, 0.0
    for c in range(first, last):
        x, G, m = point[c, 0], point[c, 1], t - current[c]
        if rests(kind, c, x, G):
            way += before[c] ** 2
            continue
        if m > 0:
            x = later(kind, c, x, G, m)
            point[c, 0], current[c] = x, t
        new = one_step(kind, c, x, G)
        moved += (new - x) ** 2
        way += (new - before[c]) ** 2
    return moved, way


@njit(fastmath=CONTRACTED)
def correction(kind, point, before, columns, values, change):
    """What a sample's step adds to both: to be taken before it is."""
    moved, way = 0.0, 0.0
    for q in range(len(columns)):
        c = columns[q]
        x, G = point[c, 0], point[c, 1]
        plain, new = one_step(kind, c, x, G), one_step(kind, c, x, G - change * values[q])
        moved += (new - x) ** 2 - (plain - x) ** 2
        way += (new - before[c]) ** 2 - (plain - before[c]) ** 2
    return moved, way

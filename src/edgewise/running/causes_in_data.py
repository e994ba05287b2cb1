"""Causes that lie in the data or the loss: see `explanation`, which asks them in turn."""

import numpy as np

from edgewise.data.shards import Shards
from edgewise.problem.common_points import conflict
from edgewise.running.ending import (
    ALIKE,
    Ending,
    closest_columns,
    column_sizes,
    column_spread,
    row_lengths,
)
from edgewise.running.separation import growth

OVERFLOW = {"float64": 1e140, "float32": 1e15}  # beyond, squares and their sums are none
UNEVEN_COLUMNS, VAST_COLUMNS = 10.0, 1e4  # Newton's method takes what lies between
UNEVEN_ROWS, VAST_ROWS = 5.0, 100.0
FAR_COLUMNS = 10.0  # times its spread, from zero
SHARP = 30.0  # a loss's curvature
WIDE_ENOUGH, NEWTONS_WIDTH = 0.1, 1e-3  # that steps can do with, and Newton's method
SCALE = "standardise the columns (ew.standardize)"


def numbers_too_large(e: Ending) -> str:
    if e.rows is None:
        return ""
    largest = column_sizes(e.rows, np.inf)
    j = int(np.argmax(largest))
    if not largest[j] > OVERFLOW[e.dtype]:
        return ""
    return (
        f"{e.column(j)} has numbers up to {largest[j]:.0e}, whose squares {e.dtype} cannot hold: "
        "divide it by its largest, or leave it out"
    )


def no_common_point(e: Ending) -> str:
    found = conflict(e.problem.penalty, e.problem.size - e.problem.free)
    return "" if found is None else f"{found}: loosen one of them"


def sharp_loss(e: Ending) -> str:
    """A corner so narrow that steps are short, and Hessians hold nowhere."""
    loss = e.problem.loss
    width = getattr(loss, "width", None)
    if not loss.linear or width is None or not loss.curvature() >= SHARP:
        return ""
    if e.nearly or (e.method.second_order and not (e.diverged or e.still)):
        return ""
    what = f"the loss turns within a width of {width:.0e}, which makes every step short: "
    if e.method.second_order:
        return f"{what}give a width of {NEWTONS_WIDTH:.0e}"
    wider = f"give a width of {WIDE_ENOUGH}"
    of = "" if width >= NEWTONS_WIDTH else f" and a width of {NEWTONS_WIDTH:.0e}"
    return f"{what}take {e.newton}{of}, or {wider}" if e.newton else what + wider


def separable_classes(e: Ending) -> str:
    """No ridge, no penalty, and a direction that is wrong about no sample: along it a logistic loss
    falls for ever."""
    if e.problem.classes is None or e.rows is None or e.problem.penalised:
        return ""
    found = growth(e.problem, e.rows, e.x, e.column)
    if not found.cause:
        return ""
    out = "leave it out, or " if found.few else ""
    return f"{found.cause}: {out}give a ridge, as Logistic(ridge=1e-3), or a penalty"


def widths(e: Ending) -> tuple[int, int, float]:
    """The widest column, the thinnest, and how many times as wide it is; rows far longer than the
    others left out, which are another cause."""
    if e.rows is None:
        return 0, 0, 1.0
    length = row_lengths(e.rows)
    usual = e.rows[length <= UNEVEN_ROWS * np.median(length)]
    size = column_sizes(usual, 2)
    known = np.flatnonzero(size > 0)
    if not len(known):
        return 0, 0, 1.0
    wide, thin = known[size[known].argmax()], known[size[known].argmin()]
    return int(wide), int(thin), float(size[wide] / size[thin])


def vast_columns(e: Ending) -> str:
    """So uneven that no method gets along."""
    return uneven_columns(e, VAST_COLUMNS)


def uneven_columns(e: Ending, least: float = UNEVEN_COLUMNS) -> str:
    wide, thin, times = widths(e)
    if not times > least or (e.method.second_order and times < VAST_COLUMNS):
        return ""
    other = f", or take {e.newton}, which minds no units" * bool(e.newton and times < VAST_COLUMNS)
    return f"{e.column(wide)} is {times:.2g} times as wide as {e.column(thin)}: {SCALE}{other}"


def uneven_rows(e: Ending) -> str:
    if e.rows is None or not isinstance(e.problem.shards, Shards):
        return ""
    length = row_lengths(e.rows)
    k = int(np.argmax(length))
    times = length[k] / length.mean()
    least = VAST_ROWS if e.method.samples is None else UNEVEN_ROWS
    # of a few samples a mean holds the longest row as well
    usual = np.median(length)
    if not (times > least or (usual > 0 and length[k] / usual > VAST_ROWS)):
        return ""
    times = length[k] / usual if usual > 0 else times
    at = f"{e.problem.shards.place(k)} is {times:.2g} times as long as the usual row"
    if times > VAST_ROWS or e.method.second_order:
        return f"{at}: is it right? Leave it out, or give rows one length"
    other = e.newton or "pdmm"
    return f"{at}, and steps go by the longest: take {other}, or give rows one length"


def far_columns(e: Ending) -> str:
    if e.method.second_order or e.rows is None:
        return ""
    middle, spread = column_spread(e.rows)
    known = np.flatnonzero(spread > 1e-9 * abs(middle))
    if not len(known):
        return ""
    far = abs(middle[known]) / spread[known]
    j = int(np.argmax(far))
    if not far[j] > FAR_COLUMNS:
        return ""
    ways = [SCALE] * (not hasattr(e.rows, "indptr")) + [f"take {e.newton}"] * bool(e.newton)
    if not ways:  # sparse columns are not centred
        return ""
    at = f"{e.column(int(known[j]))} lies {far[j]:.2g} times its spread away from zero"
    return f"{at}: {', or '.join(ways)}"


def one_class(e: Ending) -> str:
    p = e.problem
    if p.classes is None or e.rows is None or p.loss.ridge or p.penalised:
        return ""
    alone = [i for i in range(p.nodes) if np.ptp(p.labels[p.own(i)]) == 0]
    if not alone:
        return ""
    others = f" and {len(alone) - 1} more" if len(alone) > 1 else ""
    what = "has" if len(alone) == 1 else "have"
    ridge = "give a ridge, as Logistic(ridge=1e-2)"
    return (
        f"node {alone[0]}{others} {what} samples of one class only, to which a model as large as "
        f"can be is best: " + (f"take {e.newton}, or {ridge}" if e.newton else ridge)
    )


def columns_alike(e: Ending) -> str:
    """Columns of which one is almost, and not quite, what others add up to."""
    if e.rows is None:
        return ""
    least = ALIKE**2 if e.method.second_order else ALIKE
    ridge, centred = float(e.problem.loss.ridge), e.problem.intercept
    i, j, how = closest_columns(e.rows, ridge, centred, least)
    if not how:
        return ""
    return f"{e.column(i)} and {e.column(j)}{how}: leave one out, or give a ridge, as ridge=1e-2"

"""Why a run ended short of its goal, as far as what is at hand shows, and one thing to try.

A cause is a function of an `Ending` that gives a sentence, or nothing. They are asked in order,
and the first that sees something speaks: what no number of rounds would mend, then what rounds are
left, then what makes them so many.
"""

from collections.abc import Callable

import numpy as np

from edgewise.problem.common_points import conflict
from edgewise.running.ending import (
    LOOKS,
    Ending,
    column_sizes,
    falls_for_ever,
    rounded,
    row_lengths,
    spectral_gap,
)

MOST_NODES = 1500  # of a graph whose gap is worked out
MANY_TIMES = 4  # the rounds that were run, from which on they are not what is missing
FLOOR = 1e4  # roundings of the largest residual that a floor may be
OVERFLOW = {"float64": 1e140, "float32": 1e15}  # beyond, squares and their sums are none
UNEVEN_COLUMNS, UNEVEN_ROWS, THIN_GRAPH = 10.0, 5.0, 0.03


def explain(ending: Ending) -> str:
    """The first cause that can be seen, and what to try; nothing where none can."""
    with np.errstate(all="ignore"):
        return next(filter(None, (cause(ending) for cause in CAUSES)), "")


# --- what no number of rounds would mend ----------------------------------------------------------


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


def step_too_long(e: Ending) -> str:
    if e.diverged and e.method.second_order:
        return "it has no step to shorten, try another method, as pdmm or lt-saga-pd"
    shorter = f"eta={e.step / 4:.3g}"
    if e.diverged:
        return f'the step is too long, try {shorter}, or "auto"'
    first = e.trace["residual"][0]
    if e.method.second_order or len(e.trace) < LOOKS or not e.residual >= first:
        return ""
    return f'no less than at the start, so that the step may be too long, try {shorter}, or "auto"'


def noisy_gradients(e: Ending) -> str:
    if e.method.exactness != "no":
        return ""
    if e.method.samples is None:
        return 'it ends near the optimum alone, however long it runs: take pdmm, or method="auto"'
    near = "its gradients are sampled and stay noisy, so that it ends near the optimum alone: "
    if e.problem.stream is not None:
        return f"{near}a shorter step ends nearer, as eta={e.step / 4:.3g}"
    return near + "use saga-pd or pdmm"


def ends_elsewhere(e: Ending) -> str:
    if e.method.exactness.startswith("to ") and e.still:
        return "it has values in the place of gradients, which leave it no nearer: use saga-pd"
    if e.lossy and e.still and not e.method.heals:
        name = type(e.method).__name__
        return f"messages were lost, and {name} does not recover from that: use saga-pd or pdmm"
    return ""


def rounding(e: Ending) -> str:
    eps = float(np.finfo(e.dtype).eps)
    if not e.still or e.residual > FLOOR * eps * np.nanmax(e.trace["residual"]):
        return ""
    at = f"it stays at {e.residual:.0e}, which is as near as {e.dtype} comes: "
    if e.dtype == "float32":
        return at + 'take dtype="float64"'
    return at + f"ask for a tol of {3 * e.residual:.0e}"


def separable_classes(e: Ending) -> str:
    """No ridge, no penalty, and a model that is right about every sample: along it a logistic loss
    falls for ever."""
    p = e.problem
    free = not p.penalised and float(p.loss.ridge) == 0
    if not free or p.classes is None or e.rows is None or not np.isfinite(e.x).all():
        return ""
    if not p.loss.linear or not falls_for_ever(p, p.loss, e.rows, e.x):
        return ""
    return (
        "the classes can be told apart without a mistake, and nothing keeps the model small, so "
        "that it grows for ever: give a ridge, as Logistic(ridge=1e-3), or a penalty"
    )


# --- how much is missing, and what makes it so much -----------------------------------------------


def too_few_rounds(e: Ending) -> str:
    run = float(e.trace["rounds"][-1])
    if e.still or not e.rounds_left <= MANY_TIMES * run:
        return ""
    tenfold = -np.log(10) / e.slope
    return (
        f"it still falls, tenfold in {rounded(tenfold)} rounds: about {rounded(e.rounds_left)} "
        f"more would do, rounds={rounded(1.2 * e.rounds_left + run)}"
    )


def uneven_columns(e: Ending) -> str:
    if e.method.second_order or e.rows is None:
        return ""
    size = column_sizes(e.rows, 2, centred=e.problem.intercept)
    known = np.flatnonzero(size > 0)
    if not len(known):
        return ""
    wide, thin = known[size[known].argmax()], known[size[known].argmin()]
    if not size[wide] > UNEVEN_COLUMNS * size[thin]:
        return ""
    other = ', or take method="auto", which minds no units' if e.newton_fits else ""
    return (
        f"{e.column(int(wide))} is {size[wide] / size[thin]:.2g} times as wide as "
        f"{e.column(int(thin))}: standardise the columns (--scale){other}"
    )


def uneven_rows(e: Ending) -> str:
    if e.method.samples is None or e.method.second_order or e.rows is None:
        return ""
    length = row_lengths(e.rows)
    k = int(np.argmax(length))
    if not length[k] > UNEVEN_ROWS * length.mean():
        return ""
    node = int(np.searchsorted(e.problem.shards.first, k, side="right") - 1)
    other = 'take method="auto"' if e.newton_fits else "take method='pdmm'"
    return (
        f"a row of node {node} is {length[k] / length.mean():.2g} times as long as the mean row, "
        f"and steps go by the longest: {other}, or give rows one length (--normalize)"
    )


def one_class(e: Ending) -> str:
    p = e.problem
    if p.classes is None or e.rows is None or p.loss.ridge or p.penalised:
        return ""
    alone = [i for i in range(p.nodes) if np.ptp(p.labels[p.own(i)]) == 0]
    if not alone:
        return ""
    others = f" and {len(alone) - 1} more" if len(alone) > 1 else ""
    what = "has" if len(alone) == 1 else "have"
    return (
        f"node {alone[0]}{others} {what} samples of one class only, to which a model as large as "
        "can be is best: give a ridge, as Logistic(ridge=1e-3)"
    )


def thin_graph(e: Ending) -> str:
    if e.graph.nodes > MOST_NODES:
        return ""
    gap = spectral_gap(e.graph)
    if gap > THIN_GRAPH:
        return ""
    V = e.graph.nodes
    edges = min(3 * V, V * (V - 1) // 2)
    return (
        f"news take long over this graph of {V} nodes (spectral gap {gap:.1g}): add edges, as "
        f"Graph.random({V}, {edges}) has"
    )


def stalled(e: Ending) -> str:
    other = 'method="auto"' if e.newton_fits else "another method, as pdmm"
    if e.still:
        return f"it stays at {e.residual:.0e}, for no cause that can be seen from here: try {other}"
    if np.isfinite(e.rounds_left):
        return (
            f"it falls slowly, tenfold in {rounded(-np.log(10) / e.slope)} rounds, and would take "
            f"{rounded(e.rounds_left)} more: try {other}"
        )
    return ""


CAUSES: tuple[Callable[[Ending], str], ...] = (
    numbers_too_large,
    no_common_point,
    step_too_long,
    noisy_gradients,
    ends_elsewhere,
    rounding,
    separable_classes,
    too_few_rounds,
    uneven_columns,
    uneven_rows,
    one_class,
    thin_graph,
    stalled,
)

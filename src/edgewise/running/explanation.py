"""Why a run ended short of its goal, as far as what is at hand shows, and one thing to try.

A cause is a function of an `Ending` that gives a sentence, or nothing. They are asked in order,
and the first that sees something speaks: what no number of rounds would mend, then what rounds are
left, then what makes them so many.
"""

from collections.abc import Callable

import numpy as np

from edgewise.running.causes_in_data import (
    columns_alike,
    far_columns,
    no_common_point,
    numbers_too_large,
    one_class,
    separable_classes,
    sharp_loss,
    uneven_columns,
    uneven_rows,
    vast_columns,
)
from edgewise.running.ending import LOOKS, MANY_TIMES, Ending, rounded, spectral_gap

MOST_NODES = 1500  # of a graph whose gap is worked out
FEW, USUAL = 300, 5000  # rounds that are worth no other advice, and what `solve` gives by itself
FLOOR = 1e4  # roundings of the largest residual that a floor may be
OUT_OF_REACH = 0.1  # of such a rounding: no run comes there
FAR_OFF = 20.0  # times the rule's, of a step that was given
THIN_GRAPH = 0.03
NOT_CONVEX = {"the optimum": "a stationary point", "pdmm": "pd"}  # what is said, and advised


def explain(ending: Ending) -> str:
    """The first cause that can be seen, and what to try; nothing where none can."""
    with np.errstate(all="ignore"):
        said = next(filter(None, (cause(ending) for cause in CAUSES)), "")
    if not ending.problem.convex:
        for word, instead in NOT_CONVEX.items():
            said = said.replace(word, instead)
    return said


# --- what no number of rounds would mend ----------------------------------------------------------


def lost_for_good(e: Ending) -> str:
    f, here = e.faults, f" or {e.newton}" if e.newton else ""
    if f is None or e.nearly:
        return ""
    if f.liars is not None:
        told = "with liars no method comes to the optimum of all: look at the honest nodes"
        return told if has_radius(e) else f"{told}; lt-saga-pd with a radius bounds what they do"
    if f.harms and not e.method.heals:
        name = type(e.method).__name__
        return f"{name} does not recover from what the faults took away: use pdmm{here}"
    if f.compresses and not f.feedback:
        what = "so few numbers a message" if f.keep is not None else f"messages of {f.bits} bits"
        other = "leave both out" if f.keep is not None and f.bits is not None else "send more"
        instead = f"{other}, as these faults leave no room for feedback"
        return f"{what} without feedback keep every method from the optimum: " + (
            instead if f.forgets else "set feedback=True"
        )
    return ""


def has_radius(e: Ending) -> bool:
    return getattr(e.asked, "radius", None) is not None


def edges_give_way(e: Ending) -> str:
    apart = e.trace["consensus"]
    if not has_radius(e) or e.diverged or not e.still or apart[-1] < 0.5 * apart[len(apart) // 2]:
        return ""
    return (
        "edges pull with all that their radius allows, so that models differ: give a larger "
        "radius, if all are honest"
    )


def step_too_long(e: Ending) -> str:
    if e.diverged and e.method.second_order:
        return "it has no step to shorten, try another method, as pdmm or lt-saga-pd"
    first = e.trace["residual"][0]
    looked = len(e.trace) >= LOOKS or e.given_eta > FAR_OFF
    grown = looked and e.residual >= first and not e.method.second_order
    if not (e.diverged or grown) or not np.isfinite(e.step):
        return ""
    if e.given_eta > 1:
        what = f"eta={e.step:.3g} was given, where the rule takes {e.step / e.given_eta:.3g}: "
        return f'the step is too long, {what}leave it out (eta="auto")'
    if given_steps(e):
        return given_steps(e)
    shorter = f"try eta={e.step / 4:.3g}"
    if e.diverged:
        return f"the step is too long, {shorter}"
    return f"no less than at the start, so that the step may be too long, {shorter}"


def noisy_gradients(e: Ending) -> str:
    if e.method.exactness != "no":
        return ""
    if e.method.samples is None:
        return 'it ends near the optimum alone, however long it runs: take pdmm, or method="auto"'
    near = "its gradients are sampled and stay noisy, so that it ends near the optimum alone: "
    if e.problem.stream is not None:
        return f"{near}a shorter step ends nearer, as eta={e.step / 4:.3g}"
    return near + "use saga-pd or pdmm"


def floor_of_values(e: Ending) -> str:
    if e.method.exactness.startswith("to ") and e.still:
        return "it has values in the place of gradients, which leave it no nearer: use saga-pd"
    return ""


def rounding(e: Ending) -> str:
    digit = float(np.finfo(e.dtype).eps) * np.nanmax(e.trace["residual"])
    at_floor = e.still and e.residual <= FLOOR * digit
    if not at_floor and e.goal > OUT_OF_REACH * digit:
        return ""
    at = f"{e.goal:.0e} is nearer than {e.dtype} comes, of numbers as large as these"
    if at_floor:
        at = f"it stays at {e.residual:.0e}, which is as near as {e.dtype} comes"
    if e.dtype == "float32":
        return f'{at}: take dtype="float64"'
    return f"{at}: ask for a tol of {3 * e.residual if at_floor else FLOOR * digit:.0e}"


# --- how much is missing, and what makes it so much -----------------------------------------------


def too_few_looks(e: Ending) -> str:
    if e.looks_enough:
        return ""
    if e.budget is not None:
        what = f"the budget was {rounded(e.run)} rounds of this method, too few to tell its course"
        return f"{what}: try oracle_budget={rounded(100 * e.budget)}"
    many = max(USUAL, 10 * int(e.run))
    return f"too few rounds to tell its course: try rounds={many}, with tol it stops once there"


def too_few_rounds(e: Ending) -> str:
    few = max(MANY_TIMES * e.run, FEW)
    return "" if e.still or not e.rounds_left <= few else more_rounds(e)


def more_rounds(e: Ending) -> str:
    """By the slope at the end, and as many again, for most runs slow down."""
    falls = f"it still falls, tenfold in {rounded(-np.log(10) / e.slope)} rounds"
    more = f"about {rounded(e.rounds_left)} more would do at that rate, twice as many are safe"
    total = e.run + 2 * e.rounds_left
    give = f"rounds={rounded(total)}"
    if e.budget is not None:
        give = f"oracle_budget={rounded(e.budget * total / e.run)}"
    thin = thin_graph(e) if e.rounds_left > e.run else ""
    return f"{falls}: {more}, {give}" + (f"; {thin}" if thin else "")


def given_steps(e: Ending) -> str:
    """What the user gave in the place of a rule, far from what the rule comes to."""
    if e.given_eta < 1 / FAR_OFF:
        rule = e.step / e.given_eta
        return f'eta={e.step:.3g} is short, the rule takes {rule:.3g}: leave it out (eta="auto")'
    if e.given_rho > FAR_OFF or e.given_rho < 1 / FAR_OFF:
        much = "much" if e.given_rho > 1 else "little"
        return (
            f"rho is {e.given_rho:.1g} times what the rule takes, which makes edges pull too "
            f'{much}: leave it out (rho="auto")'
        )
    return ""


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
    other = e.newton or "another method, as pdmm"
    if not e.problem.convex and np.isfinite(e.step):
        other = f"a longer step, as eta={2 * e.step:.3g}"  # the rule's is for the worst curvature
    if e.still or not np.isfinite(e.rounds_left):
        return f"it stays at {e.residual:.0e}, for no cause that can be seen from here: try {other}"
    if e.rounds_left + e.run <= USUAL:
        return more_rounds(e) + (f", or {e.newton} for fewer" if e.newton else "")
    return (
        f"it falls slowly, tenfold in {rounded(-np.log(10) / e.slope)} rounds, and would take "
        f"{rounded(e.rounds_left)} more: try {other}"
    )


CAUSES: tuple[Callable[[Ending], str], ...] = (
    numbers_too_large,
    no_common_point,
    lost_for_good,
    vast_columns,
    sharp_loss,
    edges_give_way,
    step_too_long,
    noisy_gradients,
    floor_of_values,
    rounding,
    separable_classes,
    too_few_looks,
    too_few_rounds,
    given_steps,
    uneven_columns,
    uneven_rows,
    far_columns,
    one_class,
    thin_graph,
    columns_alike,
    stalled,
)

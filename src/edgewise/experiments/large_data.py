"""Figure 3: 8000 samples a node."""

from edgewise.experiments.claims import (
    Answer,
    Claim,
    ahead,
    compared,
    fastest,
    over_levels,
    within,
)
from edgewise.experiments.figure import Figure
from edgewise.experiments.lineup import OTHERS
from edgewise.experiments.oracle import NEVER, NOT_SVR, SVR
from edgewise.experiments.passages import ROUNDS, Curves, slowest

PAIR = ("GT-SVR", "Network-DANE")


def best_of_the_others(c: Curves, level: float) -> Answer:
    first = ahead(PAIR, tuple(m for m in OTHERS if m not in PAIR))(c, level)
    behind = compared(c.span("SVR-PD", level), slowest(c.span(m, level) for m in PAIR))
    if first.holds is False or behind.holds is False:
        return Answer(False, number=first.number)
    return Answer(first.holds and behind.holds, first.why or behind.why, first.number)


def stopping_changes_little(c: Curves, level: float) -> Answer:
    if c.alike(*SVR):
        return Answer(None, NEVER)
    plain, early = (c.span(m, level).high for m in SVR)
    return within(early / plain, 0.8, 1.25)


def asvr_is_ahead_at_first(c: Curves, part: float) -> Answer:
    """At levels from the start, 1, down to a divergence of 1e-2, 0."""
    level = (1e-2 / c.first("SVR-PD")) ** (1 - part)
    return compared(c.span("ASVR-PD", level), c.span("SVR-PD", level))


FIGURE = Figure(
    "large-data",
    "Many samples a node",
    "Fig. 3",
    (
        Claim("SVR-PD needs the fewest oracle calls", fastest(("SVR-PD",), NOT_SVR)),
        Claim("ours: the same in rounds", fastest(("SVR-PD",), NOT_SVR, unit=ROUNDS)),
        Claim(
            "GT-SVR and Network-DANE are the best of the older methods in calls, behind SVR-PD",
            over_levels(best_of_the_others, "best of the older over these two, in calls"),
        ),
        Claim(
            "SVR-PD with and without early stopping are almost the same from here on",
            over_levels(stopping_changes_little, "calls with over without"),
        ),
        Claim(
            "ASVR-PD is slightly better than SVR-PD down to 1e-2",
            over_levels(
                asvr_is_ahead_at_first,
                "SVR-PD over ASVR-PD, in calls, at parts of the way to 1e-2 that are left",
                (0.8, 0.6, 0.4, 0.2, 0.0),
            ),
        ),
    ),
    samples=8000,
)

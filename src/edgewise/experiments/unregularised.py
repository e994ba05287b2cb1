"""Figure 5: logistic regression without a ridge."""

import numpy as np

from edgewise.experiments.claims import (
    Answer,
    Claim,
    Judged,
    Setting,
    agreed,
    ahead,
    compared,
    fails,
    numbers,
    over_levels,
)
from edgewise.experiments.figure import Figure
from edgewise.experiments.lineup import LINEUP
from edgewise.experiments.oracle import NOT_SVR
from edgewise.experiments.passages import ROUNDS, Curves, quickest


def much_slower(setting: Setting) -> Judged:
    """In the same run: worse for all but one method in four, and a hundred times for some."""
    answers = []
    for here, there in setting.pairs("oracle", tuple(LINEUP)):
        worse = {m: here.part(m) / there.part(m) for m in LINEUP if m in here}
        known = [w for w in worse.values() if np.isfinite(w)]
        slower = sum(w > 1 for w in known)
        answers.append(Answer(slower >= 0.75 * len(known) and max(known) >= 100, number=max(known)))
    one = agreed(answers)
    return Judged(one.holds, f"what is left, over that with ridge, at most: {numbers(answers)}")


def svr_first_then_d2(c: Curves, level: float) -> Answer:
    found = ahead(("SVR-PD",), NOT_SVR)(c, level)
    if not found.holds:
        return found
    rest = quickest(c.span(m, level) for m in NOT_SVR if m != "D2" and m in c)
    second = compared(c.span("D2", level), rest)
    distant = compared(c.span("SVR-PD", level), c.span("D2", level), 1.5)
    if second.holds is False or distant.holds is False:
        return Answer(False, number=found.number)
    return Answer(second.holds and distant.holds, second.why or distant.why, found.number)


def fastest_in_rounds(c: Curves, level: float) -> Answer:
    return ahead(("SVR-PD",), NOT_SVR, unit=ROUNDS)(c, level)


UPPER = tuple(10.0 ** -np.arange(0.5, 5, 0.5))  # levels: none comes far

FIGURE = Figure(
    "unregularised",
    "No regularisation",
    "Fig. 5",
    (
        Claim("all is much slower, for some by over two orders of magnitude", much_slower),
        Claim(
            "SVR-PD is the fastest still in calls, D2 a distant second",
            over_levels(svr_first_then_d2, "best of the others over SVR-PD, in calls", UPPER),
        ),
        Claim(
            "ours: SVR-PD is the fastest in rounds",
            over_levels(fastest_in_rounds, "best of the others over SVR-PD, in rounds", UPPER),
        ),
        Claim("S-DIGing does not converge", fails(("S-DIGing",), tuple(LINEUP))),
    ),
    ridge=0.0,
)

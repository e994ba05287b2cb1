"""Figure 5: logistic regression without a ridge."""

import numpy as np

from edgewise.experiments.claims import Beside, Claim, Curves, Judged, amount
from edgewise.experiments.figure import Figure
from edgewise.experiments.lineup import LINEUP
from edgewise.experiments.ring import FALLEN

RIVALS = tuple(m for m in LINEUP if not m.startswith("SVR-PD"))


def much_slower(curves: Curves, beside: Beside) -> Judged:
    """At the same budget: worse for all but one method in four, and a hundred times for some."""
    regular = beside("oracle", tuple(LINEUP))
    worse = {
        m: (curves.last(m) / curves.first(m)) / (regular.last(m) / regular.first(m))
        for m in LINEUP
        if np.isfinite(regular.last(m)) and np.isfinite(curves.last(m))
    }
    most = max(worse, key=worse.__getitem__)
    slower = sum(w > 1 for w in worse.values())
    evidence = f"{slower} of {len(worse)} end higher; most {most}, {worse[most]:.1e} times"
    return slower >= 0.75 * len(worse) and worse[most] >= 100, evidence


def svr_first_then_d2(curves: Curves, _: Beside) -> Judged:
    level = curves.late(["SVR-PD"])
    own = curves.cost("SVR-PD", level)
    best, cost = curves.quickest(RIVALS, level)
    second = curves.cost("D2", level)
    evidence = f"to {level:.1e}: SVR-PD {amount(own)}, {best} {amount(cost)}, D2 {amount(second)}"
    return own < cost and best == "D2" and cost >= 1.5 * own, evidence


def diging_does_not_converge(curves: Curves, _: Beside) -> Judged:
    part = curves.last("S-DIGing") / curves.first("S-DIGing")
    return not part < FALLEN, f"S-DIGing ends at {part:.1e} of the start"


FIGURE = Figure(
    "unregularised",
    "No regularisation",
    "Fig. 5",
    (
        Claim("all is much slower, for some by over two orders of magnitude", much_slower),
        Claim("SVR-PD is the fastest still, D2 a distant second", svr_first_then_d2),
        Claim("S-DIGing does not converge", diging_does_not_converge),
    ),
    ridge=0.0,
)

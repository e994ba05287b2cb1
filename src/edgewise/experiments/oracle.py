"""Figure 1: divergence against oracle calls and against rounds, 2000 samples a node."""

import numpy as np

from edgewise.experiments.claims import Beside, Claim, Curves, Judged, amount, fastest
from edgewise.experiments.figure import Figure
from edgewise.experiments.lineup import LINEUP, OTHERS, PROPOSED

SVR = ("SVR-PD", "SVR-PD, early stopping")
STAR = (*SVR, "ASVR-PD")
REST = tuple(m for m in LINEUP if m not in STAR)


def dane_leads_the_others(curves: Curves, _: Beside) -> Judged:
    level = curves.late(["Network-DANE"])
    best, cost = curves.quickest(OTHERS, level)
    far, own = curves.quickest(PROPOSED, level)
    evidence = f"to {level:.1e}: {best} {amount(cost)}, {far} {amount(own)}"
    return best == "Network-DANE" and 2 * own <= cost, evidence


def edge_fails(curves: Curves, _: Beside) -> Judged:
    part = curves.last("EDGE") / curves.first("EDGE")
    return part > 0.1, f"EDGE ends at {part:.1e} of the divergence at the start"


def asvr_swings(curves: Curves, _: Beside) -> Judged:
    """Below a hundredth of the start it goes up by a quarter or more, again and again."""
    values = curves.curve("ASVR-PD").values
    low = values[values < 1e-2 * values[0]]
    rises = int((np.diff(np.log(low)) > np.log(1.25)).sum()) if len(low) > 1 else 0
    lowest = values.min() / values[0]
    return rises >= 3, f"{rises} rises of a quarter or more below 1 %, lowest {lowest:.1e}"


def rounds_alike(curves: Curves, _: Beside) -> Judged:
    """At the last round that all stochastic methods have: most others within a factor of ten of
    the best of ours, and none below it."""
    sampled = [m for m in LINEUP if m in curves and not LINEUP[m].whole]
    end = min(curves.traces[m]["rounds"][-1] for m in sampled)
    values = {m: curves.curve(m).value_at("rounds", end) for m in sampled}
    ours = min(v for m, v in values.items() if m in PROPOSED)
    others = sorted(v for m, v in values.items() if m in OTHERS)
    near = sum(v < 10 * ours for v in others)
    evidence = (
        f"after {end:,.0f} rounds ours {ours:.1e}, others {', '.join(f'{v:.1e}' for v in others)}"
    )
    return near > len(others) / 2 and ours < others[0], evidence


FIGURE = Figure(
    "oracle",
    "Divergence against oracle calls and rounds",
    "Fig. 1, Table 3",
    (
        Claim(
            "SVR-PD, with and without early stopping, and ASVR-PD need clearly fewer oracle calls "
            "than all other methods",
            fastest(STAR, REST, margin=1.5),
        ),
        Claim(
            "Network-DANE is the best of the older methods, far behind the best of the new",
            dane_leads_the_others,
        ),
        Claim("EDGE does not come to a reasonable objective", edge_fails),
        Claim("ASVR-PD oscillates once the divergence is low", asvr_swings),
        Claim(
            "by rounds most methods are alike, and the new ones end lower in the rounds allowed",
            rounds_alike,
        ),
        Claim(
            "SVR-PD and SVR-PD with early stopping are the best of all in oracle calls",
            fastest(SVR, tuple(m for m in LINEUP if m not in SVR)),
        ),
    ),
)

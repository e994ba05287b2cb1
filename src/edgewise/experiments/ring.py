"""Figure 4: a ring instead of a random graph."""

from edgewise.experiments.claims import Answer, Claim, compared, fails, fastest, over_pairs
from edgewise.experiments.figure import Figure
from edgewise.experiments.lineup import LINEUP
from edgewise.experiments.oracle import NOT_SVR
from edgewise.experiments.passages import ROUNDS, Curves


def ring_costs_little(here: Curves, there: Curves, level: float) -> Answer:
    """At most 1.5 times the calls of the random graph."""
    random = there.span("SVR-PD", level).times(1.5)
    found = compared(here.span("SVR-PD", level), random)
    return found._replace(number=found.number / 1.5)


FIGURE = Figure(
    "ring",
    "A ring of 50 nodes",
    "Fig. 4",
    (
        Claim(
            "the ring hardly slows SVR-PD down",
            over_pairs(
                ring_costs_little,
                "oracle",
                ("SVR-PD",),
                "calls on the random graph over the ring's",
            ),
        ),
        Claim(
            "SVR-PD is clearly (1.5 times) the fastest in calls",
            fastest(("SVR-PD",), NOT_SVR, margin=1.5),
        ),
        Claim("ours: the same in rounds", fastest(("SVR-PD",), NOT_SVR, 1.5, ROUNDS)),
        Claim("S-DIGing does not converge", fails(("S-DIGing",), tuple(LINEUP))),
        Claim("stochastic DGD does not converge", fails(("DGD",), tuple(LINEUP))),
    ),
    ring=True,
)

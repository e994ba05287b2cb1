"""Figure 4: a ring instead of a random graph."""

from edgewise.experiments.claims import Beside, Claim, Curves, Judged, amount, fastest
from edgewise.experiments.figure import Figure
from edgewise.experiments.lineup import LINEUP

FALLEN = 0.1  # of the divergence at the start: a run that does not come here has not converged


def ring_costs_little(curves: Curves, beside: Beside) -> Judged:
    random = beside("oracle", ["SVR-PD"])
    level = max(curves.late(["SVR-PD"]), random.late(["SVR-PD"]))
    here, there = curves.cost("SVR-PD", level), random.cost("SVR-PD", level)
    evidence = (
        f"calls to {level:.1e}: {amount(here)} on the ring, {amount(there)} on the random graph"
    )
    return here <= 1.5 * there, evidence


def two_do_not_converge(curves: Curves, _: Beside) -> Judged:
    parts = {m: curves.last(m) / curves.first(m) for m in ("S-DIGing", "DGD")}
    evidence = ", ".join(f"{m} ends at {part:.1e} of the start" for m, part in parts.items())
    return all(not part < FALLEN for part in parts.values()), evidence


FIGURE = Figure(
    "ring",
    "A ring of 50 nodes",
    "Fig. 4",
    (
        Claim("the ring hardly slows SVR-PD down", ring_costs_little),
        Claim(
            "SVR-PD is clearly the fastest",
            fastest(
                ("SVR-PD",), tuple(m for m in LINEUP if not m.startswith("SVR-PD")), margin=1.5
            ),
        ),
        Claim("S-DIGing and stochastic DGD do not converge", two_do_not_converge),
    ),
    ring=True,
)

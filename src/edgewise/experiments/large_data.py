"""Figure 3: 8000 samples a node."""

from edgewise.experiments.claims import Beside, Claim, Curves, Judged, amount, fastest
from edgewise.experiments.figure import Figure
from edgewise.experiments.lineup import LINEUP, OTHERS

ES = ("SVR-PD, early stopping",)


def best_of_the_others(curves: Curves, _: Beside) -> Judged:
    level = curves.late(["GT-SVR", "Network-DANE"])
    costs = {m: curves.cost(m, level) for m in OTHERS}
    first = sorted(costs, key=costs.__getitem__)[:2]
    own = curves.cost("SVR-PD", level)
    evidence = ", ".join(f"{m} {amount(costs[m])}" for m in first)
    fine = set(first) == {"GT-SVR", "Network-DANE"} and own < min(costs.values())
    return fine, f"to {level:.1e}: {evidence}; SVR-PD {amount(own)}"


def stopping_changes_little(curves: Curves, _: Beside) -> Judged:
    level = curves.late(["SVR-PD", *ES])
    plain, early = curves.cost("SVR-PD", level), curves.cost(ES[0], level)
    evidence = f"to {level:.1e}: {amount(plain)} and {amount(early)} calls"
    return 0.8 <= early / plain <= 1.25, evidence


def asvr_is_ahead_at_first(curves: Curves, _: Beside) -> Judged:
    level = 1e-2
    asvr, svr = curves.cost("ASVR-PD", level), curves.cost("SVR-PD", level)
    return asvr < svr, f"to {level:.0e}: ASVR-PD {amount(asvr)}, SVR-PD {amount(svr)}"


FIGURE = Figure(
    "large-data",
    "Many samples a node",
    "Fig. 3",
    (
        Claim(
            "SVR-PD needs the fewest oracle calls",
            fastest(("SVR-PD",), tuple(m for m in LINEUP if not m.startswith("SVR-PD"))),
        ),
        Claim(
            "GT-SVR and Network-DANE are the best of the older methods, behind SVR-PD",
            best_of_the_others,
        ),
        Claim(
            "SVR-PD with and without early stopping are almost the same from here on",
            stopping_changes_little,
        ),
        Claim("ASVR-PD is slightly better than SVR-PD down to 1e-2", asvr_is_ahead_at_first),
    ),
    samples=8000,
)

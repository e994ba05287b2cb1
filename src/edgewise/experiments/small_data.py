"""Figure 2: 50 samples a node."""

from edgewise.experiments.claims import Beside, Claim, Curves, Judged, amount
from edgewise.experiments.figure import Figure
from edgewise.experiments.lineup import LINEUP


def ranking(curves: Curves) -> list[str]:
    """By calls to the level that half of the methods reach, the others by how far they came."""
    lows = sorted(curves.lowest(m) for m in LINEUP)
    level = lows[len(lows) // 2]
    return sorted(LINEUP, key=lambda m: (curves.cost(m, level), curves.lowest(m)))


def order_stays(curves: Curves, beside: Beside) -> Judged:
    """Kendall's tau of the two rankings, LSVR-PD left out, is at least one half."""
    here = [m for m in ranking(curves) if m != "LSVR-PD"]
    there = [m for m in ranking(beside("oracle", tuple(LINEUP))) if m != "LSVR-PD"]
    pairs = [(a, b) for k, a in enumerate(here) for b in here[k + 1 :]]
    kept = sum(there.index(a) < there.index(b) for a, b in pairs)
    agreement = 2 * kept / len(pairs) - 1
    return (
        agreement >= 0.5,
        f"agreement of the two orders {agreement:.2f} (1: the same, 0: by chance)",
    )


def lsvr_catches_up(curves: Curves, beside: Beside) -> Judged:
    """In calls at most 1.5 times SVR-PD's, and at least 1.5 times better than with many samples."""
    both = ("LSVR-PD", "SVR-PD")

    def ratio(c: Curves) -> float:
        level = c.late(both)
        return c.cost("LSVR-PD", level) / c.cost("SVR-PD", level)

    here, there = ratio(curves), ratio(beside("oracle", both))
    evidence = f"calls of LSVR-PD over SVR-PD's: {amount(here)}, with many samples {amount(there)}"
    return here <= 1.5 and there >= 1.5 * here, evidence


FIGURE = Figure(
    "small-data",
    "Few samples a node",
    "Fig. 2",
    (
        Claim("with few samples most methods rank as they do with many", order_stays),
        Claim("but LSVR-PD improves a lot, to about SVR-PD", lsvr_catches_up),
    ),
    samples=50,
)

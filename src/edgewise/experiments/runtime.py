"""Figure 6: seconds until the optimality gap is below 1e-4.

The gap is the divergence, which equals it where nodes agree and, unlike it, is never negative where
they do not. Methods run one at a time. A run may take five times the printed number of iterations:
with the printed parameters none would get there in 7000. Between two looks the logarithm of the gap
is taken to be straight.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from edgewise.experiments.claims import Beside, Claim, Curves, Judged
from edgewise.experiments.experiment import Job, Outcome
from edgewise.experiments.figure import SETTINGS, Figure
from edgewise.experiments.lineup import LINEUP
from edgewise.plotting.page import PageRun

GAP = 1e-4
FAMILY = ("SVR-PD", "SVR-PD, early stopping")


def fastest_by_the_clock(margin: float) -> Claim:
    def judge(curves: Curves, _: Beside) -> Judged:
        own = curves.quickest(FAMILY, GAP, "seconds")[1]
        rest = [m for m in LINEUP if m not in FAMILY]
        rival, other = curves.quickest(rest, GAP, "seconds")
        evidence = f"SVR-PD {clock(own)}, {rival} {clock(other)}"
        return margin * own <= other, evidence

    much = "many times (40 to 160) " if margin > 2 else "clearly "
    return Claim(f"by the clock SVR-PD is {much}faster than all other methods", judge)


def clock(seconds: float) -> str:
    return "never" if seconds == np.inf else f"{seconds:.3g} s"


@dataclass(frozen=True)
class Runtime(Figure):
    until: float = GAP
    patience: int = 5

    def run(self, job: Job) -> Outcome:
        outcome = Figure.run(self, replace(job, jobs=1))
        return replace(outcome, draw=lambda path: bars(outcome.runs, path))


def bars(runs: Sequence[PageRun], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(SETTINGS), figsize=(13, 5), sharex=True, sharey=True, layout="constrained"
    )
    for ax, setting in zip(panels, SETTINGS, strict=True):
        here = {r.method: r.trace for r in runs if r.setting == setting}
        curves = Curves(here)
        seconds = [curves.cost(m, GAP, "seconds") for m in here]
        spent = [here[m]["seconds"][-1] for m in here]
        there = [s < np.inf for s in seconds]
        ax.barh(
            list(here),
            [s if t else e for s, t, e in zip(seconds, there, spent, strict=True)],
            color=["tab:blue" if t else "0.8" for t in there],
        )
        ax.set(
            xscale="log", title=setting, xlabel=f"seconds to a gap of {GAP:.0e}; grey: not reached"
        )
        ax.invert_yaxis()
    figure.savefig(path, dpi=130)
    plt.close(figure)


FIGURES = (
    Runtime(
        "runtime-2000",
        "Seconds to a gap of 1e-4",
        "Fig. 6a",
        (fastest_by_the_clock(1.5),),
    ),
    Runtime(
        "runtime-8000",
        "Seconds to a gap of 1e-4, many samples a node",
        "Fig. 6b",
        (fastest_by_the_clock(40.0),),
        samples=8000,
    ),
)

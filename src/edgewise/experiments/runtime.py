"""Figure 6: seconds until the optimality gap is below 1e-4.

The gap is the divergence, which equals it where nodes agree and, unlike it, is never negative where
they do not. Methods run one at a time. One that draws samples may take five times the printed
number of iterations: with the printed parameters none would get there in 7000.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from edgewise.experiments.claims import Answer, Claim, compared, over_seeds
from edgewise.experiments.experiment import Job, Outcome
from edgewise.experiments.figure import SETTINGS, Figure
from edgewise.experiments.lineup import LINEUP
from edgewise.experiments.looks import look
from edgewise.experiments.oracle import NOT_SVR, SVR
from edgewise.experiments.passages import SECONDS, Curves, quickest
from edgewise.plotting.page import PageRun

GAP = 1e-4


def fastest_by_the_clock(margin: float) -> Claim:
    def test(c: Curves) -> Answer:
        level = GAP / c.first("SVR-PD")
        own = quickest(c.span(m, level, SECONDS) for m in SVR if m in c)
        rival = quickest(c.span(m, level, SECONDS) for m in NOT_SVR if m in c)
        return compared(own, rival, margin)

    much = f"many (40 to 160; judged: {margin:g}) times" if margin > 2 else "clearly (1.5 times)"
    return Claim(
        f"by the clock SVR-PD is {much} faster than all other methods",
        over_seeds(test, f"best of the others over SVR-PD, in seconds to a gap of {GAP:g}"),
    )


@dataclass(frozen=True)
class Runtime(Figure):
    until: float = GAP
    patience: int = 5

    def run(self, job: Job) -> Outcome:
        outcome = Figure.run(self, replace(job, jobs=1))
        return replace(outcome, draw=lambda path: dots(outcome.runs, path))


def dots(runs: Sequence[PageRun], path: Path) -> None:
    """A dot at the median over the runs, a line from the quickest to the slowest; what did not get
    there stands in a column by itself, at the right."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(SETTINGS), figsize=(13, 4.6), sharex=True, sharey=True, layout="constrained"
    )
    methods = [m for m in LINEUP if any(r.method == m for r in runs)]
    spent = [float(r.trace["seconds"][-1]) for r in runs]
    low, high = min(s for s in spent if s > 0) / 2, max(spent) * 2
    aside = high * (high / low) ** 0.12
    for ax, setting in zip(panels, SETTINGS, strict=True):
        for row, method in enumerate(methods):
            here = [r.trace for r in runs if (r.setting, r.method) == (setting, method)]
            level = GAP / float(here[0]["bregman"][0])
            times = np.sort([Curves({"": t}).span("", level, SECONDS).high for t in here])
            style = look(method) | {"linestyle": "", "markersize": 8}
            there = times[np.isfinite(times)]
            if len(there):
                ax.plot([there[0], there[-1]], [row, row], color=style["color"], linewidth=1.3)
            middle = times[len(times) // 2]
            if np.isfinite(middle):
                ax.plot(middle, row, **style)
            else:
                longest = max(float(t["seconds"][-1]) for t in here)
                ax.plot(aside, row, **(style | {"marker": ">", "markerfacecolor": "none"}))
                ax.annotate(f"in {longest:.2g} s", (high, row), ha="right", va="center", fontsize=8)
        ax.axvspan(high, high * (high / low) ** 0.24, color="0.93")
        ax.set(
            xscale="log",
            title=setting,
            xlabel=f"seconds to a gap of {GAP:.0e}; grey: not reached",
            xlim=(low, high * (high / low) ** 0.24),
            yticks=range(len(methods)),
            yticklabels=methods,
        )
        ax.grid(alpha=0.3)
    panels[0].invert_yaxis()
    figure.savefig(path, dpi=110)
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
        (fastest_by_the_clock(40.0), fastest_by_the_clock(1.5)),
        samples=8000,
    ),
)

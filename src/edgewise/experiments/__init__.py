"""The paper's experiments, and some beyond it: `edgewise reproduce NAME`."""

from edgewise.experiments import (
    biased,
    complexity,
    growth,
    large_data,
    linear_rates,
    nonconvex,
    oracle,
    pdmm,
    ring,
    runtime,
    sketched,
    small_data,
    unregularised,
)
from edgewise.experiments.experiment import Experiment
from edgewise.experiments.figure import Figure

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        oracle.FIGURE,
        small_data.FIGURE,
        large_data.FIGURE,
        ring.FIGURE,
        unregularised.FIGURE,
        *runtime.FIGURES,
    )
}
EXPERIMENTS: dict[str, Experiment] = {
    **FIGURES,
    **{
        e.name: e
        for e in (
            complexity.EXPERIMENT,
            growth.EXPERIMENT,
            sketched.EXPERIMENT,
            pdmm.EXPERIMENT,
            linear_rates.EXPERIMENT,  # from here on their source is BEYOND
            biased.EXPERIMENT,
            nonconvex.EXPERIMENT,
        )
    },
}


def named(name: str) -> Figure:
    return FIGURES[name]

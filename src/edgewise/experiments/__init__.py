"""The paper's experiments: `edgewise reproduce NAME`."""

from edgewise.experiments import (
    complexity,
    growth,
    large_data,
    linear_rates,
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
            linear_rates.EXPERIMENT,
        )
    },
}


def named(name: str) -> Figure:
    return FIGURES[name]

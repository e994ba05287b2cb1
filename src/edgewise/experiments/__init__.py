"""The paper's experiments, and some beyond it: `edgewise reproduce NAME`."""

from edgewise.experiments import (
    biased,
    complexity,
    large_data,
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
    **{e.name: e for e in (complexity.EXPERIMENT, sketched.EXPERIMENT, pdmm.EXPERIMENT)},
    **{e.name: e for e in (biased.EXPERIMENT, nonconvex.EXPERIMENT)},  # their source is BEYOND
}


def named(name: str) -> Figure:
    return FIGURES[name]

"""What an experiment is, and what it comes to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from edgewise.graph.graph import Graph
from edgewise.plotting.page import PageRun

PRINTED, TUNED, AUTOMATIC = "as printed", "tuned", "automatic"
WORDS: dict[bool | None, str] = {True: "holds", False: "does not hold", None: "undecided"}
BEYOND = "beyond the paper"  # the source of an experiment that is not in it


@dataclass(frozen=True, eq=False)  # itself and no other: what is kept is kept by it
class Scale:
    """How large: the paper's numbers, or a fifth of its samples, rounds and L/tau, which is what
    convergence depends on, and a twentieth of its features, which it does not."""

    name: str
    features: int  # n
    samples: dict[int, int]  # K, by the paper's
    rounds: int  # the paper's maximum number of iterations
    longest: int  # epoch of SVR-PD, the paper's maxiter
    looks: int  # in so many rounds; divides them, so that all stretches are one program
    dtype: str
    easier: float = 1.0  # factor on tau
    seeds: int = 1  # runs of every method that draws samples
    nodes: int = 50
    edges: int = 250


PAPER = Scale("paper", 2000, {2000: 2000, 50: 50, 8000: 8000}, 7000, 1000, 70, "float32")
SMALL = Scale("small", 100, {2000: 400, 50: 10, 8000: 1600}, 1400, 200, 70, "float64", 5.0, 5)
SCALES = {s.name: s for s in (SMALL, PAPER)}


@dataclass(frozen=True)
class Job:
    """How an experiment is to be run."""

    scale: Scale
    folder: Path  # what it makes goes here, and what is there already is not made again
    data: str | None = None  # the epsilon file; None: rows like it
    seed: int = 1
    jobs: int = 1  # methods at a time
    tune_at: str = "small"  # the scale at which steps are tuned
    progress: bool | None = None
    tunings: Path | None = None  # where tuned steps are kept, for all experiments; default: beside

    def tuning_file(self) -> Path:
        return (self.tunings or self.folder.parent) / f"tuning-{self.tune_at}.json"


@dataclass(frozen=True)
class Verdict:
    """A claim, and whether it holds in each setting; None where that is undecided."""

    claim: str
    holds: Mapping[str, bool | None]
    numbers: str  # what was measured, and why it is undecided

    def __str__(self) -> str:
        where = {word: [s for s, h in self.holds.items() if h is k] for k, word in WORDS.items()}
        where = {word: settings for word, settings in where.items() if settings}
        if len(where) == 1:
            return next(iter(where))
        return "; ".join(f"{word} {', '.join(settings)}" for word, settings in where.items())


@dataclass(frozen=True)
class Outcome:
    """What an experiment came to: runs for curves, verdicts for claims."""

    runs: list[PageRun]
    verdicts: list[Verdict]
    graph: Graph | None = None
    about: dict[str, Any] = field(default_factory=dict)  # data, parameters, seeds
    draw: Callable[[Path], None] | None = None  # its picture, where curves alone do not say it
    table: list[dict[str, Any]] = field(default_factory=list)  # rows alike, to be printed and kept


class Experiment(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def source(self) -> str: ...  # where it is in the paper, or BEYOND

    def run(self, job: Job) -> Outcome: ...

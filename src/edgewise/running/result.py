"""What a run came to."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.running.trace import Trace


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    x: np.ndarray  # (n,) the mean of the nodes' models, settled where they have a penalty: with its
    # exact zeros, on its constraints (`Evaluator.settled`)
    X: np.ndarray = field(repr=False)  # (V, n) each node's model
    trace: Trace = field(repr=False)
    converged: bool
    message: str
    duals: np.ndarray = field(repr=False)  # (V, n) each node's sum of duals: `solve(duals=...)`
    method: Method = field(repr=False)  # with the steps that were used
    apart: np.ndarray = field(repr=False)  # (T, V) distance of each node from the mean, by row
    graph: Graph = field(repr=False)
    method_note: str = ""  # which method "auto" came to, and why; nothing where one was named

    def plot(self, path: str | Path | None = None) -> Any:
        """The nodes on their graph, and how they came to agree; saved where `path` says."""
        from edgewise.plotting.runs import plot_result

        return plot_result(self, path)

    def animate(self, path: str | Path, frames: int = 60) -> Path:
        """The nodes' disagreement over the graph as it shrinks, as .gif or .html."""
        from edgewise.plotting.runs import animate_result

        return animate_result(self, Path(path), frames)

"""Who does a command: this process, or the ranks of an MPI job together."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import edgewise as ew


class Ranks:
    def __init__(self, engine: ew.MPI | None) -> None:
        self.engine = engine
        self.speaks = engine is None or engine.rank == 0

    def together(self) -> AbstractContextManager[None]:
        return nullcontext() if self.engine is None else self.engine.together()

    def once(self, do: Callable[[], Path]) -> Path:
        """A path that one of them makes and all know."""
        if self.engine is None:
            return do()
        path = self.engine.agreed(lambda: do() if self.speaks else Path())
        return Path(self.engine.tell(str(path)))

    def held(self, problem: ew.Problem, graph: ew.Graph) -> ew.Problem:
        """The problem of the nodes that are here."""
        return problem if self.engine is None else self.engine.place(problem, graph)[1]

    def of_all(self, problem: ew.Problem, graph: ew.Graph, own: np.ndarray) -> np.ndarray:
        """(V,) from numbers of the nodes that are here."""
        if self.engine is None:
            return own
        return self.engine.gather(self.engine.place(problem, graph)[0].nodes, own)

    def total(self, sums: dict[str, Any]) -> dict[str, Any]:
        return sums if self.engine is None else self.engine.total(sums)

"""How the dual of each edge moves from look to look: what only a neighbour's messages can do to it.

A neighbour's next message and what it was sent before say its model: m_ji + m_ij = 2 rho x_j, the
identity of the edge. So the dual c_ij moves by rho (x_i - x_j) a round, and how far it moves
between two looks is the residual of that identity: it goes to zero at every edge of an honest run,
however unlike data are. It costs nothing on the wire.
"""

from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np

WINDOW = 20  # looks
STRAIGHT = 0.9  # of the way that a dual goes in a window, that is forward
STEADY = 0.7  # times the pace of the window's first quarter, that its last has at least
LARGE = 0.25  # of what a peer's own data pull at an edge, that a dual gains in a window
AT_BOUND = 1 - 1e-6  # of a radius


class EdgeWatch:
    """One peer's edges."""

    def __init__(self) -> None:
        self.last: dict[int, np.ndarray] = {}  # duals at the last look, by neighbour
        self.moves: dict[int, deque[np.ndarray]] = {}

    def see(self, duals: Mapping[int, np.ndarray]) -> None:
        """After a look. Neighbours that are gone are forgotten."""
        known = {j: deque(self.moves.get(j, ()), WINDOW) for j in duals}
        for j, dual in duals.items():
            if j in self.last and self.last[j].shape == dual.shape:
                known[j].append(dual - self.last[j])
        self.last, self.moves = {j: np.array(d) for j, d in duals.items()}, known

    @property
    def moved(self) -> dict[int, float]:
        """How far each went at the last look."""
        return {j: float(np.linalg.norm(m[-1])) for j, m in self.moves.items() if m}

    def pulls_on(self, own_pull: float) -> str:
        """Of the edge whose dual went farthest, whether it goes on and on: an honest one's slows
        down."""
        full = {j: np.stack(m) for j, m in self.moves.items() if len(m) == WINDOW}
        if not full or not own_pull:
            return ""
        j, moves = max(full.items(), key=lambda item: np.linalg.norm(item[1], axis=1).sum())
        paces = np.linalg.norm(moves, axis=1)
        way, gained = paces.sum(), np.linalg.norm(moves.sum(0))
        first, last = paces[: WINDOW // 4].mean(), paces[-(WINDOW // 4) :].mean()
        if not (gained >= STRAIGHT * way and last >= STEADY * first and gained >= LARGE * own_pull):
            return ""
        return (
            f"the edge to peer {j} pulls harder and harder one way, at {WINDOW} looks in a row: it "
            "has nothing to settle at, or lies, or somebody behind it does"
        )


def at_bound(pulls: Mapping[int, float], radius: Iterable[float]) -> str:
    """Edges that pull with all that they may have: there consensus gives way."""
    bounds = zip(pulls.items(), radius, strict=False)
    held = [(j, bound) for (j, pull), bound in bounds if pull >= AT_BOUND * bound > 0]
    if not held:
        return ""
    them = ", ".join(str(j) for j, _ in held)
    most = max(float(bound) for _, bound in held)
    return (
        f"the edges to peers {them} pull with all that their radius allows ({most:.3g} at most): "
        "data there are unlike this peer's, or somebody lies; the models need not be equal"
    )

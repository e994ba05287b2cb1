"""How large a neighbour's numbers may be.

What is within the bounds of the format can still ruin a run: an edge's messages are its whole dual
state, some of whose parts never die down, so that a 1e12 in them leaves its rounding, 1e-4, for
ever. So a peer finds out how large its own messages are, on its own data alone (`node.own_size`),
and says so in its greeting. A message may be a million times as large as the larger of both ends'
sizes, of which the neighbour's counts up to a thousand times this peer's own: so much may data of
honest peers differ, and so little of it stays in numbers of 16 digits. Nobody sends a neighbour
more than half of what that one takes: who was lied to within these bounds is not refused for it.
What is cut so is no message of any optimum, and a peer that cuts does not call itself converged.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from edgewise.peers.transport.frames import Frame, ProtocolError

MORE = {np.dtype("float64"): 1e6, np.dtype("float32"): 1e4}  # times the larger size of both ends
MOST_TOLD = 1e3  # times this peer's own size, that a neighbour's counts for
PART_SENT = 0.5  # of that, of its own size: a wire may round up
BODY_MORE, HEAD_MOST = 1e14, 1e12  # of news: matrices are taken in anew, and leave nothing


class Bounds:
    """What one peer takes; all of it before its own size is known, or where that is zero."""

    def __init__(self, dtype: Any = np.float64) -> None:
        """dtype: of the numbers that a fit is computed in."""
        self.more = MORE[np.dtype(dtype)]
        self.told: np.ndarray | None = None  # to neighbours, of its sizes
        self.sizes: np.ndarray | None = None  # (k,) of the vectors of a message
        self.body = 0.0  # of a body of news

    def grown(self, sizes: np.ndarray) -> None:
        """Its own messages have become larger, and its model is sound."""
        if self.sizes is not None:
            self.sizes = np.maximum(self.sizes, sizes)

    def known(self, sizes: np.ndarray, body: float) -> None:
        """Of its own messages, found before anybody is told."""
        self.sizes = self.told = sizes
        self.body = body

    def most(self, told: np.ndarray | None) -> np.ndarray | None:
        """(k,) of a message from a neighbour that has told this of its own."""
        return None if self.sizes is None else taken(self.more, self.sizes, told)

    def clipped(self, vectors: np.ndarray, other: np.ndarray | None) -> np.ndarray:
        """(k, n) as they may go to a neighbour that has told these sizes: the same array, unless
        that one would refuse it."""
        if self.told is None or other is None or len(other) != len(self.told):
            return vectors
        most = PART_SENT * taken(self.more, other, self.told)
        if not (np.abs(vectors).max(axis=1, initial=0) > most).any():
            return vectors
        return np.clip(vectors, -most[:, None], most[:, None])

    def too_far_apart(self, told: np.ndarray | None) -> float:
        """How many times larger one end's messages are, where the other would never take them;
        else 0."""
        own = self.sizes
        if own is None or told is None or len(told) != len(own):
            return 0.0
        both = (own > 0) & (told > 0)
        apart = np.maximum(own[both] / told[both], told[both] / own[both]).max(initial=0)
        return float(apart) if apart > PART_SENT * self.more * MOST_TOLD else 0.0

    def require(self, frame: Frame, told: np.ndarray | None, head: int) -> None:
        """Raises ProtocolError where a message has numbers beyond that."""
        most = self.most(told)
        if most is None or self.sizes is None:
            return
        found = np.abs(frame.payload).max(axis=1, initial=0)
        if (found > most).any():
            k = int(np.argmax(found / most))
            raise ProtocolError(
                f"numbers up to {found[k]:.0e}, where this peer's own are about "
                f"{self.sizes[k]:.0e}: it lies, or its data are in other units"
            )
        told_head, told_body = frame.news[:head], frame.news[head:]
        if np.abs(told_head).max(initial=0) > HEAD_MOST:
            raise ProtocolError("news with numbers that no run comes to")
        if self.body > 0 and np.abs(told_body).max(initial=0) > BODY_MORE * self.body:
            raise ProtocolError(
                f"curvatures up to {np.abs(told_body).max():.0e}, where this peer's own are about "
                f"{self.body:.0e}"
            )


def taken(more: float, own: np.ndarray, told: np.ndarray | None) -> np.ndarray:
    """(k,) the largest numbers that a peer of these sizes takes from one that has told those."""
    theirs = np.zeros_like(own) if told is None or len(told) != len(own) else told
    larger = np.maximum(own, np.minimum(theirs, np.where(own > 0, MOST_TOLD * own, np.inf)))
    return np.where(larger > 0, more * larger, np.inf)


def sizes_in(said: Any) -> np.ndarray | None:
    """Of a greeting; None where it has none that can be used."""
    try:
        sizes = np.array([float(size) for size in said], np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    usable: Iterable[bool] = np.isfinite(sizes) & (sizes >= 0)
    return sizes if all(usable) else None
